// Requests whose end or whose headers two programs can read differently (RFC 9112 section 11.2), through a proxy of
// scripts/deploy: neither the proxy nor the service behind it may see a request that the other one does not.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { head, openRaw } from './raw-http.ts';
import { SITE_NAME, type Site } from './proxy.ts';

interface Form {
  readonly name: string;
  /** Lines of the request's head after the first ones, and what follows the head. */
  readonly lines: readonly string[];
  readonly body?: string;
  /** Instead of `POST / HTTP/1.1`. */
  readonly requestLine?: string;
  /** Instead of the name of the site. */
  readonly host?: string;
  /** The body hides a second request for a reader that follows RFC 9112 section 6.3. */
  readonly holdsTwo?: boolean;
}

/** The header that the service believes when it comes from a deployed proxy. */
const CLAIMING = 'X-SSL-Client-Cert';

const CHUNKED = 'Transfer-Encoding: chunked';
const END = '0\r\n\r\n';

function chunk(content: string): string {
  return `${content.length.toString(16)}\r\n${content}\r\n${END}`;
}

/** Forms that leave in doubt where the body ends. `hidden` is a whole request. */
function lengthForms(hidden: string): Form[] {
  const both = [`Content-Length: ${END.length + hidden.length}`, CHUNKED];
  const encodings = [
    'Transfer-Encoding: xchunked', 'Transfer-Encoding: chunked, identity', 'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: "chunked"', 'Transfer-Encoding: chunked;a=b', 'Transfer-Encoding: \x0bchunked',
    'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding:\r\n chunked', 'Transfer-Encoding : chunked',
    `${CHUNKED}\r\nTransfer-Encoding: identity`, `${CHUNKED}\r\n${CHUNKED}`, `X: y\n${CHUNKED}`, `X: y\r${CHUNKED}`,
    'Transfer_Encoding: chunked',
  ];
  const lengths = [
    'Content-Length: +5', 'Content-Length: -5', 'Content-Length: 0x5', 'Content-Length: 5, 5', 'Content-Length: 0, 5',
    'Content-Length: 5 5', 'Content-Length : 5', 'Content-Length: 5\r\n 5', 'Content-Length: 18446744073709551621',
    'Content-Length: 5\r\nContent-Length: 5', 'Content-Length: 5\r\nContent-Length: 0', 'Content-Length: ',
    'X: y\nContent-Length: 5',
  ];
  const hiding = chunk(hidden);
  return [
    { name: 'length and chunked, the length longer', lines: both, body: END + hidden, holdsTwo: true },
    { name: 'chunked and length, the length longer', lines: both.toReversed(), body: END + hidden, holdsTwo: true },
    { name: 'length and chunked, the length shorter', lines: ['Content-Length: 4', CHUNKED], body: hiding },
    { name: 'chunked in HTTP/1.0', requestLine: 'POST / HTTP/1.0', lines: [CHUNKED], body: hiding },
    ...encodings.map((line) => ({ name: line, lines: [line, `Content-Length: ${hiding.length}`], body: hiding })),
    ...lengths.map((line) => ({
      name: line, lines: [line], body: `x=\r\n\n${hidden}`, holdsTwo: /: 5, 5$|Content-Length: 5$/.test(line),
    })),
  ];
}

/** Forms that leave in doubt what a chunk is. */
function chunkForms(hidden: string): Form[] {
  const bodies = {
    'a size in 0x': `0x1\r\nx\r\n${END}`,
    'a negative size': `-1\r\nx\r\n${END}`,
    'a size beyond 64 bits': `10000000000000001\r\nx\r\n${END}`,
    'a size and a space': `1 \r\nx\r\n${END}`,
    'no size': `\r\nx\r\n${END}`,
    'a line feed after the size': `1\nx\r\n${END}`,
    'a line feed in an extension': `1;a\nb\r\nx\r\n${END}`,
    'a carriage return in an extension': `1;a\rb\r\nx\r\n${END}`,
    'a chunk that is longer than its size': `1\r\nxy\r\n${END}`,
    'a line feed after the chunk': `1\r\nx\n${END}`,
    'a line feed at the end': `1\r\nx\r\n0\n\n`,
    'a request in an extension': `1;${hidden.replaceAll('\r\n', ' ')}\r\nx\r\n${END}`,
  };
  return Object.entries(bodies).map(([name, body]) => ({ name, lines: [CHUNKED], body }));
}

