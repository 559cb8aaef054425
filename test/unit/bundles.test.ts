// The keys of bundles, derived in a thread; and which bundles wait for which. What is derived is tested in
// crypto-pkcs12-kdf.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Bundles } from '../../src/authority/issuing.ts';
import {
  type BundleRequest, deriveKeys, KDF_IDS, type KdfRequest, KdfThread, pkcs12Kdf,
} from '../../src/authority/pkcs12.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { movableClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/programs.ts';

const PKCS12_URL = new URL('../../src/authority/pkcs12.ts', import.meta.url).href;

let bundle: BundleRequest;

before(async () => {
  const authority = await makeTestAuthority();
  const { certificate, keyPair } = await makeTestClient(authority);
  const keyed = { certificate, privateKey: keyPair.privateKey, authority: authority.certificate };
  bundle = { profile: 'modern', password: '', friendlyName: 'alice', ...keyed };
});

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

function startThread(t: TestContext): KdfThread {
  const thread = new KdfThread(new AbortController().signal);
  t.after(() => thread.close());
  return thread;
}

async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  }).catch(() => {});
  while (!isDone) {
    turns += 1;
    await setImmediate();
  }
  return turns;
}

test('deriveKeys, KdfThread: derive what the function derives, each under its name', async (t) => {
  const requests = { one: request(1000, 1), two: request(10, 2) };
  const expected = { one: pkcs12Kdf(requests.one), two: pkcs12Kdf(requests.two) };
  assert.notDeepEqual(expected.one, expected.two);
  assert.deepEqual({ ...await deriveKeys(requests) }, expected);
  const thread = startThread(t);
  for (let times = 0; times < 2; times += 1) assert.deepEqual({ ...await thread.derive(requests) }, expected);
});

test('KdfThread: the asking thread goes on meanwhile', async (t) => {
  const derived = startThread(t).derive({ mac: request(100_000) });
  const turns = await turnsDuring(derived);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
  assert.equal((await derived).mac.length, 32);
});

test('KdfThread: an invalid request rejects as the function does, and fails alone', async (t) => {
  const thread = startThread(t);
  await assert.rejects(thread.derive({ mac: request(0) }), RangeError);
  assert.deepEqual((await thread.derive({ mac: request(1) })).mac, pkcs12Kdf(request(1)));
});

test('KdfThread: at the signal what is not done rejects, and what comes after', async () => {
  const closing = new AbortController();
  const thread = new KdfThread(closing.signal);
  const derived = thread.derive({ mac: request(100_000_000) });
  await setImmediate();
  closing.abort();
  await assert.rejects(derived, { name: 'AbortError' });
  await assert.rejects(thread.derive({ mac: request(1) }), { name: 'AbortError' });
  await thread.close();
});

test('KdfThread: a job keeps the process alive, an idle thread does not; it has nothing of the environment', (t) => {
  const folder = temporaryFolder(t);
  // Runs in every thread of the process before anything else.
  writeFileSync(join(folder, 'tell.mjs'), `
    import { isMainThread } from 'node:worker_threads';
    import { writeSync } from 'node:fs';
    if (!isMainThread) writeSync(1, JSON.stringify(process.env) + ' ');`);
  writeFileSync(join(folder, 'derive.mjs'), `
    import { writeSync } from 'node:fs';
    import { KdfThread } from ${JSON.stringify(PKCS12_URL)};
    const thread = new KdfThread(new AbortController().signal);
    const password = new Uint8Array(2);
    const mac = { digest: 'sha1', id: 3, password, salt: password, iterations: 20_000, size: 20 };
    for (let round = 0; round < 2; round += 1) {
      writeSync(1, (await thread.derive({ mac })).mac.length + ' ');
      await new Promise(setImmediate);
    }`);
  const args = [...process.execArgv, '--import', join(folder, 'tell.mjs'), join(folder, 'derive.mjs')];
  const env = { ...process.env, SERVICE_PKI_CA_PASSWORD: 'secret' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 20_000 });
  assert.deepEqual([status, stdout], [0, '{} 20 20 '], stderr);
});

test('Bundles: of those with a password one is made and four wait; the next, and what waits too long, is refused', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const bundles = new Bundles({ clock: movableClock(), random: randomBytes });
  const slow = { ...bundle, password: 'secret' };
  const outcomes: string[] = [];
  const making = Array.from({ length: 5 }, (_, i) => bundles.make(slow, '192.0.2.1').catch((error: Error) => {
    outcomes.push(`${i} ${error.name === 'Refusal' ? 'refused' : error.name}`);
  }));
  const sixth = bundles.make(slow, '192.0.2.1');
  await setImmediate();
  t.mock.timers.tick(500);
  await assert.rejects(sixth, { refusal: 'passwordQueueFull', terms: { retryAfterSeconds: 1 } });
  assert.deepEqual(outcomes, []);
  // One without a password is made meanwhile.
  assert.ok((await bundles.make(bundle, '192.0.2.1')).length > 1000);
  await bundles.close();
  await Promise.all(making);
  assert.deepEqual(outcomes.sort(), ['0 AbortError', '1 AbortError', '2 AbortError', '3 AbortError', '4 AbortError']);
});

test('Bundles: of those without a password, so many may wait at once', async (t) => {
  const bundles = new Bundles({ clock: movableClock(), random: randomBytes });
  const failed: unknown[] = [];
  const making = Array.from({ length: 260 }, () => bundles.make(bundle, '192.0.2.1').catch((error: unknown) => {
    failed.push((error as { refusal: unknown }).refusal);
  }));
  t.after(() => bundles.close());
  await Promise.all(making);
  assert.deepEqual(failed, Array(3).fill('passwordQueueFull'));
});
