// From a fingerprint to a tier, on certificates that the test makes up. Over real sockets: own-pastes.test.ts and
// identity-matrix.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { createAudit, Identity, statusOf } from '../../src/pastes/identity.ts';
import { type AuditEvent, type Certificate, StoreError } from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { CREATED_AT, fakeStore } from '../support/store.ts';

const FINGERPRINT = 'a'.repeat(40);

const CERTIFICATE: Certificate = {
  serial: '4'.repeat(32),
  commonName: 'alice',
  fingerprint: FINGERPRINT,
  createdAt: CREATED_AT - 100,
  expiresAt: CREATED_AT + 100,
  issuedTo: null,
  isAdmin: false,
  revokedAt: null,
  revocationReason: null,
  holder: FINGERPRINT,
  isUnused: false,
};

/** Over one certificate, none, or one for each fingerprint. The two functions take an audit entry and a first use. */
function identityOver(
  certificate: Certificate | undefined | ((fingerprint: string) => Certificate),
  recordAudit: (event: AuditEvent) => void = () => {},
  useCertificate: (use: object) => readonly AuditEvent[] | Promise<never> = () => [],
) {
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const read = {
    findCertificate: async (fingerprint: string) => {
      if (typeof certificate === 'function') return certificate(fingerprint);
      return fingerprint === certificate?.fingerprint ? certificate : undefined;
    },
    findAuthority: async () => undefined,
  };
  const identity = new Identity({
    store: fakeStore(read, { recordAudit, useCertificate }),
    audit: createAudit({ clock, log: (entry) => logged.push(entry) }),
    clock,
  });
  const callerOf = async (fingerprint: string | null = FINGERPRINT, from: string | null = '192.0.2.1'): Promise<Caller> =>
    identity.callerOf({ fingerprint, clientAddress: from });
  return { callerOf, clock, logged };
}

/** Each fingerprint has its own revoked certificate, since how many failures of one are noted is bounded as well. */
const EACH_REVOKED = (fingerprint: string): Certificate => (
  { ...CERTIFICATE, fingerprint, holder: fingerprint, revokedAt: 1 }
);

let made = 0;

function newFingerprint(): string {
  made += 1;
  return made.toString(16).padStart(40, '0');
}

test('callerOf: a failed storage keeps nobody from being anonymous, and the log has the event all the same', async () => {
  const recorded: AuditEvent[] = [];
  const failing = identityOver({ ...CERTIFICATE, revokedAt: 1 }, async () => {
    throw new StoreError('unavailable', 'storage unavailable');
  });
  assert.deepEqual(await failing.callerOf(), ANONYMOUS);
  assert.equal(failing.logged.length, 1);
  const working = identityOver({ ...CERTIFICATE, revokedAt: 1 }, (event) => void recorded.push(event));
  assert.deepEqual(await working.callerOf(), ANONYMOUS);
  assert.deepEqual([recorded.length, working.logged.length], [1, 1]);
});

test('callerOf: a renewed certificate is its holder\'s, and its first use is told and holds nobody up', async () => {
  const holder = 'b'.repeat(40);
  const renewed = { ...CERTIFICATE, holder, isUnused: true };
  const superseded: AuditEvent = {
    time: CREATED_AT, event: 'cert_revoked', outcome: 'success', clientId: holder, clientIp: null, details: {},
  };
  const uses: unknown[] = [];
  const using = identityOver(renewed, undefined, (use) => (uses.push(use), [superseded]));
  assert.deepEqual(await using.callerOf(), { tier: 'trusted', fingerprint: holder });
  const by = { ...superseded, clientIp: '192.0.2.1' };
  assert.deepEqual(uses, [{ serial: CERTIFICATE.serial, holder, nowSeconds: CREATED_AT, by }]);
  assert.deepEqual(using.logged.map(({ event, clientId }) => [event, clientId]), [['cert_revoked', holder]]);

  const used = identityOver({ ...renewed, isUnused: false }, undefined, async () => assert.fail('it was used before'));
  assert.deepEqual(await used.callerOf(), { tier: 'trusted', fingerprint: holder });
  const ended = identityOver({ ...renewed, expiresAt: CREATED_AT }, undefined, async () => assert.fail('it has run out'));
  assert.deepEqual(await ended.callerOf(), ANONYMOUS);
  const failing = identityOver(renewed, undefined, async () => {
    throw new StoreError('unavailable', 'storage unavailable');
  });
  assert.deepEqual(await failing.callerOf(), { tier: 'trusted', fingerprint: holder });
  assert.equal(failing.logged.length, 0);
  const mistaken = identityOver(renewed, undefined, async () => {
    throw new TypeError('a mistake');
  });
  await assert.rejects(mistaken.callerOf(), { name: 'TypeError', message: 'a mistake' });
});

