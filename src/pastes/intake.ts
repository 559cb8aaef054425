// Takes content in: checks its size and its bytes for POST / and PUT (steps 1 and 4 of the decisions). As it arrives,
// small content stays in memory; larger content goes to the store, with a bounded number of chunks in flight.

import { type Caller, hasTrustedLimits } from '../core/callers.ts';
import {
  type ByteSink, type ByteSource, freeBytes, JoinedBytes, mediaTypeOf, NOTHING, TEXT_TYPE, Utf8Scan,
} from '../core/content.ts';
import { Refusal } from '../core/refusals.ts';
import type { Awaitable, RandomBytes } from '../core/time.ts';
import { beginSha256, sha256 } from '../crypto/digest.ts';
import type { ContentStore, Upload } from '../store/content.ts';
import { type ChangedContent, CHUNK_BYTES, INLINE_BYTES } from '../store/store.ts';
import { maxPasteBytes, requireAcceptablePassword } from './admission.ts';
import type { Parts } from './parts.ts';

/** How many chunks of one upload may be on their way to the disk while the next is filled. */
const CHUNKS_IN_FLIGHT = 4;

/** When all uploads together use this many, the writer has enough to do: an upload then waits for all its chunks. */
const MANY_CHUNKS = 16;

/** Content that a caller wants stored. */
export interface Offer {
  readonly caller: Caller;
  /** Looked up again: a certificate may be revoked while its holder sends. */
  readonly callerNow: () => Awaitable<Caller>;
  readonly clientAddress: string;
  readonly source: ByteSource;
  /** `Content-Length`; undefined when the body is chunked. */
  readonly declaredBytes: number | undefined;
  /** The body is JSON with the content in it. */
  readonly isJson: boolean;
  /** As sent. */
  readonly contentType: string | undefined;
  readonly password: string | undefined;
  /** Seconds from now. Undefined means the tier's default for a new paste, and no change in an update. */
  readonly requestedTtlSeconds: number | undefined;
}

/** Step 1: refuses a raw body by its declared length, before any of it is read. */
export function requireDeclaredSize({ config }: Parts, { caller, declaredBytes = 0, isJson }: Offer): void {
  const maxSize = maxPasteBytes(config, caller);
  if (!isJson && declaredBytes > maxSize) throw tooLarge(caller, declaredBytes, maxSize);
}

function tooLarge({ fingerprint }: Caller, size: number, maxSize: number): Refusal {
  return new Refusal('pasteTooLarge', { size, maxSize, authenticated: fingerprint !== null });
}

type IntakeParts = Pick<Parts, 'config' | 'store' | 'random'>;

/** Step 4. Writes content over INLINE_BYTES in chunks as it arrives; without keep(), they go at the end of scope. */
export class Intake implements AsyncDisposable {
  readonly #parts: IntakeParts;
  readonly #offer: Offer;
  /** 0 when unknown: of a JSON document nobody knows in advance how much is content. */
  readonly #declaredBytes: number;
  readonly #maxBytes: number;
  readonly #scan: ReturnType<typeof createContentScan>;
  /** Not scanned yet: content that stays small is scanned at the end, as a whole. */
  readonly #small = new JoinedBytes(INLINE_BYTES);
  /** Undefined as long as the content is small. */
  #chunks: ChunkWriter | undefined;
  #seenBytes = 0;
  /** The store has taken the content over, or it was given up: bytes that the source still adds are dropped. */
  #isOver = false;

  constructor(parts: IntakeParts, offer: Offer) {
    this.#parts = parts;
    this.#offer = offer;
    this.#declaredBytes = offer.isJson ? 0 : (offer.declaredBytes ?? 0);
    this.#maxBytes = maxPasteBytes(parts.config, offer.caller);
    this.#scan = createContentScan(parts.config.minEntropyBits > 0);
  }

