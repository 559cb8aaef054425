// POST /{id} of the two forms of pages: a password, and reading once. Refused and limited as GET of the content is.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import { assertCommonHeaders } from '../support/answer-contract.ts';
import { BROWSERS, linesOf, send, show } from '../support/browser.ts';
import { insertCertificate, presenting } from '../support/certificates.ts';
import { turnsOf } from '../support/cpu.ts';
import { type Element, elements, only, textOf } from '../support/html.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { ROOT } from '../support/source.ts';

const PASSWORD = 'pä ss&wörd=🎉';
const LOCKED = { 'X-Paste-Password': Buffer.from(PASSWORD).toString('latin1') };
const BURNING = { 'X-Burn-After-Read': 'true' };
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** The one form of the page: where it goes, seen from `path`, and what its fields are called. */
function formOf(page: Element, path: string): { action: string; fields: string[] } {
  const { attributes } = only(page, 'form');
  assert.equal(attributes['method'], 'post');
  const fields = [...elements(page, 'input'), ...elements(page, 'button')].flatMap(({ attributes: { name } }) => name ?? []);
  return { action: new URL(attributes['action']!, `http://paste.test/under${path}`).pathname.replace('/under', ''), fields };
}

function post(app: RunningApp, path: string, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
  const given = { Accept: BROWSERS.firefox, 'Content-Type': FORM_TYPE, ...headers };
  return app.request(path, { method: 'POST', body: body as string, headers: given });
}

test('a paste with a password: its page and the page of its raw ask for it, and the form opens it', async (t) => {
  const app = await startApp(t);
  const content = 'secret\n\tGrüße';
  const id = await app.store(content, LOCKED);
  for (const path of [`/${id}`, `/${id}/raw`]) {
    const asked = await show(app, path);
    assert.deepEqual([asked.status, asked.heading], [401, 'password required']);
    assert.deepEqual(formOf(asked.page, path), { action: `/${id}`, fields: ['password'] });
    const [field] = elements(asked.page, 'input');
    assert.equal(field!.attributes['type'], 'password');
    assert.ok(!asked.text.includes('secret'));
  }
  const wrong = await show(app, ...send(`/${id}`, { password: 'wrong' }));
  assert.deepEqual([wrong.status, wrong.heading], [403, 'invalid password']);
  assert.deepEqual(formOf(wrong.page, `/${id}`), { action: `/${id}`, fields: ['password'] });
  for (const fields of [{}, { password: '' }] as Record<string, string>[]) {
    assert.equal((await show(app, ...send(`/${id}`, fields))).status, 401);
  }
  const opened = await show(app, ...send(`/${id}`, { password: PASSWORD }));
  assert.equal(opened.status, 200);
  assert.equal(linesOf(opened), content);
  // No raw link, which would only ask for the password again.
  assert.deepEqual(elements(opened.page, 'nav'), []);
  assert.ok(!opened.text.includes(PASSWORD), 'the password is in no page');
});

test('a form with a password that is not needed, and one for what is not there', async (t) => {
  const app = await startApp(t);
  const id = await app.store('open');
  assert.equal(linesOf(await show(app, ...send(`/${id}`, { password: 'any' }))), 'open');
  assert.equal(linesOf(await show(app, ...send(`/${id}`, {}))), 'open');
  const unknown = await show(app, ...send('/unknown', { password: 'any' }));
  assert.deepEqual([unknown.status, unknown.heading], [404, 'paste not found']);
  assert.match(textOf(unknown.page), /It has expired, was deleted, or could be read once/);
  assert.equal((await show(app, ...send('/bad-id', { password: 'any' }))).status, 400);
  const long = await show(app, ...send(`/${id}`, { password: 'x'.repeat(1025) }));
  assert.deepEqual([long.status, long.heading], [400, 'password longer than 1024 characters']);
});

