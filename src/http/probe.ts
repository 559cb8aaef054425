// Asks a service one question as a client would, over TCP or a unix socket, with or without TLS.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { codeOf } from '../core/events.ts';
import { request } from './engine/node-http.ts';

export interface ProbeTarget {
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Undefined for plain HTTP. `pinned` is the one certificate (DER) to show; else it is one that the system trusts. */
  readonly tls: { readonly pinned?: Uint8Array } | undefined;
  /** As the Host header says it. */
  readonly host: string;
  readonly path: string;
}

/** Why there is no answer, in a few words for the operator. */
export class ProbeError extends Error {}

/** The answer to a GET, whatever its status. Rejects with a ProbeError when there is none in time. */
export async function probe(target: ProbeTarget, timeoutMs: number): Promise<{ status: number; body: string }> {
  const inTime = AbortSignal.timeout(timeoutMs);
  let socket: Socket | undefined;
  try {
    socket = target.tls === undefined ? connectPlain({ ...target.place }) : connectSecurely(target);
    await once(socket, target.tls === undefined ? 'connect' : 'secureConnect', { signal: inTime });
    const shown = target.tls?.pinned && (socket as TLSSocket).getPeerX509Certificate()?.raw;
    if (target.tls?.pinned !== undefined && shown?.compare(target.tls.pinned) !== 0) {
      throw new ProbeError('it shows another certificate than the one expected');
    }
    return await ask(socket, target, inTime);
  } catch (error) {
    if (inTime.aborted) throw new ProbeError(`no answer within ${timeoutMs / 1000} s`);
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  } finally {
    // Nobody waits for what comes after the answer.
    socket?.on('error', () => {}).destroy();
  }
}

function connectSecurely({ place, tls }: ProbeTarget): TLSSocket {
  // An address is no name to be asked for (RFC 6066 section 3).
  const servername = 'host' in place && isIP(place.host) === 0 ? { servername: place.host } : {};
  const isPinned = tls?.pinned !== undefined;
  return connectTls({ ...place, ...servername, rejectUnauthorized: !isPinned, ALPNProtocols: ['http/1.1'] });
}

/** More than any answer of this service. */
const MAX_BODY_BYTES = 64 * 1024;

async function ask(socket: Socket, { host, path }: ProbeTarget, signal: AbortSignal) {
  const headers = { Host: host, Accept: 'application/json' };
  const asked = request({ createConnection: () => socket, path, headers, signal }).end();
  const [answer] = await once(asked, 'response', { signal }) as [IncomingMessage];
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw new ProbeError('its answer is too long');
    parts.push(part);
  }
  return { status: answer.statusCode!, body: Buffer.concat(parts).toString() };
}

/** Each with the codes of the system and of node that it stands for; those of node's HTTP parser begin with HPE_. */
const REASONS: Readonly<Record<string, readonly string[]>> = {
  'nothing listens there': ['ECONNREFUSED'],
  'there is no such socket': ['ENOENT'],
  'this user may not connect to it': ['EACCES'],
  'there is no host of that name': ['ENOTFOUND'],
  'the name could not be resolved': ['EAI_AGAIN'],
  'the host cannot be reached': ['EHOSTUNREACH', 'ENETUNREACH'],
  'the connection was closed without an answer': ['ECONNRESET', 'EPIPE'],
  'it does not speak TLS': ['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'],
  'its certificate is for another name': ['ERR_TLS_CERT_ALTNAME_INVALID'],
  'its certificate has expired': ['CERT_HAS_EXPIRED'],
  'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name it': ['DEPTH_ZERO_SELF_SIGNED_CERT'],
  'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name its authority': [
    'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ],
};

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return 'it does not speak HTTP';
  const [reason] = Object.entries(REASONS).find(([, codes]) => codes.includes(code)) ?? [];
  return reason ?? `it cannot be asked (${code})`;
}
