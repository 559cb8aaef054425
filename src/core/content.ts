// Content: how bytes move from source to sink, whether they are text, media types, and when shared bytes are freed.

import { isUtf8 } from 'node:buffer';
import { KIB } from './time.ts';

/** Takes the next bytes, which belong to it from then on. A promise asks the source to wait; a throw ends it all. */
export type ByteSink = (bytes: Uint8Array) => void | Promise<void>;

/** Pushes every byte into the sink, in order; resolves after the last was taken, rejects when either side fails. */
export type ByteSource = (sink: ByteSink) => Promise<void>;

export const NOTHING: Uint8Array = new Uint8Array(0);

const MAX_SEQUENCE_BYTES = 4;

/** UTF-8 (RFC 3629) in pieces: isUtf8 judges each, and only characters that a cut splits are put together here. */
export class Utf8Scan {
  /** The first bytes of a character that the end of the last piece cut. */
  #cut = NOTHING;
  #canBeValid = true;

  /** Whether everything so far is valid and no character is left unfinished. */
  get isValid(): boolean {
    return this.#canBeValid && this.#cut.length === 0;
  }

  /** Only reads the bytes. Returns whether all so far can still be the beginning of valid UTF-8. */
  update(bytes: Uint8Array): boolean {
    if (!this.#canBeValid) return false;
    const isCut = this.#cut.length > 0;
    const start = isCut ? sequenceBytes(this.#cut[0]!) - this.#cut.length : 0;
    if (isCut) this.#cut = Uint8Array.of(...this.#cut, ...bytes.subarray(0, start));
    if (bytes.length < start) return true;
    const end = endOfWholeSequences(bytes, start);
    this.#canBeValid = (!isCut || isUtf8(this.#cut)) && isUtf8(bytes.subarray(start, end));
    this.#cut = end === bytes.length ? NOTHING : Uint8Array.from(bytes.subarray(end));
    return this.#canBeValid;
  }
}

/** The position, from `start` on, of a character that needs more bytes than there are; else the end of the bytes. */
export function endOfWholeSequences(bytes: Uint8Array, start: number): number {
  const earliest = Math.max(start, bytes.length - (MAX_SEQUENCE_BYTES - 1));
  for (let position = bytes.length - 1; position >= earliest; position -= 1) {
    if (position + sequenceBytes(bytes[position]!) > bytes.length) return position;
  }
  return bytes.length;
}

/** How many bytes a character has that begins with this byte; 1 if no character can, which isUtf8 will find. */
function sequenceBytes(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

export const TEXT_TYPE = 'text/plain';
const BINARY_TYPE = 'application/octet-stream';

/** RFC 6838 section 4.2: restricted-name "/" restricted-name, then parameters or nothing. */
const MEDIA_TYPE = /^[ \t]*([a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126})[ \t]*(?:;|$)/i;

/** The same section asks for names of at most 64 characters; no inert type is half as long as this. */
const MAX_MEDIA_TYPE_LENGTH = 64;

/** Types that run nothing. Browsers run scripts in any `+xml`, and XML in UTF-16 is not UTF-8, so it is judged here. */
const INERT = [
  /^(?:image|audio|video|font)\/(?!svg)(?!.*[+]xml$)/,
  /^application\/(?:pdf|zip|gzip|x-tar|zstd|x-7z-compressed|x-xz|x-bzip2)$/,
];

/** The type of content (the decisions): `text/plain` for UTF-8, else the header's if that is specific and inert. */
export function mediaTypeOf(isText: boolean, contentType: string | undefined): string {
  if (isText) return TEXT_TYPE;
  const type = (MEDIA_TYPE.exec(contentType ?? '')?.[1] ?? '').toLowerCase();
  const isInert = type.length <= MAX_MEDIA_TYPE_LENGTH && INERT.some((pattern) => pattern.test(type));
  return isInert ? type : BINARY_TYPE;
}

/** Joins bytes as they arrive in pieces, because each piece that is kept costs some 400 bytes beside its own. */
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

  /** There must be room for the piece. The first is taken as it is, the others are copied. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (this.#length > 0) {
      if (length > this.#bytes.length) {
        const larger = new Uint8Array(Math.min(this.#mostBytes, Math.max(KIB, 2 * length)));
        larger.set(this.#bytes.subarray(0, this.#length));
        this.#bytes = larger;
      }
      this.#bytes.set(piece, this.#length);
    } else this.#bytes = piece;
    this.#length = length;
  }

  /** Takes out all the bytes, in a buffer of their length. */
  take(): Uint8Array {
    const isExact = this.#length > 0 && this.#length === this.#bytes.length;
    const whole = isExact ? this.#bytes : this.#bytes.slice(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return whole;
  }
}

/** Bytes, or text of one character a byte. */
export type CompactBytes = Uint8Array | { readonly latin1: string };

/** Up to this size text is better: small arrays take several times their length, and node writes text with the head. */
const TEXT_BYTES = 8 * KIB;

/** In the form that costs least to keep and to send; may be a copy. */
export function compactBytes(bytes: Uint8Array): CompactBytes {
  if (bytes.length > TEXT_BYTES) return bytes;
  return { latin1: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1') };
}

export function partOf(bytes: CompactBytes, start: number, end: number): CompactBytes {
  return 'latin1' in bytes ? { latin1: bytes.latin1.slice(start, end) } : bytes.subarray(start, end);
}

/** Frees the memory at once if nothing else is in it. Left to the collector, it would pile up in large transfers. */
export function freeBytes({ buffer, length }: Uint8Array): void {
  if (length > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/** How many users hold the same bytes. Only bytes that are counted here are freed, by their last user. */
const holders = new WeakMap<Uint8Array, number>();

/** To be called by each user of bytes that several may use, in the turn in which it gets them. */
export function holdBytes(bytes: CompactBytes): void {
  if (bytes instanceof Uint8Array) holders.set(bytes, (holders.get(bytes) ?? 0) + 1);
}

/** Each holder calls this once, and the last call frees the bytes. If one never calls, the collector frees them. */
export function letGoOfBytes(bytes: CompactBytes): void {
  if (!(bytes instanceof Uint8Array)) return;
  const count = holders.get(bytes);
  if (count === undefined) return;
  if (count > 1) return void holders.set(bytes, count - 1);
  holders.delete(bytes);
  freeBytes(bytes);
}
