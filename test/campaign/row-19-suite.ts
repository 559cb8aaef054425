// Row 19: what the test suite itself is worth: every branch of the inner layers entered (npm run coverage), and changes
// of the code noticed (npm run mutate). Both scripts say by their exit codes whether what is asked for holds.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../support/source.ts';
import type { Row, Unit } from './row.ts';

/** By effort. One small file shows that the script still works. */
const RUNS = {
  quick: [['mutate.mjs', '--distance=1', 'src/core/time.ts']],
  full: [['coverage.mjs'], ['mutate.mjs']],
} as const;

export const suiteRow: Row = {
  name: '19',
  title: 'branches that the suite enters, and mutants that it kills',
  target: '100 % of branches, and 95 % of mutants, in core, crypto, authority, pastes and store',
  units: 1,
  least: ['mutants'],
  async run(unit) {
    for (const [script, ...args] of RUNS[unit.effort]) await runScript(unit, script, args);
  },
};

async function runScript(unit: Unit, script: string, args: readonly string[]): Promise<void> {
  const path = join(ROOT, 'scripts', script);
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += String(text)));
  const [code] = await once(child, 'close');
  process.off('exit', end);
  const lines = output.trimEnd().split('\n');
  unit.note(lines.at(-1) ?? '');
  const [, killed, mutants] = /^(\d+) of (\d+) killed/.exec(lines.at(-1) ?? '') ?? [];
  if (killed !== undefined && mutants !== undefined) {
    unit.count('mutants', Number(mutants));
    unit.count('killed', Number(killed));
  }
  if (code !== 0) unit.lose(`${script} ended with ${code}`, lines.slice(-40));
}
