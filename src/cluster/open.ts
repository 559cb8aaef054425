// Opens the store of a cluster: the same calls as store/open.ts, answered by the nodes of rqlite.

import { setImmediate } from 'node:timers/promises';
import type { Config } from '../config/settings.ts';
import type { Log } from '../core/events.ts';
import { type Clock, unixSeconds } from '../core/time.ts';
import { authorityCommands, certificateCommands } from '../store/certificates.ts';
import { Touches } from '../store/content.ts';
import { governingCommands } from '../store/governing.ts';
import type { CommandName, Commands } from '../store/batch.ts';
import { type AwaitableOf, createCalls, prepareLookups, type Store } from '../store/open.ts';
import { pasteCommands } from '../store/pastes.ts';
import { contentLookups, recordCommands } from '../store/records.ts';
import { APPLICATION_ID, CLUSTER_TABLES, MIGRATIONS, whyStrange } from '../store/schema.ts';
import { DatabaseRefusedError, type SpentChallenge, unavailable } from '../store/store.ts';
import type { VisitOptions } from '../store/visit.ts';
import type { Writer } from '../store/writer.ts';
import { createClusterContents, leaseCommands } from './contents.ts';
import { Nodes, onlyRow, type Statement } from './nodes.ts';
import { guardOf, type Known, Statements } from './statements.ts';
import { ClusterWriter, learn } from './writer.ts';

export interface ConnectionOptions {
  readonly config: Config;
  readonly clock: Clock;
  /** Gives a new name: for this process among those that have leases, and for each of its commands. */
  readonly newId: () => string;
  /** How far this host's clock may be from the leader's. */
  readonly maxSkewSeconds?: number;
  readonly ifMissing?: VisitOptions['ifMissing'];
}

type ClusterOptions = ConnectionOptions & { readonly log: Log };

/** A clock that is further off is not trusted: what has expired on one host would still be there on another. */
const MAX_SKEW_SECONDS = 2;

const HEALTH_MS = 2000;
/** As long as an election takes, and less than a service manager waits. */
const CLOSE_MS = 5000;

/** Rejects with ConfigError, DatabaseRefusedError or StoreError. */
export async function openClusterStore(options: ClusterOptions): Promise<Store> {
  const { clock, log } = options;
  const startedMs = clock.monotonicMs();
  const store = createClusterStore(await joinNodes(options), options);
  const details = { schema: MIGRATIONS.length, milliseconds: Math.round(clock.monotonicMs() - startedMs) };
  log({ level: 'info', logger: 'store', event: 'opened', outcome: 'success', details });
  return store;
}

/** What commands and servers share. */
export async function joinNodes({ config, clock, newId, maxSkewSeconds, ifMissing }: ConnectionOptions) {
  await using opening = new AsyncDisposableStack();
  const nodes = opening.use(new Nodes(config, clock));
  const statements = new Statements();
  await migrateNodes(nodes, ifMissing);
  // Learns the newest claim that any node has seen: the leader must have it.
  await nodes.look();
  const checkTime = (deadlineMs?: number) => requireSameTime(nodes, clock, maxSkewSeconds, deadlineMs);
  await checkTime();
  const host = newId();
  const rules = {
    ...pasteCommands(statements), ...recordCommands(statements), ...certificateCommands(statements),
    ...authorityCommands(statements), ...governingCommands(statements), ...leaseCommands(statements, host, clock),
  };
  const writer = new ClusterWriter({ nodes, statements, rules, clock, newId });
  opening.defer(() => writer.close());
  const joined = opening.move();
  const close = () => joined.disposeAsync();
  // The writer takes all commands except those about a file.
  const run = writer.run.bind(writer) as unknown as Writer['run'];
  return { nodes, statements, checkTime, writer, run, close };
}

