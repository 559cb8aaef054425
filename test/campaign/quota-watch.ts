// Looks all the time, beside the service, at what a database counts against its quota. The quota may never be exceeded,
// and a client that is told that there is no room must have found none.

import { DatabaseSync } from 'node:sqlite';
import { KIB, MIB } from '../../src/core/time.ts';
import { fileBytes } from '../../src/store/database.ts';
import { prepareUsage } from '../../src/store/records.ts';
import { countedBytes, OWN_BYTES, type StoredUsage } from '../../src/store/store.ts';
import type { Unit } from './row.ts';

export interface QuotaWatch {
  usage(): StoredUsage;
  /** How much more may be stored. */
  room(): number;
  orphans(): number;
  /** Carries out an upload of that many bytes; `couldBeFull` tells whether 507 was a right answer to it. */
  during<Result>(bytes: number, upload: () => Promise<Result>): Promise<{ result: Result; couldBeFull: () => boolean }>;
  close(): void;
}

interface Span {
  readonly bytes: number;
  readonly fromMs: number;
  /** Infinite as long as it goes on. */
  toMs: number;
}

const SAMPLE_MS = 10;

/** From 8 MiB on the log is moved into the database, unless somebody reads just then, as this watch always does. */
const MOST_WAL_BYTES = 24 * MIB;

/** Beside content: a page of each index that the last accepted upload may add, and one for each hundred of chunks. */
const PAGES_BYTES = 64 * KIB;
const PAGES_SHARE = 1.02;

/** No upload takes so long. */
const LONGEST_MS = 60_000;

export function watchQuota(unit: Unit, databasePath: string, quotaBytes: number): QuotaWatch {
  const db = new DatabaseSync(databasePath, { readOnly: true, timeout: 5000 });
  const usage = prepareUsage(db);
  const countOrphans = db.prepare('SELECT count(*) AS n FROM orphans');
  const spans = new Set<Span>();
  let sampled = { atMs: performance.now(), countedBytes: quotaBytes };

  function sample(): void {
    const atMs = performance.now();
    const stored = usage();
    sampled = { atMs, countedBytes: countedBytes(stored) };
    for (const span of spans) if (span.toMs + LONGEST_MS < atMs) spans.delete(span);
    const [file = 0, wal = 0] = ['', '-wal'].map((suffix) => fileBytes(databasePath + suffix));
    unit.count('looks at the quota');
    unit.most('counted KiB', countedBytes(stored) / KIB);
    unit.most('file KiB', file / KIB);
    unit.most('log KiB', wal / KIB);
    if (stored.bytes > quotaBytes) unit.lose(`${stored.bytes} bytes of content are stored`, stored);
    if (stored.databaseBytes > quotaBytes + PAGES_BYTES) unit.lose('the database is beyond the quota', stored);
    if (file > quotaBytes + OWN_BYTES + PAGES_BYTES) unit.lose(`the file has ${file} bytes`, stored);
    if (wal > MOST_WAL_BYTES) unit.lose(`the log has ${wal} bytes`);
  }

  sample();
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    usage,
    room: () => quotaBytes - countedBytes(usage()),
    orphans: () => Number(countOrphans.get()?.['n']),
    during: async (bytes, upload) => {
      const before = sampled;
      const span: Span = { bytes, fromMs: performance.now(), toMs: Infinity };
      spans.add(span);
      const result = await upload();
      const endMs = performance.now();
      span.toMs = endMs;
      // What counted at any moment counted at the look before, or came with an upload that was under way since.
      const couldBeFull = (): boolean => {
        const beside = [...spans].filter(({ fromMs, toMs }) => fromMs <= endMs && toMs >= before.atMs);
        const brought = beside.reduce((sum, one) => sum + one.bytes, 0);
        return before.countedBytes + brought * PAGES_SHARE + PAGES_BYTES > quotaBytes;
      };
      return { result, couldBeFull };
    },
    close: () => {
      clearInterval(timer);
      db.close();
    },
  };
}
