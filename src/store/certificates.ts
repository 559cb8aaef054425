// The SQL of issued certificates. Who may do what with one is service/identity.ts and service/certificates.ts.

import type { DatabaseSync } from 'node:sqlite';

import { prepareAudit } from './audit.ts';
import { prepareSpending } from './challenges.ts';
import type { Certificate, CertificateCounts, Issuance, IssueOutcome, Revocation, RevokeOutcome } from './pki-store.ts';
import type { AuditEvent } from './store.ts';

export interface AdminGrant {
  readonly serial: string;
  readonly granted: AuditEvent;
}

export interface CertificateCommands {
  issueCertificate(issuance: Issuance): IssueOutcome;
  revokeCertificate(revocation: Revocation): RevokeOutcome;
  /** Whether there is a certificate of that serial which is not revoked. */
  grantAdmin(grant: AdminGrant): boolean;
}

export interface CertificateLookups {
  findCertificate(fingerprint: string): Certificate | undefined;
  findCertificateBySerial(serial: string): Certificate | undefined;
  listCertificatesOf(fingerprint: string): Certificate[];
  listCertificates(): Certificate[];
  listRevokedCertificates(): Certificate[];
  countCertificates(nowSeconds: number): CertificateCounts;
}

/** How many found certificates are remembered; fingerprints that are not found are not, since anyone can make them up. */
const REMEMBERED = 10_000;

const CERTIFICATE_COLUMNS = `serial, common_name AS commonName, fingerprint, created_at AS createdAt, expires_at AS expiresAt,
      issued_to AS issuedTo, is_admin AS isAdmin, revoked_at AS revokedAt, revocation_reason AS revocationReason`;

export function certificateCommands(db: DatabaseSync): CertificateCommands {
  const grant = db.prepare('UPDATE certificates SET is_admin = 1 WHERE serial = :serial AND revoked_at IS NULL');
  const audit = prepareAudit(db);
  return {
    issueCertificate: prepareIssuance(db),
    revokeCertificate: prepareRevocation(db),
    grantAdmin: ({ serial, granted }) => {
      const isGranted = grant.run({ serial }).changes === 1;
      if (isGranted) audit(granted);
      return isGranted;
    },
  };
}

/** Decides first and writes after, in one transaction: of any number of first certificates exactly one is the admin's. */
function prepareIssuance(db: DatabaseSync): CertificateCommands['issueCertificate'] {
  const any = db.prepare('SELECT 1 FROM certificates LIMIT 1');
  const bySerial = db.prepare('SELECT 1 FROM certificates WHERE serial = :serial OR fingerprint = :fingerprint');
  const byKey = db.prepare('SELECT 1 FROM certificates WHERE public_key_sha256 = :publicKeySha256');
  const insert = db.prepare(`
    INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, issued_to, is_admin, public_key_sha256)
    VALUES (:serial, :commonName, :fingerprint, :createdAt, :expiresAt, :issuedTo, :isAdmin, :publicKeySha256)`);
  const challenges = prepareSpending(db);
  const audit = prepareAudit(db);
  return ({ certificate, spend: work, onlyFirst, issued, granted }) => {
    const { serial, fingerprint, publicKeySha256 } = certificate;
    const isFirst = any.get() === undefined;
    if (onlyFirst && !isFirst) return { kind: 'notFirst' };
    const unpaid = work === null ? undefined : challenges.refusal(work, certificate.createdAt);
    if (unpaid !== undefined) return unpaid;
    if (bySerial.get({ serial, fingerprint }) !== undefined) return { kind: 'serialTaken' };
    if (byKey.get({ publicKeySha256 }) !== undefined) return { kind: 'keyTaken' };
    if (work !== null) challenges.spend(work);
    insert.run({ ...certificate, isAdmin: isFirst ? 1 : 0 });
    audit(issued);
    if (isFirst) audit(granted);
    return { kind: 'issued', isAdmin: isFirst };
  };
}

function prepareRevocation(db: DatabaseSync): CertificateCommands['revokeCertificate'] {
  const revoke = db.prepare(`
    UPDATE certificates
    SET revoked_at = :nowSeconds, revocation_reason = :reason
    WHERE serial = :serial
      AND revoked_at IS NULL`);
  const exists = db.prepare('SELECT 1 FROM certificates WHERE serial = :serial');
  const audit = prepareAudit(db);
  return ({ serial, nowSeconds, reason, revoked }) => {
    if (revoke.run({ serial, nowSeconds, reason }).changes === 1) {
      audit(revoked);
      return 'revoked';
    }
    return exists.get({ serial }) === undefined ? 'notFound' : 'alreadyRevoked';
  };
}

export function certificateLookups(db: DatabaseSync): CertificateLookups {
  const bySerial = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates WHERE serial = :serial`);
  const ofHolder = db.prepare(`
    SELECT ${CERTIFICATE_COLUMNS}
    FROM certificates
    WHERE issued_to = :fingerprint
      OR fingerprint = :fingerprint
    ORDER BY created_at DESC, serial`);
  const all = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates ORDER BY created_at DESC, serial`);
  const revoked = db.prepare(`
    SELECT ${CERTIFICATE_COLUMNS}
    FROM certificates
    WHERE revoked_at IS NOT NULL
    ORDER BY revoked_at, serial`);
  const counts = db.prepare(`
    SELECT
      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at > :nowSeconds) AS valid,
      count(*) FILTER (WHERE revoked_at IS NOT NULL) AS revoked,
      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at <= :nowSeconds) AS expired
    FROM certificates`);
  return {
    countCertificates: (nowSeconds) => counts.get({ nowSeconds }) as unknown as CertificateCounts,
    findCertificate: prepareRememberedFind(db),
    findCertificateBySerial: (serial) => fromCertificateRow(bySerial.get({ serial })),
    listCertificatesOf: (fingerprint) => ofHolder.all({ fingerprint }).map((row) => fromCertificateRow(row)!),
    listCertificates: () => all.all().map((row) => fromCertificateRow(row)!),
    listRevokedCertificates: () => revoked.all().map((row) => fromCertificateRow(row)!),
  };
}

/** The lookup that every request with an identity makes. */
function prepareRememberedFind(db: DatabaseSync): CertificateLookups['findCertificate'] {
  const find = db.prepare(`SELECT ${CERTIFICATE_COLUMNS} FROM certificates WHERE fingerprint = :fingerprint`);
  // It changes with every commit of another connection, of this process or of another (https://sqlite.org/pragma.html#pragma_data_version):
  // what is remembered is exact, also while the command line revokes.
  const dataVersion = db.prepare('PRAGMA data_version');
  const remembered = new Map<string, Certificate>();
  let rememberedVersion: unknown;

  return (fingerprint) => {
    const version = dataVersion.get()?.['data_version'];
    if (version !== rememberedVersion || remembered.size >= REMEMBERED) remembered.clear();
    rememberedVersion = version;
    const known = remembered.get(fingerprint);
    if (known !== undefined) return known;
    const certificate = fromCertificateRow(find.get({ fingerprint }));
    if (certificate !== undefined) remembered.set(fingerprint, certificate);
    return certificate;
  };
}

/** SQLite has no booleans. */
function fromCertificateRow(row: Record<string, unknown> | undefined): Certificate | undefined {
  return row && ({ ...row, isAdmin: row['isAdmin'] === 1 } as unknown as Certificate);
}
