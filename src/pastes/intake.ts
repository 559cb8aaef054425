// Takes the content of a new paste in as it arrives: scanned byte by byte, small content kept in memory, larger content
// handed to the store a chunk at a time. Memory is bounded by the chunks in flight, whatever the size. Does not judge
// the content: pastes.ts.

import {
  type ByteSink, type ByteSource, type ContentFacts, type ContentScan, freeBytes, JoinedBytes,
} from '../core/content.ts';
import { createJsonContentReader } from '../core/json-content.ts';
import { KIB } from '../core/time.ts';
import { CHUNK_BYTES, type ContentStore, INLINE_BYTES } from '../store/store.ts';

/**
 * How many chunks of one upload may be on their way to the disk while the next is filled; and when so many are in use
 * by all uploads, none, since the writer has enough to do then.
 */
const CHUNKS_IN_FLIGHT = 4;
const MANY_CHUNKS = 16;

/** A JSON escape is at most six bytes for one byte of content; the rest of the document gets a fixed allowance. */
const JSON_BYTES_PER_CONTENT_BYTE = 6;
const JSON_ALLOWANCE_BYTES = 64 * KIB;

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
  const reader = createJsonContentReader(sink);
  const maxDocumentBytes = intake.maxBytes * JSON_BYTES_PER_CONTENT_BYTE + JSON_ALLOWANCE_BYTES;
  let documentBytes = 0;
  await intake.source((bytes) => {
    documentBytes += bytes.length;
    if (documentBytes > maxDocumentBytes) intake.refuseSize(documentBytes);
    return reader.write(bytes);
  });
  await reader.end();
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
