// The background tasks against the production assembly: each removes what has run out and nothing else, and a large
// backlog goes in steps that requests come between. How tasks take turns is test/unit/cleanup.test.ts.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { assertStored, assertWorkRefused, post, rateOf } from '../support/posting.ts';
import { CREATED_AT, selectValue } from '../support/store.ts';
import { freshWork, getChallenge, showing, solve } from '../support/work.ts';

const HOUR_SECONDS = 3600;

/** The names of the tasks in the schedule. */
const TASKS = [
  'expired pastes', 'duplicate records', 'used challenges', 'audit log', 'rate records', 'free pages',
  'write-ahead log', 'statistics',
];

function countRows({ config }: RunningApp, table: string): unknown {
  return selectValue(config.databasePath, `SELECT count(*) FROM ${table}`);
}

/**
 * Waits until the first burst of tasks, which starting the app sets off, is over. What a test runs afterwards then
 * sees what the test has done.
 */
async function untilSettled({ app }: RunningApp): Promise<void> {
  await Promise.all(TASKS.map((task) => app.cleanup.run(task)));
}

test('expired pastes: those whose second has come go, with all of their content, and no others', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 2 ** 24 });
  await untilSettled(app);
  const contents = [binaryContent(100), binaryContent(300_000)];
  const ids: string[] = [];
  for (const content of contents) {
    for (const expiry of ['10', '11']) ids.push(await app.store(content, { 'X-Expiry': expiry }));
  }
  await app.store('x', { 'X-Expiry': '10', 'X-Burn-After-Read': 'true', 'X-Paste-Password': 'p' });
  app.clock.advance(9999);
  await app.app.cleanup.run('expired pastes');
  assert.equal(countRows(app, 'pastes'), 5);
  app.clock.advance(1);
  await app.app.cleanup.run('expired pastes');
  assert.deepEqual(['pastes', 'chunks', 'orphans'].map((table) => countRows(app, table)), [2, 2, 0]);
  for (const [turn, content] of contents.entries()) {
    const response = await app.request(`/${ids[2 * turn + 1]}/raw`);
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), content);
  }

  // A paste that is being read is read to its end, and its content goes then.
  const large = binaryContent(2 ** 24);
  const id = await app.store(large, { 'X-Expiry': '10' });
  const reading = await app.request(`/${id}/raw`);
  app.clock.advance(10_000);
  await app.app.cleanup.run('expired pastes');
  assert.equal((await app.request(`/${id}/raw`)).status, 404);
  assert.ok(Number(countRows(app, 'chunks')) > 0);
  assert.ok(Buffer.from(large).equals(Buffer.from(await reading.arrayBuffer())));
  // Waits here, since closing does not wait for long: what is left would go at the next start.
  while (countRows(app, 'orphans') !== 0) await setTimeout(10);
  await app.app.close();
  assert.deepEqual(['pastes', 'chunks', 'orphans'].map((table) => countRows(app, table)), [0, 0, 0]);
});

test('duplicate records: forgotten when their window is over, not a second before', async (t) => {
  const app = await startApp(t, { duplicateMax: 1 });
  await untilSettled(app);
  await app.store('early');
  app.clock.advance(1000);
  await app.store('late');
  app.clock.advance((HOUR_SECONDS - 1) * 1000 - 1);
  await app.app.cleanup.run('duplicate records');
  assert.equal(countRows(app, 'submissions'), 2);
  assert.equal((await post(app, 'early')).status, 429);
  app.clock.advance(1);
  await app.app.cleanup.run('duplicate records');
  assert.equal(countRows(app, 'submissions'), 1);
  assert.equal((await post(app, 'late')).status, 429);
  await app.store('early');
  assert.equal(countRows(app, 'pastes'), 3);
});

test('used challenges: kept for two hours past their expiry, against a clock that is set back', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1 });
  await untilSettled(app);
  const { token, nonce, expires } = await getChallenge(app);
  const work = showing(token, solve(nonce, 1));
  await app.store('x', work);
  app.clock.advance((expires + 2 * HOUR_SECONDS) * 1000 - 1 - app.clock.unixMs());
  await app.app.cleanup.run('used challenges');
  assertWorkRefused(await post(app, 'x', work), 'Proof-of-work failed: challenge expired');
  app.clock.jump(-2 * HOUR_SECONDS * 1000);
  assertWorkRefused(await post(app, 'x', work), 'Proof-of-work failed: challenge already used');
  app.clock.jump(2 * HOUR_SECONDS * 1000);
  app.clock.advance(1);
  await app.store('later', await freshWork(app));
  await app.app.cleanup.run('used challenges');
  assert.equal(countRows(app, 'spent_challenges'), 1);
  assertWorkRefused(await post(app, 'x', work), 'Proof-of-work failed: challenge expired');
});

