// node scripts/with-node.mjs scripts/screenshots.mjs FOLDER [PAGE...]: takes pictures of each page of the service (or of
// these), in Chromium and in Firefox, light and dark, 360 and 1200 pixels wide, for whoever changes the pages:
// FOLDER/PAGE-BROWSER-SCHEME-WIDTH.png. Names of pages are those of test/support/shown-pages.ts. With --release in place of
// FOLDER it takes the one picture that the release has, scripts/release/documents/page.png.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startApp } from '../test/support/app.ts';
import { BROWSERS, startBrowser } from '../test/support/real-browser.ts';
import { preparePages } from '../test/support/shown-pages.ts';
import { say } from './child.mjs';

const [folder, ...names] = process.argv.slice(2);
const WIDTHS = [1200, 360];
const RELEASE_TEXT = `#!/bin/sh
# Keeps a copy of each file that is named, and says where.
set -eu

for file in "$@"; do
    copy="$file.$(date +%Y-%m-%d)"
    if [ -e "$copy" ]; then
        echo "$copy is there already" >&2
        continue
    fi
    cp -p -- "$file" "$copy"
    echo "$file -> $copy"
done
`;

if (folder === undefined) {
  say('which folder shall the pictures go to?');
  process.exit(2);
}
if (folder === '--release') {
  await inContext(pictureForRelease);
} else {
  mkdirSync(folder, { recursive: true });
  for (const browser of BROWSERS) {
    for (const scheme of ['light', 'dark']) await inContext((context) => picture(context, browser, scheme));
  }
}

/** Stands in for the context of a test: what `work` starts is ended when `work` ends. */
async function inContext(work) {
  const endings = [];
  try {
    await work({ after: (ending) => endings.push(ending), skip: say });
  } finally {
    for (const end of endings) await end();
  }
}

async function picture(context, name, scheme) {
  const app = await startApp(context);
  const browser = await startBrowser(context, name, { scheme });
  if (browser === undefined) return;
  const tab = await browser.newTab();
  for (const page of await preparePages(app)) {
    if (names.length > 0 && !names.includes(page.name)) continue;
    await tab.open(`${app.url}${page.path}`);
    await page.steps?.(tab);
    for (const width of WIDTHS) {
      await tab.resize({ width, height: 800 });
      writeFileSync(join(folder, `${page.name}-${name}-${scheme}-${width}.png`), await tab.screenshot(2_000));
    }
  }
}

/** The page of a text, as somebody who was sent its address sees it. */
async function pictureForRelease(context) {
  const app = await startApp(context);
  const browser = await startBrowser(context, 'chromium');
  if (browser === undefined) return;
  const tab = await browser.newTab();
  await tab.resize({ width: 800, height: 560 });
  await tab.open(`${app.url}/${await app.store(RELEASE_TEXT)}`);
  writeFileSync(new URL('release/documents/page.png', import.meta.url), await tab.screenshot(560));
}
