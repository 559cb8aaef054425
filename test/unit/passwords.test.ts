// Passwords of pastes/admission.ts: what is checked, in whose turn, and how long an unknown id without a password seems
// to take. The hashes themselves: password.test.ts; over real sockets: test/api/read-paste.test.ts.

import assert from 'node:assert/strict';
import { before, test, type TestContext } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import type { Clock } from '../../src/core/time.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { hashPassword } from '../../src/crypto/passwords.ts';
import { type WorkQueue, WorkQueueFull } from '../../src/limits/work-queue.ts';
import { Passwords, requireAcceptablePassword } from '../../src/pastes/admission.ts';

const CLIENT = '2001:db8::1';

let stored: string;

before(async () => {
  stored = await hashPassword('right', randomBytes);
});

const refused = (name: string) => (error: unknown): boolean => error instanceof Refusal && error.refusal === name;

/** A clock on which every second reading, at the end of a check, is later by `checkMs`. */
function checkingClock() {
  const clock = { checkMs: 0, nowMs: 0 };
  let isBegun = false;
  const monotonicMs = (): number => {
    if (isBegun) clock.nowMs += clock.checkMs;
    isBegun = !isBegun;
    return clock.nowMs;
  };
  return Object.assign(clock, { monotonicMs, unixMs: () => assert.fail('not asked for') } satisfies Clock);
}

/** Notes each wait, and lets it take no time. */
function notedWaits(t: TestContext): unknown[] {
  const waitsMs: unknown[] = [];
  t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number) => {
    waitsMs.push(ms);
    setImmediate(done);
  });
  return waitsMs;
}

/** Passwords whose waits are noted and take no time; `events` has the turns of the queue and the lookups, in order. */
function passwordsFor(t: TestContext, checkMs?: number) {
  const clock = checkingClock();
  const waitsMs = notedWaits(t);
  const events: string[] = [];
  let isFull = false;
  const queue = {
    enter: async (client: string) => {
      if (isFull) throw new WorkQueueFull();
      assert.equal(client, '20010db800000000/64', 'the key that limits count by');
      events.push('enter');
      return () => void events.push('leave');
    },
  } as unknown as WorkQueue;
  const passwords = new Passwords({ queue, clock, random: randomBytes, checkMs });
  type Found = { passwordHash: string | null } | undefined;
  /** `later` is what a lookup after the first one finds. */
  const unlock = async (found: Found, password?: string, later: Found = found) => {
    const find = async () => (events.push('find') > 0 && events.filter((event) => event === 'find').length > 1 ? later : found);
    return passwords.unlock(find, password, CLIENT);
  };
  /** One check that seems to take this long. */
  const check = async (ms: number): Promise<void> => {
    clock.checkMs = ms;
    await unlock({ passwordHash: stored }, 'right');
  };
  const seemingMs = async (): Promise<unknown> => {
    await assert.rejects(unlock(undefined), refused('pasteNotFound'));
    return waitsMs.at(-1);
  };
  const hash = (password: string): Promise<string> => passwords.hash(password, CLIENT);
  return { hash, unlock, check, seemingMs, clock, waitsMs, events, fill: () => void (isFull = true) };
}

test('requireAcceptablePassword: 1024 code points, however many units and bytes they are', () => {
  for (const character of ['a', 'é', '😀']) {
    requireAcceptablePassword(character.repeat(1023));
    requireAcceptablePassword(character.repeat(1024));
    assert.throws(() => requireAcceptablePassword(character.repeat(1025)), refused('passwordTooLong'));
  }
  requireAcceptablePassword(undefined);
});

test('hash and unlock: a password that is too long has no turn', async (t) => {
  const { hash, unlock, events } = passwordsFor(t, 1);
  await assert.rejects(hash('a'.repeat(1025)), refused('passwordTooLong'));
  await assert.rejects(unlock({ passwordHash: null }, 'a'.repeat(1025)), refused('passwordTooLong'));
  assert.deepEqual(events, []);
});

test('hash: in turn; what it gives opens with that password alone', async (t) => {
  const { hash, unlock, events } = passwordsFor(t, 1);
  const found = { passwordHash: await hash('new') };
  assert.deepEqual(events.splice(0), ['enter', 'leave']);
  assert.equal(await unlock(found, 'new'), found);
  await assert.rejects(unlock(found, 'old'), refused('passwordInvalid'));
});

