// Host names with an optional port, as in the Host header and in a URL: a strict reading, so that what passes can be
// shown.

import { isIPv6 } from 'node:net';

/**
 * Letters, digits, dots, hyphens and underscores: a name or IPv4. The longest name of the DNS has 253 characters;
 * systemd-resolved has names such as `_gateway`.
 */
const NAMED = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?(?::(\d{1,5}))?$/;
const BRACKETED = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/;
const MAX_PORT = 65535;

/** Whether the text is `name[:port]`, `v4[:port]` or `[v6][:port]`, and so is safe to show and to put into a script. */
export function isWellFormedHost(text: string): boolean {
  const named = NAMED.exec(text);
  if (named !== null) return isPort(named[1]);
  const bracketed = BRACKETED.exec(text);
  return bracketed !== null && isIPv6(bracketed[1] ?? '') && isPort(bracketed[2]);
}

/** The address and port as a URL writes them. */
export function hostOf(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

function isPort(digits: string | undefined): boolean {
  return digits === undefined || (Number(digits) >= 1 && Number(digits) <= MAX_PORT);
}

// The address of a service as people give it on the command line: a strict reading, by the grammar of addresses that
// the service itself finds (host.ts, URL_PREFIX), so that what passes can be shown and put into a script. Does not
// connect to it.

export interface ServiceUrl {
  /** As given, without a slash at its end. */
  readonly url: string;
  readonly isTls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The path under which the service is published; empty, or `/paste`. */
  readonly prefix: string;
}

const FORM = /^(https?):\/\/([^/]+)((?:\/[A-Za-z0-9._~-]+)*)\/?$/;
const HOST_AND_PORT = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/;

/** Undefined for anything else: other schemes, credentials, a query, a fragment, spaces. */
export function parseServiceUrl(text: string): ServiceUrl | undefined {
  const [, scheme, authority = '', prefix = ''] = FORM.exec(text) ?? [];
  if (scheme === undefined || !isWellFormedHost(authority)) return undefined;
  const [, bracketed, name = '', port] = HOST_AND_PORT.exec(authority) ?? [];
  const isTls = scheme === 'https';
  const defaultPort = isTls ? 443 : 80;
  return {
    url: `${scheme}://${authority}${prefix}`,
    isTls,
    host: bracketed ?? name,
    port: port === undefined ? defaultPort : Number(port),
    prefix,
  };
}
