// The thread that derives: off the asking one, in order, within its bound, and ended when told.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createKdfThread, type KdfThread } from '../../src/authority/pkcs12-kdf-thread.ts';
import { KDF_IDS, type KdfRequest, pkcs12Kdf } from '../../src/authority/pkcs12.ts';

const THREAD_URL = new URL('../../src/authority/pkcs12-kdf-thread.ts', import.meta.url).href;

function request(iterations: number, salt = 1): KdfRequest {
  return {
    digest: 'sha256',
    id: KDF_IDS.mac,
    password: new Uint8Array(2),
    salt: new Uint8Array(16).fill(salt),
    iterations,
    size: 32,
  };
}

function startThread(t: TestContext, maxWaiting: number): KdfThread {
  const thread = createKdfThread(maxWaiting);
  t.after(() => thread.close());
  return thread;
}

test('createKdfThread: derives what the function derives, each under its name', async (t) => {
  const { derive } = startThread(t, 8);
  const requests = { one: request(10, 1), two: request(10, 2) };
  const { one, two } = await derive(requests);
  assert.deepEqual(one, pkcs12Kdf(requests.one));
  assert.deepEqual(two, pkcs12Kdf(requests.two));
});

test('createKdfThread: the asking thread goes on meanwhile', async (t) => {
  const { derive } = startThread(t, 8);
  let turns = 0;
  let done = false;
  const derived = derive({ mac: request(100_000) }).finally(() => {
    done = true;
  });
  while (!done) {
    turns += 1;
    await setImmediate();
  }
  assert.equal((await derived).mac.length, 32);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
});

test('createKdfThread: one runs, maxWaiting wait in order, the next is refused at once', async (t) => {
  const { derive } = startThread(t, 2);
  const order: number[] = [];
  const jobs = [1, 2, 3].map((salt) => derive({ mac: request(2000, salt) }).then(() => order.push(salt)));
  await assert.rejects(derive({ mac: request(1) }), { name: 'KdfQueueFull' });
  await Promise.all(jobs);
  assert.deepEqual(order, [1, 2, 3]);
  assert.equal((await derive({ mac: request(1) })).mac.length, 32);
});

test('createKdfThread: the quickest of those that wait is next', async (t) => {
  const { derive } = startThread(t, 8);
  const order: number[] = [];
  const jobs = [100, 30_000, 20, 30_000, 10].map(async (iterations, i) => {
    await derive({ mac: request(iterations) });
    order.push(i);
  });
  await Promise.all(jobs);
  assert.deepEqual(order, [0, 4, 2, 1, 3]);
});

test('createKdfThread: a place in the queue is free again when a job is done', async (t) => {
  const { derive } = startThread(t, 0);
  const first = derive({ mac: request(1) });
  await assert.rejects(derive({ mac: request(1) }), { name: 'KdfQueueFull' });
  await first;
  await derive({ mac: request(1) });
});

test('createKdfThread: an invalid request fails alone', async (t) => {
  const { derive } = startThread(t, 8);
  const before = derive({ mac: request(1) });
  const invalid = derive({ mac: request(0) });
  const after = derive({ mac: request(1) });
  await assert.rejects(invalid, RangeError);
  assert.deepEqual(await before, await after);
  await assert.rejects(derive({ mac: request(0) }), RangeError);
  assert.deepEqual(await derive({ mac: request(1) }), await before);
});

test('createKdfThread: close refuses what is not done and what comes after, and may be called again', async () => {
  const thread = createKdfThread(8);
  const jobs = [1, 2, 3].map((salt) => thread.derive({ mac: request(10_000_000, salt) }));
  const outcomes = Promise.allSettled(jobs);
  await thread.close();
  for (const outcome of await outcomes) {
    assert.equal(outcome.status === 'rejected' && outcome.reason.name, 'KdfClosed');
  }
  await assert.rejects(thread.derive({ mac: request(1) }), { name: 'KdfClosed' });
  await thread.close();
});

test('createKdfThread: close before the first job has nothing to end', async () => {
  const thread = createKdfThread(8);
  await thread.close();
  await assert.rejects(thread.derive({ mac: request(1) }), { name: 'KdfClosed' });
});

test('createKdfThread: a job keeps the process alive, an idle thread does not', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-kdf-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const script = `
    import { createKdfThread } from ${JSON.stringify(THREAD_URL)};
    const thread = createKdfThread(8);
    const password = new Uint8Array(2);
    const request = { digest: 'sha1', id: 3, password, salt: password, iterations: 20_000, size: 20 };
    for (let round = 0; round < 2; round += 1) {
      console.log((await thread.derive({ mac: request })).mac.length);
      await new Promise(setImmediate);
    }`;
  writeFileSync(join(folder, 'idle.mjs'), script);
  const args = [...process.execArgv, join(folder, 'idle.mjs')];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 });
  assert.equal(stderr, '');
  assert.equal(stdout, '20\n20\n');
  assert.equal(status, 0);
});

test('createKdfThread: the thread has nothing of the environment, which holds secrets', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-kdf-'));
  t.after(() => rmSync(folder, { recursive: true }));
  // Runs in every thread of the process before anything else.
  writeFileSync(join(folder, 'tell.mjs'), `
    import { isMainThread } from 'node:worker_threads';
    import { writeSync } from 'node:fs';
    if (!isMainThread) writeSync(1, JSON.stringify(process.env));`);
  writeFileSync(join(folder, 'derive.mjs'), `
    import { createKdfThread } from ${JSON.stringify(THREAD_URL)};
    const password = new Uint8Array(2);
    await createKdfThread(1).derive({ mac: { digest: 'sha1', id: 3, password, salt: password, iterations: 1, size: 20 } });`);
  const args = [...process.execArgv, '--import', join(folder, 'tell.mjs'), join(folder, 'derive.mjs')];
  const env = { ...process.env, SERVICE_PKI_CA_PASSWORD: 'secret' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 20_000 });
  assert.deepEqual([status, stdout], [0, '{}'], stderr);
});
