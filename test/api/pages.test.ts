// What browsers are shown in place of JSON, and that only browsers are: negotiation, the pages of GET and HEAD, errors.
// The forms are page-forms.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { request as requestHttp } from 'node:http';
import { test } from 'node:test';
import { assertContract } from '../support/answer-contract.ts';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import { BROWSERS, linesOf, show } from '../support/browser.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { assertPage, elements, only, textOf } from '../support/html.ts';
import { startHttp } from '../support/http-server.ts';
import { PKI } from '../support/pki.ts';
import { head, openRaw } from '../support/raw-http.ts';

const HTML = 'text/html; charset=utf-8';

/** Accept, and whether it is answered with HTML. */
const ACCEPT: readonly (readonly [accept: string | undefined, isHtml: boolean])[] = [
  ...Object.values(BROWSERS).map((accept) => [accept, true] as const),
  // w3m takes every application/* as gladly as HTML.
  ['text/html, text/*;q=0.5, image/*, application/*, audio/*, video/*, inode/*', false],
  // No Accept; curl, wget, fetch; programs.
  [undefined, false], ['*/*', false], ['', false], ['application/json', false], ['application/json, text/plain, */*', false],
  ['text/plain', false], ['text/*', false], ['text/*;q=0.5, application/json;q=0.4', false], ['application/xhtml+xml', false],
  ['text/html', true], ['TEXT/HTML', true], ['text/html;q=0.001', true], ['text/html;level=1', true], ['text/htmlx', false],
  ['text/html, */*', false], ['text/html, application/json', false], ['text/html;q=0.9, application/json;q=0.9', false],
  ['text/html;q=0.9, application/json;q=0.8', true], ['text/html;q=0.8, application/json;q=0.9', false],
  ['text/html;q=0.5, application/*;q=0.4, */*', true], ['text/html;q=0.5, application/*;q=0.6', false],
  ['text/html;q=0', false], ['text/html;q=2', false], ['text/html;q=x', false], ['text/html, application/json;q=x', true],
  ['x/text/html', false],
];

/** Over node:http, since fetch always sends Accept. */
function typeOf(app: RunningApp, path: string, accept: string | undefined): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = accept === undefined ? {} : { Accept: accept };
    requestHttp(`${app.url}${path}`, { headers }, (response) => {
      response.resume().on('end', () => resolve(response.headers['content-type']));
    }).on('error', reject).end();
  });
}

test('pages: only where Accept names text/html and gives it more weight than JSON', async (t) => {
  const app = await startApp(t);
  const id = await app.store('hello');
  for (const [accept, isHtml] of ACCEPT) {
    for (const path of ['/', `/${id}`, '/unknown', '/bad-id', '/a/b']) {
      assert.equal(await typeOf(app, path, accept), isHtml ? HTML : 'application/json', `${path} for ${accept}`);
    }
    assert.equal(await typeOf(app, `/${id}/raw`, accept), isHtml ? 'text/plain; charset=utf-8' : 'text/plain', accept);
  }
});

test('pages: what has no page is the same for browsers', async (t) => {
  const app = await startApp(t, PKI);
  const types: Record<string, string> = {
    '/health': 'application/json', '/challenge': 'application/json', '/client': 'text/x-shellscript; charset=utf-8',
    '/pki': 'application/json', '/register/challenge': 'application/json', '/pki/certs': 'application/json',
  };
  for (const [path, type] of Object.entries(types)) assert.equal(await typeOf(app, path, BROWSERS.chrome), type, path);
  const created = await app.request('/', { method: 'POST', body: 'x', headers: { Accept: BROWSERS.chrome } });
  assert.equal(created.headers.get('content-type'), 'application/json');
});

test('SERVICE_HTML=0: everyone gets what programs get', async (t) => {
  const app = await startApp(t, { servesHtml: false });
  const id = await app.store('hello');
  const headers = { Accept: BROWSERS.chrome };
  for (const path of ['/', `/${id}`, `/${id}/raw`, '/unknown', '/bad-id', '/a/b']) {
    const [page, plain] = [await app.request(path, { headers }), await app.request(path)];
    assert.equal(page.headers.get('content-type'), path.endsWith('/raw') ? 'text/plain' : 'application/json');
    assert.equal(page.headers.get('vary'), null);
    assert.equal(await page.text(), await plain.text());
  }
  const form = { method: 'POST', headers, body: new URLSearchParams({ reveal: '1' }) };
  const refused = await app.request(`/${id}`, form);
  assert.deepEqual([refused.status, await refused.json()], [405, { error: 'method not allowed' }]);
  assert.equal(refused.headers.get('allow'), 'GET, HEAD, PUT, DELETE, OPTIONS');
});

