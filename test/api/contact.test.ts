// SERVICE_CONTACT over real sockets: in GET /, on its page, and as security.txt, which is only there where it is set.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { startApp } from '../support/app.ts';
import { assertPage, elements, textOf } from '../support/html.ts';

const PATH = '/.well-known/security.txt';
const MAIL = 'mailto:abuse@paste.example?subject=a%20paste&cc=x';

test('SERVICE_CONTACT: GET /, its page, and security.txt', async (t) => {
  const { request } = await startApp(t, { contact: MAIL });
  const index = await (await request('/')).json() as { contact: string; endpoints: Record<string, string> };
  assert.equal(index.contact, MAIL);
  assert.ok(`GET ${PATH}` in index.endpoints);
  const page = await request('/', { headers: { Accept: 'text/html' } });
  const link = elements(assertPage(await page.text(), MAIL), 'a').find(({ attributes }) => attributes['href'] === MAIL);
  assert.ok(link !== undefined && textOf(link) === MAIL);
  assert.equal(link.attributes['rel'], 'nofollow noopener noreferrer');

  const answer = await request(PATH);
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/plain; charset=utf-8']);
  assert.equal(await answer.text(), `Contact: ${MAIL}\nExpires: 2026-07-30T00:00:00Z\n`);
  const head = await request(PATH, { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [200, '']);
  const posted = await request(PATH, { method: 'POST', body: 'x' });
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
});

test('security.txt: expires in less than a year at any moment, and says where it is only over https', async (t) => {
  const { request, clock } = await startApp(t, { contact: 'https://paste.example/abuse', urlPrefix: '/p' });
  const forwarded = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'paste.example' };
  for (const seconds of [0, 43_199, 1, 86_399, 1]) {
    clock.advance(seconds * 1000);
    const text = await (await request(PATH, { headers: forwarded })).text();
    const [contact, expires = '', canonical, ...rest] = text.split('\n');
    assert.deepEqual([contact, canonical, rest], [
      'Contact: https://paste.example/abuse', `Canonical: https://paste.example/p${PATH}`, [''],
    ]);
    const leftMs = Date.parse(expires.slice('Expires: '.length)) - clock.unixMs();
    assert.ok(leftMs > 179 * 86_400_000 && leftMs <= 180 * 86_400_000, expires);
  }
});

/** RFC 9116 section 4, for the fields that may occur; URI is what SERVICE_CONTACT may be (RFC 3986 section 2). */
const URI = String.raw`(?:https:\/\/|mailto:)(?:[A-Za-z0-9._~:\/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+`;
const DATE_TIME = String.raw`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`;
const GRAMMAR = new RegExp(`^Contact: ${URI}\\r?\\nExpires: ${DATE_TIME}\\r?\\n(?:Canonical: ${URI}\\r?\\n)?$`);

test('security.txt: of the grammar of RFC 9116, and under https canonical where it was asked for', async (t) => {
  const tls = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'paste.example:8443' };
  for (const contact of [MAIL, 'https://paste.example/abuse%20here', 'mailto:%C3%A4@paste.example']) {
    const { request } = await startApp(t, { contact });
    for (const [headers, canonical] of [[{}, ''], [tls, `Canonical: https://paste.example:8443${PATH}\n`]] as const) {
      const answer = await request(PATH, { headers });
      // Section 3: text/plain, in UTF-8.
      assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
      const text = await answer.text();
      assert.match(text, GRAMMAR);
      assert.ok(text.startsWith(`Contact: ${contact}\n`) && text.endsWith(`Z\n${canonical}`), text);
    }
  }
});

test('SERVICE_CONTACT not set: nothing of it is there, whatever the method', async (t) => {
  const { request } = await startApp(t);
  const [unknown, known] = await Promise.all(['/.well-known/anything', PATH].map(async (path) => (
    Promise.all(['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'].map(async (method) => {
      const answer = await request(path, { method });
      return [method, answer.status, answer.headers.get('allow'), await answer.text()];
    }))
  )));
  assert.deepEqual(known, unknown);
  assert.deepEqual(known![0], ['GET', 404, null, '{"error":"not found"}\n']);
  const index = await (await request('/')).text();
  assert.doesNotMatch(index, /contact|well-known/);
  assert.doesNotMatch(await (await request('/', { headers: { Accept: 'text/html' } })).text(), /vulnerability/);
});

test('SERVICE_CONTACT: https and mailto URLs, and nothing that is none', () => {
  const contactOf = (text: string): string => loadConfig({ SERVICE_CONTACT: text }, () => '').config.contact;
  for (const text of ['', MAIL, 'https://paste.example/', 'https://[::1]:8443/a?b=c#d']) assert.equal(contactOf(text), text);
  for (const text of [
    'http://paste.example', 'abuse@paste.example', 'javascript:alert(1)', 'mailto:', 'https://', 'https://a b', 'mailto:a\nExpires: x',
    'https://a"><script>', ' https://a', 'https://ä.example', 'MAILTO:a@b',
    'mailto:a@b?subject=100%', 'https://a/%zz', 'https://a/%4',
  ]) {
    assert.throws(() => contactOf(text), /SERVICE_CONTACT: expected an https or mailto URL/, text);
  }
});
