// Takes content in: what POST / and PUT check of its size and its bytes (steps 1 and 4 of the decisions), and where it
// goes while it arrives. Small content stays in memory; larger content goes to the store a chunk at a time, so that
// memory is bounded by the chunks in flight.

import type { Config } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import {
  type ByteSink, type ByteSource, type ContentFacts, ContentScan, freeBytes, JoinedBytes, mediaTypeOf, TEXT_TYPE,
} from '../core/content.ts';
import { JsonContentReader } from '../core/json-content.ts';
import { Refusal } from '../core/refusals.ts';
import type { RandomBytes } from '../core/time.ts';
import { SHA256 } from '../crypto/digest.ts';
import type { ContentStore, Upload } from '../store/content.ts';
import { type ChangedContent, CHUNK_BYTES, INLINE_BYTES, passesQuota, type UploadQuota } from '../store/store.ts';
import { maxPasteBytes, requireAcceptablePassword } from './admission.ts';
import type { Parts } from './parts.ts';

/** How many chunks of one upload may be on their way to the disk while the next is filled. */
const CHUNKS_IN_FLIGHT = 4;

/** With so many in use by all uploads the writer has enough to do, and an upload waits for each of its chunks. */
const MANY_CHUNKS = 16;

/** Content that a caller wants stored. */
export interface Offer {
  readonly caller: Caller;
  readonly clientAddress: string;
  readonly source: ByteSource;
  /** `Content-Length`; undefined when the body is chunked. */
  readonly declaredBytes: number | undefined;
  /** Whether the body is JSON with the content in it. */
  readonly isJson: boolean;
  /** The media type that the caller names, as sent. */
  readonly contentType: string | undefined;
  readonly password: string | undefined;
  /** Seconds from now; undefined for the tier's default in a new paste, and for no change in another. */
  readonly requestedTtlSeconds: number | undefined;
}

/** Content that has arrived whole and is acceptable. Its chunks are discarded at the end of its scope, unless kept. */
export class ReceivedContent implements AsyncDisposable {
  readonly stored: ChangedContent;
  #chunks: ChunkWriter | undefined;

  constructor(stored: ChangedContent, chunks: ChunkWriter | undefined) {
    this.stored = stored;
    this.#chunks = chunks;
  }

  /** To be called when the store has taken it over. */
  keep(): void {
    this.#chunks = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks?.discard();
  }
}

/** Step 1: refuses a raw body by its declared length, before any of it is read. */
export function requireDeclaredSize({ config }: Pick<Parts, 'config'>, offer: Offer): void {
  const { caller, declaredBytes = 0, isJson } = offer;
  if (!isJson && declaredBytes > maxPasteBytes(config, caller)) throw tooLarge(config, caller, declaredBytes);
}

type IntakeParts = Pick<Parts, 'config' | 'store' | 'random'>;

/**
 * Step 4: takes the content in and checks it. When anything fails, no chunk of it stays behind. `replacedBytes` is the
 * size of the content that it takes the place of, whose room it may have.
 */
export async function receive(parts: IntakeParts, offer: Offer, replacedBytes = 0): Promise<ReceivedContent> {
  // How much of a JSON document is content is not known in advance.
  const declaredBytes = offer.isJson ? 0 : (offer.declaredBytes ?? 0);
  await requireRoom(parts, declaredBytes, replacedBytes);
  const { maxStorageBytes } = parts.config;
  const quota = maxStorageBytes === 0 ? null : { maxStoredBytes: maxStorageBytes, declaredBytes };
  const intake = new Intake(parts, offer, quota);
  try {
    if (offer.isJson) await pipeJson(offer.source, intake.take);
    else await offer.source(intake.take);
    const { facts, content } = await intake.end();
    requireAcceptable(parts.config, offer, facts);
    const mimeType = mediaTypeOf(facts.isText, offer.isJson ? undefined : offer.contentType);
    const contentId = intake.chunks?.contentId ?? null;
    const stored = { mimeType, size: facts.bytes, sha256: facts.sha256, contentId, content };
    return new ReceivedContent(stored, intake.chunks);
  } catch (error) {
    await intake.chunks?.discard();
    throw error;
  }
}

/** A full store says so before it takes megabytes. All of it is decided again when the content is written. */
async function requireRoom(parts: IntakeParts, declaredBytes: number, replacedBytes: number): Promise<void> {
  const { config, store } = parts;
  if (!store.hasRoomFor(declaredBytes)) throw new Refusal('storageFull');
  if (config.maxStorageBytes === 0) return;
  const contentBytes = declaredBytes - replacedBytes;
  // Chunks are written before what they replace can go.
  const unwrittenBytes = declaredBytes <= INLINE_BYTES ? contentBytes : declaredBytes;
  const usage = await store.pastes.usage();
  if (passesQuota(usage, config.maxStorageBytes, { contentBytes, unwrittenBytes })) throw new Refusal('storageFull');
}

async function pipeJson(source: ByteSource, sink: ByteSink): Promise<void> {
  const reader = new JsonContentReader(sink);
  await source((bytes) => reader.write(bytes));
  reader.end();
}

function tooLarge(config: Config, caller: Caller, size: number): Refusal {
  const maxSize = maxPasteBytes(config, caller);
  return new Refusal('pasteTooLarge', { size, maxSize, authenticated: caller.fingerprint !== null });
}

