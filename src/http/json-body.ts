// Small JSON bodies, such as those of the PKI's endpoints: read whole, within a bound. Content of pastes is never read like this.

import { JoinedBytes } from '../core/bytes.ts';
import { Refusal } from '../core/refusals.ts';
import { KIB } from '../core/time.ts';
import { isJson } from './input.ts';
import type { Request, RequestBody } from './request.ts';

/** A certificate signing request of 8 KiB with every newline escaped, and room for the rest. */
const MAX_BODY_BYTES = 32 * KIB;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export type JsonObject = Readonly<Record<string, unknown>>;

/** The object that the body is; an empty one when there is no body. Refuses everything else. */
export async function readJsonObject(body: RequestBody): Promise<JsonObject> {
  const bytes = new JoinedBytes(MAX_BODY_BYTES);
  await body.pipe((piece) => {
    if (bytes.length + piece.length > MAX_BODY_BYTES) throw new Refusal('bodyTooLarge', { maxSize: MAX_BODY_BYTES });
    bytes.add(piece);
  });
  if (bytes.length === 0) return {};
  const value = parse(bytes.take());
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('bodyInvalid');
  return value as JsonObject;
}

/**
 * The same of a request that must say that its body is JSON: pages of other sites can have a browser send other types
 * without asking first (https://fetch.spec.whatwg.org/#cors-safelisted-request-header). An empty body needs no type.
 */
export async function jsonBodyOf({ headers, body }: Pick<Request, 'headers' | 'body'>): Promise<JsonObject> {
  if (isJson(headers.single('content-type'))) return readJsonObject(body);
  if ((body.declaredBytes ?? 0) > 0) throw notJson();
  await body.pipe(({ length }) => {
    if (length > 0) throw notJson();
  });
  return {};
}

function notJson(): Refusal {
  return new Refusal('bodyTypeUnsupported', { hint: "send JSON and say so: -H 'Content-Type: application/json'" });
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new Refusal('bodyInvalid');
  }
}

/** A member's text; undefined when it is absent or null. `refuse` says no to anything that is not text. */
export function textMember(object: JsonObject, name: string, refuse: () => Refusal): string | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw refuse();
  return value;
}
