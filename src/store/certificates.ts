// The SQL of issued certificates, of the authority and of its revocation list. Who may do what is decided elsewhere.

import { DAY_SECONDS } from '../core/time.ts';
import { prepareInviting } from './governing.ts';
import { prepareAudit, prepareChange, prepareSpending } from './records.ts';
import type {
  AuditEvent, Certificate, CertificatePlace, Database, Issuance, IssueOutcome, Listed, Page, RevokeOutcome,
  StoredAuthority, StoredCrl,
} from './store.ts';

/** How many found certificates are remembered. Fingerprints that are not found aren't, as anyone can make them up. */
const REMEMBERED = 10_000;

const CERTIFICATE_COLUMNS = `serial, common_name AS commonName, fingerprint, created_at AS createdAt,
  expires_at AS expiresAt, issued_to AS issuedTo, is_admin AS isAdmin, revoked_at AS revokedAt,
  revocation_reason AS revocationReason, holder, is_unused AS isUnused`;

export function certificateCommands(db: Database) {
  // Being admin belongs to the holder: certificates that renew this one, or that it renews, get the mark too.
  const grant = prepareChange(db, {
    table: 'certificates', set: 'is_admin = 1',
    where: 'is_admin = 0 AND holder = (SELECT holder FROM certificates WHERE serial = :serial AND revoked_at IS NULL)',
  });
  const audit = prepareAudit(db);
  return {
    issueCertificate: prepareIssuance(db), revokeCertificate: prepareRevocation(db),
    useCertificate: prepareFirstUse(db), removeExpiredCertificates: prepareRemoval(db),
    /** Makes the holder of a certificate that is not revoked an admin. False if there is none, or the holder is one. */
    grantAdmin: ({ serial, granted }: { serial: string; granted: AuditEvent }): boolean => {
      const isGranted = grant({ serial }).length > 0;
      if (isGranted) audit(granted);
      return isGranted;
    },
  };
}

/** Decides first and writes after: in any race one certificate is the admin's, and no invitation is used too often. */
function prepareIssuance(db: Database): (issuance: Issuance) => IssueOutcome {
  const any = db.prepare('SELECT 1 FROM certificates LIMIT 1');
  const bySerial = db.prepare('SELECT 1 FROM certificates WHERE serial = :serial OR fingerprint = :fingerprint');
  const byKey = db.prepare(`
    SELECT max(holder IS :issuedTo) AS isOwn
    FROM certificates
    WHERE public_key_sha256 = :publicKeySha256
      AND expires_at > :createdAt
    HAVING isOwn = 0 OR max(revocation_reason IS 'keyCompromise')`);
  const insert = db.prepare(`
    INSERT INTO certificates
      (serial, common_name, fingerprint, created_at, expires_at, issued_to, is_admin, public_key_sha256, holder,
        is_unused)
    VALUES (:serial, :commonName, :fingerprint, :createdAt, :expiresAt, :issuedTo, :isAdmin, :publicKeySha256, :holder,
      :isUnused)`);
  const replace = prepareReplacing(db, 'AND is_unused = 1');
  const invitations = prepareInviting(db);
  const challenges = prepareSpending(db);
  const renewing = prepareRenewing(db);
  const audit = prepareAudit(db);
  return ({ certificate, spend: work, invitation, renews, onlyFirst, issued, granted }) => {
    const { serial, fingerprint, publicKeySha256, createdAt, issuedTo } = certificate;
    const isFirst = any.get() === undefined;
    if (onlyFirst && !isFirst) return { refused: 'notFirst' };
    const unpaid = work === null ? undefined : challenges.refusal(work, createdAt);
    if (unpaid !== undefined) return unpaid;
    if (invitation && !invitations.isOpen(invitation, createdAt)) return { refused: 'invitationRequired' };
    const renewed = renews === undefined ? undefined : renewing(renews, createdAt);
    if (renewed !== undefined && renewed.refused !== null) return renewed;
    if (bySerial.get({ serial, fingerprint }) !== undefined) return { refused: 'serialTaken' };
    if (byKey.get({ publicKeySha256, createdAt, issuedTo }) !== undefined) return { refused: 'keyReused' };
    // In capitals, to tell it from challenges spent on pastes: only those make pastes dearer on other cluster hosts.
    if (work !== null) challenges.spend({ ...work, nonce: work.nonce.toUpperCase() });
    if (invitation !== undefined) invitations.spend(invitation);
    const holder = renewed?.holder ?? fingerprint;
    const replaced = replace({ holder, serial, nowSeconds: createdAt, by: { ...issued, details: {} } }, 'superseded');
    const isAdmin = isFirst || renewed?.isAdmin === true;
    const ofRenewed = renewed && { isUnused: 1, issuedTo: renewed.issuedTo };
    insert.run({ ...certificate, holder, isAdmin: isAdmin ? 1 : 0, isUnused: 0, ...ofRenewed });
    const events = isFirst ? [issued, granted] : [issued];
    for (const event of events) audit(event);
    return { refused: null, isAdmin, audited: [...replaced, ...events] };
  };
}

