// `pasted prune`: the server's own upkeep, all of it and at once, where no server runs. What is removed and after how
// long is pastes/upkeep.ts.

import type { Config } from '../config/settings.ts';
import type { Log } from '../core/events.ts';
import { type Clock, isoSeconds, unixSeconds } from '../core/time.ts';
import { presentAuditEntry } from '../http/present.ts';
import { storeTasks } from '../pastes/upkeep.ts';
import { fileBytes, requireDatabase } from '../store/database.ts';
import { openStore, type Store } from '../store/open.ts';
import {
  type AuditEntry, type AuditFilter, countedBytes, DatabaseInUseError, type Page,
} from '../store/store.ts';
import type { AuditCounts, FileSizes, PasteCounts, PasteOptionCounts, VisitedStore } from '../store/visit.ts';
import { VERSION } from '../version.ts';
import { moment, wholeNumber } from './arguments.ts';
import type { Given, Run } from './commands.ts';
import { operatorSettings, withSession } from './session.ts';
import {
  alignColumns, CommandError, EXIT, showBytes, showShare, type Terminal, UsageError,
} from './terminal.ts';

/** How many were removed. */
interface Pruned {
  pastes: number;
  submissions: number;
  challenges: number;
  auditEntries: number;
  certificates: number;
}

/** In bytes, of the database and its log together. */
interface Sizes {
  readonly before: number;
  readonly after: number;
}

export const prune: Run = async (terminal, { options }) => {
  const config = operatorSettings(terminal);
  const { databasePath: path } = config;
  requireDatabase(path);
  const sizeOf = (): number => fileBytes(path) + fileBytes(`${path}-wal`);
  const before = sizeOf();
  const pruned = await pruneAll(terminal, config);
  const sizes = { before, after: sizeOf() };
  terminal.stdout.write(options.has('--json') ? pruneJson(pruned, sizes) : pruneText(pruned, sizes));
  return EXIT.success;
};

async function pruneAll({ clock }: Terminal, config: Config): Promise<Pruned> {
  const failures: string[] = [];
  const log: Log = ({ outcome, event, details }) => {
    if (outcome === 'failure') failures.push(String(details?.['reason'] ?? event));
  };
  const store = await open(config, clock, log);
  const pruned: Pruned = { pastes: 0, submissions: 0, challenges: 0, auditEntries: 0, certificates: 0 };
  try {
    for (const { step } of storeTasks({ config, store: counting(store, pruned), clock, count: () => {} })) {
      while (await step());
    }
  } finally {
    await store.close();
  }
  if (failures.length > 0) throw new CommandError(`not everything was removed: ${failures.join('; ')}`);
  return pruned;
}

/** A running server knows who reads what at this moment; nobody else may remove content. */
async function open({ databasePath: path }: Config, clock: Terminal['clock'], log: Log): Promise<Store> {
  try {
    return await openStore({ path, clock, log });
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error;
    const message = `${error.message}: a running server prunes by itself, expired pastes every hour`;
    throw new DatabaseInUseError(message, error.lockPath);
  }
}

function counting(store: Store, pruned: Pruned): Store {
  type Remove = (untilSeconds: number, limit: number) => Promise<number>;
  const counted = (kind: keyof Pruned, remove: Remove): Remove => async (untilSeconds, limit) => {
    const count = await remove(untilSeconds, limit);
    pruned[kind] += count;
    return count;
  };
  const { pastes, certificates, submissions, challenges, audit } = store;
  return {
    ...store,
    pastes: { ...pastes, removeExpired: counted('pastes', pastes.removeExpired) },
    certificates: {
      ...certificates,
      removeExpired: async (...step) => {
        const removal = await certificates.removeExpired(...step);
        pruned.certificates += removal.removed;
        return removal;
      },
    },
    submissions: { ...submissions, removeUntil: counted('submissions', submissions.removeUntil) },
    challenges: { ...challenges, removeExpired: counted('challenges', challenges.removeExpired) },
    audit: { ...audit, removeUntil: counted('auditEntries', audit.removeUntil) },
  };
}

