// `pasted prune`: the server's own upkeep at once, where no server runs. `pasted stats`: what the service holds, in
// numbers. `pasted audit`: the audit log, with the filters of GET /audit.

import { type Config, VERSION } from '../config/settings.ts';
import { countNothing, type Log } from '../core/events.ts';
import { DAY_SECONDS, HOUR_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { presentAuditEntry } from '../http/present.ts';
import { storeTasks } from '../pastes/upkeep.ts';
import { fileBytes, requireDatabase } from '../store/database.ts';
import { openStore, type Store } from '../store/open.ts';
import { type AuditEntry, type AuditFilter, countedBytes, DatabaseInUseError, type Page } from '../store/store.ts';
import { wholeNumber } from './arguments.ts';
import { inSession, operatorSettings, type OperatorSession } from './session.ts';
import {
  alignColumns, CommandError, type Given, report, type Run, showBytes, showShare, type Terminal, UsageError,
} from './terminal.ts';

export const prune: Run = async (terminal, given) => {
  const config = operatorSettings(terminal);
  const { databasePath: path } = config;
  requireDatabase(path);
  const size = (): number => fileBytes(path) + fileBytes(`${path}-wal`);
  const before = size();
  const removed = await pruneAll(terminal, config);
  const after = size();
  const text =
    `Removed ${removed.expired_pastes} expired pastes, ${removed.duplicate_records} duplicate records, ` +
    `${removed.used_challenges} used challenges, ${removed.audit_entries} audit entries and ` +
    `${removed.expired_certificates} expired certificates.\n` +
    `The database takes ${showBytes(after)} now, ${showBytes(Math.max(0, before - after))} less than before.\n`;
  report(terminal.stdout, given, { ...removed, bytes_before: before, bytes_after: after }, text);
};

async function pruneAll({ clock }: Terminal, config: Config) {
  const failures: string[] = [];
  const log: Log = ({ outcome, event, details }) => {
    if (outcome === 'failure') failures.push(String(details?.['reason'] ?? event));
  };
  const store = await open({ path: config.databasePath, clock, log });
  const { counting, removed } = countingRemovals(store);
  try {
    for (const { step } of storeTasks({ config, store: counting, clock, count: countNothing })) {
      while (await step());
    }
  } finally {
    await store.close();
  }
  if (failures.length > 0) throw new CommandError(`not everything was removed: ${failures.join('; ')}`);
  return removed;
}

/** Only a running server knows who reads what at this moment: nobody else may remove content. */
async function open(options: Parameters<typeof openStore>[0]): Promise<Store> {
  try {
    return await openStore(options);
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error;
    const message = `${error.message}: a running server prunes by itself, expired pastes every hour`;
    throw new DatabaseInUseError(message, error.lockPath);
  }
}

/** The store, and how many of each kind are removed through it. */
function countingRemovals(store: Store) {
  const removed = {
    expired_pastes: 0, duplicate_records: 0, used_challenges: 0, audit_entries: 0, expired_certificates: 0,
  };
  const counted = <Step extends unknown[], Result extends number | { readonly removed: number }>(
    kind: keyof typeof removed,
    remove: (...step: Step) => Promise<Result>,
  ) => async (...step: Step): Promise<Result> => {
    const result = await remove(...step);
    removed[kind] += typeof result === 'number' ? result : result.removed;
    return result;
  };
  const { pastes, certificates, submissions, challenges, audit } = store;
  const counting: Store = {
    ...store,
    pastes: { ...pastes, removeExpired: counted('expired_pastes', pastes.removeExpired) },
    submissions: { ...submissions, removeUntil: counted('duplicate_records', submissions.removeUntil) },
    challenges: { ...challenges, removeExpired: counted('used_challenges', challenges.removeExpired) },
    audit: { ...audit, removeUntil: counted('audit_entries', audit.removeUntil) },
    certificates: { ...certificates, removeExpired: counted('expired_certificates', certificates.removeExpired) },
  };
  return { counting, removed };
}

export const stats: Run = (terminal, given) =>
  inSession(terminal, async (session) => {
    const counted = await count(session, unixSeconds(terminal.clock));
    report(terminal.stdout, given, counted, statsTable(counted));
  });

/**
 * Names no paste, no owner and no address. Times are as the API has them where they have the same names: of pastes Unix
 * seconds, of audit entries ISO 8601.
 */
async function count({ store, config }: OperatorSession, nowSeconds: number) {
  const pastes = await store.stats.pastes(nowSeconds);
  const certificates = await store.certificates.countByStatus(nowSeconds);
  const admins = await store.stats.admins(nowSeconds);
  const audit = await store.stats.audit();
  const files = await store.stats.files();
  return {
    version: VERSION,
    schema_version: files.schemaVersion,
    pastes: {
      count: pastes.count, bytes: pastes.bytes, expired: pastes.expired,
      burn_after_read: pastes.burnAfterRead, password_protected: pastes.passwordProtected,
      anonymous: pastes.anonymous, untrusted: pastes.untrusted, trusted: pastes.trusted,
      oldest_created_at: pastes.oldestCreatedAt, newest_created_at: pastes.newestCreatedAt,
    },
    certificates: { ...certificates, admins },
    audit: {
      entries: audit.entries, oldest_time: isoOrNull(audit.oldestTime), newest_time: isoOrNull(audit.newestTime),
    },
    storage: {
      quota_bytes: config.maxStorageBytes === 0 ? null : config.maxStorageBytes,
      counted_bytes: countedBytes(await store.pastes.usage()),
      database_bytes: files.databaseBytes, unused_bytes: files.unusedBytes,
      wal_bytes: files.walBytes, disk_free_bytes: files.diskFreeBytes,
    },
  };
}

function isoOrNull(seconds: number | null): string | null {
  return seconds === null ? null : isoSeconds(seconds);
}

function statsTable(counted: Awaited<ReturnType<typeof count>>): string {
  const { pastes, certificates, audit, storage } = counted;
  const { quota_bytes: quota, counted_bytes: used } = storage;
  const rows: readonly (readonly [string, string | number])[] = [
    ['pastes', pastes.count],
    ['  content', showBytes(pastes.bytes)],
    ['  expired', `${pastes.expired} (waiting for cleanup)`],
    ['  burn after read', pastes.burn_after_read],
    ['  with password', pastes.password_protected],
    ['  anonymous', pastes.anonymous],
    ['  untrusted', pastes.untrusted],
    ['  trusted', pastes.trusted],
    ['  oldest', isoOrNull(pastes.oldest_created_at) ?? '-'],
    ['  newest', isoOrNull(pastes.newest_created_at) ?? '-'],
    ['certificates', certificates.valid + certificates.expired + certificates.revoked],
    ['  valid', `${certificates.valid} (${certificates.admins} of them admin)`],
    ['  expired', certificates.expired],
    ['  revoked', certificates.revoked],
    ['audit entries', audit.entries],
    ['  oldest', audit.oldest_time ?? '-'],
    ['  newest', audit.newest_time ?? '-'],
    ['database', showBytes(storage.database_bytes)],
    ['  quota', quota === null ? 'none' : `${showShare(used, quota)} of ${showBytes(quota)}`],
    ['  unused in it', showBytes(storage.unused_bytes)],
    ['  write-ahead log', showBytes(storage.wal_bytes)],
    ['  free on its disk', showBytes(storage.disk_free_bytes)],
    ['  schema', counted.schema_version],
  ];
  return alignColumns(rows.map(([name, value]) => [name, String(value)]));
}

export const audit: Run = (terminal, given) => {
  const filter = readFilter(given, unixSeconds(terminal.clock));
  const page: Page = {
    limit: wholeNumber(given, '--limit', { minimum: 1, maximum: 100_000, fallback: 100 }),
    offset: wholeNumber(given, '--offset', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, fallback: 0 }),
  };
  return inSession(terminal, async ({ store }) => {
    const { items, total } = await store.audit.list(filter, page);
    report(terminal.stdout, given, { entries: items.map(presentAuditEntry), total, ...page }, auditTable(items));
  });
};

