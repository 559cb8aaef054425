// The few chunks of larger content that were read last. Readers take pieces out of them: one that waits for its client
// then holds a piece, and all of them together no more chunks than are kept here.

import { freeBytes } from '../core/bytes.ts';

export interface RecentChunks {
  /** Copies what is there into `target`; how many bytes, 0 past the end of the chunk or where there is none. */
  copy(place: PlaceInContent, target: Uint8Array): number;
  /** Nobody reads the content any more. */
  forget(contentId: string): void;
}

export interface PlaceInContent {
  readonly contentId: string;
  /** Of the chunk. */
  readonly position: number;
  /** Bytes into the chunk. */
  readonly offset: number;
}

interface Kept {
  readonly contentId: string;
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** 2 MiB: more than readers take pieces of in one turn of the event loop. */
const MAX_KEPT = 8;

/** `read` gives a chunk in a buffer of its own. */
export function createRecentChunks(
  read: (contentId: string, position: number) => Uint8Array | undefined,
): RecentChunks {
  /** The one used last is at the end. */
  let kept: Kept[] = [];

  function find(contentId: string, position: number): Kept | undefined {
    const index = kept.findIndex((chunk) => chunk.position === position && chunk.contentId === contentId);
    return index === -1 ? undefined : kept.splice(index, 1)[0];
  }

  function fetch(contentId: string, position: number): Kept | undefined {
    const bytes = read(contentId, position);
    if (bytes === undefined) return undefined;
    // Left to the collector, what hundreds of readers have been through would fill the memory before it comes.
    if (kept.length === MAX_KEPT) freeBytes(kept.shift()!.bytes);
    return { contentId, position, bytes };
  }

  return {
    copy({ contentId, position, offset }, target) {
      const chunk = find(contentId, position) ?? fetch(contentId, position);
      if (chunk === undefined) return 0;
      kept.push(chunk);
      const piece = chunk.bytes.subarray(offset, offset + target.length);
      target.set(piece);
      return piece.length;
    },
    forget(contentId) {
      for (const chunk of kept) if (chunk.contentId === contentId) freeBytes(chunk.bytes);
      kept = kept.filter((chunk) => chunk.contentId !== contentId);
    },
  };
}
