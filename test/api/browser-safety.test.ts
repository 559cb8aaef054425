// What Chromium and Firefox do with the forms of pages, with content that would like to run, and with pages of other
// origins that would like to act for their visitor. How pages look is browser-pages.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createRelay } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import { NAMED_HOST, type Tab } from '../support/browser-driver.ts';
import { HOSTILE, MARKED, SHOWN } from '../support/hostile-texts.ts';
import { type Browser, BROWSERS, startBrowser } from '../support/real-browser.ts';
import { createSeeded, type Seeded } from '../support/seeded.ts';
import {
  drawn, givePassword, PASSWORD, reach, statusOf, textOf, TO_BURN, UNICODE, unexpected, WITH_PASSWORD,
} from '../support/shown-pages.ts';

for (const name of BROWSERS) {
  test(`${name}: forms, and what must not run`, async (t) => {
    const app = await startApp(t);
    const browser = await startBrowser(t, name);
    if (browser === undefined) return;
    const site = { app, browser, url: app.url };
    await t.test('password: typed and sent by keyboard alone', () => password(site));
    await t.test('password: of a binary paste, which is saved', () => lockedBinary(site));
    await t.test('forms work on plain HTTP, where browsers say less', () => (
      password({ ...site, url: `http://${NAMED_HOST}:${app.port}` })
    ));
    await t.test('reading once: by keyboard alone, and not again', () => readOnce(site));
    await t.test('reading once: of two tabs one gets it', () => twoTabs(site));
    await t.test('reading once: two clicks show it too, however late the answer is', (t) => twoClicks(t, site));
    await t.test('reading once: a page of another origin reveals nothing', (t) => otherOrigin(t, site));
    await t.test('content that would run is text', () => hostile(site));
    await t.test('random contents: the same document each time', (t) => randomContents(t, site));
    assert.deepEqual(browser.strayed.filter((line) => line.includes('outside.example')), []);
  });
}

interface Site {
  readonly app: RunningApp;
  readonly browser: Browser;
  /** The address that its tabs open. */
  readonly url: string;
}

async function password({ app, browser, url }: Site): Promise<void> {
  const place = `${url}/${await app.store(`secret ${UNICODE}`, WITH_PASSWORD)}`;
  const tab = await browser.newTab();
  await tab.open(place);
  assert.equal(await statusOf(tab), 401);
  assert.ok(!(await textOf(tab)).includes('secret'));
  await drawn(tab);
  assert.equal(await tab.evaluate('document.activeElement.name'), 'password', 'it can be typed at once');
  await givePassword(tab, 'wrong');
  assert.equal(await statusOf(tab), 403);
  assert.match(await textOf(tab), /^invalid password/i);
  assert.equal(await tab.evaluate('document.querySelector("input").value'), '');
  await givePassword(tab, PASSWORD);
  assert.equal(await statusOf(tab), 200);
  assert.ok((await textOf(tab)).includes(`secret ${UNICODE}`));
  assert.equal(await tab.evaluate('location.href'), place, 'the password is in no URL');
  assert.ok(!(await tab.evaluate<string>('document.documentElement.outerHTML')).includes(PASSWORD.slice(0, 5)));
  assert.deepEqual(tab.requests, [place, place, place]);
  assert.deepEqual(unexpected(tab), []);
}

async function lockedBinary({ app, browser, url }: Site): Promise<void> {
  const content = binaryContent(70_000);
  const id = await app.store(content, { ...WITH_PASSWORD, ...TO_BURN });
  const tab = await browser.newTab();
  await tab.open(`${url}/${id}`);
  await givePassword(tab, PASSWORD);
  assert.match(await textOf(tab), /read once/);
  // No field has the focus, since Enter there would read the paste: first the page says what that means.
  await drawn(tab);
  assert.equal(await tab.evaluate('document.activeElement.localName'), 'body');
  await reach(tab, 'input');
  await tab.type(PASSWORD);
  const { bytes } = await browser.saving(() => tab.press('Enter'));
  assert.deepEqual(Buffer.from(bytes), Buffer.from(content));
  assert.equal((await app.request(`/${id}`)).status, 404);
}

