// Buffers in which chunks of larger content are gathered and cross to the writer thread: shared with it and used again.
// A new one for each chunk, zeroed and handed over, is work for the collector.

import { CHUNK_BYTES } from './store.ts';

export interface ChunkBuffers {
  /** CHUNK_BYTES of whatever was in them before, for the taker alone until it gives them back. */
  take(): Uint8Array<SharedArrayBuffer>;
  /** From any view of a buffer that was taken; other bytes, and those that were given back already, are let be. */
  giveBack(bytes: Uint8Array): void;
  /** How many are taken. */
  readonly taken: number;
}

/** 4 MiB that stay when nobody uploads: two batches of the writer. */
const MAX_KEPT = 16;

export function createChunkBuffers(): ChunkBuffers {
  const taken = new Set<ArrayBufferLike>();
  const kept: SharedArrayBuffer[] = [];
  return {
    take() {
      const buffer = kept.pop() ?? new SharedArrayBuffer(CHUNK_BYTES);
      taken.add(buffer);
      return new Uint8Array(buffer);
    },
    giveBack({ buffer }) {
      if (!taken.delete(buffer) || kept.length === MAX_KEPT) return;
      kept.push(buffer as SharedArrayBuffer);
    },
    get taken() {
      return taken.size;
    },
  };
}
