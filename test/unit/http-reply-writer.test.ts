// http/reply-writer.ts: when whole answers leave. What is in them, and how they go over sockets, is in test/api.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NO_BODY } from '../../src/http/engine/body.ts';
import type { Exchange } from '../../src/http/engine/connections.ts';
import type { Lingering } from '../../src/http/engine/pace.ts';
import { createReplyWriter } from '../../src/http/engine/reply-writer.ts';

/** An exchange whose answer is noted when it is sent. */
function exchangeInto(sent: unknown[]): Exchange {
  const res = { shouldKeepAlive: true, writeHead: () => {}, end: (body: unknown) => void sent.push(body) };
  const exchange = { res, method: 'GET', requestId: 'id', body: NO_BODY, isOver: false, isLast: false, connection: {} };
  return exchange as unknown as Exchange;
}

test('createReplyWriter: answers given in one turn of the event loop are sent at its end, in order, each once', async () => {
  const writeReply = createReplyWriter({ lingering: {} as Lingering, isStopping: () => false });
  const sent: unknown[] = [];
  const answer = (body: string): void => void writeReply(exchangeInto(sent), { status: 200, headers: {}, body });
  answer('first');
  await Promise.resolve();
  answer('second');
  assert.deepEqual(sent, [], 'nothing before all that arrived has been taken up');
  await nextTurn();
  assert.deepEqual(sent, ['first', 'second']);
  answer('third');
  await nextTurn();
  assert.deepEqual(sent, ['first', 'second', 'third']);
  void writeReply(exchangeInto(sent), { status: 304, headers: {}, body: null });
  assert.equal(sent.length, 3, 'those without content, too');
  await nextTurn();
  assert.deepEqual(sent.slice(3), ['']);
});