/** Limits renewals: each leaves a record, and a certificate that is never used also an entry of the revocation list. */
const CERTIFICATES_A_DAY = 24;

/**
 * What a new certificate takes over from the one that it renews. The renewed one must still be valid: another of its
 * holder's certificates may have taken its place while the request was under way.
 */
function prepareRenewing(db: Database) {
  const renewable = db.prepare(`
    SELECT holder, is_admin AS isAdmin, issued_to AS issuedTo, (
      SELECT created_at FROM certificates
      WHERE holder = renewed.holder
      ORDER BY created_at DESC, serial
      LIMIT 1 OFFSET ${CERTIFICATES_A_DAY - 1}) AS counted
    FROM certificates AS renewed
    WHERE serial = :renews
      AND revoked_at IS NULL
      AND expires_at > :createdAt`);
  return (renews: string, createdAt: number) => {
    const { holder, isAdmin, issuedTo = null, counted } = renewable.get({ renews, createdAt }) ?? {};
    if (holder === undefined) return { refused: 'certificateRevoked' } as const;
    const retryAfterSeconds = Number(counted ?? -DAY_SECONDS) + DAY_SECONDS - createdAt;
    if (retryAfterSeconds > 0) return { refused: 'rateLimited', retryAfterSeconds } as const;
    return { refused: null, holder: String(holder), isAdmin: isAdmin === 1, issuedTo } as const;
  };
}

interface Replacement {
  readonly holder: string;
  /** Of the certificate that stays. */
  readonly serial: string;
  readonly nowSeconds: number;
  /** Who caused it, and the details to record beside those of each revoked certificate. */
  readonly by: AuditEvent;
}

/** Revokes the holder's other certificates that are still usable and meet the condition; gives the audit entries. */
function prepareReplacing(db: Database, condition: string) {
  const revoke = prepareChange(db, {
    table: 'certificates', set: 'revoked_at = :nowSeconds, revocation_reason = :reason',
    where: `holder = :holder
      AND serial <> :serial
      AND revoked_at IS NULL
      AND expires_at > :nowSeconds
      ${condition}`,
    columns: 'serial, fingerprint',
  });
  const audit = prepareAudit(db);
  return ({ holder, serial, nowSeconds, by }: Replacement, reason: string | null): readonly AuditEvent[] => (
    revoke({ holder, serial, nowSeconds, reason }).map((row) => {
      const told = { serial: String(row['serial']), fingerprint: String(row['fingerprint']), reason };
      const event = { ...by, event: 'cert_revoked', details: { ...by.details, ...told } };
      audit(event);
      return event;
    })
  );
}

/** When a renewed certificate is presented for the first time, it takes the place of what its holder had before. */
function prepareFirstUse(db: Database): (use: Replacement) => readonly AuditEvent[] {
  const first = prepareChange(db, {
    table: 'certificates', set: 'is_unused = 0', where: 'serial = :serial AND is_unused = 1 AND revoked_at IS NULL',
  });
  const replace = prepareReplacing(db, '');
  return (use) => (first({ serial: use.serial }).length === 1 ? replace(use, 'superseded') : []);
}

function prepareRevocation(db: Database) {
  const revoke = prepareChange(db, {
    table: 'certificates', set: 'revoked_at = :nowSeconds, revocation_reason = :reason',
    where: 'serial = :serial AND revoked_at IS NULL',
  });
  const holderOf = db.prepare('SELECT holder FROM certificates WHERE serial = :serial');
  const audit = prepareAudit(db);
  // Whoever has stolen a key can renew with it: a renewal that was not used yet is revoked with the one that it renews.
  const replace = prepareReplacing(db, 'AND is_unused = 1');
  return ({ serial, nowSeconds, reason, revoked }: {
    serial: string; nowSeconds: number; reason: string | null; revoked: AuditEvent;
  }): RevokeOutcome => {
    const found = holderOf.get({ serial });
    if (found === undefined) return { refused: 'certificateNotFound' };
    if (revoke({ serial, nowSeconds, reason }).length === 0) return { refused: 'certificateRevoked' };
    audit(revoked);
    const others = { holder: String(found['holder']), serial, nowSeconds, by: revoked };
    return { refused: null, audited: [revoked, ...replace(others, reason)] };
  };
}