async function readOnce({ app, browser, url }: Site): Promise<void> {
  const place = `${url}/${await app.store(`once ${UNICODE}`, TO_BURN)}`;
  const tab = await browser.newTab();
  for (const headers of [{}, { 'Sec-Purpose': 'prefetch' }, {}] as Record<string, string>[]) {
    await tab.open(place, headers);
    assert.ok(!(await textOf(tab)).includes('once Gr'), 'looking burns nothing');
  }
  await reach(tab, 'button');
  const [shown] = await openedBy(browser, 1, () => tab.press('Enter'));
  assert.deepEqual([shown!.status, shown!.text.includes(`once ${UNICODE}`)], [200, true]);
  await tab.open(place);
  assert.equal(await statusOf(tab), 404);
  assert.ok(!(await textOf(tab)).includes('once Gr'));
}

async function twoTabs({ app, browser, url }: Site): Promise<void> {
  const id = await app.store(`once ${UNICODE}`, TO_BURN);
  const tabs = [await browser.newTab(), await browser.newTab()];
  for (const tab of tabs) await tab.open(`${url}/${id}`);
  const shown = await openedBy(browser, 2, () => Promise.all(tabs.map((tab) => tab.click('button'))));
  assert.deepEqual(shown.map(({ status }) => status), [200, 404]);
  assert.deepEqual(shown.map(({ text }) => text.includes(UNICODE)), [true, false]);
}

/** Two clicks, out of impatience or the habit of a double click. */
async function twoClicks(t: TestContext, { app, browser }: Site): Promise<void> {
  const id = await app.store(`once ${UNICODE}`, TO_BURN);
  const server = createRelay((near) => {
    const far = connect(app.port, '127.0.0.1').on('error', () => near.destroy());
    near.on('error', () => far.destroy()).on('close', () => far.destroy()).pipe(far);
    far.on('data', (bytes) => setTimeout(() => near.write(bytes), 400)).on('end', () => setTimeout(() => near.end(), 400));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const tab = await browser.newTab();
  await tab.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${id}`);
  const shown = await openedBy(browser, 2, () => tab.click('button', 2));
  assert.deepEqual(shown.map(({ status }) => status), [200, 404]);
  assert.ok(shown[0]!.text.includes(UNICODE));
}

/** What the `count` tabs that the action opens show, in the order of their statuses. */
async function openedBy(browser: Browser, count: number, action: () => Promise<unknown>) {
  const before = new Set(await browser.opened());
  await action();
  for (const endMs = performance.now() + 30_000; ; await pause(50)) {
    const tabs = (await browser.opened()).filter((tab) => !before.has(tab));
    // A tab has no status until it has loaded, and its first document may be replaced while it is asked.
    const shown = await Promise.all(tabs.map(async (tab) => {
      const isWhole = await tab.evaluate('document.readyState === "complete" && location.protocol === "http:"');
      return isWhole ? [{ status: await statusOf(tab), text: await textOf(tab) }] : [];
    })).catch(() => []);
    if (shown.flat().length === count) return shown.flat().sort((one, other) => one.status - other.status);
    if (performance.now() > endMs) assert.fail(`${tabs.length} tabs, of which ${shown.flat().length} show something`);
  }
}

/** The form of the paste's page on a page of another server of this host, by both names of the host. */
async function otherOrigin(t: TestContext, { app, browser }: Site): Promise<void> {
  const id = await app.store('once', TO_BURN);
  const server = createServer(({ url: target = '' }, response) => {
    const action = new URLSearchParams(target.slice(2)).get('action');
    const fields = '<input name="reveal" value="1"><button>Win</button>';
    response.setHeader('Content-Type', 'text/html');
    response.end(`<!DOCTYPE html><title>x</title><form method="post" action="${action}">${fields}</form>`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close(() => {}).closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const tab = await browser.newTab();
  for (const from of ['127.0.0.1', NAMED_HOST]) {
    for (const to of ['127.0.0.1', NAMED_HOST]) {
      const action = encodeURIComponent(`http://${to}:${app.port}/${id}`);
      await tab.open(`http://${from}:${port}/?action=${action}`);
      await drawn(tab);
      await tab.follow(() => tab.click('button'));
      assert.equal(await statusOf(tab), 403, `from ${from} to ${to}`);
      assert.match(await textOf(tab), /cross-site request refused/);
    }
  }
  assert.equal(await (await app.request(`/${id}/raw`)).text(), 'once');
}

