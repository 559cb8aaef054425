// What the rest of the program may ask about the certificate authority and what it issued: the PKI's part of the
// store's interface, and its making from the writer and the reader. The SQL is in certificates.ts.

import { setImmediate } from 'node:timers/promises';
import type { Reader } from './reader.ts';
import type { AuthorityStore, Certificate, CertificateStore } from './store.ts';
import type { Writer } from './writer.ts';

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