/**
 * Looks at `limit` certificates that had expired by then, and removes those that nothing refers to: no paste, no
 * certificate obtained with it or renewing it (while it is on record, nobody else gets its fingerprint), no revocation
 * list that must name it once more. Never an admin's: there is a first certificate only once. `last` is the last one
 * that was looked at, after which the next step begins; null when there are no more.
 */
function prepareRemoval(db: Database) {
  const expired = db.prepare(`
    SELECT expires_at AS expiresAt, serial
    FROM certificates
    WHERE is_admin = 0
      AND (expires_at, serial) > (:expiresAt, :serial)
      AND expires_at <= :untilSeconds
    ORDER BY expires_at, serial
    LIMIT :limit`);
  const remove = prepareChange(db, {
    table: 'certificates',
    where: `serial = :serial
      AND (revoked_at IS NULL
        OR NOT EXISTS (SELECT 1 FROM crl WHERE this_update <= max(certificates.expires_at, certificates.revoked_at)))
      AND NOT EXISTS (SELECT 1 FROM pastes WHERE owner = certificates.holder)
      AND NOT EXISTS (SELECT 1 FROM certificates AS obtained WHERE obtained.issued_to = certificates.holder)
      AND NOT EXISTS (
        SELECT 1 FROM certificates AS renewed
        WHERE renewed.holder = certificates.fingerprint AND renewed.serial <> certificates.serial)`,
  });
  return ({ untilSeconds, after, limit }: { untilSeconds: number; after: CertificatePlace | null; limit: number }) => {
    const place = after ?? { expiresAt: Number.MIN_SAFE_INTEGER, serial: '' };
    const looked = expired.all({ ...place, untilSeconds, limit }) as unknown as CertificatePlace[];
    const removed = looked.filter(({ serial }) => remove({ serial }).length === 1).length;
    return { removed, last: looked.length === limit ? { ...looked.at(-1)! } : null };
  };
}

