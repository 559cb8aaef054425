// What pages of long texts take of the event loop: of many at once, and of one that nobody waits for any more.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NumberedLines } from '../../src/http/page.ts';
import { startApp } from '../support/app.ts';
import { BROWSERS } from '../support/browser.ts';
import { head, openRaw } from '../support/raw-http.ts';

/** How many pieces of text pages were made so far. */
function piecesMade(t: TestContext): () => number {
  const { mock } = t.mock.method(NumberedLines.prototype, 'next');
  return () => mock.callCount();
}

/** 64 pieces, each made twice. */
const LONG_TEXT = 'line\n'.repeat(128 * 1024 / 5);

test('pages: of all long ones together few pieces are made in a turn of the event loop', async (t) => {
  const app = await startApp(t);
  const id = await app.store(LONG_TEXT);
  const made = piecesMade(t);
  let isOver = false;
  const pages = Promise.all(Array.from({ length: 20 }, async () => {
    const response = await app.request(`/${id}`, { headers: { Accept: BROWSERS.firefox } });
    return (await response.text()).length;
  })).finally(() => (isOver = true));
  const ofTurns: number[] = [];
  for (let before = 0; !isOver; before = made()) {
    await nextTurn();
    ofTurns.push(made() - before);
  }
  const lengths = await pages;
  assert.deepEqual(lengths, Array.from(lengths, () => lengths[0]));
  assert.ok(made() >= 20 * 2 * 64, `${made()} pieces`);
  // One piece of the text, and what ends a page when that piece was its last.
  assert.ok(Math.max(...ofTurns) <= 4, `${Math.max(...ofTurns)} pieces in a turn`);
});

test('pages: no more is made of one whose client has gone', async (t) => {
  const app = await startApp(t);
  const id = await app.store(LONG_TEXT);
  const made = piecesMade(t);
  const client = await openRaw(t, app.port);
  client.send(head(`GET /${id} HTTP/1.1`, `Accept: ${BROWSERS.chrome}`));
  while (made() < 3) await nextTurn();
  // A client that ended only its own side would still wait for the answer.
  client.socket.resetAndDestroy();
  while (!app.logged.some(({ event, details }) => event === 'request' && details?.['status'] === 499)) await nextTurn();
  const before = made();
  assert.ok(before < 64, `${before} pieces`);
  for (let turn = 0; turn < 100; turn += 1) await nextTurn();
  assert.ok(made() - before <= 1, `${made() - before} pieces more`);
});
