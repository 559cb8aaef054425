// Small bytes on their way to the writer thread, which lie together in shared memory: a buffer for each, copied and
// made anew on the other side, costs more than the bytes themselves. Larger ones are chunk-buffers.ts.

import { KIB } from '../core/time.ts';

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
