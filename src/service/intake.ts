// Takes the content of a new paste in as it arrives: scanned byte by byte, small content kept in memory, larger content handed to
// the store a chunk at a time. Memory is bounded by the chunks in flight, whatever the size. Does not judge the content: pastes.ts.

import type { ByteSink, ByteSource } from '../core/bytes.ts';
import type { ContentFacts, ContentScan } from '../core/content.ts';
import { createJsonContentReader } from '../core/json-content.ts';
import { KIB } from '../core/time.ts';
import { CHUNK_BYTES, INLINE_BYTES, type ContentStore, type Upload } from '../store/store.ts';

/** How many chunks of one upload may be on their way to the disk while the next is filled. */
const CHUNKS_IN_FLIGHT = 2;

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
 * Resolves with the content when the source has ended; `keep` decides what becomes of it. Whenever this or `keep` fails, no chunk
 * stays behind.
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
  let small: Uint8Array[] = [];
  let chunks: ChunkFiller | undefined;

  const sink: ByteSink = (bytes) => {
    const seenBytes = intake.scan.bytes + bytes.length;
    if (seenBytes > intake.maxBytes) intake.refuseSize(seenBytes);
    intake.scan.update(bytes);
    if (chunks === undefined && seenBytes <= INLINE_BYTES) {
      small.push(bytes);
      return undefined;
    }
    chunks ??= createChunkFiller(intake.contents.upload(intake.newContentId()));
    if (small.length === 0) return chunks.add(bytes);
    const early = [...small, bytes];
    small = [];
    return addAll(chunks, early);
  };

  return {
    sink,
    end: async () => {
      const facts = intake.scan.finish();
      if (chunks === undefined) return { ...facts, content: Buffer.concat(small), contentId: null };
      await chunks.finish();
      return { ...facts, content: null, contentId: chunks.contentId };
    },
    discard: async () => chunks?.discard(),
  };
}

async function addAll(chunks: ChunkFiller, pieces: readonly Uint8Array[]): Promise<void> {
  for (const piece of pieces) await chunks.add(piece);
}

interface ChunkFiller {
  readonly contentId: string;
  readonly add: ByteSink;
  readonly finish: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Cuts a stream of bytes into chunks of exactly CHUNK_BYTES, the last one shorter, and keeps a few in flight. */
function createChunkFiller(upload: Upload): ChunkFiller {
  let chunk = new Uint8Array(CHUNK_BYTES);
  let filledBytes = 0;
  const inFlight: Promise<void>[] = [];

  function send(bytes: Uint8Array): void {
    const written = upload.write(bytes);
    // A failure is reported where the promise is awaited; until then it must not count as unhandled.
    written.catch(() => undefined);
    inFlight.push(written);
  }

  /** Copies what fits; true when the chunk was filled and sent. */
  function fill(bytes: Uint8Array): Uint8Array {
    const taken = Math.min(bytes.length, CHUNK_BYTES - filledBytes);
    chunk.set(bytes.subarray(0, taken), filledBytes);
    filledBytes += taken;
    if (filledBytes === CHUNK_BYTES) {
      send(chunk);
      chunk = new Uint8Array(CHUNK_BYTES);
      filledBytes = 0;
    }
    return bytes.subarray(taken);
  }

  async function addWithPauses(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0) {
      rest = fill(rest);
      while (inFlight.length > CHUNKS_IN_FLIGHT) await inFlight.shift();
    }
  }

  return {
    contentId: upload.contentId,
    add: (bytes) => {
      if (bytes.length < CHUNK_BYTES - filledBytes) {
        fill(bytes);
        return undefined;
      }
      return addWithPauses(bytes);
    },
    finish: async () => {
      if (filledBytes > 0) send(chunk.slice(0, filledBytes));
      await Promise.all(inFlight);
    },
    discard: async () => {
      await Promise.allSettled(inFlight);
      await upload.discard();
    },
  };
}
