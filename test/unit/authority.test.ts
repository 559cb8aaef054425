// authority/authority.ts when others make the authority at the same time, in this process or another: one is kept. And
// what becomes of the key's password and of failures. The rest is in test/api/pki.test.ts, authority-key.test.ts and
// registration.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Authorities } from '../../src/authority/authority.ts';
import { lockPrivateKey } from '../../src/authority/keys.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { WorkQueue, WorkQueueFull } from '../../src/limits/work-queue.ts';
import { createAudit } from '../../src/pastes/identity.ts';
import { type StoredAuthority, StoreError } from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { fakeStore } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const isExisting = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'authorityExists';

const PASSWORD = 'a password of the test';
const ONE_AT_A_TIME = { concurrency: 1, maxWaiting: 10, maxWaitMs: 60_000 };
const NOBODY = { fingerprint: null, clientAddress: null };

interface Place {
  kept?: StoredAuthority;
}

/** Authorities over a storage with room for one. `beforeKeeping` runs when an authority is offered to the storage. */
function authoritiesOver(
  place: Place,
  beforeKeeping: () => Promise<void> = async () => {},
  options: {
    password?: string;
    queue?: WorkQueue;
    maxWaiting?: number;
    onFound?: (authority: StoredAuthority) => void;
  } = {},
) {
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): void => void logged.push(entry);
  const store = fakeStore({ findAuthority: async () => place.kept }, {
    createAuthority: async ({ authority }: { authority: StoredAuthority }) => {
      await beforeKeeping();
      if (place.kept !== undefined) return false;
      place.kept = authority;
      return true;
    },
  });
  const { password = PASSWORD, maxWaiting = 10, ...given } = options;
  const { queue = new WorkQueue({ ...ONE_AT_A_TIME, maxWaiting, clock }), onFound } = given;
  const config = testConfig({ pkiCaPassword: password });
  const audit = createAudit({ clock, log });
  const authorities = new Authorities({ config, store, queue, audit, clock, random: randomBytes, log }, onFound);
  return { authorities, logged, clock };
}

/** A queue that gives nobody a place, for this reason. */
function closedQueue(reason: Error): WorkQueue {
  return { enter: () => Promise.reject(reason) } satisfies Pick<WorkQueue, 'enter'> as unknown as WorkQueue;
}

test('replacePassword: while the authority is made it waits for that, whose key has the password of before', async () => {
  const place: Place = {};
  const replaced: Promise<boolean>[] = [];
  const { authorities } = authoritiesOver(place, async () => void replaced.push(authorities.replacePassword('another')));
  await authorities.create('The first', NOBODY);
  assert.deepEqual(await Promise.all(replaced), [false]);
  assert.equal((await authorities.signing()).commonName, 'The first');
  assert.deepEqual(await authoritiesOver(place).authorities.replacePassword(PASSWORD), true);
});

test('replacePassword: a failure that says nothing of the password is no wrong one', async (t) => {
  t.mock.method(globalThis, 'setTimeout', (done: () => void) => void setImmediate(done));
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const full = authoritiesOver(place, undefined, { queue: closedQueue(new WorkQueueFull()) });
  await assert.rejects(full.authorities.replacePassword(PASSWORD), { refusal: 'passwordQueueFull' });
  assert.equal(await authoritiesOver(place).authorities.replacePassword('wrong'), false);
  assert.deepEqual(full.logged, []);
});

test('ensured: an authority that another process made meanwhile is as good', async () => {
  const place: Place = {};
  const other = authoritiesOver(place);
  const late = authoritiesOver(place, async () => {
    if (place.kept === undefined) await other.authorities.create('The first', NOBODY);
  });
  const first = await late.authorities.ensured(NOBODY);
  assert.equal(first.commonName, 'The first');
  assert.deepEqual(late.logged, []);
  assert.equal(other.logged.length, 1);
});

test('create: refuses when another process was quicker', async () => {
  const place: Place = {};
  const other = authoritiesOver(place);
  const late = authoritiesOver(place, async () => void (await other.authorities.create('The first', NOBODY)));
  await assert.rejects(late.authorities.create('The second', NOBODY), isExisting);
  assert.equal(place.kept?.commonName, 'The first');
});

