// Asks a service one question as a client would, over TCP or a unix socket, with or without TLS.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { JoinedBytes } from '../core/content.ts';
import { codeOf } from '../core/events.ts';
import { request as httpRequest } from './engine/node-http.ts';

export interface ProbeTarget {
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Undefined for plain HTTP. The service must show `pinned` (DER) if given, else a certificate the system trusts. */
  readonly tls: { readonly pinned?: Uint8Array } | undefined;
  /** As the Host header says it. */
  readonly host: string;
  readonly path: string;
}

/** Why there is no answer, in a few words for the operator. */
export class ProbeError extends Error {}

/** More than any answer of this service. */
const MAX_BODY_BYTES = 64 * 1024;

/** The answer to a GET, whatever its status. Rejects with a ProbeError when there is none in time. */
export async function probe({ place, tls, host, path }: ProbeTarget, timeoutMs: number) {
  const signal = AbortSignal.timeout(timeoutMs);
  const asked = (tls === undefined ? httpRequest : httpsRequest)({
    ...('path' in place ? { socketPath: place.path } : place),
    path, signal, agent: false, headers: { Host: host, Accept: 'application/json' },
    rejectUnauthorized: tls?.pinned === undefined,
  }).end();
  try {
    const [answer] = await once(asked, 'response') as [IncomingMessage];
    const shown = tls?.pinned && (answer.socket as TLSSocket).getPeerX509Certificate()?.raw;
    if (tls?.pinned !== undefined && shown?.compare(tls.pinned) !== 0) {
      throw new ProbeError('it shows another certificate than the one expected');
    }
    const body = new JoinedBytes(MAX_BODY_BYTES);
    for await (const part of answer as AsyncIterable<Uint8Array>) {
      if (body.length + part.length > MAX_BODY_BYTES) throw new ProbeError('its answer is too long');
      body.add(part);
    }
    return { status: answer.statusCode!, body: Buffer.from(body.take()).toString() };
  } catch (error) {
    if (signal.aborted) throw new ProbeError(`no answer within ${timeoutMs / 1000} s`);
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  } finally {
    // Nobody waits for what comes after the answer.
    asked.on('error', () => {}).destroy();
  }
}

/** Reasons, each with the codes (of the system or node) that mean it; those of node's HTTP parser begin with HPE_. */
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
