// The SQL of the certificate authority and its revocation list: a single row each.

import type { DatabaseSync } from 'node:sqlite';

import { prepareAudit } from './audit.ts';
import type { StoredAuthority, StoredCrl } from './pki-store.ts';
import type { AuditEvent } from './store.ts';

export interface AuthorityCreation {
  readonly authority: StoredAuthority;
  readonly created: AuditEvent;
}

export interface AuthorityCommands {
  /** Whether this is the authority from now on; an earlier one stays. */
  createAuthority(creation: AuthorityCreation): boolean;
  /** Whether it was kept; a list of the same or a larger number stays. */
  keepCrl(crl: StoredCrl): boolean;
}

export interface AuthorityLookups {
  findAuthority(): StoredAuthority | undefined;
  findCrl(known?: StoredCrl): StoredCrl | undefined;
  revokedCount(): number;
}

export function authorityCommands(db: DatabaseSync): AuthorityCommands {
  const insert = db.prepare(`
    INSERT INTO authority (only, common_name, certificate, locked_key, fingerprint, created_at, expires_at)
    VALUES (1, :commonName, :certificate, :lockedKey, :fingerprint, :createdAt, :expiresAt)
    ON CONFLICT DO NOTHING`);
  const keep = db.prepare(`
    INSERT INTO crl (only, number, der, this_update, revoked_count)
    VALUES (1, :number, :der, :thisUpdate, :revokedCount)
    ON CONFLICT (only) DO UPDATE
    SET number = :number, der = :der, this_update = :thisUpdate, revoked_count = :revokedCount
    WHERE number < :number`);
  const audit = prepareAudit(db);
  return {
    createAuthority: ({ authority, created }) => {
      const isNew = insert.run({ ...authority }).changes === 1;
      if (isNew) audit(created);
      return isNew;
    },
    keepCrl: (crl) => keep.run({ ...crl }).changes === 1,
  };
}

export function authorityLookups(db: DatabaseSync): AuthorityLookups {
  const find = db.prepare(`
    SELECT common_name AS commonName, certificate, locked_key AS lockedKey, fingerprint, created_at AS createdAt,
      expires_at AS expiresAt
    FROM authority`);
  const crl = db.prepare('SELECT number, der, this_update AS thisUpdate, revoked_count AS revokedCount FROM crl');
  const crlNumber = db.prepare('SELECT number FROM crl');
  const revocations = db.prepare('SELECT count FROM revocations');
  return {
    findAuthority: () => find.get() as unknown as StoredAuthority | undefined,
    // It may have megabytes: read once.
    findCrl: (known) => {
      if (known !== undefined && crlNumber.get()?.['number'] === known.number) return known;
      return crl.get() as unknown as StoredCrl | undefined;
    },
    revokedCount: () => Number(revocations.get()?.['count']),
  };
}
