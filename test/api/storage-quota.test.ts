// SERVICE_MAX_STORAGE over real sockets: the bound on the content of all pastes together, and on the files that hold
// it. A disk that is really full: crash/full-disk.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { KIB, MIB } from '../../src/core/time.ts';
import { fileBytes } from '../../src/store/database.ts';
import { OWN_BYTES } from '../../src/store/store.ts';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import {
  type Answer, assertError, assertStored, post, postChunked, statusCounts,
} from '../support/posting.ts';
import { head, openRaw, type RawConnection } from '../support/raw-http.ts';
import { selectValue, strayChunks } from '../support/store.ts';

/** The log is moved into the database from 8 MiB on; a batch or two may come on top. */
const MOST_WAL_BYTES = 16 * MIB;

const OWNER = { 'X-SSL-Client-SHA1': '0123456789abcdef0123456789abcdef01234567' };

/** Both files are bounded: the log by itself, the database by the quota and what an empty database takes. */
function assertBounded({ config: { databasePath, maxStorageBytes } }: RunningApp): void {
  const wal = fileBytes(`${databasePath}-wal`);
  assert.ok(wal <= MOST_WAL_BYTES, `a log of ${wal} bytes`);
  // The last paste that was let in may have added a page to each index.
  const database = fileBytes(databasePath);
  const most = maxStorageBytes + OWN_BYTES + 64 * KIB;
  assert.ok(database <= most, `a database of ${database} bytes for ${maxStorageBytes}`);
}

async function waitUntil(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; !(await isSo()); tries += 1) {
    assert.ok(tries < 1000, what);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function storedBytes({ config }: RunningApp): unknown {
  return selectValue(config.databasePath, 'SELECT coalesce(sum(size), 0) FROM pastes');
}

/** Removes what expires within ten seconds. A run that a refusal began must be over first: it knows the old time. */
async function expire({ app, clock }: RunningApp): Promise<void> {
  await app.cleanup.run('expired pastes');
  clock.advance(10_000);
  await app.cleanup.run('expired pastes');
}

test('POST /: content up to exactly the quota is stored, one byte more is 507, and reading goes on', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 1000 });
  for (const send of [post, postChunked]) assertError(await send(app, binaryContent(1001)), 507, 'storage full');
  const id = await app.store('x'.repeat(900));
  for (const send of [post, postChunked]) assertError(await send(app, binaryContent(101)), 507, 'storage full');
  const json = { 'Content-Type': 'application/json' };
  assertError(await post(app, JSON.stringify({ content: 'x'.repeat(101) }), json), 507, 'storage full');
  assert.equal(storedBytes(app), 900);
  const fitting = JSON.stringify({ content: 'x'.repeat(99) });
  assertStored(await post(app, fitting, json), 'the content counts, not the document');
  assertError(await post(app, 'xx'), 507, 'storage full');
  assertStored(await post(app, 'x'));
  assert.equal(storedBytes(app), 1000);

  assertError(await post(app, 'x'), 507, 'storage full');
  assertError(await post(app, ''), 400, 'no content provided');
  assert.equal(await (await app.request(`/${id}/raw`)).text(), 'x'.repeat(900));
  assert.equal((await app.request('/health')).status, 200);
});

