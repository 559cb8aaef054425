// The body of an `application/json` request: strict JSON (RFC 8259) whose top-level string `content` is passed on
// decoded while it arrives. What stands around it, the frame, is kept and judged by JSON.parse at the end.

import { type ByteSink, endOfWholeSequences, freeBytes, JoinedBytes, NOTHING, Utf8Scan } from './content.ts';
import { orUndefined } from './events.ts';
import { Refusal } from './refusals.ts';
import { KIB } from './time.ts';

/** How deep objects and arrays may be nested, the top-level object included. */
export const MAX_JSON_DEPTH = 64;
export const MAX_FRAME_BYTES = 64 * KIB;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const OPENING: ReadonlySet<number> = new Set(Buffer.from('{['));
const CLOSING: ReadonlySet<number> = new Set(Buffer.from('}]'));

/** RFC 8259 section 2. */
const WHITESPACE: ReadonlySet<number> = new Set(Buffer.from(' \t\n\r'));

/** Keeps a byte order mark, which JSON.parse then refuses. */
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** The name `content` with its quotes, every character of it escaped. */
const LONGEST_CONTENT_NAME = '""'.length + 'content'.length * '\\u0063'.length;

/** 1 for the bytes of a string that stand for themselves: a table, since each byte of content is looked up. */
const ORDINARY = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

/**
 * Refuses with `jsonInvalid` what is no JSON, and also: a document that is no object, `content` that is missing, empty,
 * no string or given twice (`"\u0063ontent"` is the same name), nesting deeper than MAX_JSON_DEPTH, a frame longer than
 * MAX_FRAME_BYTES, a byte order mark, and bytes that are not UTF-8. A lone surrogate in `content` becomes U+FFFD.
 */
export class JsonContentReader {
  readonly #sink: ByteSink;
  readonly #utf8 = new Utf8Scan();
  readonly #frame = new JoinedBytes(MAX_FRAME_BYTES);
  /** Where the next byte is. At `value` the value of `content` is next; `escape` is after a backslash in a string. */
  #place: 'outside' | 'value' | 'string' | 'escape' | 'content' = 'outside';
  #depth = 0;
  /** The last string, as far as it can be the name `content`. */
  #name = '';
  #contentSeen = false;
  #hasContent = false;
  /** Bytes of content that can't be decoded before more of it has come: part of an escape or of a character. */
  #cut: Uint8Array = NOTHING;
  /** A high surrogate that was escaped, until it is known whether its low half follows. */
  #highSurrogate = '';

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Takes the next bytes, like a sink, and frees those that it has decoded. Returns what the sink returns. */
  write(bytes: Uint8Array): void | Promise<void> {
    if (!this.#utf8.update(bytes)) refuse();
    const whole = this.#cut.length === 0 ? bytes : Buffer.concat([this.#cut, bytes]);
    const content = this.#read(whole);
    for (const read of [bytes, whole]) if (read.buffer !== content.buffer) freeBytes(read);
    this.#hasContent ||= content.length > 0;
    return content.length > 0 ? this.#sink(content) : undefined;
  }

  /** Called after the last bytes. Only now is it certain that what was passed on is the content of a valid document. */
  end(): void {
    // Only a colon directly in an object or array leads to content, and in an array JSON.parse refuses it.
    if (!this.#hasContent) refuse();
    parse(UTF8.decode(this.#frame.take()));
  }

  /** The decoded content in these bytes. There is only one `content`, so its bytes here are all in one stretch. */
  #read(bytes: Uint8Array): Uint8Array {
    const start = this.#readFrame(bytes, 0);
    const end = endOfContent(bytes, start);
    const isOver = bytes[end] === QUOTE;
    const content = this.#decode(bytes.subarray(start, end), isOver);
    this.#cut = isOver ? NOTHING : Uint8Array.from(bytes.subarray(end));
    if (isOver) {
      this.#place = 'outside';
      this.#readFrame(bytes, end + 1);
    }
    // What stands before and after content. As a copy, since the bytes may be part of a large buffer.
    const frame = Buffer.concat([bytes.subarray(0, start), isOver ? bytes.subarray(end) : NOTHING]);
    if (this.#frame.length + frame.length > MAX_FRAME_BYTES) refuse('over 64 KiB beside content: send text/plain');
    this.#frame.add(frame);
    return content;
  }

  /** Reads on from `start`. Returns the position where content begins or goes on, or the end of the bytes. */
  #readFrame(bytes: Uint8Array, start: number): number {
    let position = start;
    while (position < bytes.length && this.#place !== 'content') {
      if (this.#place === 'string' || this.#place === 'escape') this.#readString(bytes[position]!);
      else this.#readStructure(bytes[position]!);
      position += 1;
    }
    return position;
  }

  #readString(byte: number): void {
    if (this.#name.length <= LONGEST_CONTENT_NAME) this.#name += String.fromCharCode(byte);
    if (this.#place === 'escape') this.#place = 'string';
    else if (byte === BACKSLASH) this.#place = 'escape';
    else if (byte === QUOTE) this.#place = 'outside';
  }

  #readStructure(byte: number): void {
    if (WHITESPACE.has(byte)) return;
    if (this.#place === 'value') {
      if (byte !== QUOTE || this.#contentSeen) refuse();
      this.#contentSeen = true;
      this.#place = 'content';
    } else if (byte === QUOTE) {
      this.#place = 'string';
      this.#name = '"';
    } else if (byte === COLON) {
      const canBeContent = this.#depth === 1 && this.#name.length <= LONGEST_CONTENT_NAME;
      if (canBeContent && parse(this.#name) === 'content') this.#place = 'value';
    } else if (OPENING.has(byte)) {
      this.#depth += 1;
      if (this.#depth > MAX_JSON_DEPTH) refuse('nested over 64 deep: send text/plain, which is stored as it is');
    } else if (CLOSING.has(byte)) {
      this.#depth -= 1;
    }
  }

  /** The bytes themselves where nothing in them is escaped. */
  #decode(bytes: Uint8Array, isLast: boolean): Uint8Array {
    if (this.#highSurrogate === '' && !bytes.includes(BACKSLASH)) return bytes;
    const text = this.#highSurrogate + parse(`"${UTF8.decode(bytes)}"`);
    const last = text.slice(-1);
    this.#highSurrogate = !isLast && last >= '\ud800' && last <= '\udbff' ? last : '';
    return Buffer.from(text.slice(0, text.length - this.#highSurrogate.length));
  }
}

/** The position of the closing quote, or else up to where the bytes can be decoded by themselves. */
function endOfContent(bytes: Uint8Array, start: number): number {
  let position = start;
  for (;;) {
    while (position < bytes.length && ORDINARY[bytes[position]!] === 1) position += 1;
    if (position === bytes.length) return endOfWholeSequences(bytes, start);
    if (bytes[position] === QUOTE) return position;
    if (bytes[position] !== BACKSLASH) refuse();
    const escapeBytes = bytes[position + 1] === LETTER_U ? '\\u0000'.length : '\\n'.length;
    if (position + escapeBytes > bytes.length) return position;
    position += escapeBytes;
  }
}

function parse(json: string): unknown {
  return orUndefined((): unknown => JSON.parse(json)) ?? refuse();
}

function refuse(hint = 'of another Content-Type, such as text/plain, a body is stored as it is'): never {
  throw new Refusal('jsonInvalid', { hint });
}
