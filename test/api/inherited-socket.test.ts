// The server on a socket that somebody else has opened, as under systemd: one process after another.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { holdSocket } from '../support/inherited-socket.ts';
import { startMain, temporaryFolder } from '../support/main-process.ts';

const RESTARTS = 5;
const CLIENTS = 4;

/** Settings that let a test send as much as it likes. */
const UNLIMITED = { SERVICE_POW_DIFFICULTY: '0', SERVICE_RATE_MAX: '0', SERVICE_MAX_CONNECTIONS_PER_CLIENT: '0' };

/** Status of one request on a connection of its own. */
function statusOf(place: { port: number } | { socketPath: string }, method: string, body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...place, host: '127.0.0.1', method, path: '/', agent: false }, (res) => {
      res.resume().on('end', () => resolve(res.statusCode ?? 0));
    });
    sent.on('error', reject).end(body);
  });
}

test('inherited socket: comes before SERVICE_LISTEN and SERVICE_PORT, and its address is the one logged', async (t) => {
  const unused = join(temporaryFolder(t), 'unused');
  const holder = await holdSocket(t, { port: 0 }, { SERVICE_LISTEN: `unix:${unused}`, SERVICE_PORT: '1' });
  assert.equal(await holder.serve(), `http://127.0.0.1:${holder.port}`);
  assert.equal(await statusOf({ port: holder.port }, 'GET'), 200);
  assert.equal(existsSync(unused), false);
  assert.equal(await holder.end(), 0);
});

test('inherited socket: what is said to another process is not for this one', async (t) => {
  const environment = { LISTEN_PID: '1', LISTEN_FDS: '1', SERVICE_PORT: '0', SERVICE_DB: 'pasted.db' };
  const { printed } = startMain(t, [], { environment });
  const [, port] = await printed(/ listening {2}url=http:\/\/127\.0\.0\.1:(\d+)/);
  assert.equal(await statusOf({ port: Number(port) }, 'GET'), 200);
});

test('inherited socket: a unix socket stays when the server ends, and its peers are local', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  const holder = await holdSocket(t, { path });
  for (let round = 0; round < 2; round += 1) {
    assert.equal(await holder.serve(), 'unix:(inherited)');
    assert.equal(await statusOf({ socketPath: path }, 'GET'), 200);
    assert.equal(await holder.end(), 0);
    assert.equal(existsSync(path), true);
  }
  assert.match(holder.output(), /GET \/ 200 .* client_ip=unix /);
});

test('inherited socket: restarts under load lose no request', async (t) => {
  const holder = await holdSocket(t, { port: 0 }, UNLIMITED);
  await holder.serve();
  const answers = new Map<string, number>();
  let isOver = false;
  let count = 0;
  const client = async (): Promise<void> => {
    while (!isOver) {
      const number = count++;
      const sent = number % 2 === 0 ? statusOf(holder, 'GET') : statusOf(holder, 'POST', `paste ${number}`);
      const answer = await sent.then((status) => `${status}`, (error: unknown) => String(error));
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    const before = count;
    assert.equal(await holder.end(), 0);
    await holder.serve();
    // Clients that waited are served before the next restart.
    while (count < before + 4 * CLIENTS) await statusOf(holder, 'GET');
  }
  isOver = true;
  await Promise.all(clients);
  assert.deepEqual([...answers.keys()].sort(), ['200', '201'], JSON.stringify([...answers]));
  assert.equal(await holder.end(), 0);
});