test('pages: programs get what they got, byte for byte, and are told that browsers get something else', async (t) => {
  const app = await startApp(t);
  const id = await app.store('hello');
  const before = await startApp(t, { servesHtml: false });
  const other = await before.store('hello');
  for (const suffix of ['', '/raw']) {
    const [now, then] = [await app.request(`/${id}${suffix}`), await before.request(`/${other}${suffix}`)];
    assert.equal(now.headers.get('vary'), 'Accept');
    const names = (headers: Headers): string[] => [...headers.keys()].filter((name) => name !== 'vary');
    assert.deepEqual(names(now.headers), names(then.headers));
    assert.equal((await now.text()).replaceAll(id, ''), (await then.text()).replaceAll(other, ''));
  }
  for (const method of ['OPTIONS', 'PATCH', 'POST']) {
    assert.equal((await app.request(`/${id}`, { method })).headers.get('allow'), 'GET, HEAD, PUT, DELETE, OPTIONS');
  }
  assert.ok(!(await (await app.request('/')).text()).includes('POST /{id}'));
});

test('raw for browsers: the charset of text alone; 206, 304 and HEAD alike', async (t) => {
  const app = await startApp(t);
  const headers = { Accept: BROWSERS.safari };
  const id = await app.store('Grüße 日本語 🎉');
  const whole = await app.request(`/${id}/raw`, { headers });
  assert.equal(await whole.text(), 'Grüße 日本語 🎉');
  const etag = whole.headers.get('etag') ?? '';
  for (const [options, status] of [[{ method: 'HEAD', headers }, 200], [{ headers: { ...headers, Range: 'bytes=0-3' } }, 206]] as const) {
    const response = await app.request(`/${id}/raw`, options);
    assert.equal(response.status, status);
    assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(response.headers.get('vary'), 'Accept');
  }
  const unchanged = await app.request(`/${id}/raw`, { headers: { ...headers, 'If-None-Match': etag } });
  assert.deepEqual([unchanged.status, unchanged.headers.get('vary')], [304, 'Accept']);
  const image = await app.store(binaryContent(10), { 'Content-Type': 'image/png' });
  const shown = await app.request(`/${image}/raw`, { headers });
  assert.deepEqual([shown.headers.get('content-type'), shown.headers.get('vary')], ['image/png', null]);
  // The page has no validator, and those of the content do not count for it.
  const page = await app.request(`/${id}`, { headers: { ...headers, 'If-None-Match': etag, Range: 'bytes=0-3' } });
  assert.deepEqual([page.status, page.headers.get('etag')], [200, null]);
});

test('GET /: what this is, with the lines and the limits that JSON has', async (t) => {
  const app = await startApp(t, {
    pkiCaPassword: 'secret', powDifficultyBits: 7, maxAnonBytes: 2048, rateMax: 11, maxExpirySeconds: 3600,
  });
  const shown = await show(app, '/');
  assert.equal(shown.status, 200);
  assert.equal(shown.headers.get('x-robots-tag'), null);
  assert.deepEqual(elements(shown.page, 'h2').map(textOf), ['With pastec', 'With curl', 'With a certificate', 'Limits']);
  const index = await (await app.request('/')).json() as { usage: Record<string, string>; client: Record<string, string> };
  const lines = elements(shown.page, 'pre').map(textOf);
  assert.deepEqual(lines.toSorted(), [...Object.values(index.usage), ...Object.values(index.client)].toSorted());
  assert.ok(lines.includes('sh pastec register --allow-http') && lines.includes(`curl ${app.url}/ID/raw`));
  assert.deepEqual(elements(shown.page, 'h3').map(textOf), ['anonymous', 'untrusted', 'trusted']);
  assert.match(shown.text, /<h3>anonymous<\/h3>\n<p>Without a client certificate\.<[^]*<h3>untrusted<\/h3>\n<p>With /);
  assert.match(shown.text, /<h3>untrusted<\/h3>\n<p>With a client certificate that is not of this service\.</);
  assert.match(shown.text, /<h3>trusted<\/h3>\n<p>With a client certificate of this service\.</);
  assert.match(shown.text, /<h3>anonymous<\/h3>[^]*?<td>2 KiB<\/td>[^]*?<td>1 day, when asked for 1 hour at most<[^]*<h3>untrusted/);
  assert.match(textOf(shown.page), /11 in 1 minute[^]*7 bits for a paste, 24 bits for a registration/);
});