test('callerOf: what is no failure of the storage is not taken for one', async () => {
  const mistaken = identityOver({ ...CERTIFICATE, revokedAt: 1 }, async () => {
    throw new TypeError('a mistake');
  });
  await assert.rejects(mistaken.callerOf(), { name: 'TypeError', message: 'a mistake' });
});

test('callerOf: 60 failures a minute and client are noted, those without an address as one client\'s', async () => {
  const { callerOf, clock, logged } = identityOver(EACH_REVOKED);
  const fail = async (times: number, from: string | null): Promise<number> => {
    const before = logged.length;
    for (let time = 0; time < times; time += 1) assert.deepEqual(await callerOf(newFingerprint(), from), ANONYMOUS);
    return logged.length - before;
  };
  assert.equal(await fail(59, null), 59);
  assert.equal(await fail(3, null), 1);
  assert.equal(await fail(61, '192.0.2.2'), 60);
  clock.advance(59_999);
  assert.equal(await fail(1, null), 0);
  clock.advance(1);
  assert.equal(await fail(1, null), 1);
});

test('callerOf: an IPv6 network of 64 bits is one client, whose failures are noted 60 times a minute', async () => {
  const { callerOf, logged } = identityOver(EACH_REVOKED);
  for (let host = 1; host <= 61; host += 1) await callerOf(newFingerprint(), `2001:db8::${host}`);
  assert.equal(logged.length, 60);
  await callerOf(newFingerprint(), '2001:db8:0:1::1');
  assert.equal(logged.length, 61);
});

test('callerOf: the failures of a thousand clients are counted, then the one longest silent is forgotten', async () => {
  const { callerOf, logged } = identityOver(EACH_REVOKED);
  const noted = async (from: string): Promise<number> => {
    const before = logged.length;
    await callerOf(newFingerprint(), from);
    return logged.length - before;
  };
  for (let times = 0; times < 60; times += 1) assert.equal(await noted('192.0.2.1'), 1);
  for (let client = 0; client < 999; client += 1) await noted(`198.51.${client >> 8}.${client & 255}`);
  assert.equal(await noted('192.0.2.1'), 0);
  await noted('203.0.113.1');
  assert.equal(await noted('192.0.2.1'), 1);
});

test('callerOf: of one certificate 60 failures a minute are noted, and forgotten for a thousand others alone', async () => {
  const { callerOf, clock, logged } = identityOver(EACH_REVOKED);
  const noted = async (fingerprint: string, from: string): Promise<number> => {
    const before = logged.length;
    await callerOf(fingerprint, from);
    return logged.length - before;
  };
  const one = newFingerprint();
  for (let time = 0; time < 60; time += 1) assert.equal(await noted(one, `192.0.2.${time}`), 1);
  // However many addresses the failures come from: addresses are counted by themselves.
  for (let time = 0; time < 2000; time += 1) assert.equal(await noted(one, `198.51.${time >> 8}.${time & 255}`), 0);
  for (let time = 0; time < 999; time += 1) await noted(newFingerprint(), `203.0.${time >> 8}.${time & 255}`);
  assert.equal(await noted(one, '192.0.2.1'), 0);
  await noted(newFingerprint(), '203.0.113.1');
  assert.equal(await noted(one, '192.0.2.1'), 1);
  clock.advance(60_000);
  assert.equal(await noted(one, '192.0.2.1'), 1);
});

test('announce: who caused it is said where it is known, and a failure is a warning', () => {
  const logged: LogEntry[] = [];
  const audit = createAudit({ clock: movableClock(), log: (entry) => logged.push(entry) });
  const known = { fingerprint: FINGERPRINT, clientAddress: '192.0.2.1' };
  audit.announce(audit.event('paste_deleted', 'success', known, { paste: 'abc' }));
  audit.announce(audit.event('auth_failure', 'failure', { fingerprint: null, clientAddress: null }, {}));
  const client = { clientId: FINGERPRINT, clientIp: '192.0.2.1' };
  assert.deepEqual(logged, [
    { level: 'info', logger: 'audit', event: 'paste_deleted', outcome: 'success', ...client, details: { paste: 'abc' } },
    { level: 'warning', logger: 'audit', event: 'auth_failure', outcome: 'failure', details: {} },
  ]);
});

test('statusOf: expired from the second of its expiry, revoked whatever the time', () => {
  const { expiresAt } = CERTIFICATE;
  assert.deepEqual([-1, 0, 1].map((seconds) => statusOf(CERTIFICATE, expiresAt + seconds)), ['valid', 'expired', 'expired']);
  const revoked = { ...CERTIFICATE, revokedAt: 0 };
  assert.deepEqual([-1, 1].map((seconds) => statusOf(revoked, expiresAt + seconds)), ['revoked', 'revoked']);
});
