// Opens the store, and offers its calls: each keeps its invariant in one transaction. Ids and times are parameters.

import { existsSync, rmSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { holdBytes } from '../core/content.ts';
import { type Log, orUndefined } from '../core/events.ts';
import { andThen, type Awaitable, type Clock } from '../core/time.ts';
import type { Run } from './batch.ts';
import { authorityLookups, certificateLookups, rememberFound } from './certificates.ts';
import { type ContentStore, createContentStore, HotPastes, READ_ALONG_BYTES, Touches } from './content.ts';
import {
  createFile, type DatabaseLock, fileBytes, hasRoomFor, lockDatabase, openReading, orClosed, placeOf, refuseOtherFiles,
} from './database.ts';
import { governingLookups } from './governing.ts';
import { type Change, pasteListLookups, pasteLookups } from './pastes.ts';
import { auditLookups, contentLookups, recordLookups } from './records.ts';
import { MIGRATIONS } from './schema.ts';
import {
  asStoreError, type AuditEvent, type Certificate, type ChangedContent, type CreationTerms, type Database,
  INLINE_BYTES, type Listed, type NewPaste, type Page, type Paste, type PasteChanges, type PasteWithContent,
  type SpentChallenge, StoreError, type UpdateTerms,
} from './store.ts';
import { createParcels, startWriter, type Writer } from './writer.ts';

export interface StoreOptions {
  /** The SQLite file; made, with its folder, when missing. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The writer's thread, if it was started before. The caller must end it when the database is refused. */
  readonly thread?: Worker | undefined;
}

export type Store = ReturnType<typeof createStore>;

/** Start-up waits this long for orphaned content to be removed. Nobody can see it, so the rest goes while serving. */
const SWEEP_WAIT_MS = 1000;

/** A service must stop within a second, so orphaned content that is left goes at the next start. */
const CLOSE_WAIT_MS = 500;

/** Rejects with DatabaseRefusedError (the file is then untouched), DatabaseInUseError or StoreError. */
export async function openStore({ path: name, clock, log, thread }: StoreOptions): Promise<Store> {
  const path = placeOf(name);
  const startedMs = clock.monotonicMs();
  const lock = lockDatabase(path);
  let writer: Writer | undefined;
  try {
    refuseOtherFiles(path);
    createFile(path);
    // Removes what a killed restore or backup has left: copies of pastes that may burn or be deleted from now on.
    for (const suffix of ['', '-journal', '-shm', '-wal']) orUndefined(() => rmSync(`${path}-restore-draft${suffix}`));
    const isNoted = existsSync(`${path}-backup-note`);
    if (isNoted) await import('./backup.ts').then(({ removeDraft }) => removeDraft(path)).catch(() => {});
    writer = await startWriter(path, clock, log, thread);
    const lookups = openReader(path, (db) => {
      const prepared = prepareLookups(db);
      return { ...prepared, findCertificate: rememberFound(db, prepared.findCertificate) };
    });
    const listPastes = inParts(lookups.listPastes, lookups.nthPasteAt);
    const reader = { ...lookups, listPastes, listAudit: inParts(lookups.listAudit, lookups.nthAuditedAt) };
    const contents = createContentStore(reader, writer, log);
    const run = writer.run.bind(writer);
    const touches = new Touches((accesses) => run('touchPastes', accesses), log);
    const hot = new HotPastes();
    const notice = createRemovalNotice(reader.countRemovals, clock, () => {
      hot.clear();
      void contents.releaseStrays();
    });
    await settledWithin(contents.releaseStrays(), SWEEP_WAIT_MS);
    const find = (id: string, nowSeconds: number, mostContentBytes: number) => {
      notice();
      const kept = hot.find(id, nowSeconds);
      if (kept !== undefined) return kept;
      const found = reader.findPaste(id, nowSeconds, mostContentBytes);
      if (found !== undefined) hot.keep(found);
      return found;
    };
    const sources = { read: reader, run, ...contents, touches, find, hot, share: createParcels() };
    const store = createStore({ ...sources, writer, notice, lock, log, name, path });
    const details = { schema: MIGRATIONS.length, milliseconds: Math.round(clock.monotonicMs() - startedMs) };
    log({ level: 'info', logger: 'store', event: 'opened', outcome: 'success', details });
    return store;
  } catch (error) {
    await writer?.close();
    lock.giveUp(error);
    throw error;
  }
}

/** What the calls of a store go to: the file and its writer thread, or the nodes of a cluster (cluster/open.ts). */
interface Sources {
  readonly read: Reader;
  readonly run: Writer['run'];
  readonly contents: ContentStore;
  readonly release: (contentIds: readonly string[]) => Promise<void>;
  readonly touches: Touches;
  readonly find: (id: string, nowSeconds: number, mostContentBytes: number) => Awaitable<PasteWithContent | undefined>;
  readonly hot: Pick<HotPastes, 'around' | 'noteRemoved'>;
  /** Moves bytes into memory that the writer thread shares. */
  readonly share: (bytes: Uint8Array) => Uint8Array;
}

interface Parts extends Sources {
  readonly read: Reader & { close(): void };
  readonly writer: Writer;
  readonly hot: HotPastes;
  readonly releaseStrays: () => Promise<void>;
  readonly notice: () => void;
  readonly lock: DatabaseLock;
  readonly log: Log;
  /** `name` is the path as it was given, perhaps a link; `path` is where it led at the start. */
  readonly name: string;
  readonly path: string;
}

function createStore(parts: Parts) {
  const { read, run, writer, notice, log, name, path } = parts;
  let closing: Promise<void> | undefined;
  const isHealthy = createHealthCheck(read, writer);
  const inodes = () => ['', '-wal', '-shm', '-lock'].map((it) => statSync(path + it)).map(({ dev, ino }) => [dev, ino]);
  const opened = String(inodes());
  /** What is written to files that were removed, replaced or emptied is lost when this process ends. */
  const areInPlace = () => placeOf(name) === path && String(orUndefined(inodes)) === opened && fileBytes(path) > 0;
  return {
    ...createCalls(parts),
    /** In a cluster, tells of challenges that other hosts have spent for pastes. Here there is no other host. */
    followSpent: (_note: (spent: Pick<SpentChallenge, 'nonce' | 'expiresAt'>) => void): void => {},
    hasRoomFor: (bytes: number) => hasRoomFor(path, bytes),
    /** Each command is a bounded step, described in batch.ts. */
    upkeep: {
      /** Also removes content whose paste another process has removed, and what could not be removed before. */
      truncateWal: async () => {
        notice();
        const isEmpty = await run('truncateWal', null);
        if (isEmpty && closing === undefined) void parts.releaseStrays();
        return isEmpty;
      },
      releasePages: (pages: number) => run('releasePages', pages),
      optimize: () => run('optimize', null),
      restoreBallast: () => run('restoreBallast', null),
      checkFiles: async () => {
        if (!areInPlace()) log({ level: 'error', logger: 'store', event: 'files moved, removed, replaced or emptied' });
      },
      fileBytes: () => ({ database: fileBytes(path), wal: fileBytes(`${path}-wal`) }),
      writesWaiting: () => writer.waiting,
    },
    healthy: async () => areInPlace() && isHealthy(),
    /** Resolves when nothing can be written any more, until the store is opened anew. */
    ended: writer.ended,
    /** Writes what is batched, truncates the write-ahead log, closes. */
    close: () => (closing ??= closeParts(parts)),
  };
}

/** The comments at the statements say what each lookup and each command promises. */
export function createCalls(sources: Sources) {
  const { read, run, contents } = sources;
  return {
    pastes: createPasteStore(sources),
    contents,
    read: read as Reader,
    run: run as Run,
    /** The value kept under that name: the first one that was ever offered. */
    keepSecret: async (name: string, value: Uint8Array): Promise<Uint8Array> => {
      if ((await read.findSecret(name)) === undefined) await run('keepSecret', { name, value });
      return (await read.findSecret(name))!;
    },
  };
}

async function closeParts({ read, writer, touches, hot, release, lock }: Parts): Promise<void> {
  writer.hurry();
  await touches.close();
  await settledWithin(release([]), CLOSE_WAIT_MS);
  read.close();
  hot.clear();
  await writer.close();
  lock.release();
}

export async function settledWithin(work: Promise<void>, milliseconds: number): Promise<void> {
  await Promise.race([work, setTimeout(milliseconds, undefined, { ref: false })]);
}

/** A write is durable when its promise resolves. Chunks that lost their paste are removed when nobody reads them. */
function createPasteStore(parts: Sources) {
  const { run, touches, find, hot, release } = parts;
  return {
    /** The paste, unless it has expired; at once if it can be. It is the same object while it is kept in memory. */
    find: (id: string, nowSeconds: number): Awaitable<Paste | undefined> => find(id, nowSeconds, READ_ALONG_BYTES),
    /** The same, with the content of a small paste, which nobody frees before the caller has let go of it. */
    findWithContent: (id: string, nowSeconds: number) => andThen(find(id, nowSeconds, INLINE_BYTES), (found) => {
      if (found?.content) holdBytes(found.content);
      return found;
    }),
    /** The chunks of `contentId` must have been written already; from now on they are the paste's. */
    create: (paste: NewPaste, terms: CreationTerms) => (
      run('createPaste', { paste: shared(parts, paste), terms }, paste.content?.length ?? 0)
    ),
    /** Notes an access. Accesses are written in batches every few seconds; some may be lost, as in a crash. */
    touch: (id: string, nowSeconds: number): void => touches.note(id, nowSeconds),
    /** Changes a paste of `owner`: readers see the old or the new one. New content is judged as in a new paste. */
    update: (id: string, owner: string, changes: PasteChanges, terms: UpdateTerms) => {
      const content = changes.content && shared(parts, changes.content);
      const update = { id, owner, changes: { ...changes, content }, terms };
      return changePaste(parts, id, () => run('updatePaste', update, content?.content?.length ?? 0));
    },
    /**
     * Removes a paste that `by` owns, or if `by` is null one that nobody owns. With `asAdmin` also another's, and then
     * `asAdmin` is written to the audit log. Refused if the content is not the one that `onlySha256` names.
     */
    remove: (id: string, by: string | null, nowSeconds: number, asAdmin: AuditEvent | null, onlySha256?: string) => (
      changePaste(parts, id, () => run('deletePaste', { id, by, nowSeconds, asAdmin, onlySha256 }))
    ),
    /** True for exactly one of any number of callers, and only with the password hash that was checked. */
    burn: async (id: string, passwordHash: string | null, nowSeconds: number): Promise<boolean> => (
      (await changePaste(parts, id, () => run('burnPaste', { id, passwordHash, nowSeconds }))) === 1
    ),
    removeExpired: async (nowSeconds: number, limit: number, skipped = 0): Promise<number> => {
      const { outcome: count, orphanedContentIds } = await run('removeExpired', { nowSeconds, limit, skipped });
      if (count > 0) hot.noteRemoved(nowSeconds);
      if (orphanedContentIds.length > 0) await release(orphanedContentIds);
      return count;
    },
  };
}

/** Answers from memory may be so old: a look costs a tenth of a small GET. Commands that remove pastes wait longer. */
const LOOK_EVERY_MS = 1;

/** To be called before an answer from memory; calls `forget` when another process has removed pastes. */
function createRemovalNotice(countRemovals: () => number, clock: Clock, forget: () => void) {
  let known = countRemovals();
  let lookedMs = clock.monotonicMs();
  return (): void => {
    const nowMs = clock.monotonicMs();
    if (nowMs - lookedMs < LOOK_EVERY_MS) return;
    lookedMs = nowMs;
    const count = countRemovals();
    if (count !== known) forget();
    known = count;
  };
}

function shared<Stored extends ChangedContent>({ share }: Sources, stored: Stored): Stored {
  return { ...stored, sha256: share(stored.sha256), content: stored.content && share(stored.content) };
}

async function changePaste<Outcome>({ hot, release }: Sources, id: string, change: () => Promise<Change<Outcome>>) {
  const { outcome, orphanedContentIds } = await hot.around(id, change);
  void release(orphanedContentIds);
  return outcome;
}

/** Rows read in one turn of the event loop: that takes a millisecond. */
const REVOKED_A_TURN = 200;

/** In pages, so that other requests have their turns. */
export async function* listRevoked(read: Pick<Reader, 'listRevokedCertificates'>): AsyncGenerator<Certificate, void> {
  let page: readonly Certificate[] = [];
  do {
    page = await read.listRevokedCertificates(page.at(-1), REVOKED_A_TURN);
    yield* page;
    await setImmediate();
  } while (page.length === REVOKED_A_TURN);
}

/** Rows of a part, plus the others of its last row's second: milliseconds, and few enough types to match each once. */
const LISTED_A_TURN = 1000;

/**
 * Lists by time, newest first. Of all the longer ones, one part of one is read in a turn of the event loop, so that
 * other requests have their turns. Rows that come or go meanwhile may be in a list or not.
 */
function inParts<Filter extends Record<'after' | 'before', number>, Item, Rest extends unknown[]>(
  list: (filter: Filter, page: Page, ...rest: Rest) => Listed<Item>,
  nthAt: (filter: Filter, rows: number) => number | undefined,
) {
  let turn: Promise<void> = Promise.resolve();
  return async (asked: Filter, { limit, offset }: Page, ...rest: Rest): Promise<Listed<Item>> => {
    const isLong = nthAt(asked, LISTED_A_TURN) !== undefined;
    const items: Item[] = [];
    let total = 0;
    for (let filter = asked; ; ) {
      if (isLong) await (turn = turn.then(() => setImmediate()));
      const from = nthAt(filter, LISTED_A_TURN);
      const page = { limit: limit - items.length, offset: Math.max(0, offset - total) };
      const part = list(from === undefined ? filter : { ...filter, after: from - 1 }, page, ...rest);
      items.push(...part.items);
      total += part.total;
      if (from === undefined) return { items, total };
      filter = { ...filter, before: from };
    }
  };
}

type Lookups = ReturnType<typeof prepareLookups>;

/** The same lookups, but each may answer with a promise. */
export type AwaitableOf<Prepared> = {
  readonly [Name in keyof Prepared]: Prepared[Name] extends (...given: infer Given) => infer Found
    ? (...given: Given) => Awaitable<Found>
    : never;
};

type Reader = AwaitableOf<Lookups>;

export function prepareLookups(db: Database) {
  return {
    ...pasteLookups(db), ...pasteListLookups(db), ...contentLookups(db), ...auditLookups(db), ...recordLookups(db),
    ...certificateLookups(db), ...authorityLookups(db), ...governingLookups(db),
  };
}

/** The reading connection. Lookups see every commit that was acknowledged, and throw StoreErrors, also when closed. */
export function openReader<Prepared extends object>(
  path: string, prepare: (db: DatabaseSync) => Prepared,
): Prepared & { close(): void } {
  let db: DatabaseSync;
  let lookups: Prepared;
  try {
    db = openReading(path);
    lookups = orClosed(db, prepare);
  } catch (error) {
    throw asStoreError(error);
  }
  const guarded = (lookup: (...given: unknown[]) => unknown) => (...given: unknown[]) => {
    if (!db.isOpen) throw new StoreError('unavailable', 'storage unavailable: closed');
    try {
      return lookup(...given);
    } catch (error) {
      throw asStoreError(error);
    }
  };
  const all = Object.fromEntries(Object.entries(lookups).map(([name, lookup]) => [name, guarded(lookup)]));
  return { ...(all as Prepared), close: () => void (db.isOpen && db.close()) };
}

/** Whether reading works, and writing, tried if it has failed. Does not judge how much room is left. Never rejects. */
export function createHealthCheck(reader: Pick<Reader, 'isAdopted'>, writer: Pick<Writer, 'run' | 'state'>) {
  let probing: Promise<boolean> | undefined;
  return async (): Promise<boolean> => {
    if (orUndefined(() => reader.isAdopted('')) === undefined) return false;
    if (writer.state() !== 'failed') return writer.state() === 'working';
    // A write has failed: it is tried again. Concurrent checks share one probe, so that asking often costs no more.
    return (probing ??= writer.run('probe', null).then(() => true, () => false).finally(() => (probing = undefined)));
  };
}
