// The service while its storage fails in part: reading fails, it is unknown how much is free, or another process keeps
// the database from being written. A disk that is really full is test/crash/full-disk.test.ts.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Cleanup } from '../../src/ops/cleanup.ts';
import { CHUNK_BYTES } from '../../src/store/store.ts';
import { binaryContent, startApp } from '../support/app.ts';
import { assertError, assertStored, post, postChunked } from '../support/posting.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { strayChunks } from '../support/store.ts';

/** From now on, whether content has a paste cannot be read on this thread, until the test lets it. */
function breakReading(t: TestContext): { readonly mend: () => void; readonly failed: () => number } {
  const { get } = StatementSync.prototype;
  let failed = 0;
  const broken = t.mock.method(StatementSync.prototype, 'get', function read(this: StatementSync, ...given: Parameters<typeof get>) {
    if (!/FROM pastes WHERE content_id/.test(this.sourceSQL)) return get.apply(this, given);
    failed += 1;
    throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 266 });
  });
  return { mend: () => broken.mock.restore(), failed: () => failed };
}

async function waitUntil(isSo: () => boolean, what: string): Promise<void> {
  for (let tries = 0; !isSo(); tries += 1) {
    assert.ok(tries < 1000, what);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('an upload that is stored is answered 201 though reading fails then, and stays', async (t) => {
  const running = await startApp(t);
  const content = binaryContent(CHUNK_BYTES + 1);
  const { mend, failed } = breakReading(t);
  const answer = await post(running, content);
  assertStored(answer);
  assert.equal(failed(), 1);
  mend();
  const read = await running.request(`/${answer.json['id']}/raw`);
  assert.deepEqual(Buffer.from(await read.arrayBuffer()), Buffer.from(content));
});

test('an upload that is refused gets that refusal though reading fails then, and leaves nothing', async (t) => {
  const running = await startApp(t, { maxAnonBytes: 3 * CHUNK_BYTES });
  const { mend, failed } = breakReading(t);
  assert.equal((await postChunked(running, binaryContent(3 * CHUNK_BYTES + 1))).status, 413);
  assert.equal(failed(), 1);
  mend();
  await waitUntil(() => strayChunks(running.config.databasePath) === 0, 'what was sent is removed');
});

test('where nobody can say how much of the disk is free, the write itself decides', async (t) => {
  const running = await startApp(t);
  t.mock.method(fs, 'statfsSync', () => {
    throw Object.assign(new Error('EIO: i/o error, statfs'), { code: 'EIO' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assertStored(await post(running, 'small'));
  assertStored(await post(running, binaryContent(CHUNK_BYTES + 1)));
});

test('a stop does not wait for who keeps the database: what is queued is refused, and cleanup with it', async (t) => {
  const running = await startApp(t, { shutdownGraceSeconds: 0, maxStorageBytes: 1 });
  const { port, app, logged, clock } = running;
  const reasonsOf = (name: string) => (
    logged.filter(({ event }) => event === name).map(({ details = {} }) => String(details['error'] ?? details['reason']))
  );
  const cleanups = t.mock.method(Cleanup.prototype, 'run');
  const batches = t.mock.method(Worker.prototype, 'postMessage');
  const fullOne = async (): Promise<void> => assertError(await post(running, 'too much'), 507, 'storage full');
  await fullOne();
  await waitUntil(() => cleanups.mock.callCount() === 3, 'room is made');
  await Promise.all(cleanups.mock.calls.map(({ result }) => result));
  // Waits for the last of the tasks that a start begins with. If the writer were busy with one of them, the request and
  // the cleanup that follow would wait together, and go to the writer in one batch.
  await (cleanups.mock.calls[0]!.this as Cleanup).run('room in reserve');
  clock.advance(10_000);
  const sent = batches.mock.callCount();
  // The timeout is for what the service may still be writing from before.
  const holder = new DatabaseSync(running.config.databasePath, { timeout: 5000 });
  holder.exec('BEGIN IMMEDIATE');
  const client = await openRaw(t, port);
  client.send(`${head('POST / HTTP/1.1', 'Content-Length: 1')}1`);
  await waitUntil(() => batches.mock.callCount() > sent, 'the writer has it, and waits for the lock');
  await fullOne();
  await waitUntil(() => cleanups.mock.callCount() === 5, 'a cleanup waits behind');
  const closing = app.close();
  await waitUntil(() => reasonsOf('task failed').length > 0, 'the cleanup is refused');
  assert.deepEqual(reasonsOf('task failed'), ['storage unavailable: closed']);
  holder.close();
  await closing;
});
