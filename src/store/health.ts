// Whether the storage works at this moment, as GET /health asks. Does not judge how much room is left.

import type { Reader } from './reader.ts';
import type { Store } from './store.ts';
import type { Writer } from './writer.ts';

/** Resolves with false, and never rejects. */
export function createHealthCheck(
  reader: Pick<Reader, 'look'>,
  writer: Pick<Writer, 'run' | 'state'>,
): Store['healthy'] {
  let probing: Promise<boolean> | undefined;

  async function probe(): Promise<boolean> {
    try {
      await writer.run('probe', null);
      return true;
    } catch {
      return false;
    } finally {
      probing = undefined;
    }
  }
  return async () => {
    try {
      reader.look((lookups) => lookups.isAdopted(''));
    } catch {
      return false;
    }
    const state = writer.state();
    // Concurrent checks share one probe, so that asking often costs no more.
    return state === 'failed' ? (probing ??= probe()) : state === 'working';
  };
}