test('GET /: without a CA password nobody can register, and the page says why', async (t) => {
  const { page } = await show(await startApp(t), '/');
  assert.match(textOf(page), /Here no certificates can be issued/);
});

test('GET /: the largest paste, however small', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1, maxAuthBytes: 3 * 1024 * 1024 });
  const page = await (await app.request('/', { headers: { Accept: 'text/html' } })).text();
  const sizes = Array.from(page.matchAll(/Largest paste<\/th><td>(.*?)<\/td>/g), ([, size]) => size);
  assert.deepEqual([sizes[0], sizes.at(-1)], ['1 byte', '3 MiB']);
});

test('GET /{id} of text: what it is, its links and its lines', async (t) => {
  const app = await startApp(t);
  const owner = newFingerprint();
  const content = 'Grüße 日本語 🎉\n\t<b>& "x"</b>\n\nlast';
  const id = await app.store(content, presenting(owner));
  const shown = await show(app, `/${id}`);
  assert.equal(shown.status, 200);
  assert.equal(shown.headers.get('x-robots-tag'), 'noindex');
  assert.equal(shown.heading, 'Text paste');
  assert.equal(textOf(only(shown.page, 'title')), 'Text paste - pasted');
  const facts = Object.fromEntries(elements(shown.page, 'tr').filter((row) => elements(row, 'th').length === 1)
    .map((row) => [textOf(only(row, 'th')), textOf(only(row, 'td'))]));
  const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const nowMs = app.clock.unixMs();
  assert.deepEqual(facts, {
    Type: 'text/plain', Size: `${Buffer.byteLength(content)} bytes`, Created: iso(nowMs),
    Expires: `${iso(nowMs + 604_800_000)} (in 7 days)`, Owner: owner.slice(0, 12),
  });
  assert.equal(linesOf(shown), content);
  const links = elements(only(shown.page, 'nav'), 'a').map(({ attributes }) => attributes);
  assert.deepEqual(links.map(({ href, download }) => [href, download]), [[`${id}/raw`, undefined], [`${id}/raw`, `${id}.txt`]]);
  const numbers = elements(only(shown.page, 'pre'), 'a');
  assert.deepEqual(numbers.map(({ attributes }) => attributes['href']), ['#L1', '#L2', '#L3', '#L4']);
  for (const link of elements(shown.page, 'a')) {
    if (!numbers.includes(link)) assert.equal(link.attributes['rel'], 'nofollow noopener noreferrer');
  }
  app.clock.advance(600_500_000);
  assert.match((await show(app, `/${id}`)).text, /\(in 71 minutes\)/);
});

test('the URL that storing answers, and that pastec prints, opens in a browser', async (t) => {
  const app = await startApp(t);
  const stored = await app.request('/', { method: 'POST', body: 'hello', headers: { Accept: 'text/plain' } });
  const url = (await stored.text()).trimEnd();
  assert.ok(url.startsWith(`${app.url}/`));
  assert.equal(linesOf(await show(app, new URL(url).pathname)), 'hello');
});

test('GET /{id} of text: in pieces what it is at once, whole lines of any size, and a page of its own after each change', async (t) => {
  const app = await startApp(t);
  for (const bytes of [8191, 8192, 8193, 65_536, 65_537, 300_000, 524_288]) {
    const content = 'é <&>\r\n'.repeat(bytes / 8).padEnd(Math.ceil(bytes / 8) * 7, 'x').slice(0, bytes - Math.floor(bytes / 8));
    const id = await app.store(content);
    const shown = await show(app, `/${id}`);
    assert.equal(linesOf(shown), content.replaceAll('\r\n', '\n'), `${bytes} bytes`);
    assert.equal(Number(shown.headers.get('content-length')), Buffer.byteLength(shown.text));
  }
  const owner = presenting(newFingerprint());
  const id = await app.store('before', owner);
  assert.equal(linesOf(await show(app, `/${id}`)), 'before');
  await app.request(`/${id}`, { method: 'PUT', headers: owner, body: 'after' });
  assert.equal(linesOf(await show(app, `/${id}`)), 'after');
});

