// ReplyWriter: when whole answers leave. What is in them, and how they go over sockets, is in test/api.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { holdBytes } from '../../src/core/content.ts';
import { NO_BODY } from '../../src/http/engine/body.ts';
import type { Lingering } from '../../src/http/engine/connections.ts';
import { ReplyWriter } from '../../src/http/engine/reply.ts';
import type { Request } from '../../src/http/engine/request.ts';

/** A request whose answer is noted when it is sent. */
function requestInto(sent: unknown[]): Request {
  const req = { httpVersionMinor: 1 };
  const res = { req, shouldKeepAlive: true, writeHead: () => {}, end: (body: unknown) => void sent.push(body) };
  return { res, method: 'GET', id: 'id', body: NO_BODY, state: 'open' } as unknown as Request;
}

test('ReplyWriter: answers given in one turn of the event loop are sent at its end, in order, each once', async () => {
  const writer = new ReplyWriter({ servesHtml: true, lingering: {} as Lingering, isStopping: () => false });
  const sent: unknown[] = [];
  const answer = (body: string): void => void writer.write(requestInto(sent), { status: 200, headers: {}, body });
  answer('first');
  await Promise.resolve();
  answer('second');
  assert.deepEqual(sent, [], 'nothing before all that arrived has been taken up');
  await nextTurn();
  assert.deepEqual(sent, ['first', 'second']);
  answer('third');
  await nextTurn();
  assert.deepEqual(sent, ['first', 'second', 'third']);
  void writer.write(requestInto(sent), { status: 304, headers: {}, body: null });
  assert.equal(sent.length, 3, 'those without content, too');
  await nextTurn();
  assert.deepEqual(sent.slice(3), ['']);
});

test('ReplyWriter: content that is held is let go of when it has been sent, and not before', async () => {
  const writer = new ReplyWriter({ servesHtml: true, lingering: {} as Lingering, isStopping: () => false });
  let whenSent = (): void => assert.fail('nothing was sent');
  const end = (_body: unknown, _encoding: unknown, sent: () => void): void => void (whenSent = sent);
  const request = { ...requestInto([]), res: { shouldKeepAlive: true, writeHead: () => {}, end } };
  const body = new Uint8Array(10_000).fill(1);
  holdBytes(body);
  void writer.write(request as unknown as Request, { status: 200, headers: {}, body });
  await nextTurn();
  assert.equal(body.length, 10_000);
  whenSent();
  assert.equal(body.length, 0);
});
