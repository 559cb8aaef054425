// The body of an `application/json` request: strict JSON (RFC 8259), of which the string member `content` of the
// top-level object is passed on decoded, as it arrives. Memory is bounded by the bytes given at a time. Builds no
// values, and bounds no sizes.

import { type ByteSink, createUtf8Scan } from './content.ts';
import {
  createJsonStringReader, JSON_SCALAR_START, type JsonScalarState, type JsonTextTarget, QUOTE,
} from './json-string.ts';
import { Refusal } from './refusals.ts';

/** How deep objects and arrays may be nested, the top-level object included. */
export const MAX_JSON_DEPTH = 64;

const COMMA = 0x2c;
const COLON = 0x3a;
const ARRAY_OPEN = 0x5b;
const ARRAY_CLOSE = 0x5d;
const OBJECT_OPEN = 0x7b;
const OBJECT_CLOSE = 0x7d;

/** RFC 8259 section 2: space, tab, line feed, carriage return. */
const WHITESPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const CONTENT_NAME = Buffer.from('content');

/** What the grammar allows next, outside of strings, numbers and literal names. */
type Expected =
  | 'document'
  | 'nameOrEnd'
  | 'name'
  | 'colon'
  | 'value'
  | 'valueOrEnd'
  | 'commaOrEnd'
  | 'nothing';

export interface JsonContentReader {
  /**
   * Takes the next bytes of the document, like a sink; they must not change afterwards. Throws Refusal('jsonInvalid')
   * once they can't be the beginning of an acceptable document. A promise is the sink's own.
   */
  write(bytes: Uint8Array): void | Promise<void>;
  /** Throws the same when the document is not complete, or had no content or an empty one. */
  end(): void;
}

/**
 * Refused are, beside what is no JSON: a document that is no object, `content` that is missing, empty, no string or
 * given twice (`"\u0063ontent"` is the same name), nesting deeper than MAX_JSON_DEPTH, a byte order mark, and bytes
 * that are not UTF-8. A lone surrogate in `content` becomes U+FFFD. Content is passed on before the rest has been
 * seen: only `end` says that it counts.
 */
export function createJsonContentReader(sink: ByteSink): JsonContentReader {
  const document = new JsonDocument();
  return {
    write(bytes) {
      const content = document.read(bytes);
      return content.length > 0 ? sink(content) : undefined;
    },
    end: () => document.end(),
  };
}

function refuse(): never {
  throw new Refusal('jsonInvalid');
}

/** The invariant: everything read so far is the beginning of some acceptable document. */
class JsonDocument {
  readonly #utf8 = createUtf8Scan();
  readonly #string = createJsonStringReader(refuse);
  readonly #content = createContentBuffer();
  readonly #name = createNameMatcher(CONTENT_NAME);
  /** The closing bracket of each container that is open. */
  readonly #closing: number[] = [];
  #expected: Expected = 'document';
  #scalar: JsonScalarState | undefined;
  /** Whether the last name was the top-level `content`, so that the value after it must be its string. */
  #atContent = false;
  #contentSeen = false;
  #hasContent = false;

  /** Reads on; the decoded bytes of content among them. */
  read(bytes: Uint8Array): Uint8Array {
    if (!this.#utf8.update(bytes)) refuse();
    this.#content.begin(bytes.length);
    let position = 0;
    while (position < bytes.length) {
      if (this.#string.isOpen) position = this.#readString(bytes, position);
      else if (this.#scalar !== undefined) position = this.#readScalar(bytes, position, this.#scalar);
      else this.#readStructure(bytes[position++]!);
    }
    const content = this.#content.take();
    this.#hasContent ||= content.length > 0;
    return content;
  }

  end(): void {
    // A document that is an object ends by its closing brace, so nothing can be half-read when nothing more is
    // expected.
    if (this.#expected !== 'nothing' || !this.#hasContent) refuse();
  }

  #readString(bytes: Uint8Array, start: number): number {
    const position = this.#string.read(bytes, start);
    if (this.#string.isOpen) return position;
    if (this.#expected === 'colon') this.#endName();
    else this.#endValue();
    return position;
  }

  #readScalar(bytes: Uint8Array, start: number, from: JsonScalarState): number {
    let state = from;
    for (let position = start; position < bytes.length; position += 1) {
      const next = state.next.get(bytes[position]!);
      if (next === undefined) {
        if (!state.canEnd) refuse();
        this.#scalar = undefined;
        this.#endValue();
        return position;
      }
      state = next;
    }
    this.#scalar = state;
    return bytes.length;
  }

  #readStructure(byte: number): void {
    if (WHITESPACE.has(byte)) return;
    switch (this.#expected) {
      case 'document':
        if (byte !== OBJECT_OPEN) refuse();
        return this.#beginValue(byte);
      case 'nameOrEnd':
        return byte === OBJECT_CLOSE ? this.#endContainer() : this.#beginName(byte);
      case 'name':
        return this.#beginName(byte);
      case 'colon':
        if (byte !== COLON) refuse();
        this.#expected = 'value';
        return;
      case 'valueOrEnd':
        return byte === ARRAY_CLOSE ? this.#endContainer() : this.#beginValue(byte);
      case 'value':
        return this.#beginValue(byte);
      case 'commaOrEnd':
        return this.#readCommaOrEnd(byte);
      case 'nothing':
        refuse();
    }
  }

  #beginName(byte: number): void {
    if (byte !== QUOTE) refuse();
    this.#expected = 'colon';
    this.#name.reset();
    // Names further down are not shown to the matcher, which then matches nothing.
    this.#string.begin(this.#closing.length === 1 ? this.#name : IGNORED);
  }

  #endName(): void {
    this.#atContent = this.#name.matches();
    if (!this.#atContent) return;
    if (this.#contentSeen) refuse();
    this.#contentSeen = true;
  }

  #beginValue(byte: number): void {
    if (byte === QUOTE) return this.#string.begin(this.#atContent ? this.#content : IGNORED);
    if (this.#atContent) refuse();
    if (byte === OBJECT_OPEN) return this.#beginContainer(OBJECT_CLOSE, 'nameOrEnd');
    if (byte === ARRAY_OPEN) return this.#beginContainer(ARRAY_CLOSE, 'valueOrEnd');
    this.#scalar = JSON_SCALAR_START.next.get(byte) ?? refuse();
  }

  #endValue(): void {
    this.#expected = this.#closing.length === 0 ? 'nothing' : 'commaOrEnd';
  }

  #beginContainer(closing: number, expected: Expected): void {
    if (this.#closing.length === MAX_JSON_DEPTH) refuse();
    this.#closing.push(closing);
    this.#expected = expected;
  }

  #endContainer(): void {
    this.#closing.pop();
    this.#endValue();
  }

  #readCommaOrEnd(byte: number): void {
    const closing = this.#closing.at(-1);
    if (byte === closing) return this.#endContainer();
    if (byte !== COMMA) refuse();
    this.#expected = closing === OBJECT_CLOSE ? 'name' : 'value';
  }
}

