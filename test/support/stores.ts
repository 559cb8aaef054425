// The stores that there are. What any of them must do is tested with each.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Store } from '../../src/store/open.ts';
import { type VisitedStore, visitStore } from '../../src/store/visit.ts';
import { certificateInsert, type CertificateRow } from './certificates.ts';
import { openTestStore, rowsOf, selectValue, STRAY_CHUNKS } from './store.ts';

type Values = Readonly<Record<string, string | number | null>>;

/** The tables beside the store, as another process or host has them. */
export interface Tables {
  /** The first value of the first row. */
  value(sql: string): Promise<unknown>;
  /** One text each. */
  rows(sql: string): Promise<string[]>;
  /** How many rows one statement changed. */
  change(sql: string, values?: Values): Promise<number>;
}

export interface OpenedStore {
  readonly store: Store;
  readonly tables: Tables;
  /** What a quota counts for a paste beside its content. */
  readonly rowBytes: number;
  /** Closes the store and opens it anew with what it has. */
  reopen(): Promise<Store>;
  /** The same database as the operator's commands have it, until the test ends. */
  visit(): Promise<VisitedStore>;
}

interface StoreKind {
  readonly name: string;
  /** One without anything in it, until the test ends; undefined where there can be none, and the test was skipped. */
  open(t: TestContext): Promise<OpenedStore | undefined>;
}

const STORES: readonly StoreKind[] = [{ name: 'in a file', open: openInFile }];

/** A test with each of the stores. */
export function testStores(title: string, body: (opened: OpenedStore, t: TestContext) => Promise<void>): void {
  for (const { name, open } of STORES) {
    test(`${title} (${name})`, async (t) => {
      const opened = await open(t);
      if (opened !== undefined) await body(opened, t);
    });
  }
}

/** As insertCertificate of certificates.ts does in a file. */
export async function addCertificate(tables: Tables, given: Partial<CertificateRow> = {}): Promise<CertificateRow> {
  const { row, sql, values } = certificateInsert(given);
  assert.equal(await tables.change(sql, values), 1);
  return row;
}

/** Resolves when all removals that are due have been carried out. */
export async function removalsDone({ pastes, upkeep }: Store): Promise<void> {
  await pastes.removeExpired(0, 1);
  do await setImmediate();
  while (upkeep.writesWaiting() > 0);
}

/** Content that no paste refers to, by the look of the tables: what an upload under way or a failed removal leaves. */
export function strayChunks(tables: Tables): Promise<unknown> {
  return tables.value(STRAY_CHUNKS);
}

async function openInFile(t: TestContext): Promise<OpenedStore> {
  const opened = await openTestStore(t);
  const { path, clock } = opened;
  return {
    get store() {
      return opened.store;
    },
    tables: {
      value: async (sql) => selectValue(path, sql),
      rows: async (sql) => rowsOf(path, sql),
      change: async (sql, values = {}) => {
        using db = new DatabaseSync(path, { timeout: 5000 });
        return Number(db.prepare(sql).run(values).changes);
      },
    },
    // Of so few it is in what an empty database takes.
    rowBytes: 0,
    reopen: opened.reopen,
    visit: async () => {
      const visited = await visitStore({ path, clock, log: () => {}, ifMissing: 'refuse' });
      t.after(() => visited.close());
      return visited;
    },
  };
}
