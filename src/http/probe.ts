// Asks a service one question as a client would, over TCP or a unix socket, with or without TLS. Does not judge the
// answer.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { request } from './engine/node-http.ts';

export interface ProbeTarget {
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  /**
   * Undefined for none. With `pinned`, the server must show exactly this certificate (DER), whatever it is called and
   * whoever issued it; without, one of that name which the system trusts.
   */
  readonly tls: { readonly pinned?: Uint8Array } | undefined;
  /** As the Host header says it. */
  readonly host: string;
  readonly path: string;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
}

/** Why there is no answer, in a few words for the operator. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
}

/** More than any answer worth asking for here; what sends more is something else. */
const MAX_BODY_BYTES = 64 * 1024;

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOENT', 'there is no such socket'],
  ['EACCES', 'this user may not connect to it'],
  ['ENOTFOUND', 'there is no host of that name'],
  ['EAI_AGAIN', 'the name could not be resolved'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the host cannot be reached'],
  ['ECONNRESET', 'the connection was closed without an answer'],
  ['EPIPE', 'the connection was closed without an answer'],
  ['EPROTO', 'it does not speak TLS'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'it does not speak TLS'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name it'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name its authority'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name its authority'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'its certificate is not trusted; NODE_EXTRA_CA_CERTS can name its authority'],
]);

/** The answer to a GET, whatever its status. Rejects with a ProbeError when there is none in time. */
export async function probe(target: ProbeTarget, timeoutMs: number): Promise<ProbeAnswer> {
  const inTime = AbortSignal.timeout(timeoutMs);
  let socket: Socket | undefined;
  try {
    socket = target.tls === undefined ? connectPlain({ ...target.place }) : connectSecurely(target);
    await once(socket, target.tls === undefined ? 'connect' : 'secureConnect', { signal: inTime });
    if (target.tls?.pinned !== undefined) requireSame(socket as TLSSocket, target.tls.pinned);
    return await ask(socket, target, inTime);
  } catch (error) {
    if (inTime.aborted) throw new ProbeError(`no answer within ${timeoutMs / 1000} s`);
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  } finally {
    // What it says after the answer, or after nobody waits for one, concerns nobody.
    socket?.on('error', () => {}).destroy();
  }
}

function connectSecurely({ place, tls }: ProbeTarget): TLSSocket {
  // An address is no name to be asked for (RFC 6066 section 3).
  const servername = 'host' in place && isIP(place.host) === 0 ? { servername: place.host } : {};
  const isPinned = tls?.pinned !== undefined;
  return connectTls({ ...place, ...servername, rejectUnauthorized: !isPinned, ALPNProtocols: ['http/1.1'] });
}

function requireSame(socket: TLSSocket, pinned: Uint8Array): void {
  const shown = socket.getPeerX509Certificate()?.raw;
  if (shown === undefined || Buffer.compare(shown, pinned) !== 0) {
    throw new ProbeError('it shows another certificate than the one expected');
  }
}

async function ask(socket: Socket, { host, path }: ProbeTarget, signal: AbortSignal): Promise<ProbeAnswer> {
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
  return { status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString() };
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  // The codes of node's HTTP parser.
  if (code.startsWith('HPE_')) return 'it does not speak HTTP';
  return REASONS.get(code) ?? `it cannot be asked (${code})`;
}
