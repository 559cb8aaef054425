// Issuing and revoking when the storage decides otherwise at the last moment, because of what other requests did
// meanwhile. Over HTTP: test/api/pki.test.ts, revocation.test.ts and registration.test.ts.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { SigningAuthority } from '../../src/authority/authority.ts';
import { issueCertificate, NotFirstError, revokeCertificate } from '../../src/authority/issuing.ts';
import { generateKeyPair } from '../../src/authority/keys.ts';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { createAudit } from '../../src/pastes/identity.ts';
import {
  type AuditEvent, type Certificate, type Issuance, type IssueOutcome, type RevokeOutcome, StoreError,
} from '../../src/store/store.ts';
import { type KeyPair, makeTestAuthority } from '../support/authority.ts';
import { movableClock } from '../support/clock.ts';
import { CREATED_AT, fakeStore } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const HOLDER = 'a'.repeat(40);
const REQUESTER = { fingerprint: HOLDER, clientAddress: '192.0.2.1' };
const REVOKED: AuditEvent = {
  time: 0, event: 'cert_revoked', outcome: 'success', clientId: null, clientIp: null, details: {},
};
const CALLER: Caller = { tier: 'trusted', fingerprint: HOLDER };

const CERTIFICATE: Certificate = {
  serial: '4'.repeat(32),
  commonName: 'alice',
  fingerprint: HOLDER,
  createdAt: CREATED_AT - 100,
  expiresAt: CREATED_AT + 100,
  issuedTo: null,
  isAdmin: false,
  revokedAt: null,
  revocationReason: null,
  holder: HOLDER,
  isUnused: false,
};

let authority: SigningAuthority;
let key: KeyPair;

before(async () => {
  const made = await makeTestAuthority();
  authority = {
    ...made,
    commonName: 'CA',
    lockedKey: new Uint8Array(),
    fingerprint: '',
    createdAt: CREATED_AT,
    expiresAt: CREATED_AT + 36_500 * 86_400,
  };
  key = await generateKeyPair();
});

/** Certificates over a storage that answers as told. */
function certificatesOver(answers: {
  issue?: (issuance: Issuance, attempt: number) => Promise<IssueOutcome>;
  found?: Certificate;
  revoke?: RevokeOutcome;
}) {
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): void => void logged.push(entry);
  const serials: string[] = [];
  const store = fakeStore({ findCertificateBySerial: async () => answers.found }, {
    issueCertificate: (issuance: Issuance) => {
      serials.push(issuance.certificate.serial);
      return answers.issue!(issuance, serials.length);
    },
    revokeCertificate: async () => answers.revoke ?? assert.fail('not to be revoked'),
  });
  const parts = {
    config: testConfig(),
    store,
    challenges: { refusal: (reason: 'powAlreadyUsed' | 'powExpired', hint: string) => new Refusal(reason, { hint }) },
    audit: createAudit({ clock, log }),
    clock,
    random: randomBytes,
    log,
  };
  const request = { commonName: 'alice', key, requester: REQUESTER, spend: null };
  const issue = () => issueCertificate(parts, request, authority);
  const revoke = (caller: Caller = CALLER, fingerprint: string | null = HOLDER) =>
    revokeCertificate(parts, CERTIFICATE.serial, { caller, requester: { ...REQUESTER, fingerprint } }, null);
  return { issue, revoke, logged, serials };
}

const refused = (name: string) => (error: unknown): boolean => error instanceof Refusal && error.refusal === name;