test('reading once: the button reads it, and it is gone for everyone', async (t) => {
  const app = await startApp(t);
  const id = await app.store('once and\nnever again', BURNING);
  const asked = await show(app, `/${id}`);
  assert.deepEqual(formOf(asked.page, `/${id}`), { action: `/${id}`, fields: ['reveal'] });
  assert.equal(only(asked.page, 'form').attributes['target'], '_blank', 'a second click cancels nothing');
  // A form that is sent without the button only looks.
  assert.equal((await show(app, ...send(`/${id}`, {}))).heading, 'This paste can be read once');
  const read = await show(app, ...send(`/${id}`, { reveal: '1' }));
  assert.equal(linesOf(read), 'once and\nnever again');
  assert.equal(read.headers.get('x-burn-after-read'), 'true');
  assert.match(textOf(read.page), /this page is the only copy/);
  assert.equal(elements(only(read.page, 'main'), 'a').filter(({ attributes }) => 'rel' in attributes).length, 0);
  assert.equal((await show(app, ...send(`/${id}`, { reveal: '1' }))).status, 404);
  assert.equal((await app.request(`/${id}/raw`)).status, 404);
});

test('reading once: of two at the same moment one gets it', async (t) => {
  const app = await startApp(t);
  const body = 'reveal=1';
  const lines = [`Accept: ${BROWSERS.chrome}`, `Content-Type: ${FORM_TYPE}`, `Content-Length: ${body.length}`];
  for (let round = 0; round < 20; round += 1) {
    const content = round % 2 === 0 ? `round ${round}` : `round ${round} `.padEnd(200_000, 'x');
    const id = await app.store(content, BURNING);
    const connections = await Promise.all([openRaw(t, app.port), openRaw(t, app.port)]);
    for (const connection of connections) connection.send(head(`POST /${id} HTTP/1.1`, ...lines) + body);
    const answers = await Promise.all(connections.map((connection) => connection.next('POST')));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 404]);
    assert.equal(answers.filter((answer) => answer.body.includes(`round ${round}`)).length, 1);
  }
});

test('reading once, with a password: a look takes it, reading takes it again, a wrong one burns nothing', async (t) => {
  const app = await startApp(t);
  const id = await app.store('both', { ...LOCKED, ...BURNING });
  assert.equal((await show(app, `/${id}`)).status, 401);
  const asked = await show(app, ...send(`/${id}`, { password: PASSWORD }));
  assert.deepEqual([asked.status, asked.heading], [200, 'This paste can be read once']);
  assert.deepEqual(formOf(asked.page, `/${id}`), { action: `/${id}`, fields: ['password', 'reveal'] });
  assert.ok(!asked.text.includes('both'));
  for (const [fields, status] of [[{ reveal: '1' }, 401], [{ reveal: '1', password: 'wrong' }, 403]] as const) {
    assert.equal((await show(app, ...send(`/${id}`, fields))).status, status);
  }
  assert.equal(linesOf(await show(app, ...send(`/${id}`, { password: PASSWORD, reveal: '1' }))), 'both');
  assert.equal((await show(app, ...send(`/${id}`, { password: PASSWORD, reveal: '1' }))).status, 404);
});

test('the forms: what is no text, or too long for a page, is saved whole', async (t) => {
  const app = await startApp(t);
  const long = `${'line é\n'.repeat(80_000)}end`;
  const contents = [
    [binaryContent(1000), 'application/octet-stream'], [binaryContent(300_000), 'image/png'], [long, 'text/plain'],
  ] as const;
  for (const [content, type] of contents) {
    for (const [headers, body] of [[BURNING, 'reveal=1'], [LOCKED, `password=${encodeURIComponent(PASSWORD)}`]] as const) {
      const id = await app.store(content, { 'Content-Type': type, ...headers });
      const answer = await post(app, `/${id}`, body);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-type'), type === 'text/plain' ? 'text/plain; charset=utf-8' : type);
      assert.equal(answer.headers.get('content-disposition'), `attachment; filename="${id}"`);
      assert.equal(answer.headers.get('x-burn-after-read'), headers === BURNING ? 'true' : null);
      assert.equal(answer.headers.get('etag'), null);
      assert.equal(answer.headers.get('x-robots-tag'), 'noindex');
      assert.equal(answer.headers.has('repr-digest'), headers !== BURNING);
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.from(content as string));
    }
  }
});

