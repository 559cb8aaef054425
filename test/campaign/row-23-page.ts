// Row 23: generated contents in real browsers: the page shows each of them as the text that it is, and nothing of it
// runs, asks for something, leads elsewhere or makes the browser complain.

import type { Tab } from '../support/browser-driver.ts';
import { hostileContent, shownText } from '../support/hostile-texts.ts';
import { type Browser, BROWSERS, startBrowser } from '../support/real-browser.ts';
import { unexpected } from '../support/shown-pages.ts';
import { createClient } from './client.ts';
import { installedPrograms } from './programs.ts';
import type { Row, Unit } from './row.ts';

/** Of a unit, in each browser. */
const CONTENTS = { quick: 20, full: 100 };

export const pageRow: Row = {
  name: '23',
  title: 'generated contents as pages in Chromium and Firefox',
  target: '10 000 contents in each browser',
  units: 100,
  least: BROWSERS.map((name) => `pages in ${name}`),
  obstacle: () => {
    const needed = [...BROWSERS, 'setpriv'];
    const missing = needed.filter((name) => !installedPrograms(needed).has(name));
    return missing.length === 0 ? undefined : `${missing.join(' and ')} must be installed`;
  },
  async run(unit) {
    const service = await unit.start({ folder: unit.folder });
    const contents = Array.from({ length: CONTENTS[unit.effort] }, () => hostileContent(unit.random));
    const pastes = await storeAll(service.port(), contents);
    for (const name of BROWSERS) await inBrowser(name, (browser) => showAll(unit, browser, pastes));
  },
};

interface Stored {
  readonly url: string;
  readonly content: Buffer;
}

async function storeAll(port: number, contents: readonly Buffer[]): Promise<Stored[]> {
  const client = createClient(port);
  const pastes: Stored[] = [];
  for (const content of contents) {
    const answer = await client.ask({ method: 'POST', path: '/', body: content });
    if (answer?.status !== 201) throw new Error(`storing was answered ${answer?.status}: ${String(answer?.body)}`);
    const { id } = JSON.parse(String(answer.body)) as { id: string };
    pastes.push({ url: `http://127.0.0.1:${port}/${id}`, content });
  }
  client.close();
  return pastes;
}

async function inBrowser(name: (typeof BROWSERS)[number], use: (browser: Browser) => Promise<void>): Promise<void> {
  const endings: (() => unknown)[] = [];
  const skip = (reason?: string): never => {
    throw new Error(reason);
  };
  try {
    await use((await startBrowser({ after: (ending) => void endings.push(ending as () => unknown), skip }, name))!);
  } finally {
    for (const ending of endings) await ending();
  }
}

async function showAll(unit: Unit, browser: Browser, pastes: readonly Stored[]): Promise<void> {
  const tab = await browser.newTab();
  const frames: Frames = new Map();
  const expected: string[] = [];
  for (const [index, { url, content }] of pastes.entries()) {
    if (unit.isHopeless()) break;
    expected.push(url);
    await tab.open(url);
    const wrong = judge(await documentOf(tab), url, shownText(content), frames);
    const evidence = content.toString('base64').slice(0, 4000);
    for (const fault of wrong) unit.lose(`content ${index} in ${browser.name}: ${fault}`, evidence);
    unit.count(`pages in ${browser.name}`);
  }
  // What the last page would still do happens before the next document is there.
  await tab.open('about:blank');
  const asked = tab.requests.filter((url) => url !== 'about:blank');
  if (asked.join('\n') !== expected.join('\n')) {
    unit.lose(`${browser.name} asked for something else`, asked.filter((url) => !expected.includes(url)));
  }
  const strayed = browser.strayed.filter((line) => line.includes('outside.example'));
  if (strayed.length > 0) unit.lose(`${browser.name} left the service`, strayed);
  if (unexpected(tab).length > 0) unit.lose(`the console of ${browser.name}`, unexpected(tab).slice(0, 20));
}

/** The document around the text, by the kind of the page: it is the same whatever the content. */
type Frames = Map<string, string>;

interface Shown {
  readonly url: string;
  readonly title: string;
  readonly frame: string;
  /** The elements among the lines. */
  readonly inside: readonly string[];
  /** The lines without their numbers. */
  readonly text: string;
  readonly ran: boolean;
}

/** Elements with the names of their attributes. */
function documentOf(tab: Tab): Promise<Shown> {
  return tab.evaluate(`(() => {
    const described = (elements) => [...elements].map((element) => [element.localName,
      ...element.getAttributeNames()].join(" "));
    const isText = document.title.startsWith("Text");
    const pre = isText ? document.querySelector("pre") : document.createElement("pre");
    const copy = pre.cloneNode(true);
    for (const small of copy.querySelectorAll("small")) small.remove();
    return {
      url: location.href,
      title: document.title,
      frame: described(document.querySelectorAll(isText ? ":not(pre *)" : "*")).join("\\n"),
      inside: [...new Set(described(pre.querySelectorAll("*")))].sort(),
      text: copy.textContent,
      ran: "ran" in window,
    };
  })()`);
}

const NUMBERS = ['a id href tabindex aria-hidden aria-label', 'small inert'];

function judge(shown: Shown, url: string, text: string | undefined, frames: Frames): string[] {
  const wrong: string[] = [];
  if (shown.url !== url) wrong.push(`it led to ${shown.url}`);
  if (shown.ran) wrong.push('it ran');
  const known = frames.get(shown.title) ?? shown.frame;
  frames.set(shown.title, known);
  if (shown.frame !== known) wrong.push('the document is another one');
  if (text === undefined) return shown.title === 'Binary paste - pasted' ? wrong : [...wrong, `it is a ${shown.title}`];
  if (shown.title !== 'Text paste - pasted') wrong.push(`it is a ${shown.title}`);
  if (shown.text !== text) wrong.push(`shown otherwise: ${firstDifference(shown.text, text)}`);
  if (shown.inside.join() !== NUMBERS.join()) wrong.push(`among the lines are ${shown.inside.join()}`);
  return wrong;
}

function firstDifference(shown: string, text: string): string {
  let at = 0;
  while (at < text.length && shown[at] === text[at]) at += 1;
  return `at ${at} ${JSON.stringify(shown.slice(at, at + 40))} and not ${JSON.stringify(text.slice(at, at + 40))}`;
}
