// Every page as Chromium and Firefox show it: its text, what assistive technology is told of it, links to lines, what
// is copied and saved, small windows and zoom. Forms and what must not run are browser-safety.test.ts.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import type { Tab, View } from '../support/browser-driver.ts';
import { type Browser, BROWSERS, startBrowser } from '../support/real-browser.ts';
import {
  keepPicture, PICTURES, preparePages, SAMPLE, type ShownPage, statusOf, textOf, UNICODE, unexpected,
} from '../support/shown-pages.ts';

for (const name of BROWSERS) {
  test(`${name}: what it shows of each page`, async (t) => {
    const app = await startApp(t);
    const browser = await startBrowser(t, name);
    if (browser === undefined) return;
    const tab = await browser.newTab();
    for (const page of await preparePages(app)) {
      await t.test(`page: ${page.name}`, async () => {
        // As a new tab is; opening one takes a browser long.
        await tab.resize({ width: 1200, height: 800 });
        const before = tab.requests.length;
        await tab.open(`${app.url}${page.path}`);
        await page.steps?.(tab);
        await assertShown(tab, page);
        await assertAccessible(browser, tab);
        await assertFits(tab);
        await keepPictures(tab, `${page.name}-${name}`);
        const url = `${app.url}${page.path}`;
        const asked = page.steps === undefined ? [url] : [url, url];
        assert.deepEqual(tab.requests.slice(before), asked, 'nothing else was asked for');
        assert.deepEqual(unexpected(tab), []);
      });
    }
    await t.test('page: too many lookups', (t) => tooMany(t, browser));
    t.diagnostic(`a picture of each page is in ${PICTURES}`);
    await t.test('text: links to lines', () => lines(app, browser));
    await t.test('text: what is copied is the text alone', () => selection(app, browser));
    await t.test('raw: text is shown as what it is', () => raw(app, browser));
    await t.test('binary: saved byte for byte under its id', () => binary(app, browser));
    await t.test('text: saved byte for byte', () => savedText(app, browser));
    assert.deepEqual(browser.strayed.filter((line) => line.includes('example')), []);
  });
}

