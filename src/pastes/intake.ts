// What content may be stored: the checks of POST / and PUT / that look at the request's form (step 1) and at the
// content (step 4), in the decided order. Who may store, and how often, is decided elsewhere.

import type { Config } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import {
  type ByteSink, type ByteSource, type ContentFacts, ContentScan, freeBytes,
  JoinedBytes, TEXT_TYPE,
} from '../core/content.ts';
import type { Count } from '../core/events.ts';
import { JsonContentReader } from '../core/json-content.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { SHA256 } from '../crypto/digest.ts';
import type { ContentStore } from '../store/content.ts';
import type { Store } from '../store/open.ts';
import { CHUNK_BYTES, type CreationTerms, INLINE_BYTES, passesQuota, type Refused } from '../store/store.ts';
import { maxPasteBytes } from './admission.ts';
import { requireAcceptablePassword } from './passwords.ts';

/** Content that a caller wants stored. */
export interface Offer {
  readonly caller: Caller;
  readonly source: ByteSource;
  /** `Content-Length`; undefined when the body is chunked. */
  readonly declaredBytes: number | undefined;
  /** Whether the body is JSON with the content in it. */
  readonly isJson: boolean;
  /** The media type that the caller names, as sent. */
  readonly contentType: string | undefined;
  readonly password: string | undefined;
  /** Bytes of the content that it takes the place of, whose room it may have. */
  readonly replacedBytes?: number;
}

export interface ContentRules {
  /** Step 1: refuses a raw body by its declared length, before any of it is read. */
  requireDeclaredSize(offer: Offer): void;
  /** Step 4: takes the content in, checks it, and hands it to `keep`. Whatever fails, nothing of it stays behind. */
  receive<Result>(offer: Offer, keep: (received: ReceivedContent) => Promise<Result>): Promise<Result>;
}

export function createContentRules(parts: {
  config: Config;
  store: Store;
  newContentId: () => string;
}): ContentRules {
  const { config, store, newContentId } = parts;

  function refuseSize({ caller }: Offer, size: number): never {
    const maxSize = maxPasteBytes(config, caller);
    throw new Refusal('pasteTooLarge', { size, maxSize, authenticated: caller.fingerprint !== null });
  }

  /** A full store says so before it has taken megabytes. All of it is decided again when content is written. */
  async function requireRoom(declaredBytes: number, replacedBytes: number): Promise<void> {
    if (!store.hasRoomFor(declaredBytes)) throw new Refusal('storageFull');
    if (config.maxStorageBytes === 0) return;
    const contentBytes = declaredBytes - replacedBytes;
    // Chunks are written before what they replace can go.
    const more = { contentBytes, unwrittenBytes: declaredBytes <= INLINE_BYTES ? contentBytes : declaredBytes };
    if (passesQuota(await store.pastes.usage(), config.maxStorageBytes, more)) throw new Refusal('storageFull');
  }

  /** Where content is written to: under the quota. */
  function contentsFor(declaredBytes: number): ContentStore {
    if (config.maxStorageBytes === 0) return store.contents;
    const quota = { maxStoredBytes: config.maxStorageBytes, declaredBytes };
    return { ...store.contents, upload: (contentId) => store.contents.upload(contentId, quota) };
  }

  function requireAcceptable(offer: Offer, received: ReceivedContent): void {
    if (received.bytes === 0) throw new Refusal('noContent');
    requireAcceptablePassword(offer.password);
    if (received.bytes < config.minBytes) {
      throw new Refusal('pasteTooSmall', { size: received.bytes, minSize: config.minBytes });
    }
    if (config.requireBinary && received.isText) {
      throw new Refusal('textRefused', { hint: 'compress or encrypt the content first', detected: TEXT_TYPE });
    }
    requireEntropy(received);
  }

  function requireEntropy({ bytes, entropyBits }: ReceivedContent): void {
    if (entropyBits === undefined || bytes < config.minEntropyBytes || entropyBits >= config.minEntropyBits) return;
    throw new Refusal('entropyTooLow', {
      hint: 'compress or encrypt the content first',
      entropy: Math.floor(entropyBits * 1000) / 1000,
      minEntropy: config.minEntropyBits,
    });
  }

  return {
    requireDeclaredSize: (offer) => {
      const { declaredBytes = 0 } = offer;
      if (!offer.isJson && declaredBytes > maxPasteBytes(config, offer.caller)) refuseSize(offer, declaredBytes);
    },
    receive: async (offer, keep) => {
      // Of a JSON document it is not known how much of it is content.
      const declaredBytes = offer.isJson ? 0 : (offer.declaredBytes ?? 0);
      await requireRoom(declaredBytes, offer.replacedBytes ?? 0);
      const intake = {
        source: offer.source,
        isJson: offer.isJson,
        maxBytes: maxPasteBytes(config, offer.caller),
        refuseSize: (seenBytes: number): never => {
          requireAcceptablePassword(offer.password);
          return refuseSize(offer, seenBytes);
        },
        scan: new ContentScan({ sha256: SHA256, entropy: config.minEntropyBits > 0 }),
        contents: contentsFor(declaredBytes),
        newContentId,
      };
      return receiveContent(intake, async (received) => {
        requireAcceptable(offer, received);
        return keep(received);
      });
    },
  };
}