function createClusterStore(joined: Awaited<ReturnType<typeof joinNodes>>, options: ClusterOptions): Store {
  const { nodes, statements, checkTime, writer, run, close } = joined;
  const { clock, log } = options;
  const reader = createReader(nodes, statements, prepareLookups(statements));
  const { readChunk } = createReader(nodes, statements, contentLookups(statements), 'strong', MAX_CHUNKS);
  const larger = createClusterContents({ run: writer.run.bind(writer), readChunk, log });
  const touches = new Touches((accesses) => writer.run('touchPastes', accesses), log);
  const hot = { around: <Result>(_: string, change: () => Promise<Result>) => change(), noteRemoved: () => {} };
  // On a full disk a leader misses changes that other nodes have. Looking at all nodes shows that it can't be trusted.
  const timers = [setInterval(() => void nodes.look(), FOLLOW_MS).unref()];
  let probing: Promise<boolean> | undefined;
  let seenBefore = 0;
  // With a wrong clock, this host would remove for all hosts what is still good.
  const lead = () => checkTime().then(() => writer.run('lead', null));
  const shared = { read: reader, touches, find: reader.findPaste, hot, share: (bytes: Uint8Array) => bytes };
  return {
    ...createCalls({ ...shared, run: byOneHost(run, lead, checkTime), ...larger }),
    followSpent: (note) => void timers.push(followSpent(nodes, statements, note)),
    hasRoomFor: () => true,
    upkeep: {
      truncateWal: async () => {
        if (!(await lead())) return true;
        while (await writer.run('sweep', unixSeconds(clock)));
        const { behind, seen } = await nodes.look(seenBefore);
        seenBefore = seen;
        const details = { behind: behind.join() };
        if (behind.length > 0) log({ level: 'warning', logger: 'store', event: 'nodes behind', details });
        await larger.release(await reader.listOrphans());
        return true;
      },
      releasePages: async () => 0, optimize: async () => {}, restoreBallast: async () => true,
      checkFiles: async () => {}, fileBytes: () => ({ database: 0, wal: 0 }), writesWaiting: () => writer.waiting,
    },
    /** Concurrent callers share one answer, since each answer costs an entry in the nodes' log. */
    healthy: () => probing ??= checkTime(HEALTH_MS).then(() => true, () => false).finally(() => (probing = undefined)),
    // Never resolves: there are other nodes, and one that was lost comes back.
    ended: new Promise(() => {}),
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      nodes.endWithin(CLOSE_MS);
      await touches.close();
      larger.close();
      await writer.run('leave', null).catch(() => {});
      await close();
    },
  };
}

/** Only the host that leads removes what has run out. On other hosts these commands do nothing and give this answer. */
const NOTHING_REMOVED: { readonly [Name in CommandName]?: ReturnType<Commands[Name]> } = {
  removeExpiredCertificates: { removed: 0, last: null },
  removeOldAudit: 0, removeOldSubmissions: 0, removeExpiredChallenges: 0,
};

function byOneHost(run: Writer['run'], lead: () => Promise<boolean>, checkTime: () => Promise<unknown>): Writer['run'] {
  return async (name, ...given) => {
    const nothing = NOTHING_REMOVED[name];
    // Every host makes room for itself: otherwise it would refuse pastes until the host that leads has removed some.
    if (name === 'removeExpired') await checkTime();
    return nothing === undefined || (await lead()) ? run(name, ...given) : nothing;
  };
}