function requireAcceptable(config: Config, offer: Offer, { bytes, isText, entropyBits }: ContentFacts): void {
  if (bytes === 0) throw new Refusal('noContent');
  requireAcceptablePassword(offer.password);
  if (bytes < config.minBytes) throw new Refusal('pasteTooSmall', { size: bytes, minSize: config.minBytes });
  const hint = 'compress or encrypt the content first';
  if (config.requireBinary && isText) throw new Refusal('textRefused', { hint, detected: TEXT_TYPE });
  if (entropyBits === undefined || bytes < config.minEntropyBytes || entropyBits >= config.minEntropyBits) return;
  const entropy = Math.floor(entropyBits * 1000) / 1000;
  throw new Refusal('entropyTooLow', { hint, entropy, minEntropy: config.minEntropyBits });
}

/** Content on its way in: gathered in memory, and from INLINE_BYTES on written in chunks. */
class Intake {
  /** Undefined as long as the content is small. */
  chunks: ChunkWriter | undefined;
  readonly #parts: IntakeParts;
  readonly #offer: Offer;
  readonly #quota: UploadQuota | null;
  readonly #maxBytes: number;
  readonly #scan: ContentScan;
  /** Not scanned yet: content that stays small is scanned at the end, as a whole. */
  readonly #small = new JoinedBytes(INLINE_BYTES);
  #seenBytes = 0;

  constructor(parts: IntakeParts, offer: Offer, quota: UploadQuota | null) {
    this.#parts = parts;
    this.#offer = offer;
    this.#quota = quota;
    this.#maxBytes = maxPasteBytes(parts.config, offer.caller);
    this.#scan = new ContentScan({ sha256: SHA256, entropy: parts.config.minEntropyBits > 0 });
  }

  readonly take: ByteSink = (bytes) => {
    this.#seenBytes += bytes.length;
    if (this.#seenBytes > this.#maxBytes) this.#refuseSize();
    if (this.chunks === undefined && this.#seenBytes <= INLINE_BYTES) {
      this.#small.add(bytes);
      return undefined;
    }
    this.chunks ??= this.#beginChunks();
    this.#scan.update(bytes);
    return this.chunks.add(bytes);
  };

  /** After the last bytes: what was found out about them, and they themselves when they are in memory. */
  async end(): Promise<{ readonly facts: ContentFacts; readonly content: Uint8Array | null }> {
    if (this.chunks === undefined) {
      const content = this.#small.take();
      return { facts: this.#scan.finish(content), content };
    }
    const facts = this.#scan.finish();
    await this.chunks.finish();
    return { facts, content: null };
  }

  #refuseSize(): never {
    requireAcceptablePassword(this.#offer.password);
    throw tooLarge(this.#parts.config, this.#offer.caller, this.#seenBytes);
  }

  #beginChunks(): ChunkWriter {
    const { contents } = this.#parts.store;
    const chunks = new ChunkWriter(contents.chunks, contents.upload(newId(this.#parts.random), this.#quota));
    const before = this.#small.take();
    this.#scan.update(before);
    // It does not fill a chunk, so that there is nothing to wait for.
    void chunks.add(before);
    return chunks;
  }
}

/** Cuts bytes into chunks of exactly CHUNK_BYTES, the last one shorter, and keeps a few on their way to the disk. */
class ChunkWriter {
  readonly contentId: string;
  readonly #buffers: ContentStore['chunks'];
  readonly #upload: Upload;
  /** The one that is being filled. */
  #chunk: ReturnType<ContentStore['chunks']['take']> | undefined;
  #filledBytes = 0;
  readonly #inFlight: Promise<void>[] = [];
  /** From then on no buffer is taken, and what a source still adds is dropped. */
  #isDiscarded = false;

  constructor(buffers: ContentStore['chunks'], upload: Upload) {
    this.contentId = upload.contentId;
    this.#buffers = buffers;
    this.#upload = upload;
  }

  add(bytes: Uint8Array): void | Promise<void> {
    if (this.#isDiscarded) return undefined;
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

  /** Copies what fits, and sends the chunk when it is full. Gives the rest. */
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
    const written = this.#upload.write(this.#chunk.subarray(0, this.#filledBytes));
    this.#chunk = undefined;
    this.#filledBytes = 0;
    // A failure is reported where the promise is awaited; until then it must not count as unhandled.
    written.catch(() => undefined);
    this.#inFlight.push(written);
  }

  /** After the last bytes: resolves when all chunks are written. */
  async finish(): Promise<void> {
    this.#send();
    await Promise.all(this.#inFlight);
  }

  async discard(): Promise<void> {
    this.#isDiscarded = true;
    if (this.#chunk !== undefined) this.#buffers.giveBack(this.#chunk);
    this.#chunk = undefined;
    await Promise.allSettled(this.#inFlight);
    await this.#upload.discard();
  }
}

/** How many random bytes an id is made of: 128 bits, since whoever knows an id may read (OWASP ASVS 5.0, 11.5.1). */
export const ID_BYTES = 16;

/** For a paste, and for content in chunks. */
export function newId(random: RandomBytes): string {
  return idFromBytes(random(ID_BYTES));
}

/** RFC 4648 section 6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** 26 characters of `a-z2-7` for the 128 bits given; the last character holds three bits and two zeros. */
export function idFromBytes(bytes: Uint8Array): string {
  if (bytes.length !== ID_BYTES) throw new RangeError(`an id is made of ${ID_BYTES} bytes, not ${bytes.length}`);
  let id = '';
  for (let bit = 0; bit < ID_BYTES * 8; bit += 5) {
    // The five bits are in one byte or across two.
    const pair = (bytes[bit >> 3]! << 8) | (bytes[(bit >> 3) + 1] ?? 0);
    id += BASE32[(pair >> (11 - (bit & 7))) & 31];
  }
  return id;
}
