// The commands about the database as a whole: `pasted backup` and `restore`, for which store/backup.ts copies and
// exchanges files; `prune`, which does the server's own upkeep at once when no server runs; and `stats`.

import {
  accessSync, constants, createReadStream, existsSync, lstatSync, mkdtempSync, realpathSync, rmSync, statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { type Config, isCluster, VERSION } from '../config/settings.ts';
import { expected, type Log, orUndefined } from '../core/events.ts';
import { isoSeconds, MIB, showCount, unixSeconds } from '../core/time.ts';
import { storeTasks } from '../pastes/upkeep.ts';
import { type BackupDraft, draftBackup, requireDatabase, restoreDatabase, SIDE_FILES } from '../store/backup.ts';
import { fileBytes, placeOf } from '../store/database.ts';
import { openStore } from '../store/open.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { countedBytes, DatabaseInUseError, StoreError } from '../store/store.ts';
import { CommandError, UsageError } from './failures.ts';
import {
  attempt, explained, inSession, operatorSettings, type OperatorSession, publishFile, randomMark, requireRoom,
  requireSecretOutput,
} from './session.ts';
import { alignColumns, heldText, report, type Run, showBytes, type Terminal } from './terminal.ts';

export const backup: Run = async (terminal, given) => {
  const [target = ''] = given.operands;
  const isStream = target === '-';
  if (isStream && given.options.size > 0) {
    throw new UsageError('--force and --json are for a FILE, and - is standard output');
  }
  if (isStream) requireSecretOutput(terminal, 'a backup is bytes for a file or a program, not for this screen');
  const config = operatorSettings(terminal);
  const existing = given.options.has('--force') ? 'replace' : 'refuse';
  if (!isStream) requireFree(target, config.databasePath, existing);
  using source = await databaseFile(config, terminal, isStream ? undefined : target);
  const databasePath = source.path;
  using draft = draftBeside(isStream || isCluster(config) ? `${databasePath}-backup` : target, databasePath, terminal);
  const startedMs = terminal.clock.monotonicMs();
  const { bytes, pastes, contentBytes, schemaVersion } = await draft.copy().catch((error: unknown) => {
    throw new CommandError(`no backup was made as ${target}: ${expected(StoreError, error).message}`);
  });
  if (isStream) return await stream(draft, terminal);
  publishFile(draft.path, target, existing);
  const seconds = (terminal.clock.monotonicMs() - startedMs) / 1000;
  report(terminal.stdout, given, {
    file: target, bytes, pastes, content_bytes: contentBytes, schema_version: schemaVersion,
    seconds: Number(seconds.toFixed(3)),
  }, `Wrote ${target}: ${heldText(pastes, contentBytes)}, ${showBytes(bytes)} in ${seconds.toFixed(1)} s, verified.\n`);
};

/** For a cluster a copy, which goes at the end of its scope: made in a folder next to `beside`, or a temporary one. */
export async function databaseFile(config: Config, terminal: Terminal, beside?: string) {
  if (!isCluster(config)) return { path: placeOf(config.databasePath), [Symbol.dispose]: () => {} };
  const { copyCluster } = await import('../cluster/visit.ts');
  const folder = temporaryFolder(terminal, beside);
  const path = join(folder.path, 'pasted.db');
  await copyCluster({ config, clock: terminal.clock }, path).catch((error: unknown) => {
    folder[Symbol.dispose]();
    throw explained(error, path);
  });
  return { ...folder, path };
}

/** A folder for a copy of all pastes: removed at the end of its scope, and when the command is stopped. */
function temporaryFolder(terminal: Terminal, beside = join(tmpdir(), 'pasted')) {
  const path = attempt(beside, () => mkdtempSync(`${beside}.`));
  const discard = (): void => rmSync(path, { recursive: true, force: true });
  terminal.onStopSignal((signal) => {
    discard();
    terminal.endBy(signal);
  });
  return { path, [Symbol.dispose]: discard };
}

/** Throws CommandError when the name is taken, or is one that the database itself needs. */
export function requireFree(target: string, databasePath: string, existing: 'refuse' | 'replace'): void {
  const present = attempt(target, () => lstatSync(target, { throwIfNoEntry: false }));
  if (present !== undefined && !present.isFile()) throw new CommandError(`${target} is not a file`);
  if (present !== undefined && existing === 'refuse') {
    throw new CommandError(`${target} exists already, and is not overwritten without --force`);
  }
  // Compares names, since there may be no file so far; links to folders are followed.
  const folderOf = (path: string): string => attempt(path, () => realpathSync(dirname(path)));
  const isOwn = ['', ...SIDE_FILES].map((suffix) => `${databasePath}${suffix}`)
    .some((path) => basename(path) === basename(target) && folderOf(path) === folderOf(target));
  if (isOwn) throw new CommandError(`${target} belongs to the database itself`);
  const log = ['-wal', '-journal'].map((suffix) => `${target}${suffix}`).find((path) => existsSync(path));
  if (log !== undefined) throw new CommandError(`${log} would be taken for a log of ${target}: remove it first`);
}

function draftBeside(beside: string, databasePath: string, terminal: Terminal): BackupDraft {
  requireDatabase(databasePath);
  requireRoom(beside, fileBytes(databasePath) + fileBytes(`${databasePath}-wal`));
  // Listens before the draft is made: by default a signal would end the process meanwhile, and leave the draft.
  let draft: BackupDraft | undefined;
  terminal.onStopSignal((signal) => {
    draft?.discard();
    terminal.endBy(signal);
  });
  draft = attempt(beside, () => draftBackup({ path: databasePath, beside: resolve(beside), mark: randomMark() }));
  return draft;
}

/** Removes the draft's name first: then nothing stays, however the process ends while it waits for a slow reader. */
async function stream(draft: BackupDraft, { stdout }: Terminal): Promise<void> {
  const chunks = createReadStream(draft.path, { highWaterMark: MIB });
  chunks.once('open', () => draft.discard());
  for await (const chunk of chunks) {
    const isTaken = await stdout.writeWhole(chunk as Uint8Array);
    if (!isTaken) throw new CommandError('the backup is not whole: standard output did not take all of it');
  }
}

export const restore: Run = async (terminal, given) => {
  const [name = ''] = given.operands;
  const isStream = name === '-';
  const config = operatorSettings(terminal);
  const { databasePath: path } = config;
  if (!isStream) requireBackup(name, path);
  const source = isStream ? openInput(terminal) : name;
  const { pastes, contentBytes, schemaVersion, keptAs } = await exchange(config, source, terminal);
  const from = isStream ? 'standard input' : name;
  const lines = [
    `Restored ${path} from ${from}: ${heldText(pastes, contentBytes)}.`,
    ...(schemaVersion < MIGRATIONS.length ? [`Brought it from schema ${schemaVersion} to ${MIGRATIONS.length}.`] : []),
    ...(keptAs === null ? [] : [`The database that was there is now ${keptAs}.`]),
    'What was deleted, read, burned, banned, revoked or spent since the backup was made is as it was then.',
  ];
  report(terminal.stdout, given, {
    database: path, from, pastes, content_bytes: contentBytes, schema_version: schemaVersion, kept_as: keptAs,
  }, `${lines.join('\n')}\n`);
};

/** A signal before all of the backup is there fails the input, and nothing stays; later it ends the command. */
function openInput(terminal: Terminal): AsyncIterable<Uint8Array> {
  const stdin = terminal.stdin();
  if (stdin.isTTY === true) throw new UsageError('a backup is bytes from a file or a program, not from this keyboard');
  const stop = (signal: string): void => {
    if (stdin.readableEnded === true) return terminal.endBy(signal);
    stdin.destroy(new CommandError(`stopped by ${signal} before the backup was there: nothing was changed`));
  };
  terminal.onStopSignal(stop);
  terminal.onReloadSignal(() => stop('SIGHUP'));
  return stdin;
}

function requireBackup(backup: string, databasePath: string): void {
  const found = attempt(backup, () => statSync(backup, { throwIfNoEntry: false, bigint: true }), 'read');
  if (found === undefined) throw new CommandError(`there is no file ${backup}`);
  if (!found.isFile()) throw new CommandError(`${backup} is not a file`);
  const database = orUndefined(() => statSync(databasePath, { bigint: true }));
  const isDatabase = database?.ino === found.ino && database.dev === found.dev;
  if (isDatabase) throw new CommandError(`${backup} is the database itself`);
  attempt(backup, () => accessSync(backup, constants.R_OK), 'read');
}

async function exchange(config: Config, backup: string | AsyncIterable<Uint8Array>, terminal: Terminal) {
  const { databasePath: path } = config;
  try {
    if (isCluster(config)) {
      const { restoreCluster } = await import('../cluster/visit.ts');
      using folder = temporaryFolder(terminal);
      return await restoreCluster({ config, clock: terminal.clock }, backup, folder.path);
    }
    // It becomes a part of a file's name: digits, T and Z alone.
    const moment = isoSeconds(unixSeconds(terminal.clock)).replaceAll(/[-:]/g, '');
    return await restoreDatabase({ path, backup, moment });
  } catch (error) {
    throw explained(inUse(error, 'stop the service that uses it first'), path);
  }
}

/** Adds what to do about a database that is in use; gives any other error as it is. */
function inUse(error: unknown, advice: string): unknown {
  if (!(error instanceof DatabaseInUseError)) return error;
  return new DatabaseInUseError(`${error.message}: ${advice}`, error.lockPath);
}

export const prune: Run = async (terminal, given) => {
  const config = operatorSettings(terminal);
  const { databasePath: path } = config;
  if (isCluster(config)) throw new CommandError('the hosts of a cluster prune by themselves, one of them for all');
  requireDatabase(path);
  const size = (): number => fileBytes(path) + fileBytes(`${path}-wal`);
  const before = size();
  const removed = await pruneAll(terminal, config);
  const after = size();
  const text =
    `Removed ${showCount(removed.expired_pastes, 'expired paste')}, ` +
    `${showCount(removed.duplicate_records, 'duplicate record')}, ` +
    `${showCount(removed.used_challenges, 'used challenge')}, ` +
    `${showCount(removed.audit_entries, 'audit entry', 'audit entries')} and ` +
    `${showCount(removed.expired_certificates, 'expired certificate')}.\n` +
    `The database takes ${showBytes(after)} now, ${showBytes(Math.max(0, before - after))} less than before.\n`;
  report(terminal.stdout, given, { ...removed, bytes_before: before, bytes_after: after }, text);
};

async function pruneAll({ clock }: Terminal, config: Config) {
  // A set of reasons, since a step that failed is tried again, mostly in vain.
  const failures = new Set<string>();
  const log: Log = ({ outcome, details }) => {
    if (outcome === 'failure') failures.add(String(details?.['reason']));
  };
  // Refused beside a running server: it alone knows what is being read, and so which content may go.
  const store = await openStore({ path: config.databasePath, clock, log }).catch((error: unknown) => {
    throw inUse(error, 'a running server prunes by itself, expired pastes every hour');
  });
  const rows = new Map<string, number>();
  const removedBy = (task: string): number => rows.get(task) ?? 0;
  const tasks = storeTasks({ config, store, clock }, (task, removed) => rows.set(task, removedBy(task) + removed));
  try {
    for (const { step } of tasks) while (await step());
  } finally {
    await store.close();
  }
  if (failures.size > 0) throw new CommandError(`not everything was removed: ${[...failures].join('; ')}`);
  return {
    expired_pastes: removedBy('expired pastes'), duplicate_records: removedBy('duplicate records'),
    used_challenges: removedBy('used challenges'), audit_entries: removedBy('audit log'),
    expired_certificates: removedBy('expired certificates'),
  };
}

export const stats: Run = (terminal, given) => inSession(terminal, async (session) => {
  const counted = await count(session, unixSeconds(terminal.clock));
  report(terminal.stdout, given, counted, statsTable(counted));
});

/** Names no paste, owner or address. Times are as in the API: Unix seconds for pastes, ISO 8601 for the audit log. */
async function count({ store, config }: OperatorSession, nowSeconds: number) {
  const pastes = await store.read.countPastes(nowSeconds);
  const certificates = await store.read.countCertificates(nowSeconds);
  const { entries, oldestTime, newestTime } = await store.read.countAudit();
  const files = { ...(await store.read.countPages()), ...store.files() };
  const invitations = await store.read.listInvitations();
  const open = invitations.filter(({ usesLeft, expiresAt }) => usesLeft > 0 && expiresAt > nowSeconds);
  return {
    version: VERSION,
    schema_version: files.schemaVersion,
    pastes: {
      count: pastes.count, bytes: pastes.bytes, expired: pastes.expired,
      burn_after_read: pastes.burnAfterRead, password_protected: pastes.passwordProtected,
      anonymous: pastes.anonymous, untrusted: pastes.untrusted, trusted: pastes.trusted,
      oldest_created_at: pastes.oldestCreatedAt, newest_created_at: pastes.newestCreatedAt,
    },
    certificates,
    invitations: { open: open.length, over: invitations.length - open.length },
    bans: (await store.read.listBans()).length,
    audit: { entries, oldest_time: isoOrNull(oldestTime), newest_time: isoOrNull(newestTime) },
    storage: {
      quota_bytes: config.maxStorageBytes === 0 ? null : config.maxStorageBytes,
      counted_bytes: countedBytes(await store.read.usage()),
      database_bytes: files.databaseBytes, unused_bytes: files.unusedBytes,
      wal_bytes: files.walBytes, disk_free_bytes: files.diskFreeBytes,
    },
  };
}

function isoOrNull(seconds: number | null): string | null {
  return seconds === null ? null : isoSeconds(seconds);
}

function statsTable(counted: Awaited<ReturnType<typeof count>>): string {
  const { pastes, certificates, invitations, bans, audit, storage } = counted;
  const { quota_bytes: quota, counted_bytes: used } = storage;
  // The files of a cluster are on other hosts.
  const showFile = (bytes: number | null): string => (bytes === null ? '-' : showBytes(bytes));
  const rows: readonly (readonly [string, string | number])[] = [
    ['pastes', pastes.count],
    ['  content', showBytes(pastes.bytes)],
    ['  expired', `${pastes.expired} (waiting for cleanup)`],
    ['  burn after read', pastes.burn_after_read], ['  with password', pastes.password_protected],
    ['  anonymous', pastes.anonymous], ['  untrusted', pastes.untrusted], ['  trusted', pastes.trusted],
    ['  oldest', isoOrNull(pastes.oldest_created_at) ?? '-'], ['  newest', isoOrNull(pastes.newest_created_at) ?? '-'],
    ['certificates', certificates.valid + certificates.expired + certificates.revoked],
    ['  valid', `${certificates.valid} (${certificates.admins} of them admin)`],
    ['  expired', certificates.expired], ['  revoked', certificates.revoked],
    ['invitations', `${invitations.open} (and ${invitations.over} used up or expired)`],
    ['refused contents', bans],
    ['audit entries', audit.entries],
    ['  oldest', audit.oldest_time ?? '-'], ['  newest', audit.newest_time ?? '-'],
    ['database', showFile(storage.database_bytes)],
    ['  quota', quota === null ? 'none' : `${Math.floor((used / quota) * 100)} % of ${showBytes(quota)}`],
    ['  unused in it', showBytes(storage.unused_bytes)],
    ['  write-ahead log', showFile(storage.wal_bytes)],
    ['  free on its disk', showFile(storage.disk_free_bytes)],
    ['  schema', counted.schema_version],
  ];
  return alignColumns(rows.map(([name, value]) => [name, String(value)]));
}
