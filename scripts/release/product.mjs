// What the compiled service says of itself, for the files beside it: the manual page from its tables, and the
// completions and the description of the API that it prints.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run } from '../child.mjs';
import { ReleaseError, sorted } from './files.mjs';
import { manualPage } from './manual.mjs';

/** Where each shell looks for a completion: what its file is called. */
const COMPLETION_NAMES = { bash: 'pasted', fish: 'pasted.fish', zsh: '_pasted' };

/** From the folder `dist`: `manual` in roff, `openapi` as JSON, `completions` by file name, the table `settings`. */
export async function describeProduct(dist, { card, seconds }) {
  const load = (module) => import(pathToFileURL(join(dist, module)).href);
  const [{ COMMANDS }, { SETTINGS }, { showValue }, { ROUTES }, { REFUSALS }] = await Promise.all(
    ['operator/commands.js', 'config/settings.js', 'operator/print.js', 'http/routes.js', 'core/refusals.js'].map(load),
  );
  const settings = Object.values(SETTINGS).map((setting) => {
    return { ...setting, shownFallback: showValue(setting, setting.fallback) };
  });
  const exitCodes = exitCodesIn(await printed(dist, 'help'));
  const tables = { commands: COMMANDS, settings, exitCodes, routes: ROUTES, refusals: Object.values(REFUSALS) };
  const manual = manualPage({ ...tables, version: card.version, seconds });

  const completions = new Map();
  for (const [shell, name] of Object.entries(COMPLETION_NAMES)) {
    completions.set(name, await printed(dist, 'completion', shell));
  }
  return { manual, settings, openapi: await printed(dist, 'openapi'), completions: sorted(completions) };
}

async function printed(dist, ...words) {
  const options = { stdio: ['ignore', 'pipe', 2], env: {} };
  const ended = await run(process.execPath, [join(dist, 'main.js'), ...words], options);
  if (ended.code !== 0) throw new ReleaseError(`pasted ${words.join(' ')} failed`);
  return ended.output;
}

/** Pairs of number and meaning, from the section of the full help. */
function exitCodesIn(help) {
  const section = /^Exit codes:\n((?: {2}\d+ +.*\n)+)/m.exec(help)?.[1];
  if (section === undefined) throw new ReleaseError('pasted help: no exit codes found');
  return [...section.matchAll(/^ {2}(\d+) +(.*)$/gm)].map(([, code, meaning]) => [code, meaning]);
}
