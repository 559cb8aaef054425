// An answer as the handlers give it: status, the headers beside the common ones, and a body. Only reply-writer.ts turns
// it into bytes on a socket.

import type { CompactBytes } from '../core/bytes.ts';
import type { RefusalName } from '../core/refusals.ts';

/** Content whose length is known before it is read. `close` is called exactly once, whatever happens. */
export interface StreamedBody {
  readonly bytes: number;
  readonly chunks: () => AsyncIterable<Uint8Array>;
  readonly close: () => void;
}

export type ReplyBody = string | CompactBytes | StreamedBody | null;

export interface Reply {
  readonly status: number;
  /** Not Content-Length, Connection and Date: framing is the server's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReplyBody;
  /** Why the service says no; for the metrics. */
  readonly refusal?: RefusalName;
}

/** JSON on one line, ended by a newline. The value has its final member names already (present.ts). */
export function jsonReply(status: number, value: object, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: `${JSON.stringify(value)}\n` };
}

/** One line of text for people and shells. */
export function textReply(status: number, line: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...headers }, body: `${line}\n` };
}

export function emptyReply(status: number, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers, body: null };
}
