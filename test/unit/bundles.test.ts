// Which bundles wait for which, and the thread of those with a password. What is in one is tested in
// crypto-pkcs12.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Bundles } from '../../src/authority/issuing.ts';
import type { BundleRequest } from '../../src/authority/pkcs12.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { movableClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/programs.ts';

const sourceUrl = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href);

let bundle: BundleRequest;
let slow: BundleRequest;

before(async () => {
  const authority = await makeTestAuthority();
  const { certificate, keyPair } = await makeTestClient(authority);
  const keyed = { certificate, privateKey: keyPair.privateKey, authority: authority.certificate };
  bundle = { profile: 'modern', password: '', commonName: 'alice', ...keyed };
  slow = { ...bundle, password: 'secret' };
});

function startBundles(t: TestContext) {
  const bundles = new Bundles({ clock: movableClock(), random: randomBytes });
  t.after(() => bundles.close());
  return { make: (request: BundleRequest) => bundles.make(request, '192.0.2.1'), close: () => bundles.close() };
}

/** A SEQUENCE of nine hundred bytes or more: PFX, version 3. */
function assertBundle(bytes: Uint8Array): void {
  assert.match(Buffer.from(bytes).toString('hex'), /^3082[0-9a-f]{4}020103/);
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

test('Bundles: with a password or without, one after the other, each with salts of its own', async (t) => {
  const { make } = startBundles(t);
  for (const request of [bundle, slow]) {
    const bundles = [await make(request), await make(request)];
    for (const made of bundles) assertBundle(made);
    assert.notDeepEqual(bundles[0], bundles[1]);
  }
});

test('Bundles: of many at once each caller gets the bundle that it asked for, whatever becomes of others', async (t) => {
  const { make } = startBundles(t);
  const profiles = Array.from({ length: 15 }, (_, index) => (['modern', 'compat', 'invalid'] as const)[index % 3]!);
  const made = profiles.map((profile) => (
    profile === 'invalid' ? make({ ...bundle, password: '\ud800' }) : make({ ...bundle, profile })
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

test('Bundles: what cannot cross to a thread fails alone', async (t) => {
  const { make } = startBundles(t);
  // A key that is none: the thread cannot be given it.
  await assert.rejects(make({ ...slow, privateKey: (() => {}) as never }), { name: 'DataCloneError' });
  assertBundle(await make(slow));
});

test('Bundles: the asking thread goes on while one with a password is made; of its memory nothing is beside that', async (t) => {
  const made = startBundles(t).make(slow);
  const turns = await turnsDuring(made);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
  const bytes = await made;
  assertBundle(bytes);
  assert.equal(bytes.buffer.byteLength, bytes.length);
});

test('Bundles: one without a password is made in turns of the event loop, one for each hash of 2048', async (t) => {
  const made = startBundles(t).make({ ...bundle, profile: 'compat' });
  // Key and iv of both contents are three such hashes, that of the MAC is one.
  const turns = await turnsDuring(made);
  assert.ok(turns >= 7, `${turns} turns of the event loop`);
  assertBundle(await made);
});

test('Bundles: at the end those with a password that are not done reject, and what comes after', async (t) => {
  const { make, close } = startBundles(t);
  const made = make({ ...slow, profile: 'compat' });
  await setImmediate();
  close();
  await assert.rejects(made, { name: 'AbortError' });
  await assert.rejects(make(slow), { name: 'AbortError' });
});

test('Bundles: a thread that ends by itself fails its own bundle alone', async (t) => {
  const started: Worker[] = [];
  const note = (worker: Worker) => started.push(worker);
  process.on('worker', note);
  t.after(() => process.off('worker', note));
  const { make } = startBundles(t);
  const broken = assert.rejects(make(slow), /the thread of the bundle has ended/);
  await setImmediate();
  await started[0]?.terminate();
  await broken;
  assertBundle(await make(slow));
  assert.equal(started.length, 2);
});

test('Bundles: a thread keeps the process alive until its bundle is there; it has nothing of the environment', (t) => {
  const folder = temporaryFolder(t);
  // Runs in every thread of the process before anything else.
  writeFileSync(join(folder, 'tell.mjs'), `
    import { isMainThread } from 'node:worker_threads';
    import { writeSync } from 'node:fs';
    if (!isMainThread) writeSync(1, JSON.stringify(process.env) + ' ');`);
  writeFileSync(join(folder, 'make.mjs'), `
    import { generateKeyPairSync } from 'node:crypto';
    import { writeSync } from 'node:fs';
    import { Bundles } from ${sourceUrl('authority/issuing.ts')};
    const clock = { unixMs: Date.now, monotonicMs: () => performance.now() };
    const bundles = new Bundles({ clock });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
    const certificate = new Uint8Array(1);
    const content = { certificate, privateKey, authority: certificate, commonName: 'alice' };
    const { length } = await bundles.make({ ...content, profile: 'modern', password: 'secret' }, '192.0.2.1');
    writeSync(1, (length > 500) + ' ');`);
  const args = ['--import', join(folder, 'tell.mjs'), join(folder, 'make.mjs')];
  const env = { ...process.env, SERVICE_PKI_CA_PASSWORD: 'secret' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 60_000 });
  assert.deepEqual([status, stdout], [0, '{} true '], stderr);
});

test('Bundles: of those with a password one is made and four wait; the next, and what waits too long, is refused', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { make, close } = startBundles(t);
  const outcomes: string[] = [];
  const making = Array.from({ length: 5 }, (_, i) => make(slow).catch((error: Error) => {
    outcomes.push(`${i} ${error.name === 'Refusal' ? 'refused' : error.name}`);
  }));
  const sixth = make(slow);
  await setImmediate();
  t.mock.timers.tick(500);
  await assert.rejects(sixth, { refusal: 'passwordQueueFull', terms: { retryAfterSeconds: 1 } });
  assert.deepEqual(outcomes, []);
  // One without a password is made meanwhile.
  assert.ok((await make(bundle)).length > 1000);
  close();
  await Promise.all(making);
  assert.deepEqual(outcomes.sort(), ['0 AbortError', '1 AbortError', '2 AbortError', '3 AbortError', '4 AbortError']);
});

test('Bundles: of those without a password, so many may wait at once', async (t) => {
  const { make } = startBundles(t);
  const failed: unknown[] = [];
  const making = Array.from({ length: 260 }, () => make(bundle).catch((error: unknown) => {
    failed.push((error as { refusal: unknown }).refusal);
  }));
  await Promise.all(making);
  assert.deepEqual(failed, Array(3).fill('passwordQueueFull'));
});
