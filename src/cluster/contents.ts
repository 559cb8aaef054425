// Larger content in a cluster: a host holds the content that it writes or reads by a lease that ends. No host removes
// what another one holds; what a dead host held is removed when its leases have ended.

import type { Log } from '../core/events.ts';
import { addTo, type Awaitable, type Clock, unixSeconds } from '../core/time.ts';
import { type ContentReader, createContentReader, createDiscards, createUpload } from '../store/content.ts';
import { contentCommands, contentLookups, prepareChange, prepareQuota } from '../store/records.ts';
import { CHUNK_BYTES, type Database, describe, type UploadQuota } from '../store/store.ts';
import { createChunkBuffers } from '../store/writer.ts';
import type { ClusterWriter } from './writer.ts';

/** For this long a host that has died keeps content from being removed. */
const LEASE_SECONDS = 60;
const RENEW_MS = LEASE_SECONDS * 1000 / 4;

/** How long claims are kept: if an answer is lost, it is asked for again within seconds. */
const CLAIM_SECONDS = 600;

/** The most that one command removes: claims in a sweep, chunks of a content. */
const SWEEP_ROWS = 1000;
const DISCARD_CHUNKS = 8;

/** The lease of the one host that cleans up. That host takes it anew every minute, and so keeps it. */
const CLEANUP = 'cleanup';
const CLEANUP_SECONDS = 120;

export function leaseCommands(db: Database, host: string, clock: Clock) {
  const { writeChunk, discardChunks } = contentCommands(db);
  const isFull = prepareQuota(db);
  const { isAdopted } = contentLookups(db);
  const orphaned = db.prepare('SELECT 1 FROM orphans WHERE content_id = :contentId');
  const held = db.prepare('SELECT max(until) AS until FROM leases WHERE name = :name AND host <> :host');
  const take = db.prepare(`
    INSERT OR REPLACE INTO leases (name, host, until, promised) VALUES (:name, :host, :until, :promised)`);
  const renew = db.prepare(`
    INSERT INTO leases (name, host, until, promised) SELECT value, :host, :until, 0 FROM json_each(:names) WHERE true
    ON CONFLICT (name, host) DO UPDATE SET until = excluded.until`);
  const giveUp = db.prepare('DELETE FROM leases WHERE name = :name AND host = :host');
  const giveUpAll = db.prepare('DELETE FROM leases WHERE host = :host');
  const until = (seconds = LEASE_SECONDS): number => unixSeconds(clock) + seconds;
  // The time is not part of the statement: with slow nodes each rehearsal would have another time, and so miss again.
  const isHeld = (name: string) => Number(held.get({ name, host })?.['until'] ?? 0) > unixSeconds(clock);
  const hold = (name: string, promised = 0, seconds = LEASE_SECONDS): boolean => {
    take.run({ name, host, until: until(seconds), promised });
    return true;
  };
  return {
    /** The first chunk reserves room for all that is declared. This is in the database, since other hosts write too. */
    writeChunk: (chunk: Parameters<typeof writeChunk>[0]): boolean => {
      const { contentId, position, bytes: { length }, quota } = chunk;
      const declaredBytes = quota?.declaredBytes ?? 0;
      const endBytes = position * CHUNK_BYTES + length;
      const promised = Math.max(0, declaredBytes - endBytes);
      const isReserved = position > 0 && endBytes <= declaredBytes;
      const more = { contentBytes: 0, unwrittenBytes: length + promised };
      if (quota !== null && !isReserved && isFull({ maxStoredBytes: quota.maxStoredBytes, ...more })) return false;
      hold(contentId, promised);
      return writeChunk({ ...chunk, quota: null });
    },
    /** Content that another host holds counts as gone: its last holder, or the cleanup, removes it. */
    discardChunks: (step: Parameters<typeof discardChunks>[0]) => isHeld(step.contentId) || discardChunks(step),
    /** Whether a paste has the content; if so, it stays until this host lets go of it. */
    holdContent: (contentId: string) => isAdopted(contentId) && hold(contentId),
    /** Whether the content has no paste. */
    letGoOfContent: (contentId: string): boolean => {
      giveUp.run({ name: contentId, host });
      return orphaned.get({ contentId }) !== undefined;
    },
    renewLeases: (names: readonly string[]) => void renew.run({ host, until: until(), names: JSON.stringify(names) }),
    /** Whether this host cleans up. The lease `serving` keeps other versions from changing the tables meanwhile. */
    lead: (_: null) => hold('serving', 0, CLEANUP_SECONDS) && !isHeld(CLEANUP) && hold(CLEANUP, 0, CLEANUP_SECONDS),
    leave: (_: null) => void giveUpAll.run({ host }),
    sweep: prepareSweep(db),
  };
}