test('GET /{id} of text: 512 KiB of it, and the rest by its link', async (t) => {
  const app = await startApp(t);
  // The 512 KiB end in the middle of a character.
  const content = `x${'é'.repeat(400_000)}`;
  const shown = await show(app, `/${await app.store(content)}`);
  assert.equal(linesOf(shown), content.slice(0, 262_144));
  assert.match(textOf(shown.page), /These are the first 512 KiB \(524288 bytes\)/);
});

test('GET /{id} of text: made in many turns of the event loop', async (t) => {
  const app = await startApp(t);
  const id = await app.store(`${'x & y'.padEnd(51, '<')}\n`.repeat(10_000));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  assert.equal(elements(only((await show(app, `/${id}`)).page, 'pre'), 'a').length, 10_000);
  isOver = true;
  // Each turn makes 2 KiB of text, and the text is made twice.
  assert.ok(turns > 500, `${turns} turns`);
});

test('GET /{id} of something else: its digest and a link to save it', async (t) => {
  const app = await startApp(t);
  const id = await app.store(binaryContent(70_000), { 'Content-Type': 'image/png' });
  const shown = await show(app, `/${id}`);
  assert.equal(shown.heading, 'Binary paste');
  assert.match(textOf(shown.page), /image\/png/);
  const raw = await app.request(`/${id}/raw`);
  const sha256 = Buffer.from(/:(.*):/.exec(raw.headers.get('repr-digest') ?? '')![1]!, 'base64').toString('hex');
  assert.ok(textOf(shown.page).includes(sha256));
  const links = elements(only(shown.page, 'main'), 'a').map(({ attributes }) => attributes);
  assert.deepEqual(links.map(({ href, download }) => [href, download]), [[`${id}/raw`, id]]);
});

test('GET /{id} of what pastec encrypted: the line that decrypts it, with the place of the key', async (t) => {
  const app = await startApp(t);
  for (const bytes of [0, 100_000]) {
    const sealed = Buffer.concat([Buffer.from('\x89pastec-1\n', 'latin1'), Buffer.alloc(bytes, 0xff)]);
    const id = await app.store(sealed);
    const shown = await show(app, `/${id}`);
    assert.equal(shown.heading, 'Encrypted paste');
    assert.equal(textOf(only(shown.page, 'pre')), `sh pastec get '${app.url}/${id}#KEY'`);
    const once = await app.store(Buffer.concat([sealed, Buffer.of(1)]), { 'X-Burn-After-Read': '1' });
    const burning = await show(app, `/${once}`);
    assert.equal(textOf(only(burning.page, 'pre')), `sh pastec get '${app.url}/${once}#KEY'`);
    assert.equal((await app.request(`/${once}/raw`)).status, 200);
  }
});

test('HEAD: the headers of the page, and nothing else', async (t) => {
  const app = await startApp(t);
  const headers = { Accept: BROWSERS.chrome };
  const paths = ['/', `/${await app.store('x')}`, `/${await app.store('y'.repeat(100_000))}`, '/unknown',
    `/${await app.store('z', { 'X-Burn-After-Read': '1' })}`];
  for (const path of paths) {
    const [get, head] = [await app.request(path, { headers }), await app.request(path, { method: 'HEAD', headers })];
    assert.equal(head.status, get.status);
    for (const name of ['content-type', 'content-length', 'vary', 'x-robots-tag']) {
      assert.equal(head.headers.get(name), get.headers.get(name), `${path}: ${name}`);
    }
    assert.equal(await head.text(), '');
    await get.text();
  }
});

