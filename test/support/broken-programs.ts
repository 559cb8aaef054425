// Programs that do not do what they should, put before the real ones on PATH: for what a script makes of that.

import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
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

/** Whatever pastec may start, but for solvers and clipboards. */
export const PROGRAMS = [
  'awk', 'cat', 'cmp', 'cp', 'curl', 'date', 'dd', 'getconf', 'grep', 'head', 'mkdir', 'mkfifo', 'mv', 'nproc', 'od',
  'openssl', 'printf', 'rm', 'sed', 'sha256sum', 'sleep', 'stty', 'tail', 'tr', 'uname', 'wc',
];

export interface NotedPrograms {
  /** A PATH where each of the programs notes how it is called before it does what it should. */
  readonly path: string;
  /** Lines: the name of a program, then its arguments. */
  readonly seen: () => string;
  /** The programs that were started, `openssl rand` for the command rand of openssl. */
  readonly started: () => readonly string[];
}

export function notedPrograms(folder: string, programs: readonly string[] = PROGRAMS): NotedPrograms {
  const place = mkdtempSync(join(folder, 'programs-'));
  const [notes, names] = [join(place, 'notes'), join(place, 'names')];
  for (const name of programs.filter((program) => pathOf(program) !== program)) {
    const what = name === 'openssl' ? '"openssl $1"' : name;
    writeFileSync(join(place, name),
      `#!/bin/sh\nprintf '%s\\n' ${what} >>'${names}'\nprintf '%s\\n' '${name}' "$@" >>'${notes}'\nexec '${pathOf(name)}' "$@"\n`);
    chmodSync(join(place, name), 0o755);
  }
  const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  return {
    path: `${place}${delimiter}${process.env['PATH'] ?? ''}`,
    seen: () => textOf(notes),
    started: () => [...new Set(textOf(names).trimEnd().split('\n'))].sort(),
  };
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
