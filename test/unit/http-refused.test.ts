// From errors to the words for callers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal, type RefusalName, REFUSALS } from '../../src/core/refusals.ts';
import { refusalReply } from '../../src/http/engine/reply.ts';
import { refusalOf } from '../../src/http/servers.ts';
import { StoreError } from '../../src/store/store.ts';

/** The scheme for each refusal: RFC 9110 section 15.5.2 requires a challenge with every 401. */
const CHALLENGES = new Map([['identityRequired', 'Client-Certificate'], ['passwordRequired', 'X-Paste-Password']]);

test('refusalReply: every entry of the table, status and words, and a challenge with 401', () => {
  for (const [name, { status, error }] of Object.entries(REFUSALS)) {
    const reply = refusalReply(new Refusal(name as RefusalName));
    assert.equal(reply.status, status);
    assert.equal(reply.body, `${JSON.stringify({ error })}\n`);
    const challenge = CHALLENGES.get(name);
    assert.equal(challenge !== undefined, status === 401, name);
    const headers = challenge === undefined ? {} : { 'WWW-Authenticate': challenge };
    assert.deepEqual(reply.headers, { 'Content-Type': 'application/json', ...headers });
  }
});

test('refusalReply: error first, then the hint, then the fields in snake_case', () => {
  const reply = refusalReply(new Refusal('pasteTooLarge', { size: 1, maxSize: 0, hint: 'h', isABCWord: true }));
  assert.equal(reply.body, '{"error":"paste too large","hint":"h","size":1,"max_size":0,"is_a_b_c_word":true}\n');
});

test('refusalReply: Retry-After in whole seconds, rounded up and at least one, beside other headers', () => {
  for (const [retryAfterSeconds, text] of [[0, '1'], [0.1, '1'], [1, '1'], [1.5, '2']] as const) {
    const { headers } = refusalReply(new Refusal('passwordQueueFull', {}, { retryAfterSeconds }));
    assert.equal(headers['Retry-After'], text);
  }
  const { headers } = refusalReply(new Refusal('methodNotAllowed', {}, { retryAfterSeconds: 3 }), { Allow: 'GET' });
  assert.deepEqual(headers, { 'Content-Type': 'application/json', 'Retry-After': '3', Allow: 'GET' });
});

test('refusalReply: the headers of a rate limit', () => {
  const rate = { limit: 10, remaining: 0, resetAtSeconds: 1_769_860_860 };
  assert.deepEqual(refusalReply(new Refusal('internal', {}, { rate })).headers, {
    'Content-Type': 'application/json',
    'X-RateLimit-Limit': '10',
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Reset': '1769860860',
  });
});

test('refusalOf: refusals themselves, the store by its condition, nothing else', () => {
  const refusal = new Refusal('pasteNotFound');
  assert.equal(refusalOf(refusal), refusal);
  assert.equal(refusalOf(new StoreError('full', 'x'))?.refusal, 'storageFull');
  assert.equal(refusalOf(new StoreError('full', 'x'))?.terms.retryAfterSeconds, undefined);
  assert.equal(refusalOf(new StoreError('unavailable', 'x'))?.refusal, 'storeUnavailable');
  assert.ok(Number(refusalOf(new StoreError('unavailable', 'x'))?.terms.retryAfterSeconds) > 0);
  const without = (code: string) => refusalOf(Object.assign(new Error('x'), { code }));
  assert.deepEqual([without('EMFILE')?.refusal, without('EMFILE')?.terms.retryAfterSeconds], ['connectionsExhausted', 5]);
  assert.equal(without('ENFILE'), undefined, 'of the whole host, and not by its connections');
  for (const error of [
    new Error('x'), new TypeError('x'), 'x', undefined, null, { refusal: 'pasteNotFound', status: 404 },
  ]) {
    assert.equal(refusalOf(error), undefined);
  }
});
