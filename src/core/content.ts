// What the service finds out about content while it arrives, and the media type that follows from it. Keeps none of
// the content, and does not decide whether it is acceptable.

import { isUtf8 } from 'node:buffer';
import { KIB } from './time.ts';

/** How a cryptographic digest is made, handed in since this layer makes none. */
export interface Digests {
  /** Of bytes that are all there: no object in progress is made for them. */
  whole(bytes: Uint8Array): Uint8Array;
  /** A digest that has taken no bytes yet. */
  begin(): Digest;
}

/** A digest in progress. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** The result, once. */
  digest(): Uint8Array;
}

export interface ContentScanOptions {
  readonly sha256: Digests;
  /** Whether to count byte values too, which costs up to 4 ms a mebibyte. */
  readonly entropy: boolean;
}

export interface ContentFacts {
  readonly bytes: number;
  /** Whether the whole is valid UTF-8. */
  readonly isText: boolean;
  readonly sha256: Uint8Array;
  /** Shannon entropy in bits per byte; undefined when it was not asked for. */
  readonly entropyBits: number | undefined;
}

export interface ContentScan {
  /** The next bytes; only read, never kept. */
  update(bytes: Uint8Array): void;
  /** To be called once, after the last bytes or with them, which is quicker where they are all. */
  finish(last?: Uint8Array): ContentFacts;
}

const NO_BYTES = new Uint8Array(0);

export function createContentScan({ sha256, entropy }: ContentScanOptions): ContentScan {
  const utf8 = createUtf8Scan();
  const histogram = entropy ? new Float64Array(256) : undefined;
  let digest: Digest | undefined;
  let total = 0;

  function take(bytes: Uint8Array): void {
    total += bytes.length;
    utf8.update(bytes);
    if (histogram !== undefined) countBytes(histogram, bytes);
  }

  return {
    update(bytes) {
      take(bytes);
      digest ??= sha256.begin();
      digest.update(bytes);
    },
    finish: (last = NO_BYTES) => {
      take(last);
      digest?.update(last);
      return {
        bytes: total,
        isText: utf8.isValid(),
        sha256: digest === undefined ? sha256.whole(last) : digest.digest(),
        entropyBits: histogram === undefined ? undefined : entropyBitsPerByte(histogram),
      };
    },
  };
}

function countBytes(histogram: Float64Array, bytes: Uint8Array): void {
  for (let position = 0; position < bytes.length; position += 1) histogram[bytes[position]!]! += 1;
}

/** RFC 6838 section 4.2 asks for names of at most 64 characters; no type above is half as long as this. */
export const MAX_MEDIA_TYPE_LENGTH = 64;

export const TEXT_TYPE = 'text/plain';
const BINARY_TYPE = 'application/octet-stream';