test('create: of many at once one is made and the others exist already, however short the queue is', async () => {
  const place: Place = {};
  const { authorities } = authoritiesOver(place, undefined, { maxWaiting: 0 });
  const racing = Array.from({ length: 20 }, (_, index) => authorities.create(`CA ${index}`, NOBODY));
  const registering = authorities.ensured(NOBODY);
  const outcomes = await Promise.allSettled(racing);
  assert.equal(place.kept?.commonName, 'CA 0');
  assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', ...Array<string>(19).fill('rejected')]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') assert.ok(isExisting(outcome.reason));
  assert.equal((await registering).certificate, place.kept?.certificate);
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
  assert.equal((await authorities.ensured(NOBODY)).commonName, 'Paste Service CA');
});

test('create: where there is one already, no key is made and nothing is offered to the storage', async () => {
  const { authorities } = authoritiesOver({ kept: {} as StoredAuthority }, () => assert.fail('offered'));
  await assert.rejects(authorities.create('The second', NOBODY), { refusal: 'authorityExists' });
});

test('ensured: of those that ask at once, one makes the authority', async () => {
  let offers = 0;
  const { authorities, logged } = authoritiesOver({}, async () => void (offers += 1));
  const [one, other] = await Promise.all([authorities.ensured(NOBODY), authorities.ensured(NOBODY)]);
  assert.deepEqual(one, other);
  assert.deepEqual([offers, logged.length], [1, 1]);
});

test('ensured: where the queue is full, that is what is said', async (t) => {
  t.mock.method(globalThis, 'setTimeout', (done: () => void) => void setImmediate(done));
  const full = authoritiesOver({}, undefined, { queue: closedQueue(new WorkQueueFull()) });
  await assert.rejects(full.authorities.ensured(NOBODY), { refusal: 'passwordQueueFull' });
});

test('signing: a failure that says nothing of the key stays what it is, and the next call tries again', async (t) => {
  t.mock.method(globalThis, 'setTimeout', (done: () => void) => void setImmediate(done));
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const failures = [new Error('odd'), new WorkQueueFull()];
  const places = new WorkQueue({ ...ONE_AT_A_TIME, clock: movableClock() });
  const enter: WorkQueue['enter'] = async (client) => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return places.enter(client);
  };
  const odd = authoritiesOver(place, undefined, { queue: { enter } as unknown as WorkQueue });
  await assert.rejects(odd.authorities.signing(), { message: 'odd' });
  await assert.rejects(odd.authorities.signing(), { refusal: 'passwordQueueFull' });
  assert.equal((await odd.authorities.signing()).certificate, place.kept?.certificate);
  assert.deepEqual(odd.logged, []);
});

test('signing: a password that does not open the key is tried once', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const wrong = authoritiesOver(place, undefined, { password: 'wrong' });
  for (let times = 0; times < 3; times += 1) {
    await assert.rejects(wrong.authorities.signing(), { refusal: 'issuanceFailed' });
  }
  assert.deepEqual(wrong.logged.map(({ event }) => event), ['CA key not usable']);
});

test('signing: a key that did not open is tried again once another process has given it another password, and not before', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const { authorities, logged } = authoritiesOver(place, undefined, { password: 'given later' });
  const { privateKey, ...before } = await authoritiesOver(place).authorities.signing();
  const give = async (password: string): Promise<void> => {
    place.kept = { ...before, lockedKey: await lockPrivateKey(privateKey, password, randomBytes) };
  };
  for (const password of ['one', 'two']) {
    await give(password);
    for (let times = 0; times < 3; times += 1) {
      // Another copy of the bytes at each look, as a store gives.
      place.kept = { ...place.kept!, lockedKey: Uint8Array.from(place.kept!.lockedKey) };
      await assert.rejects(authorities.signing(), { refusal: 'issuanceFailed' });
      assert.match(authorities.whyUnavailable() ?? '', /does not open/);
    }
  }
  await give('given later');
  assert.ok((await authorities.signing()).privateKey.equals(privateKey));
  assert.equal(authorities.whyUnavailable(), undefined);
  await give('three');
  assert.ok((await authorities.signing()).privateKey.equals(privateKey), 'what is open stays');
  assert.deepEqual(logged.map(({ event }) => event), ['CA key not usable', 'CA key not usable', 'CA key usable']);
});