test('issue: a serial that is taken is drawn anew, five times in all', async () => {
  const lucky = certificatesOver({
    issue: async ({ issued, granted }, attempt) => {
      if (attempt < 5) return { refused: 'serialTaken' };
      return { refused: null, isAdmin: true, audited: [issued, granted] };
    },
  });
  const issued = await lucky.issue();
  assert.equal(new Set(lucky.serials).size, 5);
  assert.deepEqual([issued.serial, issued.isAdmin], [lucky.serials.at(-1), true]);
  assert.deepEqual(lucky.logged.map(({ event }) => event), ['cert_issued', 'admin_granted']);

  const ordinary = certificatesOver({
    issue: async ({ issued }) => ({ refused: null, isAdmin: false, audited: [issued] }),
  });
  assert.equal((await ordinary.issue()).isAdmin, false);
  assert.deepEqual(ordinary.logged.map(({ event }) => event), ['cert_issued']);

  const unlucky = certificatesOver({ issue: async () => ({ refused: 'serialTaken' }) });
  await assert.rejects(unlucky.issue(), refused('issuanceFailed'));
  assert.equal(unlucky.serials.length, 5);
  assert.deepEqual(unlucky.logged.map(({ event, level }) => [event, level]), [['issuance failed', 'error']]);
  assert.match(String(unlucky.logged[0]?.details?.['reason']), /no unused serial in 5 attempts/);
});

test('issue: what the storage decides meanwhile is refused as what it is, and nothing is announced', async () => {
  const outcomes = [
    [{ refused: 'powAlreadyUsed' }, refused('powAlreadyUsed')],
    [{ refused: 'powExpired' }, refused('powExpired')],
    [{ refused: 'keyReused' }, refused('keyReused')],
    [{ refused: 'notFirst' }, (error: unknown) => error instanceof NotFirstError],
  ] as const;
  for (const [outcome, isExpected] of outcomes) {
    const { issue, logged, serials } = certificatesOver({ issue: async () => outcome });
    await assert.rejects(issue(), isExpected, outcome.refused);
    assert.deepEqual([logged, serials.length], [[], 1]);
  }
});

test('issue: a failure of the storage stays one; any other is logged and refused', async () => {
  const failing = certificatesOver({ issue: () => Promise.reject(new StoreError('unavailable', 'storage unavailable')) });
  await assert.rejects(failing.issue(), { name: 'StoreError' });
  assert.deepEqual(failing.logged, []);
  for (const [thrown, reason] of [[new Error('odd'), 'odd'], ['odd text', 'odd text']] as const) {
    const odd = certificatesOver({ issue: () => Promise.reject(thrown as Error) });
    await assert.rejects(odd.issue(), refused('issuanceFailed'));
    assert.deepEqual(odd.logged.map(({ details }) => details), [{ reason }]);
  }
});

test('revoke: what happened between finding and revoking is told', async () => {
  const revoked = certificatesOver({ found: CERTIFICATE, revoke: { refused: null, audited: [REVOKED] } });
  await revoked.revoke();
  assert.deepEqual(revoked.logged.map(({ event }) => event), ['cert_revoked']);
  for (const name of ['certificateNotFound', 'certificateRevoked'] as const) {
    const late = certificatesOver({ found: CERTIFICATE, revoke: { refused: name } });
    await assert.rejects(late.revoke(), refused(name));
    assert.deepEqual(late.logged, []);
  }
});

test('revoke: what is revoked already is told to whoever presents a fingerprint, and to nobody else', async () => {
  const again = certificatesOver({ found: { ...CERTIFICATE, revokedAt: CREATED_AT, fingerprint: 'b'.repeat(40) } });
  await assert.rejects(again.revoke(), refused('certificateRevoked'));
  await assert.rejects(again.revoke(ANONYMOUS), refused('certificateRevoked'));
  await assert.rejects(again.revoke(ANONYMOUS, null), refused('identityRequired'));
  await assert.rejects(certificatesOver({ found: CERTIFICATE }).revoke(ANONYMOUS), refused('identityRequired'));
  await assert.rejects(certificatesOver({}).revoke(ANONYMOUS), refused('identityRequired'));
  await certificatesOver({ found: { ...CERTIFICATE, expiresAt: CREATED_AT }, revoke: { refused: null, audited: [REVOKED] } }).revoke();
});