test('errors: a page with the status, the headers and the words of JSON', async (t) => {
  const app = await startApp(t, { ...PKI, maxAnonBytes: 1000, rateMax: 1 });
  await app.request('/', { method: 'POST', body: 'x', headers: { 'X-Forwarded-For': '192.0.2.1' } });
  const id = await app.store('content', { 'X-Forwarded-For': '192.0.2.2' });
  const cases: readonly (readonly [path: string, options: RequestInit])[] = [
    ['/unknown', {}], ['/bad-id', {}], ['/a/b', {}], ['/', { method: 'DELETE' }], ['/audit', {}],
    [`/${id}`, { method: 'DELETE' }], ['/', { method: 'POST', body: 'x'.repeat(1001), headers: { 'X-Forwarded-For': '192.0.2.3' } }],
    ['/', { method: 'POST', body: 'x', headers: { 'X-Forwarded-For': '192.0.2.1' } }],
    [`/${id}/raw`, { headers: { Range: 'bytes=100-' } }], ['/', { method: 'POST', headers: { Origin: 'https://elsewhere.test' } }],
    ['/pastes?limit=<b>', { headers: presenting(newFingerprint()) }], ['/pki/revoke/00', { method: 'POST', body: '{' }],
  ];
  for (const [path, options] of cases) {
    const json = await app.request(path, options);
    const { error, hint, ...fields } = await json.json() as Record<string, string>;
    const shown = await show(app, path, options);
    assert.equal(shown.status, json.status, path);
    assert.equal(shown.heading, error);
    assert.equal(shown.headers.get('x-robots-tag'), 'noindex');
    const text = textOf(shown.page);
    for (const part of [hint ?? '', ...Object.entries(fields).flat()]) assert.ok(text.includes(String(part)), `${path}: ${part}`);
    for (const name of ['vary', 'allow', 'retry-after', 'content-range', 'x-ratelimit-limit']) {
      assert.equal(shown.headers.get(name), json.headers.get(name), `${path}: ${name}`);
    }
  }
});

test('errors: an unexpected one tells a browser no more than anyone', async (t) => {
  const { url } = await startHttp(t);
  const answer = await fetch(`${url}/fail`, { headers: { Accept: BROWSERS.chrome } });
  const text = await answer.text();
  assert.equal(answer.status, 500);
  assert.match(text, /<h1><small>internal server error<\/small><\/h1>/);
  assert.ok(!text.includes('words for the operator'));
});

test('headers: those of the contract exactly once, and what a page adds', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x');
  for (const [path, others] of [['/', []], [`/${id}`, ['x-robots-tag']], ['/unknown', ['x-robots-tag']]] as const) {
    const connection = await openRaw(t, app.port);
    connection.send(head(`GET ${path} HTTP/1.1`, `Accept: ${BROWSERS.chrome}`));
    const answer = await connection.next();
    assertContract(answer);
    const added = ['content-type', 'vary', ...others, 'content-length', 'date', 'connection', 'keep-alive'];
    assert.deepEqual([...answer.headers.keys()].slice(9).toSorted(), added.toSorted(), path);
  }
});

interface Refused {
  readonly status: number;
  readonly words: string;
  readonly retryAfter: string | null;
}

/** The answers to the same request of a program and of a browser, and the page's text; its words are its heading. */
async function refusedBoth(app: RunningApp, path: string, headers = {}): Promise<readonly [Refused, Refused, string]> {
  const [json, page] = await Promise.all(['*/*', BROWSERS.chrome].map((accept) => (
    app.request(path, { headers: { ...headers, Accept: accept } })
  ))) as [Response, Response];
  const of = ({ status, headers }: Response, words: string): Refused => ({
    status, words, retryAfter: headers.get('retry-after'),
  });
  const { error } = await json.json() as { error: string };
  const document = assertPage(await page.text());
  return [of(json, error), of(page, textOf(only(document, 'h1'))), textOf(document)];
}

test('errors: 429 has the words and the headers of JSON, and says how long to wait', async (t) => {
  const app = await startApp(t, { lookupRateMax: 1 });
  const id = await app.store('x');
  await app.request(`/${id}`);
  for (const path of [`/${id}`, `/${id}/raw`, '/unknown']) {
    const [json, page, text] = await refusedBoth(app, path);
    assert.deepEqual(json, { status: 429, words: 'lookup rate limit exceeded', retryAfter: '60' });
    assert.deepEqual(page, json, path);
    assert.match(text, /Try again in 1 minute/);
  }
});

test('errors: 503 has the words and the headers of JSON, says how long to wait, and asks once more', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', { 'X-Paste-Password': 'right' });
  const wrong = { 'X-Paste-Password': 'wrong' };
  // More than may wait for a password check at a time.
  const both = await Promise.all(Array.from({ length: 40 }, () => refusedBoth(app, `/${id}/raw`, wrong)));
  const refused = both.filter(([json, page]) => json.status === 503 && page.status === 503);
  assert.ok(refused.length > 0);
  for (const [json, page, text] of refused) {
    assert.deepEqual(json, { status: 503, words: 'too many password checks in progress', retryAfter: '1' });
    assert.deepEqual(page, json);
    assert.match(text, /Try again in 1 second[^]*Password of this paste/);
  }
});

