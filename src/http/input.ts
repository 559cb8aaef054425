// Request headers of pastes as typed values, each parsed once and here. What a value means is decided in pastes/.

import { isGlob, JoinedBytes, sqliteGlob } from '../core/content.ts';
import { Refusal } from '../core/refusals.ts';
import { KIB } from '../core/time.ts';
import type { Work } from '../pastes/admission.ts';
import type { Page } from '../store/store.ts';
import type { RequestBody } from './engine/body.ts';
import type { RequestHeaders } from './engine/head.ts';
import type { Request } from './engine/request.ts';

const YES = /^(?:true|1|yes)$/i;
const POSITIVE_INTEGER = /^\d+$/;

/** Header values arrive as one character a byte (RFC 9110 section 5.5); passwords are UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function burnRequested(headers: RequestHeaders): boolean {
  return YES.test(headers.single('x-burn-after-read') ?? '');
}

/**
 * Seconds; undefined for anything but a positive decimal integer. A value past all bounds is still a number to be
 * capped.
 */
export function requestedTtlSeconds(headers: RequestHeaders): number | undefined {
  const value = headers.single('x-expiry') ?? '';
  if (!POSITIVE_INTEGER.test(value)) return undefined;
  const seconds = Number(value);
  return seconds > 0 ? seconds : undefined;
}

/** The same for an update, where there is no default to fall back on: anything else is refused. */
export function amendedTtlSeconds(headers: RequestHeaders): number | undefined {
  const isAbsent = headers.single('x-expiry') === undefined;
  const seconds = requestedTtlSeconds(headers);
  if (!isAbsent && seconds === undefined) throw new Refusal('expiryInvalid');
  return seconds;
}

export function removesPassword(headers: RequestHeaders): boolean {
  return YES.test(headers.single('x-remove-password') ?? '');
}

/** The password's text; undefined when absent or empty. Refuses bytes that are not UTF-8. */
export function password(headers: RequestHeaders): string | undefined {
  const value = headers.single('x-paste-password') ?? '';
  if (value === '') return undefined;
  try {
    return utf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    throw new Refusal('requestMalformed', { hint: 'X-Paste-Password must be UTF-8 text' });
  }
}

/** What the request shows for its proof-of-work, still unchecked. */
export function work(headers: RequestHeaders): Work {
  return { token: headers.single('x-pow-token'), solution: headers.single('x-pow-solution') };
}

/** Exactly `application/json`, with or without parameters. */
export function isJson(contentType: string | undefined): boolean {
  return isOfType(contentType, 'application/json');
}

export function isForm(contentType: string | undefined): boolean {
  return isOfType(contentType, 'multipart/form-data');
}

function isOfType(contentType: string | undefined, type: string): boolean {
  if (contentType === undefined) return false;
  const [given = ''] = contentType.split(';', 1);
  return given.trim().toLowerCase() === type;
}

/** A decoder is an attack surface and a store must keep what it was sent: only identity is taken. */
export function requireIdentityEncoding(headers: RequestHeaders): void {
  const encoding = headers.single('content-encoding') ?? 'identity';
  if (encoding.trim().toLowerCase() === 'identity') return;
  throw new Refusal('contentEncodingUnsupported', { hint: 'send the content without Content-Encoding' });
}

// Query parameters as typed values: integers clamped as decided, and what a list filters by. A parameter given twice is
// refused, since nobody can say which one was meant.

const INTEGER = /^-?\d+$/;

/** The value; null when absent. */
export function single(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal('queryInvalid', { hint: `give ${name} once`, parameter: name });
  return values[0] ?? null;
}

/** A whole number; the fallback when absent. Values past what a number holds exactly are clamped to that. */
export function integer(query: URLSearchParams, name: string, fallback: number): number {
  const value = single(query, name);
  if (value === null) return fallback;
  if (!INTEGER.test(value)) throw new Refusal('queryInvalid', { hint: `${name} must be an integer`, parameter: name });
  return clamp(Number(value), Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
}

/** `limit` from 1 to the maximum, `offset` from 0; beyond that they are clamped. */
export function page(query: URLSearchParams, bounds: { fallback: number; maximum: number }): Page {
  return {
    limit: clamp(integer(query, 'limit', bounds.fallback), 1, bounds.maximum),
    offset: Math.max(0, integer(query, 'offset', 0)),
  };
}

/** `after` and `before` as exclusive bounds that let everything through when absent. */
export function timeBounds(query: URLSearchParams): { after: number; before: number } {
  return {
    after: integer(query, 'after', Number.MIN_SAFE_INTEGER),
    before: integer(query, 'before', Number.MAX_SAFE_INTEGER),
  };
}

/** The `type` filter as SQLite takes it; null when absent. */
export function typeGlob(query: URLSearchParams): string | null {
  const glob = single(query, 'type');
  if (glob === null) return null;
  if (!isGlob(glob)) {
    const hint = 'type is a glob of at most 64 characters, such as image/*';
    throw new Refusal('queryInvalid', { hint, parameter: 'type' });
  }
  return sqliteGlob(glob);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

// A single byte range of a GET and the conditions on it (RFC 9110 sections 13 and 14). Several ranges in one request
// are answered with the whole, as section 14.2 allows.

/** `start` inclusive, `end` exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * The range that the header asks for of a representation of `size` bytes; `whole` when the header is absent, not
 * understood or asks for several ranges; `unsatisfiable` when it lies past the end.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = header === undefined ? null : SINGLE_RANGE.exec(header);
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), size);
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  const end = last === '' ? size : Math.min(Number(last) + 1, size);
  return { start, end };
}

function suffixRange(lengthBytes: number, size: number): ByteRange | 'unsatisfiable' {
  if (lengthBytes === 0 || size === 0) return 'unsatisfiable';
  return { start: Math.max(size - lengthBytes, 0), end: size };
}

/** Whether `If-None-Match` names the entity tag: weak comparison, `*` names every one (RFC 9110 section 13.1.2). */
export function namesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}

/** Whether `If-Range` lets a range be answered: strong comparison; a date never matches (RFC 9110 section 13.1.5). */
export function allowsRange(ifRange: string | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange.trim() === etag;
}

// Small JSON bodies, such as those of the PKI's endpoints: read whole, within a bound. Content of pastes is never read
// like this.

/** A certificate signing request of 8 KiB with every newline escaped, and room for the rest. */
const MAX_BODY_BYTES = 32 * KIB;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

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
    return JSON.parse(strictUtf8.decode(bytes));
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

// How to get the command-line client from this very server, in the words that curl users are shown. What the client is:
// client/script.ts.

/** One command line. The URL is a publicUrl, which has nothing in it that a shell would take for its own. */
export function clientDownload(publicUrl: string): string {
  return `curl -fsS ${publicUrl}/client -o pastec`;
}

/** The client refuses to register over http unless it is told to: the certificate would not count there. */
export function registerCommand(publicUrl: string): string {
  return publicUrl.startsWith('https:') ? 'sh pastec register' : 'sh pastec register --allow-http';
}

/**
 * What to throw in place of what was thrown: a refusal for want of work says how to have the client do it, by that
 * command. The hint stays one line without quotes, since shells take it out with sed.
 */
export function hintingClient(error: unknown, publicUrl: string, command: string): unknown {
  if (!(error instanceof Refusal && error.refusal === 'powRequired')) return error;
  const hint = `${error.fields['hint']}; or let the client do the work: ${clientDownload(publicUrl)} && ${command}`;
  return new Refusal('powRequired', { ...error.fields, hint }, error.terms);
}
