// The address of a service as people give it on the command line: a strict reading, by the grammar of addresses that
// the service itself finds (host.ts, URL_PREFIX), so that what passes can be shown and put into a script. Does not
// connect to it.

import { isWellFormedHost } from './host.ts';

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
