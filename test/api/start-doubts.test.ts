// What the log says of certificates when the service listens, as serve starts it, and every day that it runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { movableClock } from '../support/clock.ts';
import { PKI, register, send, withAdmin, withRestarted } from '../support/pki.ts';

const DOUBTS = ['no admin', 'CA runs out', 'CA is not valid yet'];

/** Level and event of each doubt. The service looks for doubts beside the first requests, and then once a day. */
async function doubtsOf(app: RunningApp, count: number): Promise<string[]> {
  const found = () => app.logged.filter(({ event }) => DOUBTS.includes(event)).map(({ level, event }) => `${level} ${event}`);
  for (let turn = 0; turn < 20 || found().length < count; turn += 1) {
    assert.equal((await app.request('/health')).status, 200);
    await setTimeout(1);
  }
  return found();
}

test('start: no admin yet is a warning where others can connect and in production, once there is a password', async (t) => {
  assert.deepEqual(await doubtsOf(await startApp(t, { ...PKI, host: '0.0.0.0' }), 1), ['warning no admin']);
  assert.deepEqual(await doubtsOf(await startApp(t, { ...PKI, environment: 'production' }), 1), ['warning no admin']);
  assert.deepEqual(await doubtsOf(await startApp(t, PKI), 0), []);
  assert.deepEqual(await doubtsOf(await startApp(t, { host: '0.0.0.0' }), 0), []);
  const served = await startApp(t, { ...PKI, host: '0.0.0.0' });
  await withAdmin(served);
  await withRestarted(t, served, { host: '0.0.0.0' }, async (after) => assert.deepEqual(await doubtsOf(after, 0), []));
});

test('start: an authority with less than 90 days is a warning, with less than 30 an error, wherever it listens', async (t) => {
  for (const [pkiCaDays, expected] of [[91, []], [80, ['warning CA runs out']], [20, ['error CA runs out']]] as const) {
    const served = await startApp(t, { ...PKI, pkiCaDays });
    await withAdmin(served);
    await withRestarted(t, served, {}, async (after) => {
      assert.deepEqual(await doubtsOf(after, expected.length), expected);
      const [entry] = after.logged.filter(({ event }) => event === 'CA runs out');
      if (entry !== undefined) assert.match(String(entry.details?.['message']), /^the certificate authority runs out soon, at /);
    });
  }
});

test('start: an authority that a clock made which was ahead is an error, and issues nothing until it is renewed', async (t) => {
  const served = await startApp(t, { ...PKI, host: '0.0.0.0' });
  served.clock.jump(2 * DAY_SECONDS * 1000);
  await withAdmin(served);
  await withRestarted(t, served, {}, async (after) => {
    after.clock.jump(-2 * DAY_SECONDS * 1000);
    await after.app.cleanup.run('doubts');
    assert.ok((await doubtsOf(after, 1)).includes('error CA is not valid yet'));
    const { status, json } = await register(after);
    assert.deepEqual([status, json['error']], [500, 'certificate issuance failed']);
    const { json: index } = await send(after, 'GET /');
    const hint = 'no certificates can be issued: the CA is not valid now; tell the operator';
    assert.deepEqual(index['registration'], { available: false, hint });
  });
});

test('a service that runs for years says so too, once a day', async (t) => {
  const clock = movableClock();
  const served = await startApp(t, { ...PKI, pkiCaDays: 91, host: '0.0.0.0' }, clock);
  assert.deepEqual(await doubtsOf(served, 1), ['warning no admin']);
  await withAdmin(served);
  const found = ['warning no admin'];
  for (const [days, doubt] of [[0, undefined], [1, 'warning CA runs out'], [59, 'warning CA runs out'], [1, 'error CA runs out']] as const) {
    clock.advance(days * DAY_SECONDS * 1000);
    await served.app.cleanup.run('doubts');
    if (doubt !== undefined) found.push(doubt);
    assert.deepEqual(await doubtsOf(served, 0), found);
  }
});