test('signing: the key is unlocked once, also for those that ask at once', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const clock = movableClock();
  const places = new WorkQueue({ ...ONE_AT_A_TIME, clock });
  let turns = 0;
  const enter: WorkQueue['enter'] = (client) => {
    turns += 1;
    return places.enter(client);
  };
  const { authorities } = authoritiesOver(place, undefined, { queue: { enter } as unknown as WorkQueue });
  const [one, other] = await Promise.all([authorities.signing(), authorities.signing()]);
  assert.equal(one.privateKey, other.privateKey);
  assert.deepEqual([(await authorities.signing()).privateKey, turns], [one.privateKey, 1]);
  assert.equal(one.certificate, place.kept?.certificate);
});

test('replacePassword: what the one before does not open, later than the new one does, locks nothing', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const turn = Promise.withResolvers<void>();
  let turns = 0;
  const enter = async () => {
    turns += 1;
    if (turns === 1) await turn.promise;
    return () => {};
  };
  const options = { password: 'wrong', queue: { enter } as unknown as WorkQueue };
  const { authorities, logged } = authoritiesOver(place, undefined, options);
  const late = assert.rejects(authorities.signing(), { refusal: 'issuanceFailed' });
  assert.equal(await authorities.replacePassword(PASSWORD), true);
  turn.resolve();
  await late;
  assert.equal(authorities.whyUnavailable(), undefined);
  await authorities.signing();
  assert.deepEqual(logged.map(({ event }) => event), ['CA key not usable']);
});

test('requireUsable, whyUnavailable: from the second in which the certificate begins to the one before its end', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  const { createdAt, expiresAt } = place.kept!;
  const times = [
    [createdAt - 301, false], [createdAt - 300, true], [createdAt, true],
    [expiresAt - 1, true], [expiresAt, false], [expiresAt + 1, false],
  ] as const;
  for (const [nowSeconds, isValid] of times) {
    const { authorities, clock } = authoritiesOver(place);
    clock.jump(nowSeconds * 1000 - clock.unixMs());
    const usable = authorities.requireUsable();
    if (isValid) assert.equal((await usable)?.fingerprint, place.kept?.fingerprint);
    else await assert.rejects(usable, { refusal: 'issuanceFailed' });
    assert.equal(authorities.whyUnavailable() === undefined, isValid, String(nowSeconds - createdAt));
  }
});

test('checkKey: a wrong password is in the log, a right one and none are not, and none of them fails', async () => {
  const place: Place = {};
  await authoritiesOver(place).authorities.create('CA', NOBODY);
  for (const [password, expected] of [['wrong', ['CA key not usable']], [PASSWORD, []], ['', []]] as const) {
    const { authorities, logged } = authoritiesOver(place, undefined, { password });
    await authorities.checkKey();
    assert.deepEqual(logged.map(({ event }) => event), expected, password);
    assert.equal(authorities.whyUnavailable() === undefined, password === PASSWORD);
  }
});

test('replacePassword: taken once it has opened the stored key, or where there is none to open', async () => {
  const place: Place = {};
  const { authorities, logged } = authoritiesOver(place, undefined, { password: '' });
  await assert.rejects(authorities.ensured(NOBODY), { refusal: 'authorityPasswordMissing' });
  assert.equal(await authorities.replacePassword(PASSWORD), true);
  assert.equal(authorities.whyUnavailable(), undefined);
  await authorities.ensured(NOBODY);
  logged.length = 0;
  assert.equal(await authorities.replacePassword('wrong'), false);
  assert.deepEqual(logged.map(({ event }) => event), ['CA key not usable']);

  const late = authoritiesOver(place, undefined, { password: 'wrong' });
  await assert.rejects(late.authorities.signing(), { refusal: 'issuanceFailed' });
  assert.equal(await late.authorities.replacePassword(PASSWORD), true);
  assert.equal((await late.authorities.signing()).certificate, place.kept?.certificate);
});

test('onFound: told of whatever is found or made', async () => {
  const place: Place = {};
  const found: StoredAuthority[] = [];
  const onFound = (authority: StoredAuthority): void => void found.push(authority);
  const { authorities } = authoritiesOver(place, undefined, { onFound });
  assert.equal(await authorities.find(), undefined);
  assert.deepEqual(found, []);
  const made = await authorities.create('CA', NOBODY);
  assert.deepEqual(found.splice(0), [made]);
  await authorities.find();
  assert.deepEqual(found, [made]);
});

test('signing: refuses while there is none, with or without a password', async () => {
  for (const password of [PASSWORD, '']) {
    const { authorities } = authoritiesOver({}, undefined, { password });
    await assert.rejects(authorities.signing(), { refusal: 'authorityMissing' });
  }
});