/** Paths that a page might repeat from its request. */
const HOSTILE_PATHS = [
  `/${encodeURIComponent('<script>window.ran=1</script>')}`, '/a/%3Cimg%20src=x%20onerror=window.ran=1%3E?<script>',
];

/** Every element of the document in its order, with its attributes but those that differ with the paste. */
const STRUCTURE = `[...document.querySelectorAll("*")].map((element) => element.localName + " " + element.getAttributeNames()
  .filter((name) => !["content", "datetime"].includes(name)).join(" ")).join("\\n")`;

/** The text of the paste without numbers of lines. */
const CONTENT = `(() => {
  const pre = document.querySelector("pre").cloneNode(true);
  for (const small of pre.querySelectorAll("small")) small.remove();
  return pre.textContent;
})()`;

interface Document {
  readonly structure: string;
  readonly content: string;
  readonly ran: boolean;
}

function documentOf(tab: Tab): Promise<Document> {
  return tab.evaluate(`({ structure: ${STRUCTURE}, content: ${CONTENT}, ran: "ran" in window })`);
}

async function hostile({ app, browser, url }: Site): Promise<void> {
  const plain = HOSTILE.map(() => 'plain').join('\n');
  const [tab, other] = [await browser.newTab(), await browser.newTab()];
  await other.open(`${url}/${await app.store(plain)}`);
  const { structure } = await documentOf(other);
  const id = await app.store(HOSTILE.join('\n'));
  await tab.open(`${url}/${id}`);
  const shown = await documentOf(tab);
  assert.equal(shown.structure, structure);
  assert.equal(shown.content, HOSTILE.join('\n').replaceAll('\0', '<U+0000>').replaceAll('\u2028', '<U+2028>'));
  await tab.click('#L2');
  await tab.open(`${url}/${id}/raw`);
  assert.equal(await tab.evaluate('document.contentType'), 'text/plain');
  assert.equal(await tab.evaluate('"ran" in window'), false);
  for (const path of HOSTILE_PATHS) {
    await tab.open(`${url}${path}`);
    assert.equal(await tab.evaluate('"ran" in window'), false);
    assert.equal(await tab.evaluate('document.querySelectorAll("script, img").length'), 0);
  }
  assert.ok(tab.requests.every((asked) => asked.startsWith(url)), 'nothing else was asked for');
  assert.deepEqual(unexpected(tab), []);
}

/** Contents have fifty pieces on average, since opening a page takes longer than reading it. */
const FEWEST_CONTENTS = 20;
const MAX_CONTENTS = 50;
const MAX_MS = 8000;

async function randomContents(t: TestContext, { app, browser, url }: Site): Promise<void> {
  const tab = await browser.newTab();
  /** The structure of a page by its number of lines. */
  const structures = new Map<number, string>();
  const until = performance.now() + MAX_MS;
  let seed = 1;
  for (; seed <= MAX_CONTENTS && (seed <= FEWEST_CONTENTS || performance.now() < until); seed += 1) {
    const random = createSeeded(seed);
    const isMarked = random.oneIn(3);
    const content = randomContent(random, isMarked ? [...SHOWN, ...MARKED] : SHOWN);
    await tab.open(`${url}/${await app.store(content)}`);
    const shown = await documentOf(tab);
    const note = `seed ${seed}: ${JSON.stringify(content)}`;
    if (!isMarked) assert.equal(shown.content, content, note);
    assert.equal(shown.ran, false, note);
    const lines = content.split('\n').length;
    const known = structures.get(lines) ?? shown.structure;
    assert.equal(shown.structure, known, note);
    structures.set(lines, known);
  }
  t.diagnostic(`${seed - 1} contents`);
  assert.ok(tab.requests.every((asked) => asked.startsWith(url)), 'nothing else was asked for');
  assert.deepEqual(unexpected(tab), []);
}

function randomContent(random: Seeded, pieces: readonly string[]): string {
  // The dots, because content is never empty and a newline at its end begins no line.
  return `.${Array.from({ length: random.between(1, 100) }, () => random.pick(pieces)).join('')}.`;
}