test('POST /: there is room again when content is gone: burned at once, expired after cleanup', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 200_000 });
  const burning = await app.store(binaryContent(100_000), { 'X-Burn-After-Read': 'true' });
  const expiring = await app.store(binaryContent(100_000, 2), { 'X-Expiry': '10' });
  assert.equal((await post(app, 'x')).status, 507);
  const burned = await app.request(`/${burning}/raw`);
  assert.equal((await burned.arrayBuffer()).byteLength, 100_000);
  assertStored(await post(app, binaryContent(100_000, 3)));
  assert.equal((await post(app, 'x')).status, 507);

  await expire(app);
  assert.equal((await app.request(`/${expiring}`)).status, 404);
  assert.equal(storedBytes(app), 100_000);

  // A declared length that does not fit is refused before the body is asked for.
  const tooLarge = await openRaw(t, app.port);
  tooLarge.send(head('POST / HTTP/1.1', 'Content-Length: 100001', 'Expect: 100-continue'));
  const answer = await tooLarge.next();
  assert.deepEqual([answer.status, answer.json()], [507, { error: 'storage full' }]);
  assert.equal(answer.header('connection'), 'close');
  tooLarge.socket.destroy();
  const fitting = await openRaw(t, app.port);
  fitting.send(head('POST / HTTP/1.1', 'Content-Length: 100000', 'Expect: 100-continue'));
  assert.equal((await fitting.next()).status, 100);
  fitting.send(binaryContent(100_000, 4));
  assert.equal((await fitting.next()).status, 201);
  assert.equal((await post(app, 'x')).status, 507);
  assert.equal(storedBytes(app), 200_000);
});

test('POST /: concurrent creations never exceed the quota, and what is refused leaves nothing', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 1_000_999 });
  for (const [bytes, send] of [[1000, post], [100_000, post], [100_000, postChunked]] as const) {
    const rest = 1_000_000 - 10 * bytes;
    if (rest > 0) await app.store(binaryContent(rest), { 'X-Expiry': '10' });
    const contents = Array.from({ length: 30 }, (_, turn) => binaryContent(bytes, turn));
    const answers = await Promise.all(contents.map((content) => send(app, content, { 'X-Expiry': '10' })));
    assert.deepEqual(statusCounts(answers), { 201: 10, 507: 20 });
    assert.equal(storedBytes(app), 1_000_000);
    assert.equal(selectValue(app.config.databasePath, 'SELECT bytes FROM usage'), 1_000_000);
    await expire(app);
    assert.equal(storedBytes(app), 0);
  }
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('POST /: the quota counts what an earlier run stored, and a smaller one than that only refuses', async (t) => {
  const before = await startApp(t);
  const id = await before.store('x'.repeat(500));
  await before.app.close();
  const after = await startApp(t, { maxStorageBytes: 400, databasePath: before.config.databasePath });
  assertError(await post(after, 'x'), 507, 'storage full');
  assert.equal((await after.request(`/${id}/raw`)).status, 200);
  await after.app.close();
});

