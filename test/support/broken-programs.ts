// Programs that do not do what they should, put before the real ones on PATH: for what a script makes of that.

import {
  accessSync, chmodSync, constants, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { SHELLS, SH } from './shells.ts';

/**
 * Exits 1 at once; prints nothing and exits 0; prints the first half of what it should, and exits as it would; the
 * same, but is killed then; finds no room for what it prints.
 */
export type Defect = 'fails' | 'is silent' | 'stops halfway' | 'is killed' | 'has no room';

/** Of a program that is broken each time that it is called. */
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

/** A call of a program among all of a run; `openssl rand` is the command rand of openssl alone. */
export interface Call {
  readonly program: string;
  /** From 1. */
  readonly number: number;
}

/** A PATH where one program has that defect, in each of its calls. */
export function pathWith(folder: string, defect: Defect, program: string): string {
  return brokenPath(folder, defect, program, '');
}

/** A PATH where a program has that defect in one of its calls, and whether there was that call. */
export function pathWithCall(
  folder: string, defect: Defect, { program, number }: Call,
): { readonly path: string; readonly hasCome: () => boolean } {
  // Made by who is first: of programs in a pipe, several may count at once. What could not be made is none of standard
  // error's business.
  const counting = `set -C
number=1
until true 2>/dev/null >"$0.call-$number"; do number=$((number + 1)); done
set +C
[ "$number" = ${number} ] || exec "$real" "$@"\n`;
  const path = brokenPath(folder, defect, program, counting);
  const [place = ''] = path.split(delimiter);
  return { path, hasCome: () => readdirSync(place).some((name) => name.endsWith(`.call-${number}`)) };
}

/** `condition`: lines of sh that go on as the program "$real" where it is not to be broken. */
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
  /** Lines: the name of a program, then its arguments. */
  readonly seen: () => string;
  /** The programs that were started, `openssl rand` for the command rand of openssl. */
  readonly started: () => readonly string[];
  /** Each of their calls. */
  readonly calls: () => readonly Call[];
}

export function notedPrograms(folder: string): NotedPrograms {
  const place = mkdtempSync(join(folder, 'programs-'));
  const [notes, names, script] = [join(place, '.notes'), join(place, '.names'), join(place, '.noting')];
  // What the program itself starts is its own affair: PATH is the former one again.
  writeFileSync(script, `#!/bin/sh
name=\${0##*/}
label=$name
[ "$name" != openssl ] || label="openssl $1"
printf '%s\\n' "$label" >>'${names}'
printf '%s\\n' "$name" "$@" >>'${notes}'
PATH='${process.env['PATH'] ?? ''}'
exec "$name" "$@"\n`);
  chmodSync(script, 0o755);
  // To make so many symbolic links takes ten times as long: each is a file of its own.
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

/** Of every program on PATH, but for the shells: those run the script, which starts none. */
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