/** Removes leases and claims that have run out. Gives whether there may be more. */
function prepareSweep(db: Database) {
  const leases = db.prepare('DELETE FROM leases WHERE until <= :nowSeconds');
  const claims = prepareChange(db, {
    table: 'claims',
    where: `id IN (SELECT id FROM claims WHERE at <= :untilSeconds ORDER BY at, id LIMIT ${SWEEP_ROWS})`,
  });
  return (nowSeconds: number): boolean => {
    leases.run({ nowSeconds });
    return claims({ untilSeconds: nowSeconds - CLAIM_SECONDS }).length === SWEEP_ROWS;
  };
}

type Rules = ReturnType<typeof leaseCommands>;

interface Parts {
  readonly run: ClusterWriter<Rules>['run'];
  readonly readChunk: (contentId: string, position: number) => Awaitable<Uint8Array | undefined>;
  readonly log: Log;
}

export function createClusterContents({ run, readChunk, log }: Parts) {
  const chunks = createChunkBuffers();
  // Only logged, since leases run out by themselves.
  const noteFailure = (error: unknown): void => {
    const details = { reason: describe(error) };
    log({ level: 'warning', logger: 'store', event: 'lease not written', outcome: 'failure', details });
  };
  const there = { borrow: readChunk, giveBack: () => {}, copy: () => 0 };
  /** How many writers and readers on this host hold which content. */
  const holders = new Map<string, number>();
  const step = (contentId: string): Promise<boolean> => run('discardChunks', { contentId, limit: DISCARD_CHUNKS });
  const [discards, ofUploads] = [createDiscards(step, log), createDiscards(step, log)];
  const renewal = setInterval(() => {
    // A lease that this host failed to give up is not renewed: it runs out.
    const held = [...holders.keys()];
    if (held.length > 0) run('renewLeases', held).catch(noteFailure);
  }, RENEW_MS).unref();

  /** Leaves out content that others on this host hold: it goes when the last of them lets go. */
  const release = (contentIds: readonly string[], removal = discards): Promise<void> => (
    removal.add(contentIds.filter((id) => !holders.has(id)))
  );

  async function letGo(contentId: string, removal = discards): Promise<void> {
    if (addTo(holders, contentId, -1) > 0) return;
    if (await run('letGoOfContent', contentId).catch(noteFailure)) await release([contentId], removal);
  }

  return {
    contents: {
      chunks,
      upload(contentId: string, quota: UploadQuota | null = null) {
        addTo(holders, contentId, 1);
        return createUpload(contentId, quota, { run }, chunks.giveBack, () => letGo(contentId, ofUploads));
      },
      async open(contentId: string): Promise<ContentReader | undefined> {
        addTo(holders, contentId, 1);
        // Lets go after an error too: the content may be held, and only the answer was lost.
        using held = new DisposableStack();
        held.defer(() => void letGo(contentId));
        if (!(await run('holdContent', contentId))) return undefined;
        const kept = held.move();
        return createContentReader(contentId, there, () => kept.dispose());
      },
    },
    release,
    close: () => clearInterval(renewal),
  };
}
