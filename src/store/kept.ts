// Small pastes that were read lately, kept in memory so that reading them again does not ask SQLite. Never behind the
// database: every change of a paste goes through this process, and while one is under way its paste is not kept here.
// Who reads and changes pastes is open.ts.

import type { Log } from '../core/events.ts';
import { KIB, MIB } from '../core/time.ts';
import { createUseOrder, type Used } from '../core/use-order.ts';
import type { Access } from './pastes.ts';
import { describe, INLINE_BYTES, type PasteWithContent } from './store.ts';

/** The largest content that is kept: all that is in a row, since reading such a row costs more than all the rest. */
export const HOT_CONTENT_BYTES = INLINE_BYTES;

/** Up to this size content is read along with metadata, to be kept: then whoever asks for it next finds it. */
export const READ_ALONG_BYTES = 16 * KIB;

/**
 * What a paste takes beside its content. Objects, strings, places in maps and the heads of its answers are half of it;
 * so much again does V8 leave free in a heap of so many small things.
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

// Access times on their way to the database, in batches: a lookup must not cost a commit. Nothing depends on them, so a
// failure loses them.

const FLUSH_AFTER_MS = 5000;

/** Beyond that no access is noted until some are written. */
export const MAX_TOUCHES = 10_000;

/**
 * Written in FLUSH_AFTER_MS, the oldest first; the rest waits. Rows that lie all over a large file cost many times what
 * the reads cost that they tell of, and would keep the writer busy without a pause.
 */
export const BATCH_TOUCHES = 2048;

/** Rows in one command, each read whole from its pages: 16 MiB at the worst. */
const STEP_ROWS = 256;

export interface Touches {
  note(id: string, atSeconds: number): void;
  /** Takes no more; resolves when all that was noted is written, or has failed and been logged. */
  close(): Promise<void>;
}

export function createTouches(write: (accesses: readonly Access[]) => Promise<void>, log: Log): Touches {
  const noted = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  /** Since the last batch, until the timer fires. */
  let resting = false;
  let flushing = Promise.resolve();
  let closed = false;

  async function writeSteps(accesses: readonly Access[]): Promise<void> {
    try {
      for (let start = 0; start < accesses.length; start += STEP_ROWS) {
        await write(accesses.slice(start, start + STEP_ROWS));
      }
    } catch (error) {
      const details = { reason: describe(error), accesses: accesses.length };
      log({ level: 'warning', logger: 'store', event: 'access times lost', outcome: 'failure', details });
    }
  }

  function startTimer(): NodeJS.Timeout {
    return setTimeout(() => {
      resting = false;
      timer = undefined;
      if (noted.size > 0) void flush();
    }, FLUSH_AFTER_MS).unref();
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = closed ? undefined : startTimer();
    resting = true;
    flushing = flushing.then(() => {
      const accesses = Array.from(noted, ([id, atSeconds]) => ({ id, atSeconds }));
      const batch = closed ? accesses : accesses.slice(0, BATCH_TOUCHES);
      for (const { id } of batch) noted.delete(id);
      return writeSteps(batch);
    });
    return flushing;
  }

  return {
    note(id, atSeconds) {
      const isNew = !noted.has(id);
      if (closed || (isNew && noted.size >= MAX_TOUCHES)) return;
      noted.set(id, atSeconds);
      if (isNew && noted.size === MAX_TOUCHES && !resting) void flush();
      else timer ??= startTimer();
    },
    close() {
      closed = true;
      return flush();
    },
  };
}
