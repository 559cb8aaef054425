// How the systemd units start the service, for tests without systemd: the shell script of ExecStart=, and the options
// that it gives node.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { builtMain } from './built.ts';
import { ROOT } from './source.ts';

export const UNITS_FOLDER = join(ROOT, 'scripts', 'deploy', 'systemd');

const EXEC_START = /^ExecStart=\/bin\/sh -c '([^']*)' pasted (.*) \/usr\/lib\/pasted\/main\.js serve$/;

/** The `Name=value` lines of a unit file; continued lines are joined. */
export function directivesOf(file: string): string[] {
  const lines = readFileSync(join(UNITS_FOLDER, file), 'utf8').replaceAll(/ *\\\n */g, ' ').split('\n');
  return lines.filter((line) => /^[A-Z]/.test(line));
}

export function execStartOf(file: string) {
  const [line = ''] = directivesOf(file).filter((directive) => directive.startsWith('ExecStart='));
  const [, script = '', options = ''] = EXEC_START.exec(line) ?? assert.fail(`${file}: ${line}`);
  return { script: script.replaceAll('$$', '$'), options: options.split(' ') };
}

/** Options of `startServing`: this test's node, started as by the unit, with `data` for all the unit's own folders. */
export function startedAs(file: string, data: string, build = builtMain()) {
  const { script, options } = execStartOf(file);
  const here = `PATH=${dirname(process.execPath)}; ${script}`;
  const folder = dirname(build);
  const nodeOptions = options.map((option) => option.replace('/usr/lib/pasted', folder).replace(/%t\/credentials\/%n|%[St]\/pasted/, data));
  return { through: ['/bin/sh', '-c', here, 'pasted'] as const, nodeOptions, build };
}