// What storing content depends on in the transaction itself, the same for creating and updating: the duplicate throttle
// and the quota.

export interface StorageRules {
  /** As plain values, for the store. */
  readonly terms: Omit<CreationTerms, 'spend'>;
  /** To be called when content was stored under these terms. */
  countStored(): void;
  refusalOf(outcome: Refused, rate: RateStanding | null): Refusal;
}

export function createStorageRules(config: Config, count: Count): StorageRules {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes } = config;
  return {
    terms: {
      duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
      maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    },
    countStored: () => {
      if (duplicateMax > 0) count('duplicateChecks', 'accepted');
    },
    refusalOf: ({ refused, fields, retryAfterSeconds }, rate) => {
      if (refused !== 'duplicateContent') return new Refusal(refused, fields);
      count('duplicateChecks', 'refused');
      return new Refusal(refused, fields, { retryAfterSeconds, rate });
    },
  };
}

// What each tier may do, in numbers from the settings: sizes, times to live, rates.

// Takes the content of a new paste in as it arrives: scanned byte by byte, small content kept in memory, larger content
// handed to the store a chunk at a time. Memory is bounded by the chunks in flight, whatever the size. Does not judge
// the content: pastes.ts.

/**
 * How many chunks of one upload may be on their way to the disk while the next is filled; and when so many are in use
 * by all uploads, none, since the writer has enough to do then.
 */
const CHUNKS_IN_FLIGHT = 4;
const MANY_CHUNKS = 16;

/** Content that has arrived whole: in memory when it is small, else in the store's chunks. */
export interface ReceivedContent extends ContentFacts {
  readonly content: Uint8Array | null;
  readonly contentId: string | null;
}

export interface Intake {
  readonly source: ByteSource;
  /** Whether the body is JSON that holds the content as a string. */
  readonly isJson: boolean;
  readonly maxBytes: number;
  /** Called with the bytes seen when they exceed what is allowed; throws the refusal. */
  readonly refuseSize: (seenBytes: number) => never;
  readonly scan: ContentScan;
  readonly contents: ContentStore;
  readonly newContentId: () => string;
}

/**
 * Resolves with the content when the source has ended; `keep` decides what becomes of it. Whenever this or `keep`
 * fails, no chunk stays behind.
 */
export async function receiveContent<Result>(
  intake: Intake,
  keep: (received: ReceivedContent) => Promise<Result>,
): Promise<Result> {
  const gathering = gather(intake);
  try {
    if (intake.isJson) await pipeJson(intake, gathering.sink);
    else await intake.source(gathering.sink);
    return await keep(await gathering.end());
  } catch (error) {
    await gathering.discard();
    throw error;
  }
}