/** Strings whose text is of no interest; they are still checked. */
const IGNORED: JsonTextTarget = { run: () => undefined, codePoint: () => undefined };

interface NameMatcher extends JsonTextTarget {
  reset(): void;
  /** Whether the text since the reset was exactly the name. */
  matches(): boolean;
}

/** Compares without keeping, since a member's name may be of any length. The name wanted is ASCII. */
function createNameMatcher(wanted: Uint8Array): NameMatcher {
  // How many characters of the name were matched; more than there are once something else was seen.
  let matched = 0;

  function take(character: number): void {
    matched = character === wanted[matched] ? matched + 1 : wanted.length + 1;
  }

  return {
    reset: () => {
      matched = 0;
    },
    matches: () => matched === wanted.length,
    run: (bytes, start, end) => {
      for (let position = start; position < end && matched <= wanted.length; position += 1) take(bytes[position]!);
    },
    codePoint: take,
  };
}

// Gathers the decoded text of one JSON string out of the pieces in which its source arrives: one output for each
// piece, and the piece itself, uncopied, where nothing in it was escaped.

/**
 * How many bytes a piece's output can be longer than the piece: what earlier pieces held back is at most a high
 * surrogate, which may turn out to be alone (3 bytes), and an escape but for its last digit (3 more).
 */
const HELD_BACK_BYTES = 6;

export interface ContentBuffer extends JsonTextTarget {
  /** A piece of so many bytes comes next. */
  begin(pieceBytes: number): void;
  /** What was gathered of the piece; it belongs to the caller from then on. */
  take(): Uint8Array;
}

const NOTHING = new Uint8Array(0);

export function createContentBuffer(): ContentBuffer {
  let capacity = 0;
  let gathered: Uint8Array = NOTHING;
  // Allocated when a second part comes; the parts are then copied together.
  let copy: Uint8Array | undefined;
  let length = 0;

  function room(): Uint8Array {
    if (copy === undefined) {
      copy = new Uint8Array(capacity);
      copy.set(gathered);
    }
    return copy;
  }

  return {
    begin(pieceBytes) {
      capacity = pieceBytes + HELD_BACK_BYTES;
    },
    run(bytes, start, end) {
      const part = bytes.subarray(start, end);
      if (length === 0) gathered = part;
      else room().set(part, length);
      length += part.length;
    },
    codePoint(codePoint) {
      length += encodeUtf8(codePoint, room(), length);
    },
    take() {
      const content = copy === undefined ? gathered : copy.subarray(0, length);
      gathered = NOTHING;
      copy = undefined;
      length = 0;
      return content;
    },
  };
}

/** Writes a Unicode scalar value as UTF-8 (RFC 3629 section 3); how many bytes it took. */
function encodeUtf8(codePoint: number, into: Uint8Array, at: number): number {
  if (codePoint < 0x80) {
    into[at] = codePoint;
    return 1;
  }
  if (codePoint < 0x800) {
    into[at] = 0xc0 | (codePoint >> 6);
    into[at + 1] = continuation(codePoint);
    return 2;
  }
  if (codePoint < 0x10000) {
    into[at] = 0xe0 | (codePoint >> 12);
    into[at + 1] = continuation(codePoint >> 6);
    into[at + 2] = continuation(codePoint);
    return 3;
  }
  into[at] = 0xf0 | (codePoint >> 18);
  into[at + 1] = continuation(codePoint >> 12);
  into[at + 2] = continuation(codePoint >> 6);
  into[at + 3] = continuation(codePoint);
  return 4;
}

function continuation(bits: number): number {
  return 0x80 | (bits & 0x3f);
}
