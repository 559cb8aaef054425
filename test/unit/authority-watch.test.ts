// service/authority-watch.ts: the authority that somebody else makes is noticed, and then nobody looks any more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchForAuthority } from '../../src/authority/authority.ts';
import type { StoredAuthority } from '../../src/store/store.ts';

const AUTHORITY = {} as StoredAuthority;

test('watchForAuthority: looks until there is one, through failures, and not afterwards', async (t) => {
  const answers: (() => Promise<StoredAuthority | undefined>)[] = [
    async () => undefined,
    () => Promise.reject(new Error('disk I/O error')),
    async () => undefined,
    async () => AUTHORITY,
  ];
  let looks = 0;
  const found = Promise.withResolvers<void>();
  const watch = watchForAuthority({
    find: () => {
      const answer = answers[looks] ?? assert.fail('looked again');
      looks += 1;
      if (looks === answers.length) setTimeout(found.resolve, 20);
      return answer();
    },
  }, 1);
  t.after(watch.stop);
  await watch.begin();
  assert.equal(looks, 1);
  await found.promise;
  assert.equal(looks, answers.length);
});

test('watchForAuthority: where there is one it looks once; stopped, it looks no more', async () => {
  let looks = 0;
  const counting = (answer: StoredAuthority | undefined) => ({
    find: async () => {
      looks += 1;
      return answer;
    },
  });
  const there = watchForAuthority(counting(AUTHORITY), 1);
  await there.begin();
  const missing = watchForAuthority(counting(undefined), 1);
  await missing.begin();
  missing.stop();
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(looks, 2);
});

test('watchForAuthority: looks once a second unless told otherwise', async (t) => {
  const intervalsMs: unknown[] = [];
  t.mock.method(globalThis, 'setInterval', (_: unknown, ms: number) => void intervalsMs.push(ms));
  await watchForAuthority({ find: async () => undefined }).begin();
  assert.deepEqual(intervalsMs, [1000]);
});
