// Records of certificates, as rows that a test writes to the database over a connection of its own, as the command line
// does beside a running server. No real certificates stand behind them: authority.ts makes those.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Certificate } from '../../src/store/store.ts';

/** 2026-01-31T12:00:00Z, Unix seconds: where the movable clock starts. */
const ISSUED_AT = 1_769_860_800;

export type CertificateRow = Omit<Certificate, 'revocationReason'>;

export function newFingerprint(): string {
  return randomBytes(20).toString('hex');
}

/** The request header that presents a fingerprint. */
export function presenting(fingerprint: string): Record<string, string> {
  return { 'X-SSL-Client-SHA1': fingerprint };
}

const INSERT = `
  INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, issued_to, is_admin, revoked_at,
    holder, is_unused)
  VALUES (:serial, :commonName, :fingerprint, :createdAt, :expiresAt, :issuedTo, :isAdmin, :revokedAt, :holder, :isUnused)`;

function newRow(given: Partial<CertificateRow>): CertificateRow {
  const fingerprint = given.fingerprint ?? newFingerprint();
  return {
    // As authority/certificates.ts makes them: the first digit is 4 to 7.
    serial: `4${randomBytes(16).toString('hex').slice(1)}`,
    commonName: 'alice',
    fingerprint,
    holder: fingerprint,
    isUnused: false,
    createdAt: ISSUED_AT,
    expiresAt: ISSUED_AT + 365 * 86_400,
    issuedTo: null,
    isAdmin: false,
    revokedAt: null,
    ...given,
  };
}

function paramsOf(row: CertificateRow): Record<string, string | number | null> {
  return { ...row, isAdmin: row.isAdmin ? 1 : 0, isUnused: row.isUnused ? 1 : 0 };
}

/** A certificate to insert: a trusted client's, valid for a year from the movable clock's start, unless `given` says otherwise. */
export function certificateInsert(given: Partial<CertificateRow> = {}) {
  const row = newRow(given);
  return { row, sql: INSERT, values: paramsOf(row) };
}

/** Inserts it into a store in a file. */
export function insertCertificate(databasePath: string, given: Partial<CertificateRow> = {}): CertificateRow {
  const { row, sql, values } = certificateInsert(given);
  changeRow(databasePath, sql, values);
  return row;
}

/** The same for many, in one transaction. */
export function insertCertificates(databasePath: string, given: readonly Partial<CertificateRow>[]): void {
  const db = new DatabaseSync(databasePath, { timeout: 5000 });
  const insert = db.prepare(INSERT);
  db.exec('BEGIN IMMEDIATE');
  for (const certificate of given) insert.run(paramsOf(newRow(certificate)));
  db.exec('COMMIT');
  db.close();
}

/** Sets when a certificate was revoked; null makes it valid again, which only a test can do. */
export function setRevoked(databasePath: string, serial: string, revokedAt: number | null): void {
  changeRow(databasePath, 'UPDATE certificates SET revoked_at = :revokedAt WHERE serial = :serial', { serial, revokedAt });
}

/** Makes a certificate the admin's, or no longer so. */
export function setAdmin(databasePath: string, serial: string, isAdmin: boolean): void {
  const sql = 'UPDATE certificates SET is_admin = :isAdmin WHERE serial = :serial';
  changeRow(databasePath, sql, { serial, isAdmin: isAdmin ? 1 : 0 });
}

/** Deletes the record of a certificate, so that its holder is a stranger. */
export function deleteCertificate(databasePath: string, serial: string): void {
  changeRow(databasePath, 'DELETE FROM certificates WHERE serial = :serial', { serial });
}

function changeRow(databasePath: string, sql: string, params: Record<string, string | number | null>): void {
  const db = new DatabaseSync(databasePath, { timeout: 5000 });
  try {
    assert.equal(db.prepare(sql).run(params).changes, 1, 'one row was changed');
  } finally {
    db.close();
  }
}