test('POST /{id} that is no form of a page: 405 as ever, and nothing is counted, read or burned', async (t) => {
  const app = await startApp(t, { lookupRateMax: 1 });
  const id = await app.store('x', BURNING);
  const cases = [
    { 'Content-Type': 'application/json' }, { 'Content-Type': 'multipart/form-data; boundary=x' }, { 'Content-Type': 'text/plain' },
    { 'Content-Type': `${FORM_TYPE}x` }, { 'Content-Type': '' }, { Accept: '*/*' }, { Accept: 'application/json' },
  ];
  for (const headers of cases) {
    const answer = await post(app, `/${id}`, 'reveal=1', headers);
    assert.equal(answer.status, 405, JSON.stringify(headers));
    assert.equal(answer.headers.get('allow'), 'GET, HEAD, PUT, DELETE, OPTIONS');
    const isHtml = !('Accept' in headers);
    assert.equal(answer.headers.get('content-type'), isHtml ? 'text/html; charset=utf-8' : 'application/json');
    await answer.text();
  }
  assert.equal(linesOf(await show(app, ...send(`/${id}`, { reveal: '1' }))), 'x');
  assert.equal((await post(app, `/${id}/raw`, 'reveal=1')).status, 405);
});

test('POST /{id}: the media type may have parameters, and any case', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x');
  for (const type of [`${FORM_TYPE}; charset=UTF-8`, FORM_TYPE.toUpperCase()]) {
    assert.equal((await post(app, `/${id}`, '', { 'Content-Type': type })).status, 200);
  }
});

test('POST /{id}: the form opens every paste whose password a header can set', async (t) => {
  const app = await startApp(t);
  const byHeader = (password: string) => ({ 'X-Paste-Password': Buffer.from(password).toString('latin1') });
  for (const password of ['日'.repeat(1024), '🔑'.repeat(1024)]) {
    const id = await app.store('long', byHeader(password));
    assert.equal(linesOf(await show(app, ...send(`/${id}`, { password }))), 'long');
  }
  const id = await app.store('blanks', byHeader(' a b\t'));
  for (const password of [' a b\t', 'a b', '\ta b  ']) {
    assert.equal(linesOf(await show(app, ...send(`/${id}`, { password }))), 'blanks');
  }
  assert.equal((await show(app, ...send(`/${id}`, { password: 'ab' }))).status, 403);
  assert.equal((await show(app, ...send(`/${id}`, { password: '  ' }))).status, 401);
});

test('POST /{id}: a password full of blanks is looked at in no time, and holds nobody up', async (t) => {
  const app = await startApp(t);
  await post(app, '/unknown', 'password=x');
  for (const blank of ['+', '%09']) {
    const password = `x${blank.repeat(16_000 / blank.length)}x`;
    const { longestMs } = await turnsOf(async () => {
      assert.equal((await post(app, '/unknown', `password=${password}`)).status, 400);
    });
    // With an expression that tried to end at each blank, 16 000 blanks took 200 ms.
    assert.ok(longestMs < 60, `${longestMs} ms`);
  }
});

