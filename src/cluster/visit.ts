// The store for the operator's commands in a cluster: they work beside the hosts that serve, like one more host.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { codeOf, expected } from '../core/events.ts';
import { copyDatabase, restoreDatabase } from '../store/backup.ts';
import { OWNER_ONLY_FILE } from '../store/database.ts';
import { auditTailLookups } from '../store/records.ts';
import { type AuditFilter, DatabaseRefusedError, StoreError, unavailable } from '../store/store.ts';
import { type AuditTail, createVisit, prepareVisit, TAIL_ENTRIES, type VisitedStore } from '../store/visit.ts';
import { Nodes } from './nodes.ts';
import { type ConnectionOptions, createReader, findMarks, joinNodes, requireSameTime } from './open.ts';

/** Rejects as openClusterStore does. */
export async function visitCluster(options: ConnectionOptions): Promise<VisitedStore> {
  const { nodes, statements, run, close } = await joinNodes(options);
  const read = createReader(nodes, statements, prepareVisit(statements));
  return createVisit({ read, run, close, files: () => ({ databaseBytes: null, walBytes: null, diskFreeBytes: null }) });
}

/** Like tailAudit of store/visit.ts. The state is `away` while the nodes can't be read. */
export async function tailCluster(
  options: ConnectionOptions, filter: AuditFilter, fromStart: boolean,
): Promise<AuditTail> {
  const { nodes, statements } = await joinNodes(options);
  const { auditAfter } = createReader(nodes, statements, auditTailLookups(statements));
  let seenId = fromStart ? 0 : (await auditAfter(Number.MAX_SAFE_INTEGER, filter, TAIL_ENTRIES)).untilId;
  return async () => {
    try {
      const { untilId, ...found } = await auditAfter(seenId, filter, TAIL_ENTRIES);
      seenId = untilId;
      return { ...found, state: 'same' };
    } catch (error) {
      expected(StoreError, error);
      return { entries: [], state: 'away' };
    }
  };
}

type NodesOptions = Pick<ConnectionOptions, 'config' | 'clock'>;

/** Writes a copy of the database to a new file, which the caller removes. Does not check whether the copy is sound. */
export async function copyCluster({ config, clock }: NodesOptions, path: string): Promise<void> {
  using nodes = new Nodes(config, clock);
  await nodes.look();
  await writeFile(path, await nodes.copy(), { flag: 'wx', mode: OWNER_ONLY_FILE }).catch((error: unknown) => {
    throw codeOf(error) === 'ECONNRESET' ? unavailable('a node broke off its copy') : error;
  });
}

/** Names nodes that are silent or lack changes. Rejects with StoreError if hosts could not work with the nodes. */
export async function examineNodes({ config, clock }: NodesOptions) {
  using nodes = new Nodes(config, clock);
  const { seen } = await nodes.look();
  const sqlite = await requireSameTime(nodes, clock);
  // Waits a second: the newest changes may still be under way to the followers.
  return { sqlite, behind: (await setTimeout(1000).then(() => nodes.look(seen))).behind };
}

/** Verifies a backup and brings it to this version in a folder, then makes it the database of nodes that have none. */
export async function restoreCluster(
  { config, clock }: NodesOptions, backup: string | AsyncIterable<Uint8Array>, folder: string,
) {
  using nodes = new Nodes(config, clock);
  const { tables } = await findMarks(nodes);
  if (tables > 0) throw new DatabaseRefusedError('the nodes have a database already: restore into a node without one');
  const [path, copy] = [join(folder, 'pasted.db'), join(folder, 'copy.db')];
  const restored = await restoreDatabase({ path, backup, moment: '' });
  // The copy is without a log beside it; nodes refuse a database with one.
  copyDatabase(path, copy);
  await nodes.load(await readFile(copy));
  // The nodes answer the same when their disks had no room for it.
  if ((await findMarks(nodes)).tables === 0) throw unavailable('the nodes took the backup, and do not have it');
  return restored;
}
