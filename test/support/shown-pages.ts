// Every kind of page that the service shows to a browser, for tests that look at each and for scripts/screenshots.mjs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { binaryContent, type RunningApp } from './app.ts';
import type { Tab } from './browser-driver.ts';
import { MAGIC } from './sealed.ts';
import { ROOT } from './source.ts';

export interface ShownPage {
  readonly name: string;
  readonly path: string;
  readonly status: number;
  /** Its heading. */
  readonly heading: RegExp;
  /** Text that it must show, among other things. */
  readonly text?: string;
  /** Steps that lead from the path to the page. */
  readonly steps?: (tab: Tab) => Promise<void>;
}

export const PASSWORD = 'Käse & 100 %';
export const WITH_PASSWORD = { 'X-Paste-Password': Buffer.from(PASSWORD).toString('latin1') };
export const TO_BURN = { 'X-Burn-After-Read': 'true' };
export const UNICODE = 'Grüße 日本語 🎉';

/** Code, a long line, control characters, overrides of direction and characters that need other fonts. */
const SHORT_SAMPLE = `${UNICODE}
#!/bin/sh
# Counts from 1 to 3.
for number in 1 2 3; do
\techo "number $number" && [ "$number" -lt 3 ] || echo '<last> & "done"'
done

${'A line that is too long for most windows goes on and on. '.repeat(8)}
\u001b[31mred\u001b[0m, \u202eoverride\u202c, \u0000, عربى, עברית
`;

/** Longer than a window. */
export const SAMPLE = `${SHORT_SAMPLE}${Array.from({ length: 90 }, (_, index) => `line ${index + 10}\n`).join('')}`;

/** Where the tests in browsers keep a picture of each page as they saw it, for those who change the pages. */
export const PICTURES = '.runtime/pages';

export async function keepPicture(tab: Tab, name: string): Promise<void> {
  const folder = join(ROOT, PICTURES);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), await tab.screenshot(2_000));
}

/** The status of the document that the tab shows. */
export function statusOf(tab: Tab): Promise<number> {
  return tab.evaluate('performance.getEntriesByType("navigation")[0].responseStatus');
}

export function textOf(tab: Tab): Promise<string> {
  return tab.evaluate('document.body.innerText');
}

/**
 * What the console says, except what it says of every refusal, and of the icon that Firefox would fetch if the policy
 * of the service let it.
 */
export function unexpected({ messages }: Tab): readonly string[] {
  return messages.filter((text) => !/responded with a status of 4\d\d|\/favicon\.ico because it violates/.test(text));
}

/** Enters the password by the keyboard alone. */
export async function givePassword(tab: Tab, password: string): Promise<void> {
  await reach(tab, 'input');
  await tab.type(password);
  await tab.follow(() => tab.press('Enter'));
}

/** Moves the focus to the element by Tab, from wherever it is. */
export async function reach(tab: Tab, selector: string): Promise<void> {
  await drawn(tab);
  for (let presses = 0; presses < 10; presses += 1) {
    if (await tab.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
    await tab.press('Tab');
  }
  throw new Error(`${selector} is not reached by Tab`);
}

/** Browsers heed `autofocus` when they draw a frame, which can be after the page has loaded. */
export async function drawn(tab: Tab): Promise<void> {
  await tab.evaluate('new Promise(requestAnimationFrame)');
}

/** Shows the paste in this tab, where the form would open a new one. */
const reveal = async (tab: Tab): Promise<void> => {
  await tab.evaluate('document.forms[0].removeAttribute("target")');
  await tab.follow(() => tab.click('button'));
};

/** Stores what the pages show. Pages of pastes that burn are good for one visit. */
export async function preparePages(app: RunningApp): Promise<readonly ShownPage[]> {
  const locked = await app.store(SHORT_SAMPLE, WITH_PASSWORD);
  const [burning, burned] = [await app.store(SHORT_SAMPLE, TO_BURN), await app.store(SHORT_SAMPLE, TO_BURN)];
  const lockedBurning = await app.store(SHORT_SAMPLE, { ...WITH_PASSWORD, ...TO_BURN });
  const sealed = Buffer.concat([MAGIC, binaryContent(5_000)]);
  const large = `${'0123456789 '.repeat(1_000)}\n`.repeat(60);
  const enter = (password: string) => (tab: Tab): Promise<void> => givePassword(tab, password);
  const text = await app.store(SAMPLE);
  const ofLarge = await app.store(large);
  const ofBinary = await app.store(binaryContent(5_000));
  const ofSealed = await app.store(sealed);
  const textHeading = { status: 200, heading: /^text paste$/i };
  const onceHeading = { status: 200, heading: /once/ };
  return [
    { name: 'front', path: '/', status: 200, heading: /^a paste service/i, text: 'pastec' },
    { name: 'text', path: `/${text}`, ...textHeading, text: UNICODE },
    { name: 'one-line', path: `/${await app.store(UNICODE)}`, ...textHeading, text: UNICODE },
    { name: 'large', path: `/${ofLarge}`, ...textHeading, text: 'first' },
    { name: 'binary', path: `/${ofBinary}`, status: 200, heading: /^binary paste$/i, text: 'SHA-256' },
    { name: 'encrypted', path: `/${ofSealed}`, status: 200, heading: /^encrypted paste$/i, text: 'pastec get' },
    { name: 'once', path: `/${burning}`, ...onceHeading, text: 'deleted' },
    { name: 'read-once', path: `/${burned}`, ...textHeading, text: UNICODE, steps: reveal },
    { name: 'password', path: `/${locked}`, status: 401, heading: /^password required$/i, text: 'Password' },
    { name: 'wrong-password', path: `/${locked}`, status: 403, heading: /^invalid password$/i, steps: enter('wrong') },
    { name: 'opened', path: `/${locked}`, ...textHeading, text: UNICODE, steps: enter(PASSWORD) },
    { name: 'once-with-password', path: `/${lockedBurning}`, ...onceHeading, text: 'deleted', steps: enter(PASSWORD) },
    { name: 'not-found', path: '/unknown', status: 404, heading: /^paste not found$/i },
    { name: 'bad-id', path: '/bad-id', status: 400, heading: /^invalid paste id$/i },
    { name: 'no-such-path', path: '/a/b', status: 404, heading: /^not found$/i },
  ];
}