/** Begins uploads and sends all but the last byte of each; `status` is what it was answered, 0 so far. */
async function beginUploads(t: TestContext, app: RunningApp, count: number, bytes: number, isChunked: boolean) {
  return Promise.all(Array.from({ length: count }, async (_, index) => {
    const connection = await openRaw(t, app.port);
    connection.send(head('POST / HTTP/1.1', isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes}`));
    if (isChunked) connection.send(`${bytes.toString(16)}\r\n`);
    connection.send(binaryContent(bytes - 1, index));
    const finish = (): void => connection.send(isChunked ? 'x\r\n0\r\n\r\n' : 'x');
    const upload = { status: 0, finish, socket: connection.socket };
    connection.next().then(({ status }) => (upload.status = status), () => {});
    return upload;
  }));
}

test('POST /: uploads under way count, and those that race for the last room do not all lose it', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 5 * MIB, maxAnonBytes: 4 * MIB });
  const uploads = await beginUploads(t, app, 50, 2 * MIB, false);
  const statuses = (): Record<number, number> => statusCounts(uploads as unknown as Answer[]);
  await waitUntil(() => statuses()[507] === 48, 'two have room, and the others are refused before they end');
  assertBounded(app);
  // When an upload breaks off, another can have its room.
  uploads.find(({ status }) => status === 0)!.socket.destroy();
  await waitUntil(async () => (await post(app, binaryContent(2 * MIB, 99))).status === 201, 'room again');
  for (const { status, finish } of uploads) if (status === 0) finish();
  await waitUntil(() => statuses()[201] === 1, 'the other is stored');
  assertError(await post(app, binaryContent(2 * MIB, 98)), 507, 'storage full');
  assertBounded(app);
  assert.equal((await app.request('/health')).status, 200);
  await waitUntil(() => strayChunks(app.config.databasePath) === 0, 'what was refused is removed');
});

test('POST /: uploads of unknown length are refused while they grow', async (t) => {
  // Room for 18 chunks. An upload has four on their way before it waits for one, so an upload that has sent 11 and is
  // not refused yet has seven written: there is room for two such uploads at most.
  const app = await startApp(t, { maxStorageBytes: 4.5 * MIB, maxAnonBytes: 4 * MIB });
  const uploads = await beginUploads(t, app, 50, 3 * MIB, true);
  await waitUntil(() => uploads.filter(({ status }) => status === 507).length >= 48, 'refused');
  assertBounded(app);
  await waitUntil(() => strayChunks(app.config.databasePath) as number <= 18, 'what was refused is removed');
  for (const { status, finish } of uploads) if (status === 0) finish();
  await waitUntil(() => uploads.every(({ status }) => status !== 0), 'the others are answered');
  assertBounded(app);
  assert.equal((await app.request('/health')).status, 200);
});

/** Asks for content and stops reading once it comes: from then on the content is held. */
async function openStalled(t: TestContext, app: RunningApp, id: string): Promise<RawConnection> {
  const connection = await openRaw(t, app.port);
  connection.send(head(`GET /${id}/raw HTTP/1.1`));
  await once(connection.socket, 'data');
  connection.socket.pause();
  return connection;
}

test('PUT and DELETE: what is replaced, deleted or burned counts while someone still reads it', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 40 * MIB, maxAnonBytes: 8 * MIB });
  // More than the kernel takes for a client that does not read.
  const size = 8 * MIB;
  const updated = await app.store(binaryContent(size), OWNER);
  const readers: RawConnection[] = [];
  const statuses: number[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    readers.push(await openStalled(t, app, updated));
    const body = binaryContent(size, turn + 2) as never;
    const put = await app.request(`/${updated}`, { method: 'PUT', headers: OWNER, body });
    await put.arrayBuffer();
    statuses.push(put.status);
    if (turn % 3 === 2) {
      const id = await post(app, binaryContent(size, 100 + turn), { ...OWNER, 'X-Burn-After-Read': 'true' });
      if (id.status === 201) readers.push(await openStalled(t, app, String(id.json['id'])));
    }
    assertBounded(app);
  }
  assert.deepEqual([statuses[0], statuses.at(-1)], [200, 507]);
  const kept = await app.request(`/${updated}/raw`);
  assert.equal((await kept.arrayBuffer()).byteLength, size);
  for (const { socket } of readers) socket.destroy();
  await waitUntil(() => strayChunks(app.config.databasePath) === 0, 'what nobody reads is removed');
  assertStored(await post(app, binaryContent(size, 200)));
  assertBounded(app);
});

test('POST /: the rows of small pastes count', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 300_000 });
  const statuses: number[] = [];
  for (let turn = 0; turn < 24; turn += 1) {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => post(app, `${turn}:${index}`, OWNER)));
    statuses.push(...answers.map(({ status }) => status));
    assertBounded(app);
  }
  const stored = statuses.filter((status) => status === 201).length;
  assert.equal(statuses.at(-1), 507);
  assert.ok(stored > 500, `${stored} pastes of 5 bytes in 300 000 bytes`);
});

test('507: what has expired is removed at once, so that the next try is stored', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 2 * MIB });
  await app.app.cleanup.run('expired pastes');
  for (let turn = 0; turn < 3; turn += 1) await app.store(binaryContent(600_000, turn), { 'X-Expiry': '10' });
  assertError(await post(app, binaryContent(600_000, 4)), 507, 'storage full');
  const next = async (): Promise<boolean> => {
    app.clock.advance(10_000);
    return (await post(app, binaryContent(600_000, 4))).status === 201;
  };
  await waitUntil(next, 'removed without waiting for its hour');
});
