// Buffers in which chunks of larger content are gathered and cross to the writer thread: shared with it and used again.
// A new one for each chunk, zeroed and handed over, is work for the collector.

import { KIB } from '../core/time.ts';
import { CHUNK_BYTES, type ChunkBuffers } from './store.ts';

/** 4 MiB that stay when nobody uploads: two batches of the writer. */
const MAX_KEPT_BUFFERS = 16;

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
      if (!taken.delete(buffer) || kept.length === MAX_KEPT_BUFFERS) return;
      kept.push(buffer as SharedArrayBuffer);
    },
    get taken() {
      return taken.size;
    },
  };
}

// Small bytes on their way to the writer thread, which lie together in shared memory: a buffer for each, copied and
// made anew on the other side, costs more than the bytes themselves. Larger ones are the buffers above.

export interface Parcels {
  /** A copy that crosses to another thread as it is. Nothing is written there again; unreferenced, it goes. */
  wrap(bytes: Uint8Array): Uint8Array;
}

/** Some fifty small pastes: what stays behind when one of them is held for long is little. */
const PARCEL_BYTES = 64 * KIB;

export function createParcels(): Parcels {
  let parcel = new SharedArrayBuffer(0);
  let usedBytes = 0;
  return {
    wrap(bytes) {
      if (usedBytes + bytes.length > parcel.byteLength) {
        parcel = new SharedArrayBuffer(Math.max(PARCEL_BYTES, bytes.length));
        usedBytes = 0;
      }
      const wrapped = new Uint8Array(parcel, usedBytes, bytes.length);
      wrapped.set(bytes);
      usedBytes += bytes.length;
      return wrapped;
    },
  };
}
