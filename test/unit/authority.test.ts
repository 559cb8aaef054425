// service/authority.ts where others are making the authority too, in this process or another: one is kept. The rest is
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

const isExisting = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'authorityExists';

const NOBODY = { fingerprint: null, clientAddress: null };

/** Authorities over a storage of one place; `beforeKeeping` runs when one is offered to it. */
function authoritiesOver(
  place: { kept?: StoredAuthority },
  beforeKeeping: () => Promise<void> = async () => {},
  maxWaiting = 10,
) {
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
  const queue = createWorkQueue({ concurrency: 1, maxWaiting, maxWaitMs: 60_000, clock });
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
  await assert.rejects(late.authorities.create('The second', NOBODY), isExisting);
  assert.equal(place.kept?.commonName, 'The first');
});

test('create: of many at once one is made and the others exist already, however short the queue is', async () => {
  const place: { kept?: StoredAuthority } = {};
  const { authorities } = authoritiesOver(place, undefined, 0);
  const racing = Array.from({ length: 20 }, (_, index) => authorities.create(`CA ${index}`, NOBODY));
  const registering = authorities.ensured(NOBODY);
  const outcomes = await Promise.allSettled(racing);
  assert.equal(place.kept?.commonName, 'CA 0');
  assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', ...Array<string>(19).fill('rejected')]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') assert.ok(isExisting(outcome.reason));
  assert.equal((await registering).stored, place.kept);
});

test('create: those that wait for one that fails fail with it, and the next call tries again', async () => {
  let isBroken = true;
  const { authorities } = authoritiesOver({}, async () => {
    if (isBroken) throw new StoreError('unavailable', 'storage unavailable');
  });
  const outcomes = await Promise.allSettled([1, 2].map(() => authorities.create('CA', NOBODY)));
  for (const outcome of outcomes) assert.equal(outcome.status === 'rejected' && outcome.reason.name, 'StoreError');
  isBroken = false;
  assert.equal((await authorities.create('CA', NOBODY)).commonName, 'CA');
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
