// What the rest of the program may ask about the certificate authority and what it issued: the PKI's part of the store's interface,
// and its making from the writer and the reader. The SQL is in authority.ts and certificates.ts.

import { setImmediate } from 'node:timers/promises';

import type { Reader } from './reader.ts';
import type { AuditEvent, Listed, Page, SpendingRefusal, SpentChallenge } from './store.ts';
import type { Writer } from './writer.ts';

/** A certificate that this service issued. Times are Unix seconds. */
export interface Certificate {
  /** 32 lowercase hex digits. */
  readonly serial: string;
  readonly commonName: string;
  /** SHA-1 of the DER, 40 lowercase hex digits. */
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Fingerprint of the requester; null when it was anonymous. */
  readonly issuedTo: string | null;
  readonly isAdmin: boolean;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
}

/** A certificate to record. Whether it makes an admin is decided when it is. */
export interface NewCertificate extends Omit<Certificate, 'isAdmin' | 'revokedAt' | 'revocationReason'> {
  /** 32 bytes: SHA-256 of its SubjectPublicKeyInfo. A key is certified once. */
  readonly publicKeySha256: Uint8Array;
}

export interface Issuance {
  readonly certificate: NewCertificate;
  /** The work to be used up; null when none was asked for. */
  readonly spend: SpentChallenge | null;
  /** Records it only when no certificate was ever issued before. */
  readonly onlyFirst?: boolean;
  readonly issued: AuditEvent;
  /** Recorded beside it when the certificate is the first one ever, and so the admin's. */
  readonly granted: AuditEvent;
}

export type IssueOutcome =
  | { readonly kind: 'issued'; readonly isAdmin: boolean }
  | SpendingRefusal
  | { readonly kind: 'notFirst' }
  | { readonly kind: 'serialTaken' }
  | { readonly kind: 'keyTaken' };

export interface Revocation {
  readonly serial: string;
  readonly nowSeconds: number;
  readonly reason: string | null;
  readonly revoked: AuditEvent;
}

export type RevokeOutcome = 'revoked' | 'notFound' | 'alreadyRevoked';

export interface CertificateCounts {
  readonly valid: number;
  readonly revoked: number;
  readonly expired: number;
}

/** Where a certificate is in the order of their ends. */
export type CertificatePlace = Pick<Certificate, 'expiresAt' | 'serial'>;

export interface CertificateRemoval {
  readonly removed: number;
  /** The last one looked at; null when there are no more. */
  readonly last: CertificatePlace | null;
}

export interface CertificateStore {
  findByFingerprint(fingerprint: string): Promise<Certificate | undefined>;
  findBySerial(serial: string): Promise<Certificate | undefined>;
  /** A page of those that the fingerprint obtained, and the one that it is of; newest first, ties by serial. */
  listOf(fingerprint: string, page: Page): Promise<Listed<Certificate>>;
  /** Every certificate, newest first. */
  listAll(): Promise<readonly Certificate[]>;
  /** In the order of their revocation; however many there are, others have their turns meanwhile. */
  listRevoked(): AsyncIterable<Certificate>;
  /** How many there are; one that is revoked and has expired counts as revoked. */
  countByStatus(nowSeconds: number): Promise<CertificateCounts>;
  /** Records a certificate; the first one ever is the admin's, of any number that race. */
  issue(issuance: Issuance): Promise<IssueOutcome>;
  revoke(revocation: Revocation): Promise<RevokeOutcome>;
  /**
   * Looks at `limit` that had expired by then, those after that place, and removes the ones that nothing refers to: no
   * paste, no certificate that was obtained with it, no list of revoked ones that must name it once more. Never an
   * admin's: there is a first certificate once. A fingerprint that is removed is one like any other, and owns nothing.
   */
  removeExpired(untilSeconds: number, after: CertificatePlace | null, limit: number): Promise<CertificateRemoval>;
  /** Makes the holder of a certificate an admin; false when there is none of that serial, or it is revoked. */
  grantAdmin(serial: string, granted: AuditEvent): Promise<boolean>;
}

/** The one authority there is. Times are Unix seconds. */
export interface StoredAuthority {
  readonly commonName: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** As crypto/private-key.ts locks it. */
  readonly lockedKey: Uint8Array;
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** A revocation list that was made. */
export interface StoredCrl {
  readonly number: number;
  readonly der: Uint8Array;
  readonly thisUpdate: number;
  /** What the store's revokedCount was when it was made: it is old when this differs. */
  readonly revokedCount: number;
}

export interface AuthorityStore {
  find(): Promise<StoredAuthority | undefined>;
  /** Keeps the first one offered, ever; whether it was this one. */
  create(authority: StoredAuthority, created: AuditEvent): Promise<boolean>;
  /** The list that is kept; `known` itself while it is that one. */
  findCrl(known?: StoredCrl): Promise<StoredCrl | undefined>;
  /** Replaces a list of a smaller number; false when a newer one is there. */
  keepCrl(crl: StoredCrl): Promise<boolean>;
  /** How often a certificate was revoked, ever. */
  revokedCount(): Promise<number>;
}

/** Rows read in one turn of the event loop: a millisecond. */
const REVOKED_A_TURN = 200;

export function createCertificateStore(reader: Reader, writer: Writer): CertificateStore {
  return {
    findByFingerprint: async (fingerprint) => reader.look((lookups) => lookups.findCertificate(fingerprint)),
    findBySerial: async (serial) => reader.look((lookups) => lookups.findCertificateBySerial(serial)),
    listOf: async (fingerprint, page) => reader.look((lookups) => lookups.listCertificatesOf(fingerprint, page)),
    listAll: async () => reader.look((lookups) => lookups.listCertificates()),
    listRevoked: async function* () {
      let page: readonly Certificate[] = [];
      do {
        const last = page.at(-1) ?? null;
        page = reader.look((lookups) => lookups.listRevokedCertificates(last, REVOKED_A_TURN));
        yield* page;
        await setImmediate();
      } while (page.length === REVOKED_A_TURN);
    },
    countByStatus: async (nowSeconds) => reader.look((lookups) => lookups.countCertificates(nowSeconds)),
    issue: (issuance) => writer.run('issueCertificate', issuance),
    revoke: (revocation) => writer.run('revokeCertificate', revocation),
    removeExpired: (untilSeconds, after, limit) => (
      writer.run('removeExpiredCertificates', { untilSeconds, after, limit })
    ),
    grantAdmin: (serial, granted) => writer.run('grantAdmin', { serial, granted }),
  };
}

export function createAuthorityStore(reader: Reader, writer: Writer): AuthorityStore {
  return {
    find: async () => reader.look((lookups) => lookups.findAuthority()),
    create: (authority, created) => writer.run('createAuthority', { authority, created }),
    findCrl: async (known) => reader.look((lookups) => lookups.findCrl(known)),
    keepCrl: (crl) => writer.run('keepCrl', crl),
    revokedCount: async () => reader.look((lookups) => lookups.revokedCount()),
  };
}
