// How bytes move between the layers without either side knowing the other's streams: a source pushes into a sink. And
// the forms in which small ones are kept.

import { KIB } from './time.ts';

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
