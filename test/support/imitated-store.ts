// A host of a cluster on one imitated node, and answers of that node.

import type { TestContext } from 'node:test';
import type { LogEntry } from '../../src/core/events.ts';
import { openClusterStore } from '../../src/cluster/open.ts';
import type { Store } from '../../src/store/open.ts';
import { StoreError } from '../../src/store/store.ts';
import { RUNNING_CLOCK } from './app.ts';
import { type Asked, type Fault, startFaultyNodes, startImitatedNode } from './faulty-nodes.ts';
import { newId } from './store.ts';
import { testConfig } from './test-config.ts';

export const EVENT = { time: 1, event: 'seen', outcome: 'success', clientId: null, clientIp: null, details: {} } as const;

/** One node behind a proxy, for which a test chooses the faults; `stores` are closed before it ends. */
export async function startNode(t: TestContext) {
  const behind: { choose: (asked: Asked) => Fault | undefined } = { choose: () => undefined };
  const stores: Store[] = [];
  // Registered first, since hooks run in order: a store that closes without its node waits five seconds.
  t.after(() => {
    behind.choose = () => undefined;
    return Promise.all(stores.map((store) => store.close()));
  });
  const node = await startImitatedNode(t);
  const { addresses, settled } = await startFaultyNodes(t, [node.address], (asked) => behind.choose(asked));
  const count = (table: string): unknown => node.db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.['rows'];
  return { ...node, stores, behind, settled, count, config: testConfig({ databasePath: `rqlite://${addresses[0]}` }) };
}

export async function openStore(t: TestContext) {
  const node = await startNode(t);
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): void => void logged.push(entry);
  const store = await openClusterStore({ config: node.config, clock: RUNNING_CLOCK, log, newId });
  node.stores.push(store);
  return { ...node, logged, store };
}

/** The fault for the first request that fits, and none after it. */
export function once(fits: (asked: Asked) => boolean, fault: Fault): (asked: Asked) => Fault | undefined {
  let isDone = false;
  return (asked) => {
    if (isDone || !fits(asked)) return undefined;
    isDone = true;
    return fault;
  };
}

/** These results as the answer of a node that carries nothing out. */
export function saying(...results: readonly object[]): Fault {
  return { kind: 'replaced', status: 200, body: JSON.stringify({ results }), isCarriedOut: false };
}

export function isUnavailable(said: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof StoreError && error.failure === 'unavailable' && said.test(error.message);
}

export const isWrite = ({ path }: Asked): boolean => path.startsWith('/db/execute');
export const isRead = ({ path }: Asked): boolean => path.startsWith('/db/query');