async function pipeJson(intake: Intake, sink: ByteSink): Promise<void> {
  const reader = new JsonContentReader(sink);
  await intake.source((bytes) => reader.write(bytes));
  reader.end();
}

interface Gathering {
  readonly sink: ByteSink;
  readonly end: () => Promise<ReceivedContent>;
  readonly discard: () => Promise<void>;
}

function gather(intake: Intake): Gathering {
  /** Not scanned yet: what stays small is scanned at the end, as a whole. */
  const small = new JoinedBytes(INLINE_BYTES);
  let seenBytes = 0;
  let chunks: ChunkFiller | undefined;

  const sink: ByteSink = (bytes) => {
    seenBytes += bytes.length;
    if (seenBytes > intake.maxBytes) intake.refuseSize(seenBytes);
    if (chunks === undefined && seenBytes <= INLINE_BYTES) {
      small.add(bytes);
      return undefined;
    }
    if (chunks === undefined) {
      chunks = createChunkFiller(intake.contents, intake.newContentId());
      const before = small.take();
      intake.scan.update(before);
      // It does not fill a chunk, so that there is nothing to wait for.
      void chunks.add(before);
    }
    intake.scan.update(bytes);
    return chunks.add(bytes);
  };

  return {
    sink,
    end: async () => {
      if (chunks === undefined) {
        const content = small.take();
        return { ...intake.scan.finish(content), content, contentId: null };
      }
      const facts = intake.scan.finish();
      await chunks.finish();
      return { ...facts, content: null, contentId: chunks.contentId };
    },
    discard: async () => chunks?.discard(),
  };
}

interface ChunkFiller {
  readonly contentId: string;
  readonly add: ByteSink;
  readonly finish: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Cuts a stream of bytes into chunks of exactly CHUNK_BYTES, the last one shorter, and keeps a few in flight. */
function createChunkFiller({ chunks, upload: begin }: ContentStore, contentId: string): ChunkFiller {
  const upload = begin(contentId);
  /** The one that is being filled. */
  let chunk: ReturnType<typeof chunks.take> | undefined;
  let filledBytes = 0;
  /** From then on no buffer is taken: what is still added, after a wait or by a source that goes on, is dropped. */
  let isDiscarded = false;
  const inFlight: Promise<void>[] = [];

  function send(): void {
    if (chunk === undefined) return;
    const written = upload.write(chunk.subarray(0, filledBytes));
    chunk = undefined;
    filledBytes = 0;
    // A failure is reported where the promise is awaited; until then it must not count as unhandled.
    written.catch(() => undefined);
    inFlight.push(written);
  }

  /** Copies what fits, and sends the chunk when it is full; the rest. */
  function fill(bytes: Uint8Array): Uint8Array {
    chunk ??= chunks.take();
    const taken = Math.min(bytes.length, CHUNK_BYTES - filledBytes);
    chunk.set(bytes.subarray(0, taken), filledBytes);
    filledBytes += taken;
    if (filledBytes === CHUNK_BYTES) send();
    return bytes.subarray(taken);
  }

  async function addWithPauses(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0 && !isDiscarded) {
      rest = fill(rest);
      if (rest.length === 0) freeBytes(bytes);
      while (inFlight.length > (chunks.taken < MANY_CHUNKS ? CHUNKS_IN_FLIGHT : 0)) await inFlight.shift();
    }
  }

  return {
    contentId,
    add: (bytes) => {
      if (isDiscarded) return undefined;
      if (bytes.length >= CHUNK_BYTES - filledBytes) return addWithPauses(bytes);
      fill(bytes);
      freeBytes(bytes);
      return undefined;
    },
    finish: async () => {
      send();
      await Promise.all(inFlight);
    },
    discard: async () => {
      isDiscarded = true;
      if (chunk !== undefined) chunks.giveBack(chunk);
      chunk = undefined;
      await Promise.allSettled(inFlight);
      await upload.discard();
    },
  };
}
