// pastes/upkeep.ts: what each background task asks of the storage, how much at a time, and whether it goes on. When
// the tasks run is cleanup.test.ts; on a real store: test/api/cleanup.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import type { Count, LogEntry } from '../../src/core/events.ts';
import type { Parts } from '../../src/pastes/parts.ts';
import { cleanupTasks, createRoomMaking } from '../../src/pastes/upkeep.ts';
import type { Store } from '../../src/store/open.ts';
import { movableClock } from '../support/clock.ts';
import { CREATED_AT } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3600;
const SETTINGS: Partial<Config> = { duplicateWindowSeconds: 7, auditRetentionSeconds: 11 };

/** The tasks over a storage that answers each call with the next of `answers`; `calls` has what it was asked. */
function tasksOver(...answers: readonly (number | Error)[]) {
  const calls: unknown[] = [];
  const counted: unknown[] = [];
  const logged: LogEntry[] = [];
  const left = [...answers];
  const asked = (name: string) => async (...args: readonly unknown[]): Promise<number | undefined> => {
    calls.push([name, ...args]);
    const next = left.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  const store = {
    pastes: { removeExpired: asked('pastes') },
    run: async (name: string, step: unknown) => {
      calls.push([name, step]);
      const next = Number(left.shift());
      if (name !== 'removeExpiredCertificates') return next;
      return { removed: 0, last: next === 0 ? null : { expiresAt: next, serial: 'x' } };
    },
    upkeep: {
      releasePages: asked('release'),
      truncateWal: asked('truncate'),
      optimize: asked('optimize'),
      restoreBallast: asked('ballast'),
      checkFiles: asked('files'),
    },
  } as unknown as Store;
  const tasks = cleanupTasks({
    config: testConfig(SETTINGS),
    store,
    clock: movableClock(),
    count: ((...labels: readonly unknown[]) => void counted.push(labels)) as Count,
    rates: { sweep: () => void calls.push(['sweep']) } as unknown as Parts['rates'],
    log: (entry) => void logged.push(entry),
  }, () => false, async () => void calls.push(['renew']), () => void calls.push(['warn']));
  /** Runs one step, and gives whether there is more to do. */
  const step = async (name: string): Promise<boolean> =>
    await (tasks.find((task) => task.name === name) ?? assert.fail(`no task ${name}`)).step() === true;
  return { tasks, step, calls, counted, logged };
}

test('cleanupTasks: how often each begins; what removes comes before what gives its room back', () => {
  assert.deepEqual(tasksOver().tasks.map(({ name, intervalSeconds }) => [name, intervalSeconds]), [
    ['TLS certificate', 24 * HOUR_SECONDS],
    ['doubts', 24 * HOUR_SECONDS],
    ['revocation list', 24 * HOUR_SECONDS],
    ['expired pastes', HOUR_SECONDS],
    ['duplicate records', 15 * MINUTE_SECONDS],
    ['used challenges', 5 * MINUTE_SECONDS],
    ['audit log', 24 * HOUR_SECONDS],
    ['expired certificates', 24 * HOUR_SECONDS],
    ['free pages', 5 * MINUTE_SECONDS],
    ['write-ahead log', MINUTE_SECONDS],
    ['statistics', 6 * HOUR_SECONDS],
    ['rate records', 5 * MINUTE_SECONDS],
    ['room in reserve', 10],
    ['files', 10],
  ]);
});

test('expired pastes: 32 a step, counted, and on as long as a step finds so many', async () => {
  const { step, calls, counted } = tasksOver(32, 31, 0);
  for (const goesOn of [true, false, false]) assert.equal(await step('expired pastes'), goesOn);
  assert.deepEqual(calls, Array(3).fill(['pastes', CREATED_AT, 32, 0]));
  assert.deepEqual(counted, [32, 31, 0].map((removed) => ['pastesDeleted', 'expired', removed]));
});

test('expired pastes: after a step that fails what is behind it goes first, and then that is tried again', async () => {
  const damage = new Error('malformed');
  const { step, calls } = tasksOver(32, damage, 32, 31, damage, damage, 0, 7, 0);
  assert.equal(await step('expired pastes'), true);
  await assert.rejects(step('expired pastes'), damage);
  assert.deepEqual([await step('expired pastes'), await step('expired pastes')], [true, true]);
  for (let run = 0; run < 2; run += 1) await assert.rejects(step('expired pastes'), damage);
  for (const goesOn of [true, false, false]) assert.equal(await step('expired pastes'), goesOn);
  assert.deepEqual(calls.map((call) => (call as unknown[])[3]), [0, 0, 32, 32, 0, 32, 64, 0, 0]);
});

test('records: 100 a step of those that ran out, each kind after its time', async () => {
  const kinds = [
    ['duplicate records', 'removeOldSubmissions', 7],
    ['used challenges', 'removeExpiredChallenges', 2 * HOUR_SECONDS],
    ['audit log', 'removeOldAudit', 11],
  ] as const;
  for (const [name, asked, ageSeconds] of kinds) {
    const { step, calls, counted } = tasksOver(100, 99);
    assert.deepEqual([await step(name), await step(name)], [true, false], name);
    assert.deepEqual(calls, Array(2).fill([asked, { untilSeconds: CREATED_AT - ageSeconds, limit: 100, skipped: 0 }]));
    assert.deepEqual(counted, [], 'no pastes');
  }
});

test('free pages: 256 a step, on as long as fewer are left than before', async () => {
  const goesOn = async (...left: readonly number[]): Promise<boolean[]> => {
    const { step, calls } = tasksOver(...left);
    const results: boolean[] = [];
    for (const _ of left) results.push(await step('free pages'));
    assert.deepEqual(calls, left.map(() => ['release', 256]));
    return results;
  };
  assert.deepEqual(await goesOn(600, 344, 88, 0), [true, true, true, false]);
  assert.deepEqual(await goesOn(1, 0), [true, false]);
  assert.deepEqual(await goesOn(300, 300, 400, 399), [true, false, true, true], 'the next time counts anew');
});

test('what is done at one go: once a turn', async () => {
  const kinds = [
    ['write-ahead log', 'truncate'],
    ['statistics', 'optimize'],
    ['revocation list', 'renew'],
    ['TLS certificate', 'warn'],
    ['rate records', 'sweep'],
    ['room in reserve', 'ballast'],
    ['files', 'files'],
  ];
  for (const [name = '', asked] of kinds) {
    const { step, calls } = tasksOver();
    assert.equal(await step(name), false);
    assert.deepEqual(calls, [[asked]]);
  }
});

test('room in reserve: a full disk is in the log once, and once that it is none any more', async () => {
  const { step, logged } = tasksOver(1, 0, 0, 0, 1, 1, 1);
  for (let turn = 0; turn < 7; turn += 1) await step('room in reserve');
  assert.deepEqual(logged, [
    { level: 'warning', logger: 'store', event: 'disk full' },
    { level: 'info', logger: 'store', event: 'room on the disk again' },
  ]);
});

test('expired certificates: an hour after their end, 100 a step, each after the last one that was looked at', async () => {
  const { step, calls } = tasksOver(5, 0, 0);
  for (const goesOn of [true, false, false]) assert.equal(await step('expired certificates'), goesOn);
  const untilSeconds = CREATED_AT - HOUR_SECONDS;
  const first = ['removeExpiredCertificates', { untilSeconds, after: null, limit: 100 }];
  assert.deepEqual(calls, [first, ['removeExpiredCertificates', { untilSeconds, after: { expiresAt: 5, serial: 'x' }, limit: 100 }], first]);
});

test('createRoomMaking: removes, then gives room back, at most every ten seconds', async () => {
  const clock = movableClock();
  const begun: string[] = [];
  const makeRoom = createRoomMaking(async (name) => void begun.push(name), clock);
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  for (let refusal = 0; refusal < 100; refusal += 1) makeRoom();
  await settle();
  const once = ['expired pastes', 'free pages', 'write-ahead log'];
  assert.deepEqual(begun, once);
  clock.advance(9999);
  makeRoom();
  await settle();
  assert.deepEqual(begun, once);
  clock.advance(1);
  makeRoom();
  await settle();
  assert.deepEqual(begun, [...once, ...once]);
  const known = tasksOver().tasks.map(({ name }) => name);
  assert.ok(once.every((name) => known.includes(name)));
});