/** Programs that preview links for others; most of them say that they take anything. */
const PREVIEWS = [
  'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)', 'Twitterbot/1.0', 'facebookexternalhit/1.1', 'TelegramBot (like TwitterBot)',
  'WhatsApp/2.23.20.0 A', 'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)', 'LinkedInBot/1.0',
  'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'SkypeUriPreview Preview/0.5',
  'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 MicrosoftPreview/2.0', 'Mozilla/5.0 (compatible; Mastodon/4.2)',
  'Synapse (bot; +https://github.com/matrix-org/synapse)',
];

test('looking never burns: link previews, prefetching, HEAD and reloading', async (t) => {
  const app = await startApp(t);
  const looks = [
    ...PREVIEWS.map((agent) => ({ 'User-Agent': agent })), { Purpose: 'prefetch' }, { 'Sec-Purpose': 'prefetch' },
    { 'Sec-Purpose': 'prefetch;prerender' }, { 'X-Moz': 'prefetch' }, { 'X-Purpose': 'preview' }, {},
  ];
  const id = await app.store('the secret', { 'X-Burn-After-Read': 'true' });
  for (const Accept of [BROWSERS.chrome, '*/*']) {
    for (const look of looks) {
      for (const method of ['GET', 'HEAD']) {
        const response = await app.request(`/${id}`, { method, headers: { Accept, ...look } as Record<string, string> });
        assert.equal(response.status, 200);
        assert.ok(!(await response.text()).includes('the secret'));
      }
      const headers = { Accept, ...look } as Record<string, string>;
      assert.equal((await app.request(`/${id}/raw`, { method: 'HEAD', headers })).status, 200);
      if ('User-Agent' in look || Object.keys(look).length === 0) continue;
      assert.equal((await app.request(`/${id}/raw`, { headers })).status, 403, JSON.stringify(look));
    }
  }
  const shown = await show(app, `/${id}`);
  assert.equal(shown.heading, 'This paste can be read once');
  assert.deepEqual(elements(shown.page, 'button').map(({ attributes }) => attributes), [{ name: 'reveal', value: '1' }]);
  assert.equal(await (await app.request(`/${id}/raw`)).text(), 'the secret');
});

test('looking is limited as it is for programs, and both count as one', async (t) => {
  const app = await startApp(t, { lookupRateMax: 3 });
  const id = await app.store('x');
  assert.equal((await show(app, `/${id}`)).status, 200);
  assert.equal((await app.request(`/${id}`)).status, 200);
  assert.equal((await show(app, '/unknown')).status, 404);
  assert.equal((await show(app, `/${id}`)).status, 429);
  assert.equal((await app.request(`/${id}/raw`)).status, 429);
});

test('content is never served as HTML, whatever it is called', async (t) => {
  const app = await startApp(t);
  const types = ['text/html', 'application/xhtml+xml', 'image/svg+xml', 'text/xml'];
  for (const type of types) {
    for (const content of ['<!DOCTYPE html><script>alert(1)</script>', Buffer.from('<html>\xff', 'latin1')]) {
      const id = await app.store(content, { 'Content-Type': type });
      for (const headers of [{}, { Accept: BROWSERS.chrome }] as Record<string, string>[]) {
        const raw = await app.request(`/${id}/raw`, { headers });
        assert.match(raw.headers.get('content-type') ?? '', /^(?:text\/plain(?:; charset=utf-8)?|application\/octet-stream)$/);
      }
      const shown = await show(app, `/${id}`);
      assert.ok(!shown.text.includes('<script'));
    }
  }
});

test('lone surrogates in JSON, controls and overrides reach the page as marks', async (t) => {
  const app = await startApp(t);
  const store = async (json: string): Promise<string> => {
    const response = await app.request('/', { method: 'POST', body: json, headers: { 'Content-Type': 'application/json' } });
    return (await response.json() as { id: string }).id;
  };
  const id = await store('{"content": "\\ud800<i>\\u0000\\u001b[31m\\u202e\\udc00\\ufeff"}');
  assert.equal(linesOf(await show(app, `/${id}`)), '\ufffd<i><U+0000><U+001B>[31m<U+202E>\ufffd<U+FEFF>');
});
