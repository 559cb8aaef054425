// An answer as the handlers give it: status, the headers beside the common ones, and a body. Only reply-writer.ts turns
// it into bytes on a socket.

import type { CompactBytes } from '../../core/content.ts';
import { type RateStanding, Refusal, type RefusalName } from '../../core/refusals.ts';
import type { Awaitable } from '../../core/time.ts';
import { StoreError, type StoreFailure } from '../../store/failures.ts';
import type { RouteName } from '../routes.ts';
import type { Request } from './request.ts';

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

// From what a rule or a handler threw to the answer: the one place where errors become words for callers. The words and
// statuses are core/refusals.ts.

const REFUSAL_OF_STORE: Readonly<Record<StoreFailure, RefusalName>> = {
  full: 'storageFull',
  unavailable: 'storeUnavailable',
};

/** Long enough for a busy disk to recover, short enough for a client to wait. */
const STORE_RETRY_SECONDS = 5;

/**
 * The refusal that an error stands for: itself, or what the store's condition means to a caller. Undefined for
 * everything unexpected, about which a caller learns nothing.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (!(error instanceof StoreError)) return undefined;
  const retryAfterSeconds = error.failure === 'unavailable' ? STORE_RETRY_SECONDS : undefined;
  return new Refusal(REFUSAL_OF_STORE[error.failure], {}, { retryAfterSeconds });
}

/** One line of JSON: `error` first, then `hint`, so that a shell can take both out; then other fields in snake_case. */
export function refusalReply(refusal: Refusal, headers: Readonly<Record<string, string>> = {}): Reply {
  const { hint, ...fields } = refusal.fields;
  const value: Record<string, string | number | boolean> = { error: refusal.message };
  if (hint !== undefined) value['hint'] = hint;
  for (const [name, field] of Object.entries(fields)) value[snakeCase(name)] = field;
  const reply = jsonReply(refusal.status, value, { ...termsHeaders(refusal), ...headers });
  return { ...reply, refusal: refusal.refusal };
}

function termsHeaders({ terms }: Refusal): Record<string, string> {
  const rate = terms.rate === undefined || terms.rate === null ? {} : rateHeaders(terms.rate);
  if (terms.retryAfterSeconds === undefined) return rate;
  // RFC 9110 section 10.2.3: a whole number; 0 would ask to come back at once.
  return { ...rate, 'Retry-After': String(Math.max(1, Math.ceil(terms.retryAfterSeconds))) };
}

/** The contract's headers of a rate-limited endpoint. */
export function rateHeaders({ limit, remaining, resetAtSeconds }: RateStanding): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetAtSeconds),
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// What a handler is: a function from a request to a reply. It throws a Refusal to say no; anything else that it throws
// is the server's own failure.

export type Handler = (request: Request) => Awaitable<Reply>;

/** One handler for every route of the table, by name. */
export type Handlers = Readonly<Record<RouteName, Handler>>;