function pruneText(pruned: Pruned, { before, after }: Sizes): string {
  const { pastes, submissions, challenges, auditEntries, certificates } = pruned;
  return [
    `Removed ${pastes} expired pastes, ${submissions} duplicate records, ${challenges} used challenges, ` +
      `${auditEntries} audit entries and ${certificates} expired certificates.`,
    `The database takes ${showBytes(after)} now, ${showBytes(Math.max(0, before - after))} less than before.`,
    '',
  ].join('\n');
}

function pruneJson(pruned: Pruned, { before, after }: Sizes): string {
  const { pastes, submissions, challenges, auditEntries, certificates } = pruned;
  const shown = {
    expired_pastes: pastes,
    duplicate_records: submissions,
    used_challenges: challenges,
    audit_entries: auditEntries,
    expired_certificates: certificates,
    bytes_before: before,
    bytes_after: after,
  };
  return `${JSON.stringify(shown)}\n`;
}

// `pasted stats`: what the service holds, in numbers. Names no paste, no owner and no address.

interface Stats {
  readonly pastes: PasteCounts & PasteOptionCounts;
  readonly certificates: Readonly<Record<'valid' | 'revoked' | 'expired' | 'admins', number>>;
  readonly audit: AuditCounts;
  readonly files: FileSizes;
  /** 0 for none. */
  readonly quotaBytes: number;
  /** What is held against the quota. */
  readonly countedBytes: number;
}

export const stats: Run = (terminal, { options }) =>
  withSession(terminal, { ifMissing: 'refuse' }, async ({ store, config }) => {
    const stats = await gather(store, config, terminal.clock);
    terminal.stdout.write(options.has('--json') ? `${JSON.stringify(statsJson(stats))}\n` : statsText(stats));
    return EXIT.success;
  });

async function gather(store: VisitedStore, config: Config, clock: Clock): Promise<Stats> {
  const nowSeconds = unixSeconds(clock);
  const counts = await store.certificates.countByStatus(nowSeconds);
  return {
    pastes: await store.stats.pastes(nowSeconds),
    certificates: { ...counts, admins: await store.stats.admins(nowSeconds) },
    audit: await store.stats.audit(),
    files: await store.stats.files(),
    quotaBytes: config.maxStorageBytes,
    countedBytes: countedBytes(await store.pastes.usage()),
  };
}

function statsText({ pastes, certificates, audit, files, quotaBytes, countedBytes }: Stats): string {
  const quota = quotaBytes === 0 ? 'none' : `${showShare(countedBytes, quotaBytes)} of ${showBytes(quotaBytes)}`;
  return alignColumns([
    ['pastes', String(pastes.count)],
    ['  content', showBytes(pastes.bytes)],
    ['  expired', `${pastes.expired} (waiting for cleanup)`],
    ['  burn after read', String(pastes.burnAfterRead)],
    ['  with password', String(pastes.passwordProtected)],
    ['  anonymous', String(pastes.anonymous)],
    ['  untrusted', String(pastes.untrusted)],
    ['  trusted', String(pastes.trusted)],
    ['  oldest', showMoment(pastes.oldestCreatedAt)],
    ['  newest', showMoment(pastes.newestCreatedAt)],
    ['certificates', String(certificates.valid + certificates.expired + certificates.revoked)],
    ['  valid', `${certificates.valid} (${certificates.admins} of them admin)`],
    ['  expired', String(certificates.expired)],
    ['  revoked', String(certificates.revoked)],
    ['audit entries', String(audit.entries)],
    ['  oldest', showMoment(audit.oldestTime)],
    ['  newest', showMoment(audit.newestTime)],
    ['database', showBytes(files.databaseBytes)],
    ['  quota', quota],
    ['  unused in it', showBytes(files.unusedBytes)],
    ['  write-ahead log', showBytes(files.walBytes)],
    ['  free on its disk', showBytes(files.diskFreeBytes)],
    ['  schema', String(files.schemaVersion)],
  ]);
}

