// The stores that there are. What any of them must do is tested with each: in a file of this host, and on a node of
// rqlite. One node makes a cluster of one, with the same log, locks and answers, and costs a third of three nodes. What
// only several nodes have, such as another leader, is not part of the store's contract.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openClusterStore } from '../../src/cluster/open.ts';
import { visitCluster } from '../../src/cluster/visit.ts';
import type { Store } from '../../src/store/open.ts';
import { type VisitedStore, visitStore } from '../../src/store/visit.ts';
import { certificateInsert, type CertificateRow } from './certificates.ts';
import { movableClock } from './clock.ts';
import { type NodeAnswer, rqliteMissing, type RqliteNode, startNodes } from './rqlite.ts';
import { newId, openTestStore, rowsOf, selectValue, STRAY_CHUNKS } from './store.ts';
import { testConfig } from './test-config.ts';

type Values = Readonly<Record<string, string | number | null>>;

/** The tables behind the store, as another process or host sees them. */
export interface Tables {
  /** The first value of the first row. */
  value(sql: string): Promise<unknown>;
  /** One text for each row. */
  rows(sql: string): Promise<string[]>;
  /** How many rows one statement changed. */
  change(sql: string, values?: Values): Promise<number>;
}

export interface OpenedStore {
  readonly store: Store;
  readonly tables: Tables;
  /** What a quota counts for a paste beside its content. */
  readonly rowBytes: number;
  /** Closes the store and opens it again with the data that it has. */
  reopen(): Promise<Store>;
  /** The same database, opened as the operator's commands open it, until the test ends. */
  visit(): Promise<VisitedStore>;
}

interface StoreKind {
  readonly name: string;
  /** Opens an empty store until the test ends; undefined where there can be none, and then the test is skipped. */
  open(t: TestContext): Promise<OpenedStore | undefined>;
}

const STORES: readonly StoreKind[] = [
  { name: 'in a file', open: openInFile },
  { name: 'on rqlite', open: openOnRqlite },
];

/** Registers one test for each of the stores. */
export function testStores(title: string, body: (opened: OpenedStore, t: TestContext) => Promise<void>): void {
  for (const { name, open } of STORES) {
    test(`${title} (${name})`, async (t) => {
      const opened = await open(t);
      if (opened !== undefined) await body(opened, t);
    });
  }
}

/** Does what insertCertificate of certificates.ts does in a file. */
export async function addCertificate(tables: Tables, given: Partial<CertificateRow> = {}): Promise<CertificateRow> {
  const { row, sql, values } = certificateInsert(given);
  assert.equal(await tables.change(sql, values), 1);
  return row;
}

/** Resolves when all removals that are due have been carried out. */
export async function removalsDone({ upkeep }: Store): Promise<void> {
  do await setImmediate();
  while (upkeep.writesWaiting() > 0);
}

/** How many chunks no paste refers to, by the tables: an upload under way or a failed removal leaves them. */
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
    // The rows of so few pastes fit into the space of an empty database, which the quota does not count.
    rowBytes: 0,
    reopen: opened.reopen,
    visit: async () => {
      const visited = await visitStore({ path, clock, log: () => {}, ifMissing: 'refuse' });
      t.after(() => visited.close());
      return visited;
    },
  };
}

/** Started once for all tests of a file; before each test it gets an empty database. */
let started: Promise<{ node: RqliteNode; nothing: Uint8Array }> | undefined;
const ends: (() => Promise<void>)[] = [];
after(async () => {
  for (const end of ends) await end();
});

async function openOnRqlite(t: TestContext): Promise<OpenedStore | undefined> {
  const missing = rqliteMissing();
  if (missing !== undefined) {
    t.skip(missing);
    return undefined;
  }
  started ??= startNode();
  const { node, nothing } = await started;
  resultsOf(await node.ask('/db/load', nothing));
  const tables = tablesOf(node);
  // Deadlines need a clock that runs. Expiry does not: what expires is as old as the test says.
  const clock = { ...movableClock(), monotonicMs: () => performance.now() };
  const config = testConfig({ databasePath: `rqlite://${node.address}` });
  const options = { config, clock, newId, log: () => {}, maxSkewSeconds: Infinity };
  let store = await openClusterStore(options);
  t.after(() => store.close());
  return {
    get store() {
      return store;
    },
    tables,
    rowBytes: 1024,
    async reopen() {
      await store.close();
      store = await openClusterStore(options);
      return store;
    },
    async visit() {
      const visited = await visitCluster(options);
      t.after(() => visited.close());
      return visited;
    },
  };
}

async function startNode() {
  const { findLeader } = await startNodes({ after: (end) => ends.push(end) }, { count: 1 });
  const node = await findLeader();
  const { bytes } = await node.ask('/db/backup');
  return { node, nothing: bytes };
}

interface Result {
  readonly error?: string;
  readonly rows_affected?: number;
  readonly values?: readonly (readonly unknown[])[];
}

function resultsOf({ status, body }: NodeAnswer): readonly Result[] {
  assert.equal(status, 200, body);
  const { results, error } = JSON.parse(body) as { readonly results: readonly Result[]; readonly error?: string };
  const failed = error ?? results.find((result) => result.error !== undefined)?.error;
  assert.equal(failed, undefined);
  return results;
}

function tablesOf(node: RqliteNode): Tables {
  const find = async (sql: string) => {
    const [found] = resultsOf(await node.ask('/db/query?level=strong', [sql]));
    return found?.values ?? [];
  };
  return {
    value: async (sql) => (await find(sql))[0]?.[0],
    rows: async (sql) => (await find(sql)).map((row) => row.join(' ')),
    change: async (sql, values = {}) => {
      const [changed] = resultsOf(await node.ask('/db/execute?transaction', [[sql, values]]));
      return changed?.rows_affected ?? 0;
    },
  };
}
