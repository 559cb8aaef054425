// Row 7: every answer has the contract's headers, a request id, and JSON when it is an error: to every method on every
// path, to what is malformed, to what comes too early, and to the connection that is one too many. (The tests of the
// suite look at their own answers; row 13 at those to generated requests.)

import { connect } from 'node:net';
import { head } from '../support/raw-http.ts';
import { contractFaults, readAnswers } from './answers.ts';
import { exchange } from './exchange.ts';
import { askDirectly, ODD_REQUESTS } from './odd-requests.ts';
import type { Row, Unit } from './row.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE'];
const PATHS = [
  '/', '/health', '/challenge', '/client', '/pastes', '/pastes?limit=x', '/audit', '/pki', '/pki/ca', '/pki/ca.crt',
  '/pki/ca.crl',
  '/pki/ca.crl.pem', '/pki/issue', '/pki/certs', '/pki/revoke/00', '/register', '/register/challenge', '/abcdefgh',
  '/abcdefgh/raw', '/a/b/c',
  '/x', '/../x', '/favicon.ico', '/robots.txt', '*',
];
const HEADERS: readonly (readonly string[])[] = [
  [], ['Accept: text/plain'], ['X-Paste-Password: x'], [`X-SSL-Client-SHA1: ${'a'.repeat(40)}`], ['Range: bytes=0-0'],
  ['If-None-Match: *'],
  ['X-Request-ID: <script>'], ['X-Request-ID: mine'], ['X-Forwarded-For: x'], ['Content-Type: application/json'],
  ['Content-Encoding: gzip'],
  ['X-PoW-Token: x', 'X-PoW-Solution: 1'], ['X-Expiry: x', 'X-Expiry: y'], ['Accept-Encoding: gzip, br'],
  ['Origin: http://elsewhere.example'],
];
const BODIES = ['', 'a text', '{"content":"a text"}', '{'];

const TIMES = { quick: 1, full: 10 };
const PIPELINED = 16;

export const headersRow: Row = {
  name: '7',
  title: 'the headers and the form of every answer',
  target: 'every method on every path, and every odd request',
  units: 5,
  least: ['answers'],
  async run(unit) {
    const service = await unit.start({ folder: unit.folder });
    for (let round = 0; round < TIMES[unit.effort] && !unit.isHopeless(); round += 1) {
      await askEverything(unit, service.port(), round);
    }
    for (const [index, odd] of ODD_REQUESTS.entries()) {
      if (unit.isHopeless() || (unit.effort === 'quick' && index % 10 !== 0)) continue;
      const tag = index.toString(36).padStart(4, '0');
      const { faults, statuses } = await askDirectly(odd, { port: service.port(), tag });
      unit.count('answers', statuses.length);
      for (const fault of faults) unit.lose(`${odd.name}: ${fault}`, odd.bytes.slice(0, 500));
    }
    await service.stop();
    await onlyPlace(unit);
  },
};

interface Asked {
  readonly method: string;
  readonly path: string;
}

/** Each method on each path, with random headers and a random body, PIPELINED requests on a connection. */
async function askEverything(unit: Unit, port: number, round: number): Promise<void> {
  const { random } = unit;
  const asked = PATHS.flatMap((path) => METHODS.map((method) => ({ method, path })));
  while (asked.length > 0 && !unit.isHopeless()) {
    const some = asked.splice(0, PIPELINED);
    const requests = some.map(({ method, path }, index) => {
      const body = random.pick(BODIES);
      const length = body === '' && method !== 'POST' && method !== 'PUT' ? [] : [`Content-Length: ${body.length}`];
      const last = index === some.length - 1 ? ['Connection: close'] : [];
      return head(`${method} ${path} HTTP/1.1`, ...random.pick(HEADERS), ...length, ...last) + body;
    });
    const bytes = Buffer.from(requests.join(''), 'latin1');
    const { received } = await exchange({ port, bytes, patienceMs: 20_000 });
    const answered = judge(unit, received, some, round === 0 ? requests : []);
    // What came behind an answer that ended the connection is asked again.
    if (answered > 0) asked.unshift(...some.slice(answered));
  }
}

/** Gives how many answers there were: one that comes before the end of its request ends the connection. */
function judge(unit: Unit, received: Buffer, asked: readonly Asked[], evidence: unknown): number {
  const { answers, faults } = readAnswers(received, asked.map(({ method }) => method));
  unit.count('answers', answers.length);
  for (const fault of faults) unit.lose(fault, evidence);
  if (answers.length === 0) unit.lose('no answer', evidence);
  for (const [index, answer] of answers.entries()) {
    const { method = '', path = '' } = asked[index] ?? {};
    const faults = contractFaults(answer, method === 'HEAD');
    for (const fault of faults) unit.lose(`${method} ${path}, ${answer.status}: ${fault}`, evidence);
  }
  return answers.length;
}

/** The answers of a service that has no room for another connection, and no time for a slow head. */
async function onlyPlace(unit: Unit): Promise<void> {
  const environment = { SERVICE_MAX_CONNECTIONS: '1', SERVICE_HEADERS_TIMEOUT: '1', SERVICE_SHUTDOWN_GRACE: '5' };
  const service = await unit.start({ folder: `${unit.folder}/one`, environment });
  const port = service.port();
  const first = connect({ port, host: '127.0.0.1' });
  const received: Buffer[] = [];
  first.on('data', (bytes) => received.push(bytes));
  await new Promise((resolve) => first.once('connect', resolve));
  first.write('GET / HTTP/1.1\r\nHost: a\r\n');
  const refused = await exchange({ port, bytes: Buffer.from(head('GET /health HTTP/1.1')), patienceMs: 5000 });
  const asked = [{ method: 'GET', path: '/health' }];
  judge(unit, refused.received, asked, 'one connection too many');
  if (!refused.received.toString('latin1').startsWith('HTTP/1.1 503 ')) unit.lose('a second connection has room');
  await new Promise((resolve) => first.once('end', resolve));
  judge(unit, Buffer.concat(received), asked, 'half a head');
  if (!String(received[0]).startsWith('HTTP/1.1 408 ')) unit.lose('half a head is not answered 408');
  first.destroy();
}