function showMoment(seconds: number | null): string {
  return seconds === null ? '-' : isoSeconds(seconds);
}

/** Times as the API has them where they have the same names: of pastes Unix seconds, of audit entries ISO 8601. */
function statsJson({ pastes, certificates, audit, files, quotaBytes, countedBytes }: Stats): object {
  return {
    version: VERSION,
    schema_version: files.schemaVersion,
    pastes: {
      count: pastes.count,
      bytes: pastes.bytes,
      expired: pastes.expired,
      burn_after_read: pastes.burnAfterRead,
      password_protected: pastes.passwordProtected,
      anonymous: pastes.anonymous,
      untrusted: pastes.untrusted,
      trusted: pastes.trusted,
      oldest_created_at: pastes.oldestCreatedAt,
      newest_created_at: pastes.newestCreatedAt,
    },
    certificates: { ...certificates },
    audit: {
      entries: audit.entries,
      oldest_time: audit.oldestTime === null ? null : isoSeconds(audit.oldestTime),
      newest_time: audit.newestTime === null ? null : isoSeconds(audit.newestTime),
    },
    storage: {
      quota_bytes: quotaBytes === 0 ? null : quotaBytes,
      counted_bytes: countedBytes,
      database_bytes: files.databaseBytes,
      unused_bytes: files.unusedBytes,
      wal_bytes: files.walBytes,
      disk_free_bytes: files.diskFreeBytes,
    },
  };
}

// `pasted audit`: the audit log for the operator, with the filters of GET /audit.

const FINGERPRINT = /^[0-9a-f]{40}$/;

export const audit: Run = (terminal, given) => {
  const filter = readFilter(given, unixSeconds(terminal.clock));
  const page: Page = {
    limit: wholeNumber(given, '--limit', { minimum: 1, maximum: 100_000, fallback: 100 }),
    offset: wholeNumber(given, '--offset', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, fallback: 0 }),
  };
  return withSession(terminal, { ifMissing: 'refuse' }, async ({ store }) => {
    const { items, total } = await store.audit.list(filter, page);
    const shown = { entries: items.map(presentAuditEntry), total, ...page };
    terminal.stdout.write(given.options.has('--json') ? `${JSON.stringify(shown)}\n` : tableOf(items));
    return EXIT.success;
  });
};

function readFilter(given: Given, nowSeconds: number): AuditFilter {
  return {
    event: given.values.get('--event') ?? null,
    outcome: given.values.get('--outcome') ?? null,
    clientId: readFingerprint(given.values.get('--client-id')),
    after: moment(given, '--after', nowSeconds) ?? Number.MIN_SAFE_INTEGER,
    before: moment(given, '--before', nowSeconds) ?? Number.MAX_SAFE_INTEGER,
  };
}

/** In any case, with or without colons, as tools print it. */
function readFingerprint(text: string | undefined): string | null {
  if (text === undefined) return null;
  const fingerprint = text.replaceAll(':', '').toLowerCase();
  if (!FINGERPRINT.test(fingerprint)) throw new UsageError('--client-id takes a SHA-1 fingerprint of 40 hex digits');
  return fingerprint;
}

/** The details last: nobody knows their width. */
function tableOf(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ time, event, outcome, clientId, clientIp, details }) => {
    return [isoSeconds(time), event, outcome, clientId ?? '-', clientIp ?? '-', showDetails(details)];
  });
  return alignColumns([['TIME', 'EVENT', 'OUTCOME', 'CLIENT ID', 'CLIENT IP', 'DETAILS'], ...rows]);
}

/** Text in quotes where it is no plain word, so that a name cannot look like another detail. */
function showDetails(details: AuditEntry['details']): string {
  const pairs = Object.entries(details).map(([name, value]) => {
    const isPlain = typeof value !== 'string' || /^[\w.:/@+-]+$/.test(value);
    return `${name}=${isPlain ? String(value) : JSON.stringify(value)}`;
  });
  return pairs.join(' ') || '-';
}
