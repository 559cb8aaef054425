// Small pastes that were read lately, kept in memory so that reading them again does not ask SQLite. Never behind the
// database: every change of a paste goes through this process, and while one is under way its paste is not kept here.
// Who reads and changes pastes is paste-store.ts.

import { KIB, MIB } from '../core/time.ts';
import { createUseOrder } from '../core/use-order.ts';
import type { Used } from '../core/use-order.ts';
import { INLINE_BYTES } from './store.ts';
import type { PasteWithContent } from './store.ts';

/** The largest content that is kept: all that is in a row, since reading such a row costs more than all the rest. */
export const HOT_CONTENT_BYTES = INLINE_BYTES;

/** Up to this size content is read along with metadata, to be kept: then whoever asks for it next finds it. */
export const READ_ALONG_BYTES = 16 * KIB;

/**
 * What a paste takes beside its content. Objects, strings, places in maps and the heads of its answers are half of it; so
 * much again does V8 leave free in a heap of so many small things.
 */
export const HOT_PASTE_BYTES = 3 * KIB;

/** Of content and what comes with it: some five hundred of the largest pastes, or eight thousand of 1 KiB. */
const MAX_BYTES = 32 * MIB;

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

interface Kept extends Used<Kept> {
  readonly found: PasteWithContent;
}

export function createHotPastes(maxBytes = MAX_BYTES): HotPastes {
  const kept = new Map<string, Kept>();
  let order = createUseOrder<Kept>();
  let bytes = 0;
  /** How many changes of a paste are under way. */
  const changing = new Map<string, number>();

  function drop(id: string): void {
    const entry = kept.get(id);
    if (entry === undefined) return;
    kept.delete(id);
    order.remove(entry);
    bytes -= bytesOf(entry.found);
  }

  return {
    find(id, nowSeconds) {
      const entry = kept.get(id);
      if (entry === undefined) return undefined;
      if (entry.found.expiresAt <= nowSeconds) {
        drop(id);
        return undefined;
      }
      order.remove(entry);
      order.append(entry);
      return entry.found;
    },
    keep(found) {
      const { id, burnAfterRead, content, size } = found;
      if (content === null || size > HOT_CONTENT_BYTES || burnAfterRead || changing.has(id)) return;
      drop(id);
      const entry = { found, older: undefined, newer: undefined };
      kept.set(id, entry);
      order.append(entry);
      bytes += bytesOf(found);
      for (let oldest = order.oldest(); oldest !== undefined && bytes > maxBytes; oldest = order.oldest()) {
        drop(oldest.found.id);
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
      order = createUseOrder();
      bytes = 0;
    },
  };
}

function bytesOf({ size }: PasteWithContent): number {
  return size + HOT_PASTE_BYTES;
}