test('POST /{id}: malformed forms are 400, larger ones than 16 KiB 413, and nothing is burned', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', BURNING);
  for (const body of ['x', 'reveal=1&reveal=1', 'reveal=1&other=1', 'reveal=2', 'reveal=1&password=%zz', 'reveal=1&password=%ff', 'reveal=1&']) {
    const refused = await show(app, `/${id}`, { method: 'POST', body, headers: { 'Content-Type': FORM_TYPE } });
    assert.equal(refused.status, 400, body);
    assert.match(refused.heading, /^invalid form/);
  }
  const password = (length: number): string => 'reveal=1&password='.padEnd(length, 'x');
  for (const [length, status] of [[16_384, 400], [16_385, 413]] as const) {
    assert.equal((await post(app, `/${id}`, password(length))).status, status);
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(password(length)));
        controller.close();
      },
    });
    const options = { method: 'POST', body: chunked, duplex: 'half', headers: { Accept: BROWSERS.safari, 'Content-Type': FORM_TYPE } };
    assert.equal((await app.request(`/${id}`, options as RequestInit)).status, status);
  }
  // A form that declares a greater length is refused before its body is sent.
  const asking = await openRaw(t, app.port);
  const lines = ['Content-Length: 16385', 'Expect: 100-continue', `Accept: ${BROWSERS.safari}`, `Content-Type: ${FORM_TYPE}`];
  asking.send(head(`POST /${id} HTTP/1.1`, ...lines));
  assert.equal((await asking.next()).status, 413);
  assert.equal((await post(app, `/${id}`, 'reveal=1', { 'Content-Encoding': 'gzip' })).status, 415);
  assert.equal((await app.request(`/${id}/raw`)).status, 200);
  const manual = readFileSync(join(ROOT, 'scripts', 'release', 'chapters.md'), 'utf8');
  assert.match(manual, /x-www-form-urlencoded`, at most 16 KiB, refused/);
});

test('POST /{id}: from another site it is refused before anything is done', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', BURNING);
  for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://elsewhere.example' }, { Origin: 'null' }] as Record<string, string>[]) {
    assert.equal((await post(app, `/${id}`, 'reveal=1', headers)).status, 403);
  }
  assert.equal((await post(app, `/${id}`, 'reveal=1', { Origin: app.url })).status, 200);
});

test('POST /{id}: each counts as a lookup, by address and tier, like GET of the content', async (t) => {
  const app = await startApp(t, { lookupRateMax: 2, rateTrustedFactor: 2 });
  const id = await app.store('x', LOCKED);
  const from = { 'X-Forwarded-For': '192.0.2.1' };
  assert.equal((await post(app, `/${id}`, 'password=wrong', from)).status, 403);
  assert.equal((await app.request(`/${id}/raw`, { headers: from })).status, 401);
  const limited = await post(app, `/${id}`, 'password=wrong', from);
  assert.equal(limited.status, 429);
  assert.equal(limited.headers.get('retry-after'), '60');
  assert.equal((await app.request(`/${id}/raw`, { headers: from })).status, 429);
  assert.equal((await post(app, `/${id}`, 'password=wrong', { 'X-Forwarded-For': '192.0.2.2' })).status, 403);
  const trusted = presenting(insertCertificate(app.config.databasePath).fingerprint);
  const statuses: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) statuses.push((await post(app, `/${id}`, 'password=wrong', { ...trusted, 'X-Forwarded-For': '192.0.2.3' })).status);
  assert.deepEqual(statuses, [403, 403, 403, 403, 429]);
});

test('POST /{id}: passwords wait in the queue of all, and past it the page has the form again', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', LOCKED);
  const answers = await Promise.all(Array.from({ length: 60 }, async (_, turn) => {
    const answer = await post(app, turn % 2 === 0 ? `/${id}` : '/abcdef', 'password=wrong');
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text: await answer.text() };
  }));
  const shed = answers.filter(({ status }) => status === 503);
  assert.ok(shed.length > 0 && shed.length < 60);
  for (const { retryAfter, text } of shed) {
    assert.equal(retryAfter, '1');
    assert.match(text, /<h1><small>too many password checks in progress<\/small><\/h1>[^]*<form method="post"/);
  }
  const others = answers.filter(({ status }) => status !== 503).map(({ status }) => status);
  assert.deepEqual([...new Set(others)].toSorted(), [403, 404]);
});

test('POST /{id}: an address that is wanted of a client is under the prefix that a proxy gave it', async (t) => {
  const app = await startApp(t, { urlPrefix: '/paste' });
  const id = await app.store('x', LOCKED);
  const { page, headers } = await show(app, `/${id}/raw`);
  assertCommonHeaders(headers);
  assert.equal(only(page, 'form').attributes['action'], `../${id}`, 'relative, so that any prefix is right');
  const index = await show(app, '/');
  assert.match(textOf(index.page), /\/paste\/client -o pastec/);
});