test('unlock: with a password, the turn comes before the lookup and ends whatever was found', async (t) => {
  const { unlock, events, clock } = passwordsFor(t, 1);
  clock.checkMs = 1;
  const turn = ['enter', 'find', 'leave'];
  const open = { passwordHash: null };
  assert.equal(await unlock(open, 'any'), open);
  assert.deepEqual([events.splice(0), clock.nowMs], [turn, 0], 'nothing to check');
  const found = { passwordHash: stored };
  assert.equal(await unlock(found, 'right'), found);
  assert.deepEqual([events.splice(0), clock.nowMs], [['enter', 'find', 'find', 'leave'], 1]);
  await assert.rejects(unlock(found, 'wrong'), refused('passwordInvalid'));
  assert.deepEqual([events.splice(0), clock.nowMs], [turn, 2]);
  await assert.rejects(unlock(undefined, 'any'), refused('pasteNotFound'));
  assert.deepEqual([events.splice(0), clock.nowMs], [turn, 3], 'checked against what nothing opens');
});

test('unlock: what took its place meanwhile, with the same password', async (t) => {
  const { unlock, events } = passwordsFor(t, 1);
  const found = { passwordHash: stored };
  const replaced = { passwordHash: stored };
  assert.equal(await unlock(found, 'right', replaced), replaced);
  for (const other of [undefined, { passwordHash: null }, { passwordHash: 'another' }]) {
    events.length = 0;
    assert.equal(await unlock(found, 'right', other), found);
  }
});

test('unlock: without a password there is no turn; what has one asks for it', async (t) => {
  const { unlock, events } = passwordsFor(t, 1);
  const open = { passwordHash: null };
  assert.equal(await unlock(open), open);
  await assert.rejects(unlock({ passwordHash: stored }), (error) => {
    assert.ok(error instanceof Refusal);
    assert.deepEqual([error.refusal, error.fields], ['passwordRequired', { passwordProtected: true }]);
    return true;
  });
  assert.deepEqual(events, ['find', 'find']);
});

test('hash and unlock: a full queue is told so half a second later, and nothing is looked up', async (t) => {
  const { hash, unlock, events, waitsMs, fill } = passwordsFor(t, 1);
  fill();
  const isFull = (error: unknown): boolean => refused('passwordQueueFull')(error) &&
    (error as Refusal).terms.retryAfterSeconds === 1;
  await assert.rejects(hash('any'), isFull);
  await assert.rejects(unlock({ passwordHash: stored }, 'right'), isFull);
  assert.deepEqual([events, waitsMs], [[], [500, 500]]);
});

test('unlock: an unknown id takes what the middle one of the last 15 checks took, without a password', async (t) => {
  const { check, seemingMs } = passwordsFor(t, 400);
  assert.equal(await seemingMs(), 400);
  for (const ms of [1, 12, 3, 14, 7, 9, 2, 15, 8, 5, 11, 4, 13, 6, 10]) await check(ms);
  assert.equal(await seemingMs(), 8, 'of 1 to 15; the 400 have left');
});

test('unlock: an unknown id waits for half a second at most', async (t) => {
  for (const [checkMs, waitMs] of [[499, 499], [500, 500], [501, 500]] as const) {
    const { seemingMs, clock } = passwordsFor(t, checkMs);
    assert.equal(await seemingMs(), waitMs);
    assert.equal(clock.nowMs, 0, 'nothing is checked where the duration is known');
    t.mock.restoreAll();
  }
});

test('unlock: unless somebody says how long a check takes, three are made, of which the middle one counts', async (t) => {
  const clock = checkingClock();
  const lasting = [500, 33, 90];
  Object.defineProperty(clock, 'checkMs', { get: () => lasting.shift() });
  const waitsMs = notedWaits(t);
  const queue = { enter: () => assert.fail('no turn is asked for') } as unknown as WorkQueue;
  const passwords = new Passwords({ queue, clock, random: randomBytes });
  await assert.rejects(async () => passwords.unlock(async () => undefined, undefined, CLIENT), refused('pasteNotFound'));
  assert.deepEqual([waitsMs, clock.nowMs], [[90], 623], 'a busy start made the first one slow');
});

test('measure: makes three checks, however often it is called, and none where the duration is known', async (t) => {
  const clock = checkingClock();
  const looks = t.mock.method(clock, 'monotonicMs').mock;
  const queue = {} as WorkQueue;
  const passwords = new Passwords({ queue, clock, random: randomBytes });
  assert.equal(looks.callCount(), 0, 'nothing is checked before the service listens');
  await Promise.all([passwords.measure(), passwords.measure()]);
  await new Passwords({ queue, clock, random: randomBytes, checkMs: 33 }).measure();
  assert.equal(looks.callCount(), 6, 'when each of three checks began, and when it ended');
});
