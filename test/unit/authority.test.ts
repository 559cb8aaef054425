// service/authority.ts where another process is quicker: of two that make the authority, one is kept. The rest is
// test/api/pki.test.ts, authority-key.test.ts and registration.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEntry } from '../../src/core/log.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { randomBytes } from '../../src/crypto/random.ts';
import { createWorkQueue } from '../../src/limits/work-queue.ts';
import { createAudit } from '../../src/service/audit.ts';
import { createAuthorities } from '../../src/service/authority.ts';
import type { AuthorityStore, StoredAuthority } from '../../src/store/pki-store.ts';
import { StoreError } from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { testConfig } from '../support/test-config.ts';

const NOBODY = { fingerprint: null, clientAddress: null };

/** Authorities over a storage of one place; `beforeKeeping` runs when one is offered to it. */
function authoritiesOver(place: { kept?: StoredAuthority }, beforeKeeping: () => Promise<void> = async () => {}) {
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): void => void logged.push(entry);
  const store = {
    find: async () => place.kept,
    create: async (authority: StoredAuthority) => {
      await beforeKeeping();
      if (place.kept !== undefined) return false;
      place.kept = authority;
      return true;
    },
  } as unknown as AuthorityStore;
  const config = testConfig({ pkiCaPassword: 'a password of the test' });
  const queue = createWorkQueue({ concurrency: 1, maxWaiting: 10, maxWaitMs: 60_000, clock });
  const audit = createAudit({ clock, log });
  return { authorities: createAuthorities({ config, store, queue, audit, clock, random: randomBytes, log }), logged };
}

test('ensured: an authority that another process made meanwhile is as good', async () => {
  const place: { kept?: StoredAuthority } = {};
  const other = authoritiesOver(place);
  const late = authoritiesOver(place, async () => {
    if (place.kept === undefined) await other.authorities.create('The first', NOBODY);
  });
  const { stored } = await late.authorities.ensured(NOBODY);
  assert.equal(stored.commonName, 'The first');
  assert.deepEqual(late.logged, []);
  assert.equal(other.logged.length, 1);
});

test('create: refuses when another process was quicker', async () => {
  const place: { kept?: StoredAuthority } = {};
  const other = authoritiesOver(place);
  const late = authoritiesOver(place, async () => void (await other.authorities.create('The first', NOBODY)));
  const isRefused = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'authorityExists';
  await assert.rejects(late.authorities.create('The second', NOBODY), isRefused);
  assert.equal(place.kept?.commonName, 'The first');
});

test('ensured: any other failure is not taken for that, and the next call tries again', async () => {
  let isBroken = true;
  const { authorities } = authoritiesOver({}, async () => {
    if (isBroken) throw new StoreError('unavailable', 'storage unavailable');
  });
  await assert.rejects(authorities.ensured(NOBODY), { name: 'StoreError' });
  isBroken = false;
  assert.equal((await authorities.ensured(NOBODY)).stored.commonName, 'Paste Service CA');
});
