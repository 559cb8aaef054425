// Files of a release that come from the compiled service and its client: manual pages from their tables, and the
// completions and the description of the API that they print.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run } from '../child.mjs';
import { explainCommands } from '../describe/help.ts';
import { clientManualPage } from './client-manual.mjs';
import { ReleaseError, sorted } from './files.mjs';
import { manualPage } from './manual.mjs';

/** Its path in the folder `dist`. */
export const CLIENT = 'client/pastec';

/** The name of the file in which each shell looks for the completions of a program. */
const COMPLETION_NAMES = { bash: (name) => name, fish: (name) => `${name}.fish`, zsh: (name) => `_${name}` };

/**
 * From the folder `dist`: `manuals` in roff and `completions`, both by file name, `openapi` as JSON, and the table of
 * `settings`.
 */
export async function describeProduct(dist, { card, seconds }) {
  const load = (module) => import(pathToFileURL(join(dist, module)).href);
  const [{ COMMANDS }, { SETTINGS }, { showValue }, { ROUTES }, { REFUSALS }, { runCommandLine }] = await Promise.all([
    'operator/commands.js', 'config/settings.js', 'operator/print.js', 'http/routes.js', 'core/refusals.js',
    'operator/arguments.js',
  ].map(load));
  const settings = Object.values(SETTINGS).map((setting) => {
    return { ...setting, shownFallback: showValue(setting, setting.fallback) };
  });
  const exitCodes = exitCodesIn(await printed(runCommandLine, 'help'));
  const commands = explainCommands(COMMANDS, readFileSync(join(dist, 'operator/help.txt'), 'utf8'));
  const tables = { commands, settings, exitCodes, routes: ROUTES, refusals: Object.values(REFUSALS) };
  const dated = { version: card.version, seconds };
  const script = readFileSync(join(dist, CLIENT), 'utf8');
  const manuals = new Map([
    ['pastec.1', clientManualPage({ script, help: await printedByClient(dist, 'help'), ...dated })],
    ['pasted.1', manualPage({ ...tables, ...dated })],
  ]);

  const completions = new Map();
  for (const [shell, nameFor] of Object.entries(COMPLETION_NAMES)) {
    completions.set(nameFor('pasted'), await printed(runCommandLine, 'completion', shell));
    completions.set(nameFor('pastec'), await printedByClient(dist, 'completion', shell));
  }
  return { manuals, settings, openapi: await printed(runCommandLine, 'openapi'), completions: sorted(completions) };
}

/** Runs in this process, which has the modules: five more Node processes would take a third of a release's time. */
async function printed(runCommandLine, ...words) {
  let output = '';
  const outputTo = (write) => ({ write, writeWhole: async () => true, whyLost: () => undefined });
  const stdout = outputTo((text) => (output += text));
  const stderr = outputTo((text) => process.stderr.write(text));
  const code = await runCommandLine({ arguments: words, environment: {}, stdout, stderr });
  if (code !== 0) throw new ReleaseError(`pasted ${words.join(' ')} failed`);
  return output;
}

/** What the client prints for someone without a configuration, whose home is ~. */
async function printedByClient(dist, ...words) {
  const path = [process.env.PATH, '/usr/bin', '/bin'].filter(Boolean).join(':');
  const args = [join(dist, CLIENT), ...words];
  const ended = await run('/bin/sh', args, { stdio: ['ignore', 'pipe', 2], env: { PATH: path, HOME: '~' } });
  if (ended.code !== 0 || ended.received) throw new ReleaseError(`${args.join(' ')} failed`);
  return ended.output;
}

/** Pairs of number and meaning, from the section `Exit codes` of the help. */
function exitCodesIn(help) {
  const section = /^Exit codes:\n((?: {2}\d+ +.*\n)+)/m.exec(help)?.[1];
  if (section === undefined) throw new ReleaseError('pasted help: no exit codes found');
  return [...section.matchAll(/^ {2}(\d+) +(.*)$/gm)].map(([, code, meaning]) => [code, meaning]);
}
