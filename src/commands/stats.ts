// `pasted stats`: what the service holds, in numbers. Names no paste, no owner and no address.

import type { Config } from '../config/settings.ts';
import { isoSeconds, unixSeconds, type Clock } from '../core/time.ts';
import type { CertificateCounts } from '../store/pki-store.ts';
import { countedBytes } from '../store/store.ts';
import type { AuditCounts, FileSizes, PasteCounts, PasteOptionCounts } from '../store/stats.ts';
import type { VisitedStore } from '../store/visit.ts';
import { VERSION } from '../version.ts';
import { alignColumns } from './columns.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';
import { inOffice } from './operator.ts';
import { showBytes, showShare } from './quantities.ts';

interface Stats {
  readonly pastes: PasteCounts & PasteOptionCounts;
  readonly certificates: CertificateCounts & { readonly admins: number };
  readonly audit: AuditCounts;
  readonly files: FileSizes;
  /** 0 for none. */
  readonly quotaBytes: number;
  /** What is held against the quota. */
  readonly countedBytes: number;
}

export const run: Run = (terminal, { options }) =>
  inOffice(terminal, { ifMissing: 'refuse' }, async ({ store, config }) => {
    const stats = await gather(store, config, terminal.clock);
    terminal.stdout.write(options.has('--json') ? `${JSON.stringify(jsonOf(stats))}\n` : textOf(stats));
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

function textOf({ pastes, certificates, audit, files, quotaBytes, countedBytes }: Stats): string {
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
function jsonOf({ pastes, certificates, audit, files, quotaBytes, countedBytes }: Stats): object {
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