const MARKS = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema),
  EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'leases')
  FROM pragma_application_id, pragma_user_version`;

/** Hosts that start at once may both try: the second one's transaction fails, as the tables exist. It looks again. */
const MIGRATION_TRIES = 3;

export async function findMarks(nodes: Nodes) {
  const [rows] = await nodes.query([[MARKS, {}]], 'strong');
  const [applicationId = 0, version = 0, tables = 0, isCluster = 0] = onlyRow(rows) as number[];
  return { applicationId, version, tables, isCluster: isCluster === 1 };
}

async function migrateNodes(nodes: Nodes, ifMissing: ConnectionOptions['ifMissing']): Promise<void> {
  for (let tried = 0; ; tried += 1) {
    const { applicationId, version, tables, isCluster } = await findMarks(nodes);
    const isMissing = tables === 0 && ifMissing === 'refuse';
    if (isMissing) throw new DatabaseRefusedError('the nodes have no database: set SERVICE_DB to those of the service');
    const reason = tables === 0 ? undefined : whyStrange({ applicationId, version });
    if (reason !== undefined) throw new DatabaseRefusedError(`the database of the cluster ${reason}`);
    if (version === MIGRATIONS.length && isCluster) return;
    // A host that serves would go on with the old tables; each of them has a lease.
    const any = isCluster && (await nodes.query([['SELECT 1 FROM leases WHERE until > unixepoch()', {}]], 'strong'))[0];
    if (any && any.length > 0) throw unavailable('hosts of an earlier version serve, or did lately: stop them all');
    // Keeps this host from applying once more what another host has applied meanwhile.
    const guards = isCluster ? [guardOf(["SELECT user_version || '' FROM pragma_user_version", {}], `${version}`)] : [];
    const steps = [
      ...MIGRATIONS.slice(version).flat(), ...(isCluster ? [] : CLUSTER_TABLES),
      `PRAGMA application_id = ${APPLICATION_ID}`, `PRAGMA user_version = ${MIGRATIONS.length}`,
    ];
    const error = (await nodes.execute([...guards, ...steps.map((sql): Statement => [sql, {}])])).at(-1)?.error;
    if (error !== undefined && tried === MIGRATION_TRIES) throw unavailable(`the tables cannot be made: ${error}`);
  }
}

/** The nodes' SQLite version. Rejects if no node answers, or this clock, by which things expire, is too far off. */
export async function requireSameTime(
  nodes: Nodes, clock: Clock, maxSkewSeconds = MAX_SKEW_SECONDS, deadlineMs?: number,
): Promise<string> {
  const before = clock.unixMs() / 1000;
  const [rows] = await nodes.read([["SELECT unixepoch('subsec'), sqlite_version()", {}]], deadlineMs);
  const [there, sqlite] = onlyRow(rows) as [number, string];
  // The nodes' time is of a moment between the two readings of this clock, however long the answer took.
  const [ahead, behind] = [before - there, there - clock.unixMs() / 1000];
  if (ahead <= maxSkewSeconds && behind <= maxSkewSeconds) return sqlite;
  const skew = ahead > 0 ? `${ahead.toFixed(1)} s ahead of` : `${behind.toFixed(1)} s behind`;
  throw unavailable(`this host's clock is ${skew} the nodes': set both by NTP`);
}

const FOLLOW_MS = 1000;

/** Within about a second. For a count, the answer of a node that no longer leads is good enough. */
function followSpent(nodes: Nodes, statements: Statements, note: Parameters<Store['followSpent']>[0]) {
  // Row numbers start again once all rows have been removed, hence the min().
  const spent = statements.prepare(`
    SELECT newest AS row, nonce, expires_at AS expiresAt
    FROM (SELECT coalesce(max(rowid), 0) AS newest FROM spent_challenges)
    LEFT JOIN spent_challenges ON rowid > min(:after, newest) AND nonce = lower(nonce)`);
  const { spentAfter } = createReader(nodes, statements, {
    spentAfter: (after: number) => spent.all({ after }) as unknown as (SpentChallenge & { row: number })[],
  }, 'weak');
  let after = Infinity;
  return setInterval(() => void Promise.resolve(spentAfter(after)).then((found) => {
    after = found[0]!.row;
    found.filter(({ nonce }) => nonce !== null).forEach(note);
  }, () => {}), FOLLOW_MS).unref();
}

/** The most in one request. Chunks have requests of their own: lookups would have to wait for their megabytes. */
const MAX_READS = 64;
const MAX_CHUNKS = 8;
const MAX_READS_UNDER_WAY = 2;

interface Reading {
  readonly missing: ReadonlyMap<string, Statement>;
  readonly resolve: (found: Known) => void;
  readonly reject: (error: unknown) => void;
}

/** Lookups see every change that any host acknowledged, unless `weak`. Those of one moment go to the nodes together. */
export function createReader<Lookups extends object>(
  nodes: Nodes, statements: Statements, lookups: Lookups, level: 'weak' | 'strong' = 'strong', mostAtOnce = MAX_READS,
) {
  const waiting: Reading[] = [];
  let underWay = 0;

  async function work(): Promise<void> {
    underWay += 1;
    await setImmediate();
    for (let batch = waiting.splice(0, mostAtOnce); batch.length > 0; batch = waiting.splice(0, mostAtOnce)) {
      try {
        const found: Known = new Map();
        await learn(nodes, new Map(batch.flatMap(({ missing }) => [...missing])), found, level);
        for (const { resolve } of batch) resolve(found);
      } catch (error) {
        // What waits would wait just as long, so it is rejected as well.
        for (const { reject } of [...batch, ...waiting.splice(0)]) reject(error);
      }
    }
    underWay -= 1;
  }

  async function find(lookup: (...given: never[]) => unknown, given: readonly unknown[]): Promise<unknown> {
    const known: Known = new Map();
    for (;;) {
      const { answer, missing } = statements.rehearse(known, () => lookup(...given as never[]));
      if (missing.size === 0) return answer;
      const found = await new Promise<Known>((resolve, reject) => {
        waiting.push({ missing, resolve, reject });
        if (underWay < MAX_READS_UNDER_WAY) void work();
      });
      for (const key of missing.keys()) known.set(key, found.get(key)!);
    }
  }

  const all = Object.entries(lookups).map(([name, lookup]) => [name, (...given: unknown[]) => find(lookup, given)]);
  return Object.fromEntries(all) as AwaitableOf<Lookups>;
}
