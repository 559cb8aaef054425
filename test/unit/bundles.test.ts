// How a thread makes bundles, and which of them wait for which. What is in them is tested in crypto-pkcs12.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Bundles } from '../../src/authority/issuing.ts';
import { type BundleRequest, BundleThread } from '../../src/authority/pkcs12.ts';
import { makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { movableClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/programs.ts';

const PKCS12_URL = new URL('../../src/authority/pkcs12.ts', import.meta.url).href;

let bundle: BundleRequest;

before(async () => {
  const authority = await makeTestAuthority();
  const { certificate, keyPair } = await makeTestClient(authority);
  const keyed = { certificate, privateKey: keyPair.privateKey, authority: authority.certificate };
  bundle = { profile: 'modern', password: '', commonName: 'alice', ...keyed };
});

function startThread(t: TestContext): BundleThread {
  const thread = new BundleThread(new AbortController().signal);
  t.after(() => thread.close());
  return thread;
}

/** A SEQUENCE of 256 bytes or more that begins with the version of a PFX, 3. */
function assertBundle(bytes: Uint8Array): void {
  assert.match(Buffer.from(bytes).toString('hex'), /^3082[0-9a-f]{4}020103/);
  assert.equal(bytes.buffer.byteLength, bytes.length, 'nothing of the thread\u2019s memory beside it');
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

test('BundleThread: one bundle after the other, each with salts of its own', async (t) => {
  const thread = startThread(t);
  const bundles = [await thread.make(bundle), await thread.make(bundle)];
  for (const made of bundles) assertBundle(made);
  assert.notDeepEqual(bundles[0], bundles[1]);
});

test('BundleThread: of many at once each caller gets the bundle that it asked for, whatever becomes of others', async (t) => {
  const thread = startThread(t);
  const profiles = Array.from({ length: 30 }, (_, index) => (['modern', 'compat', 'invalid'] as const)[index % 3]!);
  const made = profiles.map((profile) => (
    profile === 'invalid' ? thread.make({ ...bundle, password: '\ud800' }) : thread.make({ ...bundle, profile })
  ));
  const outcomes = (await Promise.allSettled(made)).map((outcome) => {
    if (outcome.status === 'rejected') return (outcome.reason as Error).name;
    const hex = Buffer.from(outcome.value).toString('hex');
    // PBES2, and pbeWithSHAAnd3-KeyTripleDES-CBC.
    return ['2a864886f70d01050d', '2a864886f70d010c0103'].map((oid) => hex.includes(oid)).join();
  });
  const expected = { modern: 'true,false', compat: 'false,true', invalid: 'RangeError' };
  assert.deepEqual(outcomes, profiles.map((profile) => expected[profile]));
});

test('BundleThread: what cannot cross to it fails alone', async (t) => {
  const thread = startThread(t);
  // This key is a function, which no message to a thread can hold.
  await assert.rejects(thread.make({ ...bundle, privateKey: (() => {}) as never }), { name: 'DataCloneError' });
  assertBundle(await thread.make(bundle));
});

test('BundleThread: closed after each bundle, as for those with a password, it leaves nothing more at the signal', async () => {
  const closing = new AbortController();
  const thread = new BundleThread(closing.signal);
  for (let round = 0; round < 3; round += 1) {
    assertBundle(await thread.make(bundle));
    await thread.close();
  }
  assert.equal(getEventListeners(closing.signal, 'abort').length, 1);
});

test('BundleThread: the end of a closed thread is not taken for the end of the next', async (t) => {
  const thread = startThread(t);
  await thread.make(bundle);
  const closed = thread.close();
  const slow = thread.make({ ...bundle, password: 'secret' });
  await closed;
  await Promise.all([thread.close(), assert.rejects(slow, { message: 'the thread of bundles has ended' })]);
});

test('Bundles: the thread of one with a password ends with it, made or not; that of the others stays', async (t) => {
  t.mock.method(BundleThread.prototype, 'make', async ({ profile }: BundleRequest) => {
    if (profile === 'compat') throw new Error('not made');
    return new Uint8Array(1);
  });
  const closed = t.mock.method(BundleThread.prototype, 'close');
  const bundles = new Bundles(movableClock());
  t.after(() => bundles.close());
  const slow = { ...bundle, password: 'secret' };
  await bundles.make(slow, '192.0.2.1');
  assert.equal(closed.mock.callCount(), 1);
  await assert.rejects(bundles.make({ ...slow, profile: 'compat' }, '192.0.2.1'), { message: 'not made' });
  assert.equal(closed.mock.callCount(), 2);
  await bundles.make(bundle, '192.0.2.1');
  assert.equal(closed.mock.callCount(), 2);
});

test('BundleThread: the asking thread goes on meanwhile', async (t) => {
  const made = startThread(t).make({ ...bundle, password: 'secret' });
  const turns = await turnsDuring(made);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
  assertBundle(await made);
});

test('BundleThread: an invalid request rejects as the function does, and fails alone', async (t) => {
  const thread = startThread(t);
  await assert.rejects(thread.make({ ...bundle, password: '\ud800' }), RangeError);
  assertBundle(await thread.make(bundle));
});

test('BundleThread: at the signal what is not done rejects, and what comes after', async () => {
  const closing = new AbortController();
  const thread = new BundleThread(closing.signal);
  const made = thread.make({ ...bundle, profile: 'compat', password: 'secret' });
  await setImmediate();
  closing.abort();
  await assert.rejects(made, { name: 'AbortError' });
  await assert.rejects(thread.make(bundle), { name: 'AbortError' });
  await thread.close();
});

test('BundleThread: a thread that ends by itself fails what it was at, and another makes the next', async (t) => {
  const started: Worker[] = [];
  const note = (worker: Worker) => started.push(worker);
  process.on('worker', note);
  t.after(() => process.off('worker', note));
  const thread = startThread(t);
  assertBundle(await thread.make(bundle));
  const broken = assert.rejects(thread.make({ ...bundle, password: 'secret' }), /the thread of bundles has ended/);
  await started[0]?.terminate();
  await broken;
  assertBundle(await thread.make(bundle));
  assert.equal(started.length, 2);
});

test('BundleThread: a job keeps the process alive, an idle thread does not; it has nothing of the environment', (t) => {
  const folder = temporaryFolder(t);
  // This module runs in every thread of the process before anything else.
  writeFileSync(join(folder, 'tell.mjs'), `
    import { isMainThread } from 'node:worker_threads';
    import { writeSync } from 'node:fs';
    if (!isMainThread) writeSync(1, JSON.stringify(process.env) + ' ');`);
  writeFileSync(join(folder, 'make.mjs'), `
    import { generateKeyPairSync } from 'node:crypto';
    import { writeSync } from 'node:fs';
    import { BundleThread } from ${JSON.stringify(PKCS12_URL)};
    const thread = new BundleThread(new AbortController().signal);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
    const certificate = new Uint8Array(1);
    const content = { certificate, privateKey, authority: certificate, commonName: 'alice' };
    for (let round = 0; round < 2; round += 1) {
      writeSync(1, ((await thread.make({ ...content, profile: 'compat', password: '' })).length > 500) + ' ');
      await new Promise(setImmediate);
    }`);
  const args = ['--import', join(folder, 'tell.mjs'), join(folder, 'make.mjs')];
  const env = { ...process.env, SERVICE_PKI_CA_PASSWORD: 'secret' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 20_000 });
  assert.deepEqual([status, stdout], [0, '{} true true '], stderr);
});

test('Bundles: of those with a password one is made and four wait; the next, and what waits too long, is refused', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const bundles = new Bundles(movableClock());
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
  // A bundle without a password is made meanwhile.
  assert.ok((await bundles.make(bundle, '192.0.2.1')).length > 1000);
  bundles.close();
  await Promise.all(making);
  assert.deepEqual(outcomes.sort(), ['0 AbortError', '1 AbortError', '2 AbortError', '3 AbortError', '4 AbortError']);
});

test('Bundles: of those without a password, so many may wait at once', async (t) => {
  const bundles = new Bundles(movableClock());
  const failed: unknown[] = [];
  const making = Array.from({ length: 260 }, () => bundles.make(bundle, '192.0.2.1').catch((error: unknown) => {
    failed.push((error as { refusal: unknown }).refusal);
  }));
  t.after(() => bundles.close());
  await Promise.all(making);
  assert.deepEqual(failed, Array(2).fill('passwordQueueFull'));
});
