// crypto/presented.ts: whether the authority signed a certificate, whatever others call themselves.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { validityFrom } from '../../src/authority/certificates.ts';
import { FULL_HANDSHAKES_ONLY, issuedSerial } from '../../src/crypto/presented.ts';
import { ISSUED_AT, makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { openssl } from '../support/pki.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';

test('issuedSerial: of certificates that the key of the authority signed, expired ones too', async () => {
  const authority = await makeTestAuthority();
  const valid = await makeTestClient(authority);
  const expired = await makeTestClient(authority, { validity: validityFrom(ISSUED_AT - 1_000_000, 1) });
  for (const { certificate, serial } of [valid, expired]) {
    assert.equal(issuedSerial(certificate, authority.certificate), serial);
  }
  const namesake = await makeTestAuthority();
  const { certificate } = await makeTestClient(namesake);
  assert.equal(issuedSerial(certificate, authority.certificate), undefined);
  assert.equal(issuedSerial(valid.certificate, namesake.certificate), undefined);
  assert.equal(issuedSerial(namesake.certificate, authority.certificate), undefined);
  const tampered = Uint8Array.from(valid.certificate);
  tampered[tampered.length - 1]! ^= 1;
  assert.equal(issuedSerial(tampered, authority.certificate), undefined);
  assert.equal(issuedSerial(valid.certificate.subarray(0, -1), authority.certificate), undefined, 'no certificate');
});

test('issuedSerial: none for a namesake with a key of another kind', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const { certificate: authority } = await makeTestAuthority('Paste Service CA');
  for (const algorithm of ['rsa:2048', 'ed25519']) {
    const named = ['-subj', '/CN=Paste Service CA'];
    openssl(folder, 'req', '-x509', '-newkey', algorithm, '-nodes', '-keyout', 'k', '-out', 'c', ...named);
    const { raw } = new X509Certificate(readFileSync(join(folder, 'c')));
    assert.equal(issuedSerial(raw, authority), undefined, algorithm);
  }
});

test('FULL_HANDSHAKES_ONLY: neither tickets nor renegotiation', () => {
  // Two bits of openssl/ssl.h, which do not change.
  assert.equal(FULL_HANDSHAKES_ONLY, 2 ** 14 + 2 ** 30);
});
