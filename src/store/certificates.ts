// The SQL of issued certificates. Who may do what with one is service/identity.ts.

import type { DatabaseSync } from 'node:sqlite';

import type { Certificate } from './store.ts';

export interface CertificateLookups {
  findCertificate(fingerprint: string): Certificate | undefined;
}

/** How many found certificates are remembered; fingerprints that are not found are not, since anyone can make them up. */
const REMEMBERED = 10_000;

const CERTIFICATE_COLUMNS = `serial, common_name AS commonName, fingerprint, created_at AS createdAt, expires_at AS expiresAt,
      issued_to AS issuedTo, is_admin AS isAdmin, revoked_at AS revokedAt, revocation_reason AS revocationReason`;

export function certificateLookups(db: DatabaseSync): CertificateLookups {
  const find = db.prepare(`
    SELECT ${CERTIFICATE_COLUMNS}
    FROM certificates
    WHERE fingerprint = :fingerprint`);
  // Changes with every commit of another connection, of this process or of another (https://sqlite.org/pragma.html#pragma_data_version):
  // what is remembered is exact, also while the command line revokes.
  const dataVersion = db.prepare('PRAGMA data_version');
  const remembered = new Map<string, Certificate>();
  let rememberedVersion: unknown;

  return {
    findCertificate(fingerprint) {
      const version = dataVersion.get()?.['data_version'];
      if (version !== rememberedVersion || remembered.size >= REMEMBERED) remembered.clear();
      rememberedVersion = version;
      const known = remembered.get(fingerprint);
      if (known !== undefined) return known;
      const row = find.get({ fingerprint });
      if (row === undefined) return undefined;
      const certificate = { ...row, isAdmin: row['isAdmin'] === 1 } as unknown as Certificate;
      remembered.set(fingerprint, certificate);
      return certificate;
    },
  };
}
