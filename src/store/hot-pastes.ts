// Small pastes that were read lately, kept in memory so that reading them again does not ask SQLite. Never behind the
// database: every change of a paste goes through this process, and while one is under way its paste is not kept here.
// Who reads and changes pastes is paste-store.ts.

import { KIB, MIB } from '../core/time.ts';
import { INLINE_BYTES } from './store.ts';
import type { PasteWithContent } from './store.ts';

/** The largest content that is kept: all that is in a row, since reading such a row costs more than all the rest. */
export const HOT_CONTENT_BYTES = INLINE_BYTES;

/** Up to this size content is read along with metadata, to be kept: then whoever asks for it next finds it. */
export const READ_ALONG_BYTES = 16 * KIB;

/** Of content and what comes with it; so the number of pastes is bounded too. A thousand of the largest are in it. */
const MAX_BYTES = 64 * MIB;

/** What a paste takes beside its content: objects, strings, the digest, places in maps, the heads of its answers. */
export const HOT_PASTE_BYTES = 2 * KIB;

/** Smaller content is there twice: its answer keeps it as text (http/paste-replies.ts). */
const KEPT_TWICE_BYTES = 8 * KIB;

export interface HotPastes {
  /** The paste, when it is kept and has not expired at `nowSeconds`. */
  find(id: string, nowSeconds: number): PasteWithContent | undefined;
  /**
   * Keeps what was read in this very turn, and nobody changes, unless it is large, burns, or is being changed. What was
   * used longest ago makes room.
   */
  keep(found: PasteWithContent): void;
  /** Carries out a change of a paste; until it has settled, the paste is neither found nor kept here. */
  around<Result>(id: string, change: () => Promise<Result>): Promise<Result>;
  clear(): void;
}

export function createHotPastes(maxBytes = MAX_BYTES): HotPastes {
  /** In the order of their last use. */
  const kept = new Map<string, PasteWithContent>();
  let bytes = 0;
  /** How many changes of a paste are under way. */
  const changing = new Map<string, number>();

  function drop(id: string): void {
    const found = kept.get(id);
    if (found === undefined) return;
    kept.delete(id);
    bytes -= bytesOf(found);
  }

  return {
    find(id, nowSeconds) {
      const found = kept.get(id);
      if (found === undefined) return undefined;
      if (found.expiresAt <= nowSeconds) {
        drop(id);
        return undefined;
      }
      kept.delete(found.id);
      kept.set(found.id, found);
      return found;
    },
    keep(found) {
      const { id, burnAfterRead, content } = found;
      if (content === null || content.length > HOT_CONTENT_BYTES || burnAfterRead || changing.has(id)) return;
      drop(id);
      kept.set(id, found);
      bytes += bytesOf(found);
      for (const oldest of kept.keys()) {
        if (bytes <= maxBytes) return;
        drop(oldest);
      }
    },
    async around(id, change) {
      drop(id);
      changing.set(id, (changing.get(id) ?? 0) + 1);
      try {
        return await change();
      } finally {
        const others = (changing.get(id) ?? 0) - 1;
        if (others > 0) changing.set(id, others);
        else changing.delete(id);
      }
    },
    clear() {
      kept.clear();
      bytes = 0;
    },
  };
}

function bytesOf({ size }: PasteWithContent): number {
  return size + (size <= KEPT_TWICE_BYTES ? size : 0) + HOT_PASTE_BYTES;
}
