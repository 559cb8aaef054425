// What requests say, as typed values: headers of pastes, query parameters, ranges and conditions, small JSON bodies.

import { JoinedBytes } from '../core/content.ts';
import { orUndefined } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { KIB } from '../core/time.ts';
import type { Work } from '../pastes/admission.ts';
import type { Page } from '../store/store.ts';
import type { HeaderLines } from './engine/head.ts';
import type { Request } from './engine/request.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function saysYes(headers: HeaderLines, name: 'x-burn-after-read' | 'x-remove-password'): boolean {
  return /^(?:true|1|yes)$/i.test(headers.single(name) ?? '');
}

/** Seconds; undefined for anything but a positive decimal integer. However large, it is a number that can be capped. */
export function requestedTtlSeconds(headers: HeaderLines): number | undefined {
  const value = headers.single('x-expiry') ?? '';
  return /^0*[1-9]\d*$/.test(value) ? Number(value) : undefined;
}

/** Undefined when absent or empty. Header values arrive as one character a byte (RFC 9110 section 5.5), here UTF-8. */
export function password(headers: HeaderLines): string | undefined {
  const value = headers.single('x-paste-password') ?? '';
  if (value === '') return undefined;
  const text = orUndefined(() => utf8.decode(Buffer.from(value, 'latin1')));
  if (text === undefined) throw new Refusal('requestMalformed', { hint: 'X-Paste-Password must be UTF-8 text' });
  return text;
}

export function work(headers: HeaderLines): Work {
  return { token: headers.single('x-pow-token'), solution: headers.single('x-pow-solution') };
}

/** With or without parameters. */
export function isOfType(contentType: string | undefined, type: `${'application' | 'multipart'}/${string}`): boolean {
  return contentType?.split(';', 1)[0]!.trim().toLowerCase() === type;
}

/** Refuses encoded content: a decoder is an attack surface, and what was sent must be stored as it is. */
export function requireWholeContent(headers: HeaderLines): void {
  // A part (RFC 9110 section 14.5), as `curl -C` sends, would replace the whole.
  if (headers.all('content-range').length > 0) {
    throw new Refusal('requestMalformed', { hint: 'send the whole content, without Content-Range' });
  }
  if ((headers.single('content-encoding') || 'identity').trim().toLowerCase() === 'identity') return;
  throw new Refusal('contentEncodingUnsupported', { hint: 'send the content without Content-Encoding' });
}

/** The value of a query parameter; null when absent. Given twice it is refused: nobody can say which one was meant. */
export function single(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal('queryInvalid', { hint: `give ${name} once`, parameter: name });
  return values[0] ?? null;
}

const { MIN_SAFE_INTEGER: LEAST, MAX_SAFE_INTEGER: MOST } = Number;

/** A whole number, clamped to the bounds; the fallback when absent. */
export function integer(query: URLSearchParams, name: string, fallback: number, least = LEAST, most = MOST): number {
  const value = single(query, name);
  if (value === null) return fallback;
  if (/^-?\d+$/.test(value)) return Math.min(Math.max(Number(value), least), most);
  throw new Refusal('queryInvalid', { hint: `${name} must be an integer`, parameter: name });
}

/** `limit` from 1 to the maximum, `offset` from 0; beyond that they are clamped. */
export function page(query: URLSearchParams, { fallback, maximum }: { fallback: number; maximum: number }): Page {
  return { limit: integer(query, 'limit', fallback, 1, maximum), offset: integer(query, 'offset', 0, 0) };
}

/** `after` and `before` as exclusive bounds that let everything through when absent. */
export function timeBounds(query: URLSearchParams): { after: number; before: number } {
  return { after: integer(query, 'after', LEAST), before: integer(query, 'before', MOST) };
}

/** The `type` filter for `mime_type GLOB :pattern`, in lower case as media types are; null when absent. */
export function typeGlob(query: URLSearchParams): string | null {
  const glob = single(query, 'type');
  if (glob === null) return null;
  // NUL would end SQLite's pattern; matching takes up to pattern times type steps; a bracket would begin a set.
  if (/^[^\0-\x1f\x7f]{1,64}$/.test(glob)) return glob.toLowerCase().replaceAll('[', '[[]').replace(/\*+/g, '*');
  const hint = 'type is a glob of at most 64 characters, such as image/*';
  throw new Refusal('queryInvalid', { hint, parameter: 'type' });
}

/** `whole` if it is absent, not understood or has several ranges (RFC 9110 section 14.2); `end` is exclusive. */
export function parseRange(header: string | undefined, size: number) {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return 'whole';
  if (first !== '' && last !== '' && Number(last) < Number(first)) return 'whole';
  const start = first === '' ? Math.max(size - Number(last), 0) : Number(first);
  if (start >= size) return 'unsatisfiable';
  return { start, end: first === '' || last === '' ? size : Math.min(Number(last) + 1, size) };
}

/** Whether the field names the entity tag, `If-None-Match` also weakly; `*` names any (RFC 9110 section 13.1). */
export function namesEtag(headers: HeaderLines, name: 'if-match' | 'if-none-match', etag: string): boolean {
  const named = headers.all(name).join().split(',').map((tag) => tag.trim());
  if (named.join() === '*') return true;
  return named.includes(etag) || (name === 'if-none-match' && named.includes(`W/${etag}`));
}

/** A certificate signing request of 8 KiB with every newline escaped, and room for the rest. */
const MAX_BODY_BYTES = 32 * KIB;

export type JsonObject = Readonly<Record<string, unknown>>;

/** A small JSON object, empty without a body. Any media type will do: `curl -d` and others do not name JSON. */
export async function jsonBodyOf({ body }: Pick<Request, 'body'>): Promise<JsonObject> {
  const bytes = await wholeBody(body, MAX_BODY_BYTES);
  if (bytes.length === 0) return {};
  const value = orUndefined((): unknown => JSON.parse(utf8.decode(bytes)));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('bodyInvalid');
  return value as JsonObject;
}

/** Refuses a body that is longer than `maxSize`; where its length is declared, before any of it is read. */
export async function wholeBody(body: Request['body'], maxSize: number): Promise<Uint8Array> {
  const bytes = new JoinedBytes(maxSize);
  const tooLarge = new Refusal('bodyTooLarge', { maxSize });
  if ((body.declaredBytes ?? 0) > maxSize) throw tooLarge;
  await body.pipe((piece) => {
    if (bytes.length + piece.length > maxSize) throw tooLarge;
    bytes.add(piece);
  });
  return bytes.take();
}

/** Undefined when it is absent or null. `refuse` says no to anything that is not text. */
export function textMember(object: JsonObject, name: string, refuse: () => Refusal): string | undefined {
  const value = Object.hasOwn(object, name) ? object[name] ?? undefined : undefined;
  if (value !== undefined && typeof value !== 'string') throw refuse();
  return value;
}