/** Lists are newest first, ties by serial. */
export function certificateLookups(db: Database) {
  const bySerial = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates WHERE serial = :serial`);
  const byFingerprint = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates WHERE fingerprint = :fingerprint`);
  const all = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates ORDER BY created_at DESC, serial`);
  const revoked = db.prepare(`
    SELECT ${CERTIFICATE_COLUMNS}
    FROM certificates
    WHERE revoked_at IS NOT NULL
      AND (revoked_at, serial) > (:revokedAt, :serial)
    ORDER BY revoked_at, serial
    LIMIT :limit`);
  const counts = db.prepare(`
    SELECT
      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at > :nowSeconds) AS valid,
      count(*) FILTER (WHERE revoked_at IS NOT NULL) AS revoked,
      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at <= :nowSeconds) AS expired,
      count(DISTINCT holder) FILTER (WHERE is_admin = 1 AND revoked_at IS NULL AND expires_at > :nowSeconds) AS admins
    FROM certificates`);
  const any = db.prepare('SELECT 1 FROM certificates LIMIT 1');
  return {
    findCertificate: (fingerprint: string) => fromCertificateRow(byFingerprint.get({ fingerprint })),
    findCertificateBySerial: (serial: string) => fromCertificateRow(bySerial.get({ serial })),
    findRenewable: prepareRenewing(db),
    listCertificatesOf: prepareListOf(db),
    listCertificates: () => all.all().map((row) => fromCertificateRow(row)!),
    /** In the order of their revocation. */
    listRevokedCertificates: (after: Certificate | undefined, limit: number): Certificate[] => {
      const { revokedAt, serial } = after ?? { revokedAt: Number.MIN_SAFE_INTEGER, serial: '' };
      return revoked.all({ revokedAt, serial, limit }).map((row) => fromCertificateRow(row)!);
    },
    hasCertificates: () => any.get() !== undefined,
    /** How many of each kind. Expired ones that were revoked count as revoked; `admins` are holders of valid ones. */
    countCertificates: (nowSeconds: number) => (
      counts.get({ nowSeconds }) as Record<'valid' | 'revoked' | 'expired' | 'admins', number>
    ),
  };
}

/** A page of a holder's own certificates, together with the others that the holder obtained. */
function prepareListOf(db: Database): (holder: string, page: Page) => Listed<Certificate> {
  // Serials are found in the indexes first, so that skipped rows are never read.
  const select = db.prepare(`
    SELECT ${CERTIFICATE_COLUMNS}
    FROM certificates
    WHERE serial IN (
      SELECT serial FROM (
        SELECT created_at, serial FROM certificates WHERE issued_to = :holder AND holder <> :holder
        UNION ALL
        SELECT created_at, serial FROM certificates WHERE holder = :holder
        ORDER BY created_at DESC, serial
        LIMIT :limit OFFSET :offset))
    ORDER BY created_at DESC, serial`);
  const count = db.prepare(`
    SELECT
      (SELECT count(*) FROM certificates WHERE issued_to = :holder AND holder <> :holder) +
      (SELECT count(*) FROM certificates WHERE holder = :holder) AS total`);
  return (holder, page) => ({
    items: select.all({ holder, ...page }).map((row) => fromCertificateRow(row)!),
    total: Number(count.get({ holder })!['total']),
  });
}

type FindCertificate = ReturnType<typeof certificateLookups>['findCertificate'];

/** Caches the lookup that every request with an identity makes, for a store where one process alone serves its file. */
export function rememberFound(db: Database, find: FindCertificate): FindCertificate {
  // It changes with every commit of any other connection (https://sqlite.org/pragma.html#pragma_data_version), so the
  // cache is exact even while the command line revokes.
  const dataVersion = db.prepare('PRAGMA data_version');
  const remembered = new Map<string, Certificate>();
  let rememberedVersion: unknown;

  return (fingerprint) => {
    const version = dataVersion.get()!['data_version'];
    if (version !== rememberedVersion || remembered.size >= REMEMBERED) remembered.clear();
    rememberedVersion = version;
    const known = remembered.get(fingerprint);
    if (known !== undefined) return known;
    const certificate = find(fingerprint);
    if (certificate !== undefined) remembered.set(fingerprint, certificate);
    return certificate;
  };
}

/** SQLite has no booleans. */
function fromCertificateRow(row: Record<string, unknown> | undefined): Certificate | undefined {
  return row && ({ ...row, isAdmin: row['isAdmin'] === 1, isUnused: row['isUnused'] === 1 } as unknown as Certificate);
}

// The certificate authority and its revocation list: a single row each.

export function authorityCommands(db: Database) {
  const insert = db.prepare(`
    INSERT INTO authority (only, common_name, certificate, locked_key, fingerprint, created_at, expires_at)
    VALUES (1, :commonName, :certificate, :lockedKey, :fingerprint, :createdAt, :expiresAt)`);
  const replace = prepareChange(db, {
    table: 'authority',
    set: `common_name = :commonName, certificate = :certificate, locked_key = :lockedKey, fingerprint = :fingerprint,
      created_at = :createdAt, expires_at = :expiresAt`,
    where: 'fingerprint = :fingerprintBefore AND locked_key = :lockedKeyBefore',
  });
  const keep = db.prepare(`
    INSERT OR REPLACE INTO crl (only, number, der, this_update, revoked_count)
    VALUES (1, :number, :der, :thisUpdate, :revokedCount)`);
  const newer = db.prepare('SELECT 1 FROM crl WHERE number >= :number');
  const { findAuthority } = authorityLookups(db);
  const audit = prepareAudit(db);
  return {
    /** Whether this is the authority from now on; false if there is one already, which stays. */
    createAuthority: ({ authority, created }: { authority: StoredAuthority; created: AuditEvent }): boolean => {
      if (findAuthority() !== undefined) return false;
      insert.run({ ...authority });
      audit(created);
      return true;
    },
    /** Whether `after` took the place of `before`; false if that has changed meanwhile. */
    replaceAuthority: (change: Record<'before' | 'after', StoredAuthority> & { audited: AuditEvent }): boolean => {
      const { before: { fingerprint: fingerprintBefore, lockedKey: lockedKeyBefore }, after, audited } = change;
      const isReplaced = replace({ ...after, fingerprintBefore, lockedKeyBefore }).length === 1;
      if (isReplaced) audit(audited);
      return isReplaced;
    },
    /** Whether it was kept; a list of the same or a larger number stays. */
    keepCrl: (crl: StoredCrl): boolean => {
      if (newer.get({ number: crl.number }) !== undefined) return false;
      keep.run({ ...crl });
      return true;
    },
  };
}

export function authorityLookups(db: Database) {
  const find = db.prepare(`
    SELECT common_name AS commonName, certificate, locked_key AS lockedKey, fingerprint, created_at AS createdAt,
      expires_at AS expiresAt
    FROM authority`);
  const otherCrl = db.prepare(`
    SELECT number, der, this_update AS thisUpdate, revoked_count AS revokedCount FROM crl WHERE number IS NOT :known`);
  const revocations = db.prepare('SELECT count FROM revocations');
  return {
    findAuthority: () => find.get() as unknown as StoredAuthority | undefined,
    /** The list that is kept, or `known` itself if that is still the one: a list may have megabytes to read. */
    findCrl: (known?: StoredCrl) => (
      (otherCrl.get({ known: known?.number ?? null }) as unknown as StoredCrl | undefined) ?? known
    ),
    /** How often a certificate was revoked, ever. */
    revokedCount: () => Number(revocations.get()?.['count']),
  };
}