/** What the expression gives for each `element` that matches, in the order of the document. */
function ofEach<Value>(tab: Tab, selector: string, expression: string): Promise<Value[]> {
  return tab.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((element) => ${expression})`);
}

async function assertShown(tab: Tab, { heading, status, text }: ShownPage): Promise<void> {
  assert.equal(await statusOf(tab), status);
  const [shown = '', ...others] = await ofEach<string>(tab, 'h1', 'element.innerText');
  assert.match(shown, heading);
  assert.deepEqual(others, [], 'one h1');
  if (text !== undefined) assert.ok((await textOf(tab)).includes(text), `${text} is shown`);
  assert.equal(await tab.evaluate('document.contentType'), 'text/html');
  assert.equal(await tab.evaluate('document.characterSet'), 'UTF-8');
  assert.equal(await tab.evaluate('document.compatMode'), 'CSS1Compat', 'no quirks');
  assert.equal(await tab.evaluate('document.cookie'), '');
  const title = await tab.evaluate<string>('document.title');
  assert.match(title, /\S - pasted$/);
  assert.ok(!title.includes(UNICODE), 'no content in the title, which stays in the history');
}

/** One heading of the first level, everything within landmarks, each field and link with a name. */
async function assertAccessible(browser: Browser, tab: Tab): Promise<void> {
  assert.equal(await tab.evaluate('document.documentElement.lang'), 'en');
  const outermost = await ofEach<string>(tab, 'body > *', 'element.localName');
  const landmarks = ['header', 'main', 'nav', 'footer'];
  assert.deepEqual(outermost.filter((name) => !landmarks.includes(name)), [], 'everything is within landmarks');
  const labels = await ofEach<string>(tab, 'input', 'element.labels[0].innerText.trim()');
  assert.ok(!labels.includes(''), 'each field has a label');
  const roles = await ofEach<string>(tab, '[role]', 'element.getAttribute("role")');
  assert.deepEqual(roles.filter((role) => role !== 'presentation'), [], 'what an element is its name says');
  const elements = new Set(await ofEach<string>(tab, '*', 'element.localName'));
  const nameless = Object.entries({ a: 'link', button: 'button', input: 'textbox' })
    .filter(([element]) => elements.has(element)).map(([, role]) => ({ role, name: '' }));
  // In ARIA a field for a password has no role; Chromium says textbox all the same.
  const fields = (browser.name === 'chromium' ? labels : []).map((name) => ({ role: 'textbox', name }));
  const wanted = [{ role: 'main' }, { role: 'heading' }, ...fields, ...nameless];
  const [main, headings, ...others] = await tab.accessible(wanted);
  assert.deepEqual([main, headings! >= 1], [1, true]);
  const expected = [...fields.map(() => 1), ...nameless.map(() => 0)];
  assert.deepEqual(others, expected, `once by its name, and never without one: ${JSON.stringify(wanted.slice(2))}`);
  const levels = await ofEach<number>(tab, 'h1, h2, h3, h4', 'Number(element.localName[1])');
  assert.equal(levels[0], 1);
  for (const [index, level] of levels.entries()) {
    assert.ok(level <= (levels[index - 1] ?? 0) + 1, 'no level is left out');
  }
}

/** The first is what WCAG 2.2 asks for (1.4.10 Reflow); the others are windows of 720 and 360 pixels at 200 %. */
const NARROW: readonly View[] = [
  { width: 320, height: 640 }, { width: 720, height: 900, zoom: 2 }, { width: 360, height: 640, zoom: 2 },
];

/** Nobody scrolls sideways for prose, facts and fields, on a small screen or a large one at 200 %. */
async function assertFits(tab: Tab): Promise<void> {
  for (const view of NARROW) {
    await tab.resize(view);
    const fits = 'element.getBoundingClientRect().right <= innerWidth || element.outerHTML.slice(0, 80)';
    const each = await ofEach<true | string>(tab, 'h1, h2, h3, p, dt, th, td, input, button', fits);
    assert.deepEqual(each.filter((fit) => fit !== true), [], `wider than ${JSON.stringify(view)}`);
  }
}

async function keepPictures(tab: Tab, name: string): Promise<void> {
  for (const width of [360, 1200]) {
    await tab.resize({ width, height: 800 });
    await keepPicture(tab, `${name}-${width}`);
  }
}

async function tooMany(t: TestContext, browser: Browser): Promise<void> {
  const app = await startApp(t, { lookupRateMax: 1 });
  const path = `/${await app.store(SAMPLE)}`;
  const tab = await browser.newTab();
  await tab.open(`${app.url}${path}`);
  await tab.open(`${app.url}${path}`);
  const [name, text] = ['too-many', 'Try again in 1 minute'];
  await assertShown(tab, { name, path, status: 429, heading: /^lookup rate limit exceeded$/i, text });
  await assertAccessible(browser, tab);
  await assertFits(tab);
  await keepPictures(tab, `${name}-${browser.name}`);
}

async function lines(app: RunningApp, browser: Browser): Promise<void> {
  const url = `${app.url}/${await app.store(SAMPLE)}`;
  const tab = await browser.newTab();
  await tab.resize({ width: 1000, height: 400 });
  const place = 'document.querySelector(":target").getBoundingClientRect().top';
  await tab.open(url);
  const links = { role: 'link' };
  const [shown] = await tab.accessible([links]);
  assert.equal(shown, 3, 'numbers of lines are not read aloud');
  await tab.open(`${url}#L57`);
  assert.equal(await tab.evaluate('document.querySelector(":target").innerText.trim()'), '57');
  const top = await tab.evaluate<number>(place);
  assert.ok(top > -1 && top < 400, `line 57 is in view: at ${top}`);
  await tab.open(`${url}#L3`);
  assert.equal(await tab.evaluate('document.querySelector(":target").innerText.trim()'), '3');
  // Going to a line by a click.
  const [before] = await tab.accessible([links]);
  await tab.click('#L12');
  assert.equal(await tab.evaluate('location.href'), `${url}#L12`);
  // Chromium reads aloud the link with the focus, and says in the console why. Firefox reads none of these links.
  const isRead = browser.name === 'chromium' ? 1 : 0;
  assert.deepEqual(await tab.accessible([links, { ...links, name: 'Line 12' }]), [before! + isRead, isRead]);
  assert.deepEqual(unexpected(tab).filter((text) => !text.startsWith('Blocked aria-hidden')), []);
  assert.deepEqual(tab.requests.map((asked) => asked.split('#', 1)[0]), [url], 'going to a line asks for nothing');
}

/** Copying all that is within the text copies no numbers of lines. */
async function selection(app: RunningApp, browser: Browser): Promise<void> {
  const content = `first\n\n  third ${UNICODE}\n\tfourth <b>&amp;</b>\nlast`;
  const tab = await browser.newTab();
  await tab.open(`${app.url}/${await app.store(content)}`);
  await tab.evaluate('getSelection().selectAllChildren(document.querySelector("pre"))');
  assert.equal(await tab.evaluate('String(getSelection())'), content);
}

async function raw(app: RunningApp, browser: Browser): Promise<void> {
  const tab = await browser.newTab();
  const content = `${UNICODE}\n<script>window.ran = 1</script>`;
  await tab.open(`${app.url}/${await app.store(content, { 'Content-Type': 'text/html' })}/raw`);
  assert.equal(await tab.evaluate('document.contentType'), 'text/plain');
  assert.equal(await textOf(tab), content);
  assert.equal(await tab.evaluate('window.ran'), undefined);
}

async function binary(app: RunningApp, browser: Browser): Promise<void> {
  const content = binaryContent(300_000);
  const id = await app.store(content);
  const tab = await browser.newTab();
  await tab.open(`${app.url}/${id}`);
  const { name, bytes } = await browser.saving(() => tab.click('a[download]'));
  assert.equal(name.replace(/\.bin$/, ''), id);
  assert.deepEqual(Buffer.from(bytes), Buffer.from(content));
  assert.equal(await tab.evaluate('location.pathname'), `/${id}`, 'the page stays');
}

async function savedText(app: RunningApp, browser: Browser): Promise<void> {
  const id = await app.store(SAMPLE);
  const tab = await browser.newTab();
  await tab.open(`${app.url}/${id}`);
  const { name, bytes } = await browser.saving(() => tab.click('a[download]'));
  assert.equal(name, `${id}.txt`);
  assert.equal(Buffer.from(bytes).toString(), SAMPLE);
}