function readFilter({ values }: Given, nowSeconds: number): AuditFilter {
  return {
    event: values.get('--event') ?? null,
    outcome: values.get('--outcome') ?? null,
    clientId: readFingerprint(values.get('--client-id')),
    after: readMoment('--after', values.get('--after'), nowSeconds) ?? Number.MIN_SAFE_INTEGER,
    before: readMoment('--before', values.get('--before'), nowSeconds) ?? Number.MAX_SAFE_INTEGER,
  };
}

/** In any case, with or without colons, as tools print it. */
function readFingerprint(text: string | undefined): string | null {
  if (text === undefined) return null;
  const fingerprint = text.replaceAll(':', '').toLowerCase();
  if (/^[0-9a-f]{40}$/.test(fingerprint)) return fingerprint;
  throw new UsageError('--client-id takes a SHA-1 fingerprint of 40 hex digits');
}

/** A moment in Unix seconds, given so, as date and time in UTC, or as how long ago. Throws UsageError. */
export function readMoment(name: string, text: string | undefined, nowSeconds: number): number | undefined {
  if (text === undefined) return undefined;
  const seconds = secondsOf(text, nowSeconds);
  if (Number.isSafeInteger(seconds)) return seconds;
  throw new UsageError(`${name} takes a moment: Unix seconds, 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 7d`);
}

/** `2026-01-31`, `2026-01-31T12:00` or `2026-01-31T12:00:00`, with or without the `Z`: UTC is always meant. */
const ISO_MOMENT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(?::(\d{2}))?Z?)?$/;

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: MINUTE_SECONDS, h: HOUR_SECONDS, d: DAY_SECONDS };

function secondsOf(text: string, nowSeconds: number): number {
  if (/^\d+$/.test(text)) return Number(text);
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return nowSeconds - Number(count) * UNIT_SECONDS[unit]!;
  const [, date, minutes = '00:00', seconds = '00'] = ISO_MOMENT.exec(text) ?? [];
  const iso = `${date}T${minutes}:${seconds}.000Z`;
  const unixMs = Date.parse(iso);
  // Date takes the 30th of February for the 2nd of March.
  const isReal = !Number.isNaN(unixMs) && new Date(unixMs).toISOString() === iso;
  return isReal ? unixMs / 1000 : NaN;
}

/** The details last: nobody knows their width. */
function auditTable(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ time, event, outcome, clientId, clientIp, details }) => {
    return [isoSeconds(time), event, outcome, clientId ?? '-', clientIp ?? '-', showDetails(details)];
  });
  return alignColumns([['TIME', 'EVENT', 'OUTCOME', 'CLIENT ID', 'CLIENT IP', 'DETAILS'], ...rows]);
}

/** Text is quoted where it is no plain word, so that a name cannot look like another detail. */
function showDetails(details: AuditEntry['details']): string {
  const pairs = Object.entries(details).map(([name, value]) => {
    const isPlain = typeof value !== 'string' || /^[\w.:/@+-]+$/.test(value);
    return `${name}=${isPlain ? String(value) : JSON.stringify(value)}`;
  });
  return pairs.join(' ') || '-';
}
