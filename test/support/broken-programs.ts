// Programs that do not do what they should, put before the real ones on PATH: for what a script makes of that.

import { accessSync, chmodSync, constants, mkdtempSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Exits 1 at once; prints nothing and exits 0; prints the first half of what it should, and exits as it would. */
export type Defect = 'fails' | 'is silent' | 'stops halfway';
export const DEFECTS: readonly Defect[] = ['fails', 'is silent', 'stops halfway'];

const BODIES: Readonly<Record<Defect, (real: string) => string>> = {
  'fails': () => 'exit 1',
  'is silent': () => 'exit 0',
  'stops halfway': (real) => `'${real}' "$@" >"$0.$$"
code=$?
bytes=$('${pathOf('wc')}' -c <"$0.$$")
'${pathOf('head')}' -c $((bytes / 2)) "$0.$$"
exit $code`,
};

/** A PATH where one program has that defect; `openssl rand` is the command rand of openssl alone. */
export function pathWith(folder: string, defect: Defect, program: string): string {
  const [name = '', subcommand] = program.split(' ');
  const real = pathOf(name);
  const others = subcommand === undefined ? '' : `[ "$1" = ${subcommand} ] || exec '${real}' "$@"\n`;
  const programs = mkdtempSync(join(folder, 'programs-'));
  writeFileSync(join(programs, name), `#!/bin/sh\n${others}${BODIES[defect](real)}\n`);
  chmodSync(join(programs, name), 0o755);
  return `${programs}${delimiter}${process.env['PATH'] ?? ''}`;
}

function pathOf(name: string): string {
  const paths = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  }) ?? name;
}