test('rate records: what is still in a window goes on counting', async (t) => {
  const app = await startApp(t, { rateMax: 2, lookupRateMax: 1 });
  const id = await app.store('x');
  app.clock.advance(30_000);
  const second = await post(app, 'x');
  assert.equal(rateOf(second)?.remaining, 0);
  assert.equal((await app.request(`/${id}`)).status, 200);
  app.clock.advance(29_999);
  await app.app.cleanup.run('rate records');
  assert.equal((await post(app, 'x')).status, 429);
  assert.equal((await app.request(`/${id}`)).status, 429);
  app.clock.advance(1);
  await app.app.cleanup.run('rate records');
  assertStored(await post(app, 'x'));
  assert.equal((await app.request(`/${id}`)).status, 429);
  app.clock.advance(30_000);
  await app.app.cleanup.run('rate records');
  assert.equal((await app.request(`/${id}`)).status, 200);
  assert.equal(rateOf(await post(app, 'x'))?.remaining, 0);
});

test('free pages and write-ahead log: room and content that are given up leave the files', async (t) => {
  const app = await startApp(t);
  // With nothing to do, none of the tasks fails.
  await untilSettled(app);
  await assert.rejects(app.app.cleanup.run('no such task'), RangeError);
  const { databasePath } = app.config;
  const canary = 'a canary that must not be found again';
  for (let turn = 0; turn < 40; turn += 1) await app.store(`${canary} ${turn} `.repeat(2000), { 'X-Expiry': '1' });
  await app.app.cleanup.run('write-ahead log');
  const bytesBefore = statSync(databasePath).size;
  assert.ok(readFileSync(databasePath).includes(canary));
  app.clock.advance(1000);
  for (const task of ['expired pastes', 'free pages', 'write-ahead log']) await app.app.cleanup.run(task);
  assert.ok(statSync(databasePath).size < bytesBefore / 4, `${statSync(databasePath).size} of ${bytesBefore} bytes`);
  assert.equal(statSync(`${databasePath}-wal`).size, 0);
  assert.equal(readFileSync(databasePath).includes(canary), false);
  assert.equal(selectValue(databasePath, 'PRAGMA quick_check'), 'ok');
  assert.deepEqual(app.logged.filter(({ level }) => level === 'error'), []);
});

test('a stop does not wait for what a step of cleanup still has to do, however long the grace', async (t) => {
  const app = await startApp(t, { shutdownGraceSeconds: 20 });
  await untilSettled(app);
  t.mock.method(app.app.cleanup, 'stop', () => new Promise(() => {}));
  const begunMs = performance.now();
  await app.app.close();
  assert.ok(performance.now() - begunMs < 10_000, `${performance.now() - begunMs} ms`);
});

/** Largest number that divides both. */
function commonDivisor(left: number, right: number): number {
  return right === 0 ? left : commonDivisor(right, left % right);
}

test('expired pastes: a backlog of 20 000 goes in small steps, with requests between them', async (t) => {
  const backlog = 20_000;
  const before = await startApp(t);
  const { databasePath } = before.config;
  const live = await before.store('still there');
  await before.app.close();
  insertPastes(databasePath, { count: backlog, owner: null, expiresAt: CREATED_AT });

  const app = await startApp(t, { databasePath });
  const pastes = (): number => Number(selectValue(databasePath, 'SELECT pastes FROM usage'));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const turns = watchTurns();
  delay.enable();
  const seen = new Set<number>([0]);
  for (let stored = 2; seen.size < 40 && !seen.has(backlog); stored += 1) {
    assert.equal(await (await app.request(`/${live}/raw`)).text(), 'still there');
    assertStored(await post(app, `number ${stored}`));
    seen.add(backlog + stored - pastes());
  }
  const longestTurnMs = turns.stop();
  delay.disable();
  const onTheClock = (delay.max / 1e6).toFixed(1);
  t.diagnostic(`longest turn ${longestTurnMs.toFixed(1)} ms on the processor, ${onTheClock} ms on the clock`);

  const steps = [...seen].toSorted((left, right) => left - right);
  const perStep = steps.reduce(commonDivisor);
  assert.ok(perStep <= 64, `${perStep} pastes in a step`);
  assert.ok(!seen.has(backlog), 'requests came between the steps');
  assert.ok(longestTurnMs < 50, `${longestTurnMs} ms in one turn of the event loop`);

  await app.app.close();
  assert.equal(pastes(), countRows(app, 'pastes'));
  const left = selectValue(databasePath, `SELECT count(*) FROM pastes WHERE expires_at <= ${CREATED_AT}`);
  assert.ok(Number(left) > 0, 'closing did not wait for the rest');
});

/**
 * Measures the turns of the event loop by this thread's time on the processor, which other processes do not stretch.
 */
function watchTurns(): { stop: () => number } {
  let longestMicros = 0;
  let isOver = false;
  let last = process.threadCpuUsage();
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    longestMicros = Math.max(longestMicros, user + system);
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    stop: () => {
      isOver = true;
      return longestMicros / 1000;
    },
  };
}
