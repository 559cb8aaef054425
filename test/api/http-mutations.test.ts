// Requests that were changed at random, pipelined, from clients that behave in every way there is: whatever comes, all answers are
// well-formed, every connection ends once its client has ended it, and the server stops as if nothing had been.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { KIB } from '../../src/core/time.ts';
import { emptyReply, type Handler, StreamedBody } from '../../src/http/engine/reply.ts';
import { assertContract } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { head, wholeAnswers } from '../support/raw-http.ts';
import { createSeeded, type Seeded } from '../support/seeded.ts';

const CONNECTIONS = 600;
const AT_A_TIME = 20;

/** For a connection to end after its client has closed its side. */
const PATIENCE_MS = 5000;

const LARGE = 200 * KIB;

const REQUESTS = [
  head('GET / HTTP/1.1'),
  head('GET / HTTP/1.0'),
  head('GET / HTTP/1.1', 'Connection: close'),
  head('GET /abcdef/raw HTTP/1.1'),
  head('GET /empty HTTP/1.1', 'Connection: Upgrade', 'Upgrade: h2c'),
  head('OPTIONS * HTTP/1.1'),
  head('CONNECT paste.test:443 HTTP/1.1'),
  `${head('PATCH / HTTP/1.1', 'Content-Length: 3')}abc`,
  `${head('POST / HTTP/1.1', 'Content-Length: 5')}abcde`,
  `${head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')}5\r\nabcde\r\n0\r\n\r\n`,
  `${head('POST / HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5')}abcde`,
  head('POST / HTTP/1.1', `Content-Length: ${LARGE}`) + 'x'.repeat(LARGE),
];

const INSERTED = ['\r\n', '\n', ' ', '0', ':', '\0', 'Content-Length: 3\r\n', 'Transfer-Encoding: chunked\r\n'];

const STATUSES = new Set([100, 200, 201, 204, 400, 404, 405, 413, 417, 431, 501]);

/** Between 1 and 5 requests, with up to 3 changes in what is not the large body. */
function mutated(random: Seeded): Buffer {
  let bytes = Buffer.from(Array.from({ length: random.between(1, 5) }, () => random.pick(REQUESTS)).join(''), 'latin1');
  for (let changes = random.below(4); changes > 0; changes -= 1) {
    const at = random.below(Math.min(bytes.length, 600));
    const kept = bytes.subarray(0, at);
    if (random.oneIn(3)) bytes[at] = random.below(256);
    else if (random.oneIn(2)) bytes = Buffer.concat([kept, bytes.subarray(at + random.between(1, 5))]);
    else bytes = Buffer.concat([kept, Buffer.from(random.pick(INSERTED)), bytes.subarray(at)]);
  }
  return bytes;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** How clients send and close. All of them close their side, or both. */
const BEHAVIOURS: readonly ((socket: Socket, bytes: Buffer, random: Seeded) => Promise<void> | void)[] = [
  (socket, bytes) => {
    socket.end(bytes);
  },
  async (socket, bytes, random) => {
    for (let start = 0, end = 0; start < bytes.length; start = end) {
      end = start + random.between(1, bytes.length > KIB ? 50_000 : 60);
      socket.write(bytes.subarray(start, end));
      await turn();
    }
    socket.end();
  },
  async (socket, bytes, random) => {
    socket.pause();
    socket.write(bytes);
    for (let turns = random.below(20); turns > 0; turns -= 1) await turn();
    socket.resume();
    socket.end();
  },
  async (socket, bytes, random) => {
    socket.write(bytes);
    for (let turns = random.below(20); turns > 0; turns -= 1) await turn();
    socket.resetAndDestroy();
  },
];

/** What the server answered to one client. A reset is no failure; a connection that does not end is one. */
async function received(port: number, random: Seeded): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1' });
  const chunks: Buffer[] = [];
  socket.on('data', (bytes) => chunks.push(bytes)).on('error', () => {});
  await once(socket, 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await random.pick(BEHAVIOURS)(socket, mutated(random), random);
  await within(PATIENCE_MS, closed, 'the connection does not end');
  return Buffer.concat(chunks);
}

const stream: Handler = () => ({
  status: 200,
  headers: {},
  body: new StreamedBody(3 * 100_000, async function* chunks() {
    for (let count = 0; count < 3; count += 1) {
      await turn();
      yield Buffer.alloc(100_000);
    }
  }),
});

/** Takes its time for some bodies, and refuses some in the middle. */
function collect(random: Seeded): Handler {
  return async (request) => {
    if (random.oneIn(4)) await turn();
    const isSlow = random.oneIn(3);
    let bytes = 0;
    await request.body.pipe((chunk) => {
      bytes += chunk.length;
      if (bytes > LARGE / 2) throw new Refusal('pasteTooLarge');
      return isSlow ? turn() : undefined;
    });
    return emptyReply(201);
  };
}

test('mutated requests: well-formed answers, every connection ends, the server stops at once', async (t) => {
  const random = createSeeded(20_260_131);
  const { server, port, logged } = await startHttp(t, {
    config: { shutdownGraceSeconds: 10, maxConnectionsPerClient: 0 },
    handlers: { raw: stream, collect: collect(random) },
  });
  let answered = 0;
  for (let connections = 0; connections < CONNECTIONS; connections += AT_A_TIME) {
    const seeds = Array.from({ length: AT_A_TIME }, (_, index) => createSeeded(connections + index));
    for (const bytes of await Promise.all(seeds.map((seed) => received(port, seed)))) {
      for (const answer of wholeAnswers(bytes).answers) {
        assert.ok(STATUSES.has(answer.status), `${answer.status}`);
        if (answer.status !== 100) assertContract(answer);
        answered += 1;
      }
    }
  }
  assert.ok(answered > CONNECTIONS / 2, `${answered} answers`);
  assert.deepEqual(logged.filter(({ event }) => event !== 'request'), []);
  await within(1000, server.stop(), 'the server does not stop');
});

async function within(ms: number, awaited: Promise<unknown>, otherwise: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms);
  });
  await Promise.race([awaited, late]).finally(() => clearTimeout(timer));
}
