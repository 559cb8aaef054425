// Broken programs that come before the real ones on PATH, for tests of how a script copes with them.

import {
  accessSync, chmodSync, constants, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { SHELLS, SH } from './shells.ts';

/**
 * In this order: exits 1 at once; prints nothing and exits 0; prints the first half of its output, and exits as the
 * real program does; does the same, but is killed instead; finds no room for its output.
 */
export type Defect = 'fails' | 'is silent' | 'stops halfway' | 'is killed' | 'has no room';

/** For a program that is broken in each of its calls. */
export const DEFECTS: readonly Defect[] = ['fails', 'is silent', 'stops halfway'];

export const EVERY_DEFECT: readonly Defect[] = [...DEFECTS, 'is killed', 'has no room'];

const HALF = `>"$0.$$"
code=$?
bytes=$('${pathOf('wc')}' -c <"$0.$$")
'${pathOf('head')}' -c $((bytes / 2)) "$0.$$"`;

const BODIES: Readonly<Record<Defect, (real: string) => string>> = {
  'fails': () => 'exit 1',
  'is silent': () => 'exit 0',
  'stops halfway': (real) => `'${real}' "$@" ${HALF}\nexit $code`,
  'is killed': (real) => `'${real}' "$@" ${HALF}\nkill -s KILL $$`,
  'has no room': (real) => `exec '${real}' "$@" >/dev/full`,
};

/** One call of a program in a run. `openssl rand` is only the command rand of openssl. */
export interface Call {
  readonly program: string;
  /** Counted from 1. */
  readonly number: number;
}

/** A PATH where one program has that defect, in each of its calls. */
export function pathWith(folder: string, defect: Defect, program: string): string {
  return brokenPath(folder, defect, program, '');
}

/** A PATH where a program has that defect in one of its calls; `hasCome` tells whether there was that call. */
export function pathWithCall(
  folder: string, defect: Defect, { program, number }: Call,
): { readonly path: string; readonly hasCome: () => boolean } {
  // Each call makes the first file that is not there yet (set -C), since programs in a pipe may count at once. The
  // tries that fail must leave nothing on standard error.
  const counting = `set -C
number=1
until true 2>/dev/null >"$0.call-$number"; do number=$((number + 1)); done
set +C
[ "$number" = ${number} ] || exec "$real" "$@"\n`;
  const path = brokenPath(folder, defect, program, counting);
  const [place = ''] = path.split(delimiter);
  return { path, hasCome: () => readdirSync(place).some((name) => name.endsWith(`.call-${number}`)) };
}

/** `condition` is lines of sh that go on as the real program, "$real", in the calls that are not to be broken. */
function brokenPath(folder: string, defect: Defect, program: string, condition: string): string {
  const [name = '', subcommand] = program.split(' ');
  const real = pathOf(name);
  const others = subcommand === undefined ? '' : `[ "$1" = ${subcommand} ] || exec "$real" "$@"\n`;
  const programs = mkdtempSync(join(folder, 'programs-'));
  writeFileSync(join(programs, name), `#!/bin/sh\nreal='${real}'\n${others}${condition}${BODIES[defect](real)}\n`);
  chmodSync(join(programs, name), 0o755);
  return `${programs}${delimiter}${process.env['PATH'] ?? ''}`;
}

export interface NotedPrograms {
  /** A PATH where each program of this host notes how it is called before it does what it should. */
  readonly path: string;
  /** The name of each program that was called and each of its arguments, every one on a line of its own. */
  readonly seen: () => string;
  /** The programs that were started, `openssl rand` for the command rand of openssl. */
  readonly started: () => readonly string[];
  /** Each call of these programs. */
  readonly calls: () => readonly Call[];
}

export function notedPrograms(folder: string): NotedPrograms {
  const place = mkdtempSync(join(folder, 'programs-'));
  const [notes, names, script] = [join(place, '.notes'), join(place, '.names'), join(place, '.noting')];
  // What the program itself starts is not noted, because it gets the former PATH again.
  writeFileSync(script, `#!/bin/sh
name=\${0##*/}
label=$name
[ "$name" != openssl ] || label="openssl $1"
printf '%s\\n' "$label" >>'${names}'
printf '%s\\n' "$name" "$@" >>'${notes}'
PATH='${process.env['PATH'] ?? ''}'
exec "$name" "$@"\n`);
  chmodSync(script, 0o755);
  // Hard links: so many symbolic links take ten times as long to make, since each of those is a file of its own.
  for (const name of installedNames()) linkSync(script, join(place, name));
  const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const labels = (): string[] => textOf(names).split('\n').slice(0, -1);
  return {
    path: `${place}${delimiter}${process.env['PATH'] ?? ''}`,
    seen: () => textOf(notes),
    started: () => [...new Set(labels())].sort(),
    calls: () => labels().map((program, index, all) => {
      return { program, number: all.slice(0, index + 1).filter((label) => label === program).length };
    }),
  };
}

/** The name of every program on PATH except the shells: they run the script under test, which starts no shell. */
function installedNames(): ReadonlySet<string> {
  const shells = [SH, ...SHELLS].map(({ program }) => program);
  const places = (process.env['PATH'] ?? '').split(delimiter).filter((place) => existsSync(place));
  return new Set(places.flatMap((place) => readdirSync(place)).filter((name) => !shells.includes(name)));
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