  /** Receives all of the content and checks it. `replacedBytes` is the size of the content whose room it takes. */
  async receive(replacedBytes = 0): Promise<ChangedContent> {
    const { caller, callerNow, source, isJson, contentType } = this.#offer;
    await this.#requireRoom(replacedBytes);
    if (isJson) await receiveJson(source, this.#take);
    else await source(this.#take);
    const content = this.#chunks === undefined ? this.#small.take() : null;
    const { isText, sha256, entropyBits } = this.#scan.finish(content ?? undefined);
    await this.#chunks?.finish();
    this.#requireAcceptable(isText, entropyBits);
    if (hasTrustedLimits(caller) && (await callerNow()).fingerprint === null) {
      throw new Refusal('permissionDenied', { hint: 'the client certificate is not valid any more' });
    }
    const mimeType = mediaTypeOf(isText, contentType);
    return { mimeType, size: this.#seenBytes, sha256, contentId: this.#chunks?.upload.contentId ?? null, content };
  }

  /** To be called when the store has taken the chunks over. */
  keep(): void {
    this.#isOver = true;
    this.#chunks?.upload.keep();
    this.#chunks = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#chunks?.discard();
  }

  /** A full store refuses early, not after megabytes. All of this is decided again when the content is written. */
  async #requireRoom(replacedBytes: number): Promise<void> {
    const { config: { maxStorageBytes: maxStoredBytes }, store } = this.#parts;
    const declaredBytes = this.#declaredBytes;
    if (!store.hasRoomFor(declaredBytes)) throw new Refusal('storageFull');
    if (maxStoredBytes === 0) return;
    const contentBytes = declaredBytes - replacedBytes;
    // Chunks are written before the content that they replace can be removed.
    const unwrittenBytes = declaredBytes <= INLINE_BYTES ? contentBytes : declaredBytes;
    if (await store.read.isFull({ maxStoredBytes, contentBytes, unwrittenBytes })) throw new Refusal('storageFull');
  }

  readonly #take: ByteSink = (bytes) => {
    if (this.#isOver) return undefined;
    this.#seenBytes += bytes.length;
    if (this.#seenBytes > this.#maxBytes) {
      requireAcceptablePassword(this.#offer.password);
      throw tooLarge(this.#offer.caller, this.#seenBytes, this.#maxBytes);
    }
    if (this.#chunks === undefined && this.#seenBytes <= INLINE_BYTES) return this.#small.add(bytes);
    this.#chunks ??= this.#beginChunks();
    this.#scan.update(bytes);
    return this.#chunks.add(bytes);
  };

  #beginChunks(): ChunkWriter {
    const { config: { maxStorageBytes: maxStoredBytes }, store: { contents }, random } = this.#parts;
    const quota = maxStoredBytes === 0 ? null : { maxStoredBytes, declaredBytes: this.#declaredBytes };
    const chunks = new ChunkWriter(contents.chunks, contents.upload(newId(random), quota));
    const before = this.#small.take();
    this.#scan.update(before);
    // It does not fill a chunk, so there is nothing to wait for.
    void chunks.add(before);
    return chunks;
  }

  #requireAcceptable(isText: boolean, entropyBits: number | undefined): void {
    const { config } = this.#parts;
    const bytes = this.#seenBytes;
    if (bytes === 0) throw new Refusal('noContent');
    requireAcceptablePassword(this.#offer.password);
    if (bytes < config.minBytes) throw new Refusal('pasteTooSmall', { size: bytes, minSize: config.minBytes });
    const hint = 'compress or encrypt the content first';
    if (config.requireBinary && isText) throw new Refusal('textRefused', { hint, detected: TEXT_TYPE });
    if (entropyBits === undefined || bytes < config.minEntropyBytes || entropyBits >= config.minEntropyBits) return;
    const entropy = Math.floor(entropyBits * 1000) / 1000;
    throw new Refusal('entropyTooLow', { hint, entropy, minEntropy: config.minEntropyBits });
  }
}

/** While content arrives, finds out whether it is text, its digest and its entropy. Only reads the given bytes. */
export function createContentScan(asksEntropy: boolean) {
  const utf8 = new Utf8Scan();
  /** How often each byte value occurred; counting costs up to 4 ms a mebibyte. */
  const histogram = asksEntropy ? new Float64Array(256) : undefined;
  let digest: ReturnType<typeof beginSha256> | undefined;

  function take(bytes: Uint8Array): void {
    utf8.update(bytes);
    if (histogram === undefined) return;
    for (let position = 0; position < bytes.length; position += 1) histogram[bytes[position]!]! += 1;
  }

  return {
    update(bytes: Uint8Array): void {
      take(bytes);
      digest ??= beginSha256();
      digest.update(bytes);
    },
    /** To be called once, after the last bytes or with them. It is quickest when it gets all bytes at once. */
    finish(last = NOTHING) {
      take(last);
      return {
        isText: utf8.isValid,
        sha256: digest === undefined ? sha256(last) : digest.update(last).digest(),
        /** Shannon entropy in bits per byte; undefined when it was not asked for. */
        entropyBits: histogram && entropyBitsPerByte(histogram),
      };
    },
  };
}

/** -sum(p log2 p) over the values that occurred, 0 to 8 bits per byte. Ignores order: `abcabc` is like `aabbcc`. */
export function entropyBitsPerByte(histogram: Iterable<number>): number {
  const counts = [...histogram].filter((count) => count > 0);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.reduce((bits, count) => bits + (count / total) * Math.log2(total / count), 0);
}

/** Cuts bytes into chunks of exactly CHUNK_BYTES, the last one shorter, and keeps a few on their way to the disk. */
class ChunkWriter {
  readonly upload: Upload;
  readonly #buffers: ContentStore['chunks'];
  /** The one that is being filled. */
  #chunk: ReturnType<ContentStore['chunks']['take']> | undefined;
  #filledBytes = 0;
  readonly #inFlight: Promise<void>[] = [];
  /** No more buffers are taken from then on: an add() that waits for room drops the rest of its bytes. */
  #isDiscarded = false;

  constructor(buffers: ContentStore['chunks'], upload: Upload) {
    this.upload = upload;
    this.#buffers = buffers;
  }

  add(bytes: Uint8Array): void | Promise<void> {
    if (bytes.length >= CHUNK_BYTES - this.#filledBytes) return this.#addWithPauses(bytes);
    this.#fill(bytes);
    freeBytes(bytes);
    return undefined;
  }

  async #addWithPauses(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0 && !this.#isDiscarded) {
      rest = this.#fill(rest);
      if (rest.length === 0) freeBytes(bytes);
      while (this.#inFlight.length > (this.#buffers.taken < MANY_CHUNKS ? CHUNKS_IN_FLIGHT : 0)) {
        await this.#inFlight.shift();
      }
    }
  }

  /** Copies what fits, and sends the chunk when it is full. Returns the rest. */
  #fill(bytes: Uint8Array): Uint8Array {
    this.#chunk ??= this.#buffers.take();
    const taken = Math.min(bytes.length, CHUNK_BYTES - this.#filledBytes);
    this.#chunk.set(bytes.subarray(0, taken), this.#filledBytes);
    this.#filledBytes += taken;
    if (this.#filledBytes === CHUNK_BYTES) this.#send();
    return bytes.subarray(taken);
  }

  #send(): void {
    if (this.#chunk === undefined) return;
    const written = this.upload.write(this.#chunk.subarray(0, this.#filledBytes));
    this.#chunk = undefined;
    this.#filledBytes = 0;
    // A failure is reported where the promise is awaited; until then it must not count as unhandled.
    written.catch(() => undefined);
    this.#inFlight.push(written);
  }

  async finish(): Promise<void> {
    this.#send();
    await Promise.all(this.#inFlight);
  }

  async discard(): Promise<void> {
    this.#isDiscarded = true;
    if (this.#chunk !== undefined) this.#buffers.giveBack(this.#chunk);
    this.#chunk = undefined;
    await Promise.allSettled(this.#inFlight);
    await this.upload.discard();
  }
}

/** Random bytes in an id: 128 bits, since anyone who knows an id may read its paste (OWASP ASVS 5.0, 11.5.1). */
const ID_BYTES = 16;

/** RFC 4648 section 6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** An id for a paste, or for content in chunks: 26 characters, of which the last holds three bits and two zeros. */
export function newId(random: RandomBytes): string {
  const bytes = random(ID_BYTES);
  let id = '';
  for (let bit = 0; bit < ID_BYTES * 8; bit += 5) {
    // The five bits are in one byte or across two.
    id += BASE32[(((bytes[bit >> 3]! << 8) | (bytes[(bit >> 3) + 1] ?? 0)) >> (11 - (bit & 7))) & 31];
  }
  return id;
}

/** Most content is the body itself, so the reader of content in JSON is loaded with the first JSON body. */
async function receiveJson(source: ByteSource, sink: ByteSink): Promise<void> {
  const { JsonContentReader } = await import('../core/json-content.ts');
  const reader = new JsonContentReader(sink);
  await source((bytes) => reader.write(bytes));
  reader.end();
}