/** Forms that leave in doubt where a header begins, whose it is, or where the request goes. `claim` names the admin. */
function headForms(claim: string): Form[] {
  const one = 'Content-Length: 1';
  const lines = [
    claim.replace(':', ' :'), claim.replace(':', '\t:'), claim.replaceAll('-', '_'), ` ${claim}`, `X: y\r\n ${claim}`,
    `X: y\n${claim}`, `X: y\r${claim}`, `X: y\x00\r\n${claim}`, `: y\r\n${claim}`, `no colon\r\n${claim}`,
    `${claim}\r\n${claim}`, `X: y\r\n folded\r\n${claim}`,
  ];
  const targets = [
    `http://${SITE_NAME}/`, `https://${SITE_NAME}/`, `//${SITE_NAME}/`, `http://${SITE_NAME}@elsewhere.example/`,
    'http://elsewhere.example/', 'ftp://elsewhere.example/', '/%2e%2e/', '/../', '/\\', '/#x', '/?x#y', '*', 'x',
  ];
  const versions = ['HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 x'];
  return [
    ...lines.map((line) => ({ name: JSON.stringify(line), lines: [one, line], body: 'x' })),
    ...targets.map((target) => ({
      name: `to ${target}`, requestLine: `POST ${target} HTTP/1.1`, lines: [one, claim], body: 'x',
    })),
    ...versions.map((version) => ({
      name: `of version ${version}`, requestLine: `POST / ${version}`, lines: [one, claim], body: 'x',
    })),
    {
      name: 'a claim in a trailer',
      lines: [CHUNKED, `Trailer: ${CLAIMING}`],
      body: `1\r\nx\r\n0\r\n${claim}\r\n\r\n`,
    },
    { name: 'two hosts', lines: [one, 'Host: elsewhere.example'], body: 'x' },
    { name: 'a host with a path', host: `${SITE_NAME}/x`, lines: [one], body: 'x' },
    {
      name: 'an upgrade',
      lines: [one, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
      body: 'x',
    },
    { name: 'a tunnel', requestLine: `CONNECT ${SITE_NAME}:80 HTTP/1.1`, lines: [claim] },
    { name: 'a GET with a body', requestLine: 'GET /health HTTP/1.1', lines: [one, claim], body: 'x' },
  ];
}

function formsOf(hidden: string, claim: string): Form[] {
  return [...lengthForms(hidden), ...chunkForms(hidden), ...headForms(claim)];
}

interface Ids {
  /** Request ids of the form, of the request that it hides, and of a plain request after it on the same connection. */
  readonly outer: string;
  readonly inner: string;
  readonly after: string;
}

/** Request ids of the final answers, in order; undefined for an answer that is not the service's. */
type Answered = readonly (string | undefined)[];

async function answersTo(t: TestContext, { httpPort }: Site, form: Form, { outer, after }: Ids): Promise<Answered> {
  const { requestLine = 'POST / HTTP/1.1', host = SITE_NAME, lines, body = '' } = form;
  const connection = await openRaw(t, httpPort);
  connection.send(head(requestLine, `Host: ${host}`, `X-Request-ID: ${outer}`, ...lines) + body
    + head('GET /health HTTP/1.1', `Host: ${SITE_NAME}`, `X-Request-ID: ${after}`, 'Connection: close'));
  const received = await connection.rest().catch((error: Error) => assert.fail(`${form.name}: ${error.message}`));
  const answers = received.split(/(?=HTTP\/1\.[01] \d{3} )/).filter((part) => /^HTTP\/1\.[01] [2-5]/.test(part));
  return answers.map((answer) => /^x-request-id: (\S+)/im.exec(answer)?.[1]);
}

/** One answer to the form, then one to what came after it, unless the connection was closed before. */
function assertInOrder(form: Form, { outer, inner, after }: Ids, answered: Answered): void {
  const said = `${form.name}: ${answered.join(' ')}`;
  const [first, ...others] = answered;
  assert.ok(answered.length > 0, `${form.name} is answered`);
  assert.ok(first !== inner && first !== after, said);
  assert.equal(others.includes(outer), false, said);
  assert.ok(others.length <= (form.holdsTwo === true ? 2 : 1), said);
  assert.ok(form.holdsTwo === true || !others.includes(inner), said);
}

/** Sends each form to the port without TLS, with a claim to be the admin in the form or hidden in its body. */
export async function checkForms(t: TestContext, site: Site): Promise<void> {
  const { logged } = site.app;
  const claim = `${CLAIMING}: ${readFileSync(join(site.folder, 'admin.der')).toString('base64')}`;
  const firstLogged = logged.length;
  const answeredIds = new Set<unknown>();
  for (const index of formsOf('', claim).keys()) {
    const ids = { outer: `outer-${index}`, inner: `inner-${index}`, after: `after-${index}` };
    const hidden = head('GET /health HTTP/1.1', `Host: ${SITE_NAME}`, `X-Request-ID: ${ids.inner}`, claim);
    const form = formsOf(hidden, claim)[index]!;
    const answered = await answersTo(t, site, form, ids);
    assertInOrder(form, ids, answered);
    for (const id of answered) answeredIds.add(id);
  }
  await checkOrder(t, site);

  const requests = logged.slice(firstLogged).filter(({ event }) => event === 'request');
  const seen = requests.map(({ details }) => String(details?.['request_id']));
  assert.equal(new Set(seen).size, seen.length, 'the service has seen no request twice');
  // If a form breaks off in its body, the service may have seen its beginning, and the proxy may have answered it.
  const unanswered = seen.filter((id) => !answeredIds.has(id) && !/^(?:outer|plain)-/.test(id));
  assert.deepEqual(unanswered, [], 'the service has seen no request that the proxy has not');
  assert.deepEqual(requests.filter(({ clientId }) => clientId !== undefined), [], 'no claim has arrived');
}

/** Nothing is left over on the connections between the proxy and the service: each request gets its own answer. */
async function checkOrder(t: TestContext, { httpPort }: Site): Promise<void> {
  const ids = Array.from({ length: 16 }, (_, index) => `plain-${index}`);
  const answers = await Promise.all(ids.map(async (id) => {
    const connection = await openRaw(t, httpPort);
    connection.send(head('GET /health HTTP/1.1', `Host: ${SITE_NAME}`, `X-Request-ID: ${id}`));
    const answer = await connection.next();
    return [answer.status, answer.header('x-request-id')];
  }));
  assert.deepEqual(answers, ids.map((id) => [200, id]));
}