/** RFC 6838 section 4.2: restricted-name "/" restricted-name, then parameters or nothing. */
const MEDIA_TYPE = /^[ \t]*([a-z0-9][a-z0-9!#$&^_.+-]{0,126})\/([a-z0-9][a-z0-9!#$&^_.+-]{0,126})[ \t]*(?:;|$)/i;

/** Kinds that are shown or played and not run, whatever their subtype (but see MARKUP). */
const INERT_KINDS: ReadonlySet<string> = new Set(['image', 'audio', 'video', 'font']);

const INERT_APPLICATIONS: ReadonlySet<string> = new Set([
  'pdf',
  'zip',
  'gzip',
  'x-tar',
  'zstd',
  'x-7z-compressed',
  'x-xz',
  'x-bzip2',
]);

/** Browsers read any `+xml` type as a document that may hold scripts, and in UTF-16 that is no valid UTF-8. */
const MARKUP = /^svg|[+]xml$/;

/**
 * The media type that content is stored and served with, in lower case and without parameters: `text/plain` for valid
 * UTF-8, else what the Content-Type header names if that is specific and inert, else `application/octet-stream`. (The
 * decisions, Content.)
 */
export function mediaTypeOf(isText: boolean, contentType: string | undefined): string {
  if (isText) return TEXT_TYPE;
  const [, kind = '', subtype = ''] = MEDIA_TYPE.exec(contentType ?? '')?.map((part) => part.toLowerCase()) ?? [];
  const type = `${kind}/${subtype}`;
  return isInert(kind, subtype) && type.length <= MAX_MEDIA_TYPE_LENGTH ? type : BINARY_TYPE;
}

function isInert(kind: string, subtype: string): boolean {
  if (kind === 'application') return INERT_APPLICATIONS.has(subtype);
  return INERT_KINDS.has(kind) && !MARKUP.test(subtype);
}

/** Whether a browser may show content of that stored type in its window, by the contract; all else is an attachment. */
export function isInlineDisposition(mimeType: string): boolean {
  return mimeType.startsWith('image/') || mimeType.startsWith('text/');
}

// Whether bytes that arrive in pieces are valid UTF-8 as a whole (RFC 3629: no overlong forms, no surrogates, nothing
// above U+10FFFF). Does not decode; each piece is judged by the runtime's own vectorised check, and only what a cut
// splits is looked at here.

const MAX_SEQUENCE_BYTES = 4;

export interface Utf8Scan {
  /** Takes the next bytes; whether all so far can still be the beginning of something valid. Only read, never kept. */
  update(bytes: Uint8Array): boolean;
  /** Whether everything so far is valid and no sequence is left unfinished. */
  isValid(): boolean;
}

export function createUtf8Scan(): Utf8Scan {
  // The beginning of a sequence that the last piece cut off: at most 3 bytes, with room for the fourth.
  const cut = new Uint8Array(MAX_SEQUENCE_BYTES);
  let cutBytes = 0;
  let valid = true;

  /** Completes the cut sequence from the start of a piece; how many bytes of the piece that took. */
  function completeCut(bytes: Uint8Array): number {
    const missing = sequenceBytes(cut[0]!) - cutBytes;
    const taken = Math.min(missing, bytes.length);
    cut.set(bytes.subarray(0, taken), cutBytes);
    cutBytes += taken;
    if (taken === missing) {
      valid = isUtf8(cut.subarray(0, cutBytes));
      cutBytes = 0;
    }
    return taken;
  }

  return {
    update(bytes) {
      if (!valid) return false;
      const start = cutBytes === 0 ? 0 : completeCut(bytes);
      if (!valid || start === bytes.length) return valid;

      const end = endOfWholeSequences(bytes, start);
      valid = isUtf8(bytes.subarray(start, end));
      cutBytes = bytes.length - end;
      cut.set(bytes.subarray(end));
      return valid;
    },
    isValid: () => valid && cutBytes === 0,
  };
}

/** How long the sequence is that a byte begins. Bytes that can begin none count as one, for isUtf8 to find them. */
function sequenceBytes(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  return 1;
}

/**
 * Where a sequence begins, from `start` on, that needs more bytes than there are; the end of the bytes if there is
 * none.
 */
function endOfWholeSequences(bytes: Uint8Array, start: number): number {
  const earliest = Math.max(start, bytes.length - (MAX_SEQUENCE_BYTES - 1));
  for (let position = bytes.length - 1; position >= earliest; position -= 1) {
    if (position + sequenceBytes(bytes[position]!) > bytes.length) return position;
  }
  return bytes.length;
}

// Shannon entropy of bytes: how unpredictable each is, taken by itself. Says nothing about order, so `abcabc` scores
// like `aabbcc`.

/** How often each of the 256 byte values occurred. */
export type Histogram = ArrayLike<number>;

/** Bits per byte, 0 to 8: -sum(p log2 p) over the values that occurred. No bytes at all have an entropy of 0. */
export function entropyBitsPerByte(histogram: Histogram): number {
  let total = 0;
  for (let value = 0; value < histogram.length; value += 1) total += histogram[value]!;

  let bits = 0;
  for (let value = 0; value < histogram.length; value += 1) {
    const count = histogram[value]!;
    if (count > 0) bits += (count / total) * Math.log2(total / count);
  }
  return bits;
}

// The `type` filter of lists: a glob in which `*` stands for any text, `?` for any one character, and all else for
// itself. Matching is SQLite's GLOB operator; this makes its pattern and bounds what it may cost.

/**
 * Whether text from a request can be a glob: 1 to 64 characters, none of them a control character (NUL would end the
 * pattern). Matching one against one type takes up to as many steps as the product of their lengths.
 */
export function isGlob(text: string): boolean {
  return text.length <= MAX_MEDIA_TYPE_LENGTH && /^[^\0-\x1f\x7f]+$/.test(text);
}

/**
 * The pattern for `mime_type GLOB :pattern` of text that isGlob took. In lower case, as media types are stored; a
 * bracket, which would begin a set, stands in a set of its own.
 */
export function sqliteGlob(glob: string): string {
  return glob.toLowerCase().replaceAll('[', '[[]').replace(/\*+/g, '*');
}

// How bytes move between the layers without either side knowing the other's streams: a source pushes into a sink. And
// the forms in which small ones are kept.

/**
 * Takes the next bytes, which are its own from then on. A promise asks the source to wait; a throw ends the transfer.
 */
export type ByteSink = (bytes: Uint8Array) => void | Promise<void>;

/**
 * Pushes every byte into the sink, in order; resolves after the last was taken. Rejects when either side breaks off.
 */
export type ByteSource = (sink: ByteSink) => Promise<void>;

const NOTHING = new Uint8Array(0);

/** Room for many small pieces. */
const FIRST_BYTES = KIB;

/**
 * Bytes that arrive in pieces, kept as one. The first is kept as it is, and each other copied at once: a piece that is
 * kept takes some 400 bytes beside its own.
 */
export class JoinedBytes {
  readonly #mostBytes: number;
  #bytes: Uint8Array = NOTHING;
  #length = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** There must be room for the piece. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) {
      this.#bytes = piece;
    } else {
      if (length > this.#bytes.length) this.#grow(length);
      this.#bytes.set(piece, this.#length);
    }
    this.#length = length;
  }

  /** All of them, in a buffer of their length; nothing is left. */
  take(): Uint8Array {
    const isExact = this.#length > 0 && this.#length === this.#bytes.length;
    const whole = isExact ? this.#bytes : this.#bytes.slice(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return whole;
  }

  #grow(length: number): void {
    const larger = new Uint8Array(Math.min(this.#mostBytes, Math.max(FIRST_BYTES, 2 * length)));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** Bytes as text of one character a byte. */
export interface ByteText {
  readonly latin1: string;
}

export type CompactBytes = Uint8Array | ByteText;

/**
 * Up to this size text is the better form. To keep: a small array of bytes takes several times its length, in pieces
 * that leave gaps when they go. To send: node puts it into one write with the head, where bytes would be a second
 * buffer.
 */
const TEXT_BYTES = 8 * KIB;

/** The bytes in the form that costs least to keep and to send, for which they may be copied. */
export function compactBytes(bytes: Uint8Array): CompactBytes {
  if (bytes.length > TEXT_BYTES) return bytes;
  return { latin1: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1') };
}

/** As subarray of bytes. */
export function partOf(bytes: CompactBytes, start: number, end: number): CompactBytes {
  return 'latin1' in bytes ? { latin1: bytes.latin1.slice(start, end) } : bytes.subarray(start, end);
}

/**
 * Gives up at once the memory of bytes that are no longer needed, where nothing else is in it: what large transfers
 * leave to the collector is more than they ever hold, and V8 goes through its whole heap for it.
 */
export function freeBytes({ buffer, length }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}
