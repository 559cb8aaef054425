// The order of the checks on POST /, as decided, over real sockets: of several reasons to refuse, the first is told,
// and a refusal costs what its place in the order says.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import {
  assertError,
  assertStored,
  assertWorkRefused,
  from,
  post,
  postChunked,
  rateOf,
  type Answer,
} from '../support/posting.ts';
import { head, onlyAnswer, openRaw, type RawAnswer } from '../support/raw-http.ts';
import { freshWork } from '../support/work.ts';

const TOO_LONG = 'x'.repeat(1025);
const JSON_TYPE = { 'Content-Type': 'application/json' };
const JSON_INVALID = 'invalid JSON body: expected an object with a non-empty string "content"';
const CHUNKED = { 'Transfer-Encoding': 'chunked' };

/** Every check switched on, with limits that short contents reach. */
const STRICT = {
  powDifficultyBits: 1,
  maxAnonBytes: 1000,
  minBytes: 10,
  requireBinary: true,
  minEntropyBits: 2,
  minEntropyBytes: 10,
  duplicateMax: 1,
} as const;

/** One byte value over and over: binary, and of no entropy. */
const MONOTONOUS = new Uint8Array(12).fill(0xff);

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Sends exactly these header lines; a list is as many lines. Its answer must be the only one. */
async function send(
  t: TestContext,
  app: RunningApp,
  headers: Headers,
  body: string | Uint8Array = '',
): Promise<RawAnswer> {
  const lines = Object.entries(headers)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name}: ${value}`));
  const length = headers['Transfer-Encoding'] === undefined ? [`Content-Length: ${body.length}`] : [];
  const start = head('POST / HTTP/1.1', 'Connection: close', ...length, ...lines);
  return onlyAnswer(t, app.port, Buffer.concat([Buffer.from(start), Buffer.from(body)]));
}

function chunked(content: string | Uint8Array): Uint8Array {
  const size = content.length.toString(16);
  return Buffer.concat([Buffer.from(`${size}\r\n`), Buffer.from(content), Buffer.from('\r\n0\r\n\r\n')]);
}

test('POST /: what breaks every rule is answered by the first; each one mended uncovers the next', async (t) => {
  const app = await startApp(t, { ...STRICT, rateMax: 20 });
  const stored = binaryContent(20);
  await app.store(stored, await freshWork(app));
  const work = await freshWork(app);
  // Uses up what 192.0.2.1 may create.
  for (let turn = 0; turn < 20; turn += 1) await post(app, '', { ...from('192.0.2.1'), ...work });

  // Built from the end: each name says up to which check everything is mended; the rest is still wrong.
  const onceThePassword: Headers = { ...from('192.0.2.2'), ...work };
  const onceTheRate: Headers = { ...onceThePassword, 'X-Paste-Password': TOO_LONG };
  const onceTheWork: Headers = { ...onceTheRate, ...from('192.0.2.1') };
  const onceTheHeaders: Headers = { ...onceTheWork, 'X-PoW-Token': 'x', 'X-PoW-Solution': 'x' };
  const onceTheRepeated: Headers = { ...onceTheHeaders, 'Content-Encoding': 'gzip' };
  const everything: Headers = { ...onceTheRepeated, 'X-Expiry': ['1', '2'] };
  const requests: readonly (readonly [number, string, Headers, (string | Uint8Array)?])[] = [
    [400, 'header given more than once', everything, binaryContent(1001)],
    [415, 'content encoding not supported', onceTheRepeated, binaryContent(1001)],
    [413, 'paste too large', onceTheHeaders, binaryContent(1001)],
    [400, 'Proof-of-work failed: malformed token', onceTheHeaders],
    [429, 'rate limit exceeded', onceTheWork],
    [400, 'no content provided', onceTheRate],
    [400, JSON_INVALID, { ...onceTheRate, ...JSON_TYPE }, '{'],
    [400, 'password longer than 1024 characters', onceTheRate, 'x'],
    [400, 'password longer than 1024 characters', { ...onceTheRate, ...CHUNKED }, chunked('x'.repeat(1001))],
    [400, 'paste smaller than minimum size', onceThePassword, 'x'.repeat(9)],
    [413, 'paste too large', { ...onceThePassword, ...CHUNKED }, chunked('x'.repeat(1001))],
    [400, 'recognizable content: only binary content is accepted', onceThePassword, 'x'.repeat(10)],
    [400, 'entropy below minimum', onceThePassword, MONOTONOUS],
    [429, 'duplicate content limit exceeded', onceThePassword, stored],
  ];
  for (const [status, error, headers, body] of requests) {
    const answer = await send(t, app, headers, body);
    assert.deepEqual([answer.status, answer.json()['error']], [status, error]);
  }

  // The token has survived all of it, and what passed the rate limit was counted: nine of the fourteen, and this one.
  const last = await send(t, app, onceThePassword, binaryContent(20, 2));
  assert.deepEqual([last.status, last.header('x-ratelimit-remaining')], [201, '10']);
  assertWorkRefused(await post(app, binaryContent(20, 3), work), 'Proof-of-work failed: challenge already used');
});

test('POST /: no refusal uses a token up, and only those past the rate limit count against it', async (t) => {
  const app = await startApp(t, { ...STRICT, rateMax: 1000 });
  let seed = 0;
  const newContent = (): Uint8Array => binaryContent(20, seed += 1);
  const stored = newContent();
  await app.store(stored, await freshWork(app));

  /** How many creations the client has been counted for, this one included. */
  async function countStoring(work: Record<string, string>): Promise<number> {
    const answer = await post(app, newContent(), work);
    assertStored(answer);
    return 1000 - (rateOf(answer)?.remaining ?? 0);
  }
  type Send = (work: Record<string, string>) => Promise<Answer>;
  const refusals: readonly (readonly [string, number, 'free' | 'counted', Send])[] = [
    ['encoding', 415, 'free', (work) => post(app, newContent(), { ...work, 'Content-Encoding': 'br' })],
    ['declared length', 413, 'free', (work) => post(app, binaryContent(1001), work)],
    ['password not UTF-8', 400, 'free', (work) => post(app, newContent(), { ...work, 'X-Paste-Password': '\xff' })],
    ['no work', 400, 'free', () => post(app, newContent())],
    ['wrong work', 400, 'free', (work) => post(app, newContent(), { ...work, 'X-PoW-Solution': 'x' })],
    ['no content', 400, 'counted', (work) => post(app, '', work)],
    ['no JSON', 400, 'counted', (work) => post(app, 'x', { ...work, ...JSON_TYPE })],
    ['long password', 400, 'counted', (work) => post(app, newContent(), { ...work, 'X-Paste-Password': TOO_LONG })],
    ['too small', 400, 'counted', (work) => post(app, Uint8Array.of(0xff), work)],
    ['too large as it comes', 413, 'counted', (work) => postChunked(app, binaryContent(2000), work)],
    ['text', 400, 'counted', (work) => post(app, 'some text of no great length', work)],
    ['low entropy', 400, 'counted', (work) => post(app, MONOTONOUS, work)],
    ['duplicate', 429, 'counted', (work) => post(app, stored, work)],
  ];
  let before = await countStoring(await freshWork(app));
  for (const [what, status, cost, refused] of refusals) {
    const work = await freshWork(app);
    const { status: answered, json } = await refused(work);
    assert.equal(answered, status, `${what}: ${JSON.stringify(json)}`);
    const after = await countStoring(work);
    assert.equal(after - before - 1, cost === 'counted' ? 1 : 0, `${what} is ${cost}`);
    before = after;
  }
});

test('POST /: a client over its rate keeps its token, and can use it as soon as the window allows', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1, rateMax: 1, rateWindowSeconds: 30 });
  await app.store('first', await freshWork(app));
  const work = await freshWork(app);
  for (const waitMs of [0, 29_999]) {
    app.clock.advance(waitMs);
    assertError(await post(app, 'second', work), 429, 'rate limit exceeded');
  }
  app.clock.advance(1);
  assertStored(await post(app, 'second', work));
});

test('POST /: a full quota is told after work and rate, for no token, and counts against the rate', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1, rateMax: 3, maxStorageBytes: 100 });
  const burning = await app.store('x'.repeat(95), { ...await freshWork(app), 'X-Burn-After-Read': 'true' });
  const work = await freshWork(app);
  const unsolved = await post(app, 'second', { ...work, 'X-PoW-Solution': 'x' });
  assertWorkRefused(unsolved, 'Proof-of-work failed: malformed solution');
  assertError(await post(app, 'second', work), 507, 'storage full');
  assertError(await postChunked(app, Buffer.from('second'), work), 507, 'storage full');
  assertError(await post(app, 'second', work), 429, 'rate limit exceeded');
  assert.equal((await (await app.request(`/${burning}/raw`)).text()).length, 95);
  assertStored(await post(app, 'second', { ...work, ...from('192.0.2.2') }));
});

test('POST /: an upload that breaks off is counted, and its token is still good', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1, rateMax: 2 });
  const work = await freshWork(app);
  const lines = Object.entries(work).map(([name, value]) => `${name}: ${value}`);
  const connection = await openRaw(t, app.port);
  connection.send(head('POST / HTTP/1.1', 'Content-Length: 100000', 'Expect: 100-continue', ...lines));
  assert.equal((await connection.next()).status, 100, 'the body is asked for when all before it is accepted');
  connection.send('x'.repeat(70_000));
  const hasEnded = (): boolean => app.logged.some(({ details }) => details?.['method'] === 'POST');
  connection.socket.destroy();
  while (!hasEnded()) await new Promise((resolve) => setImmediate(resolve));
  const answer = await post(app, 'whole', work);
  assertStored(answer);
  assert.equal(rateOf(answer)?.remaining, 0);
});

test('POST / and PUT /{id}: what can refuse a request does so before its body is asked for', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1, rateMax: 2 });
  const [owner, other] = [presenting(newFingerprint()), presenting(newFingerprint())];
  const own = await app.store('x', { ...owner, ...await freshWork(app) });
  const burning = await app.store('x', { ...owner, 'X-Burn-After-Read': '1', ...await freshWork(app) });
  const spent = await freshWork(app);
  const cases: readonly (readonly [string, Record<string, string>, number, string])[] = [
    ['POST /', {}, 400, 'proof-of-work required'],
    ['POST /', { ...spent, 'X-PoW-Solution': 'x' }, 400, 'Proof-of-work failed: malformed solution'],
    ['POST /', spent, 429, 'rate limit exceeded'],
    [`PUT /${own}`, {}, 401, 'authentication required'],
    [`PUT /${own}`, other, 403, 'permission denied'],
    [`PUT /${own}x`, owner, 404, 'paste not found'],
    [`PUT /${burning}`, owner, 400, 'burn-after-read pastes cannot be updated'],
    [`PUT /${own}`, owner, 429, 'rate limit exceeded'],
  ];
  for (const [line, headers, status, error] of cases) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const unsent = ['Transfer-Encoding: chunked', 'Expect: 100-continue', ...lines];
    const answer = await onlyAnswer(t, app.port, head(`${line} HTTP/1.1`, ...unsent));
    assert.deepEqual([line, answer.status, answer.json()['error']], [line, status, error]);
  }
});
