// Opens the store for a command, beside a running server or where nobody serves. Nothing here discards content or
// cleans up, since only the server knows which content is being read. The server itself uses open.ts.

import { existsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { codeOf, expected } from '../core/events.ts';
import type { Awaitable } from '../core/time.ts';
import type { Run } from './batch.ts';
import { damageOf, requireDatabase, whyRefused } from './backup.ts';
import { authorityLookups } from './certificates.ts';
import {
  createFile, type DatabaseLock, fileBytes, freeBytes, LOCK_WAIT_MS, lockDatabase, openAsIs, openReading, placeOf,
  refuseOtherFiles, refuseStrange,
} from './database.ts';
import { faultsOf } from './governing.ts';
import { type AwaitableOf, openReader, prepareLookups, type StoreOptions } from './open.ts';
import { auditTailLookups, prepareUsage } from './records.ts';
import { APPLICATION_ID, MIGRATIONS, schemaVersionOf } from './schema.ts';
import {
  asStoreError, type AuditEntry, type AuditFilter, type Database, DatabaseInUseError, describe, failureOf,
  isDamage, primaryCodeOf, SQLITE,
} from './store.ts';
import { startWriter, type Writer } from './writer.ts';

export type VisitOptions = StoreOptions & { readonly ifMissing: 'create' | 'refuse' };

export type VisitedStore = ReturnType<typeof createVisit>;

/** Makes and migrates the database if no server has it; beside one, SQLite does the locking. Rejects as openStore. */
export async function visitStore({ path, clock, log, ifMissing }: VisitOptions): Promise<VisitedStore> {
  if (ifMissing === 'refuse') requireDatabase(path);
  const lock = lockUnlessServed(path);
  let writer: Writer | undefined;
  try {
    if (lock !== undefined) {
      refuseOtherFiles(path);
      createFile(path);
    }
    writer = await startWriter(placeOf(path), clock, log);
    const reader = openReader(path, prepareVisit);
    // A server may start beside the command from now on.
    lock?.release();
    const files = () => ({
      databaseBytes: fileBytes(path), walBytes: fileBytes(`${path}-wal`), diskFreeBytes: freeBytes(path),
    });
    const close = async () => {
      reader.close();
      await writer!.close();
    };
    return createVisit({ read: reader, run: writer.run.bind(writer), files, close });
  } catch (error) {
    await writer?.close();
    lock?.giveUp(error);
    throw error;
  }
}

export function prepareVisit(db: Database) {
  return { ...prepareLookups(db), ...statsLookups(db), searchContent: prepareContentSearch(db) };
}

/** As in the server's store, the comments at the statements say what lookups and commands promise. */
interface VisitSources {
  readonly read: AwaitableOf<ReturnType<typeof prepareVisit>>;
  readonly run: Run;
  /** Null where there are none on this host. */
  readonly files: () => Record<'databaseBytes' | 'walBytes' | 'diskFreeBytes', number | null>;
  readonly close: () => Promise<void>;
}

export function createVisit(sources: VisitSources) {
  return {
    ...sources,
    /** Ids of the pastes that have this content. */
    async *findContent(sha256: Uint8Array): AsyncGenerator<readonly string[], void> {
      for (let afterRow: number | null = 0; afterRow !== null; ) {
        const { ids, lastRow } = await sources.read.searchContent(sha256, afterRow);
        yield ids;
        afterRow = lastRow;
      }
    },
  };
}

/** undefined if another process has the lock and has brought the database to exactly this version. */
function lockUnlessServed(path: string): DatabaseLock | undefined {
  // The process that has the lock may be making or migrating the database right now, so wait before giving up.
  for (const waitMs of [0, LOCK_WAIT_MS]) {
    try {
      return lockDatabase(path, waitMs);
    } catch (error) {
      expected(DatabaseInUseError, error);
      const version = versionBeside(path);
      if (version === MIGRATIONS.length) return undefined;
      refuseStrange(path, { applicationId: APPLICATION_ID, version });
    }
  }
  const reason = 'is in use by a server of an older version, or by one that is still starting';
  throw new DatabaseInUseError(`the database ${path} ${reason}: try again when it runs this version`);
}

/** Asks SQLite: a file that another process has open must not be opened and closed by hand (see refuseOtherFiles). */
function versionBeside(path: string): number {
  try {
    using db = openReading(path);
    return schemaVersionOf(db);
  } catch (error) {
    // The other process has the lock, but has not made the file yet.
    if (primaryCodeOf(error) === SQLITE.CANTOPEN) return 0;
    throw asStoreError(error);
  }
}

export const TAIL_ENTRIES = 1000;

export type AuditTail = () => Awaitable<{
  readonly entries: readonly AuditEntry[];
  readonly state: 'same' | 'replaced' | 'away';
}>;

/**
 * Each look gives what is new in the audit log; with `fromStart`, also all that was there before. The database is open
 * only during a look, since an open one keeps a restore out. One that was put in its place is followed from its end on.
 */
export function tailAudit(path: string, filter: AuditFilter, fromStart: boolean): AuditTail {
  let file: string | undefined;
  let seenId = fromStart ? 0 : Number.MAX_SAFE_INTEGER;
  return () => {
    try {
      const { dev, ino } = statSync(path, { bigint: true });
      using db = openReading(path);
      const isReplaced = file !== undefined && file !== `${dev} ${ino}`;
      const { auditAfter } = auditTailLookups(db);
      const { untilId, ...found } = auditAfter(isReplaced ? Number.MAX_SAFE_INTEGER : seenId, filter, TAIL_ENTRIES);
      [file, seenId] = [`${dev} ${ino}`, untilId];
      return { ...found, state: isReplaced ? 'replaced' : 'same' };
    } catch (error) {
      if (failureOf(error) === undefined && codeOf(error) !== 'ENOENT') throw error;
      return { entries: [], state: 'away' };
    }
  };
}

// What the database holds, counted for the operator. Nothing here names a paste or who it belongs to. The statements
// are short, so that counting a million pastes beside a running server never keeps its log from being emptied.

type Counts<Name extends string> = Readonly<Record<Name, number>>;

/** Times in Unix seconds; null if there is nothing that has one. */
type Moments<Name extends string> = Readonly<Record<Name, number | null>>;

/** `untrusted`: owned by a fingerprint without a certificate of this service that is valid now. */
type PasteCounts = Counts<'count' | 'bytes' | 'expired' | 'anonymous' | 'untrusted' | 'trusted'>
  & Moments<'oldestCreatedAt' | 'newestCreatedAt'>;

function statsLookups(db: Database) {
  const pastes = db.prepare(`
    SELECT usage.pastes AS count, usage.bytes, expired, usage.pastes - owned AS anonymous, owned - trusted AS untrusted,
      trusted, oldestCreatedAt, newestCreatedAt
    FROM usage,
      (SELECT count(*) AS expired FROM pastes WHERE expires_at <= :nowSeconds),
      (SELECT count(*) AS owned FROM pastes WHERE owner IS NOT NULL),
      (SELECT count(*) AS trusted
        FROM pastes
        WHERE owner IN (SELECT holder FROM certificates WHERE revoked_at IS NULL AND expires_at > :nowSeconds)),
      (SELECT min(created_at) AS oldestCreatedAt FROM pastes),
      (SELECT max(created_at) AS newestCreatedAt FROM pastes)`);
  const countOptions = prepareOptionCount(db);
  const audit = db.prepare(`
    SELECT entries, oldestTime, newestTime
    FROM (SELECT count(*) AS entries FROM audit),
      (SELECT min(time) AS oldestTime FROM audit),
      (SELECT max(time) AS newestTime FROM audit)`);
  const pages = db.prepare(`
    SELECT user_version AS schemaVersion, freelist_count * page_size AS unusedBytes
    FROM pragma_user_version, pragma_freelist_count, pragma_page_size`);
  return {
    /** Counts all that are stored, including expired ones that have not been removed. */
    countPastes: (nowSeconds: number) => ({ ...(pastes.get({ nowSeconds }) as PasteCounts), ...countOptions() }),
    countAudit: () => audit.get() as Counts<'entries'> & Moments<'oldestTime' | 'newestTime'>,
    /** `unusedBytes` are inside the database, to be used again or given back by the cleanup. */
    countPages: () => pages.get() as Counts<'schemaVersion' | 'unusedBytes'>,
  };
}

/** Pastes in one statement: some milliseconds, or as long as their pages take to be read from a disk. */
const SLICE_PASTES = 5000;

/** Reads from the pastes themselves what no index holds. `lastRow` is null when there was no paste left to look at. */
function prepareSlice<Found>(db: Database, columns: string) {
  const select = db.prepare(`
    SELECT ${columns}, max(row) AS lastRow
    FROM (
      SELECT rowid AS row, id, sha256, burn_after_read, password_hash
      FROM pastes
      WHERE rowid > :afterRow
      ORDER BY rowid
      LIMIT ${SLICE_PASTES})`);
  return (given: { afterRow: number; sha256?: Uint8Array }) => select.get(given) as Found & Moments<'lastRow'>;
}

function prepareOptionCount(db: Database) {
  const count = prepareSlice<Counts<'burnAfterRead' | 'passwordProtected'>>(db, `
      count(*) FILTER (WHERE burn_after_read = 1) AS burnAfterRead, count(password_hash) AS passwordProtected`);
  return () => {
    const counted = { burnAfterRead: 0, passwordProtected: 0 };
    for (let afterRow: number | null = 0; afterRow !== null; ) {
      const slice = count({ afterRow });
      counted.burnAfterRead += slice.burnAfterRead;
      counted.passwordProtected += slice.passwordProtected;
      afterRow = slice.lastRow;
    }
    return counted;
  };
}

/** Reads every paste, since no index has digests: such searches are rare. */
function prepareContentSearch(db: Database) {
  const search = prepareSlice<{ ids: string }>(db, 'json_group_array(id) FILTER (WHERE sha256 = :sha256) AS ids');
  return (sha256: Uint8Array, afterRow: number) => {
    const { ids, lastRow } = search({ sha256, afterRow });
    return { ids: JSON.parse(ids) as readonly string[], lastRow };
  };
}

// For `pasted check`: a database of any version, in any state, even beside a running server, is read and never changed.

/** `whyRefused`, or `damage` line by line, says what is wrong. Then, or of another version, there are no `contents`. */
export type Examination = ReturnType<typeof examineAs>;
export type Contents = ReturnType<typeof contentsOf>;

/** Begins a SHA-256 of pieces. If it is given, a check is a full one, which reads all content. */
type BeginDigest = () => { update(bytes: Uint8Array): unknown; digest(encoding: 'hex'): string };

/** The file must exist. Throws StoreError when it can't be opened. */
export function examineDatabase(path: string, beginDigest?: BeginDigest): Examination {
  const isAlone = isUnused(path);
  const examination = examineAs(path, isAlone, beginDigest);
  // Another process that opened the file meanwhile may have changed it, while it was taken for immutable here.
  return isAlone && !isUnused(path) ? examineAs(path, false, beginDigest) : examination;
}

/** Without files beside it, nobody has the database open, and only the file itself counts; see refuseLoneLog. */
function isUnused(path: string): boolean {
  return !['-wal', '-shm', '-journal'].some((suffix) => existsSync(`${path}${suffix}`)) || fileBytes(path) === 0;
}

function examineAs(path: string, isAlone: boolean, beginDigest?: BeginDigest) {
  try {
    // Reading a database in WAL mode that has no log beside it would leave an empty log and its index there.
    using db = isAlone ? openAsIs(path, 'immutable') : openReading(path);
    const reason = whyRefused(db);
    const schemaVersion = schemaVersionOf(db);
    const damage = reason === undefined ? damageOf(db, beginDigest === undefined ? 'quick' : 'full') : [];
    const isSound = reason === undefined && damage.length === 0 && schemaVersion === MIGRATIONS.length;
    return { whyRefused: reason, schemaVersion, damage, contents: isSound ? contentsOf(db, beginDigest) : undefined };
  } catch (error) {
    if (!isDamage(error)) throw asStoreError(error);
    return { whyRefused: undefined, schemaVersion: 0, damage: [describe(error)], contents: undefined };
  }
}

/** What a sound database of this version says of itself. Times are Unix seconds, null where there is nothing. */
function contentsOf(db: DatabaseSync, beginDigest?: BeginDigest) {
  const counted = db.prepare(`
    SELECT (SELECT count(*) FROM certificates) AS certificates,
      (SELECT max(created_at) FROM certificates WHERE revoked_at IS NULL) AS newestIssuedAt,
      (SELECT max(created_at) FROM pastes) AS newestCreatedAt`);
  const { findAuthority, findCrl } = authorityLookups(db);
  return {
    ...(counted.get() as Counts<'certificates'> & Moments<'newestCreatedAt' | 'newestIssuedAt'>),
    usage: prepareUsage(db)(), authority: findAuthority(), crl: findCrl(), faults: faultsOf(db),
    changed: beginDigest === undefined ? [] : changedContents(db, beginDigest),
  };
}

/** Finds where a disk has changed bytes within sound pages, or where pieces are in the wrong place. */
function changedContents(db: DatabaseSync, beginDigest: BeginDigest): string[] {
  const pastes = db.prepare('SELECT id, lower(hex(sha256)) AS sha256, content, content_id AS contentId FROM pastes');
  const chunkAt = db.prepare('SELECT bytes FROM chunks WHERE content_id = :contentId AND position = :position');
  const changed: string[] = [];
  for (const { id, sha256, content = null, contentId = null } of pastes.iterate()) {
    const digest = beginDigest();
    if (content instanceof Uint8Array) digest.update(content);
    for (let position = 0, chunk; (chunk = chunkAt.get({ contentId, position })); position += 1) {
      digest.update(chunk['bytes'] as Uint8Array);
    }
    if (digest.digest('hex') !== sha256) changed.push(`the content of ${id} is not what was stored`);
  }
  return changed;
}
