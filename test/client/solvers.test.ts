// What pastec's solvers compute, each against node:crypto: the client's own functions without its main program. What is
// done with the solutions is in proof-of-work.test.ts.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isInstalled } from '../support/programs.ts';
import { clientOf, SCRIPT, SH, SHELLS, type Shell } from '../support/shells.ts';
import { SOLVERS, solverIsInstalled } from '../support/solvers.ts';

const NOBODY = 'http://127.0.0.1:9';

const FUNCTIONS = readFileSync(SCRIPT, 'utf8').replace('{ main "$@"; exit; }\n', 'prepare_shell\n');

/**
 * Arguments: solver, processes, first number, and pairs of a nonce and bits. With a first number, the solver's program
 * runs by itself and goes on from there by eights.
 */
const SOLVE = `${FUNCTIONS}
set_traps; make_work_folder
tested=$1 processes=$2 first=$3; shift 3
solver_works "$tested" || exit 7
while [ $# -gt 0 ]; do
  if [ -n "$first" ]; then
    [ "$tested" != batches ] || { make_scratch_folder; : >"$work/reports"; }
    run_solver "$tested" "$1" "$2" "$first" 8 | sed -n 's/^=//p'
    remove "$scratch"
  else
    search "$tested" "$1" "$2" "$processes" 300
    printf '%s\n' "$solution"
  fi
  shift 2
done
`;

interface Solving {
  readonly shell?: Shell;
  readonly processes?: number;
  readonly first?: number;
  readonly path?: string;
}

type Pair = readonly [nonce: string, bits: number];

/** A version manager's python3 is a script: when it is ended while it starts, its children live on for a moment. */
const SYSTEM_FIRST = `/usr/bin${delimiter}${process.env['PATH'] ?? ''}`;

/** A solution for each pair, all of them checked; null where the solver is refused by its probe. */
async function solutions(
  t: TestContext, solver: string, pairs: readonly Pair[], solving: Solving = {},
): Promise<string[] | null> {
  const { shell = SH, processes = 1, first = '', path = SYSTEM_FIRST } = solving;
  const script = join(clientOf(t, NOBODY).folder, 'solve');
  writeFileSync(script, SOLVE);
  const args = [solver, processes, first, ...pairs.flat()].map(String);
  const { code, text, stderr } = await clientOf(t, NOBODY, shell, script).run(args, { environment: { PATH: path } });
  if (code === 7) return null;
  assert.deepEqual([code, stderr], [0, '']);
  const found = text.trimEnd().split('\n');
  assert.equal(found.length, pairs.length);
  for (const [index, [nonce, bits]] of pairs.entries()) {
    const solution = found[index] ?? '';
    assert.match(solution, /^(0|[1-9]\d{0,18})$/, 'a number that fits into 64 bits');
    const digest = createHash('sha256').update(`${nonce}:${solution}`).digest();
    assert.ok(Math.clz32(digest.readUInt32BE()) >= bits, `${nonce}:${solution} for ${bits} bits`);
  }
  return found;
}

function randomPairs(...difficulties: readonly number[]): Pair[] {
  return difficulties.map((bits) => [randomBytes(16).toString('hex'), bits] as const);
}

for (const shell of SHELLS.filter(({ name }) => ['dash', 'busybox ash'].includes(name))) {
  for (const solver of SOLVERS) {
    test(`pastec's solver ${solver} under ${shell.name}: finds numbers, alone and two together`, async (t) => {
      if (!isInstalled(t, shell.program) || !solverIsInstalled(t, solver)) return;
      const alone = await solutions(t, solver, randomPairs(1, 7, 8), { shell });
      if (alone === null) return t.skip(`${solver} is installed without what it needs`);
      const long = solver === 'batches' ? [] : solver === 'cc' ? [16, 20] : [16];
      await solutions(t, solver, randomPairs(2, 9, 12, ...long), { shell, processes: 2 });
    });
  }
}

for (const solver of SOLVERS) {
  test(`pastec's solver ${solver}: processes that begin at different numbers try different ones`, async (t) => {
    if (!solverIsInstalled(t, solver)) return;
    const pairs = randomPairs(1);
    const found: string[] = [];
    for (const first of [0, 1, 7]) {
      const [solution] = await solutions(t, solver, pairs, { first }) ?? [];
      if (solution === undefined) return t.skip(`${solver} is installed without what it needs`);
      found.push(solution);
    }
    assert.equal(new Set(found).size, found.length, String(found));
    // Solvers that count single numbers, and not batches, show by the remainder where they began.
    if (Number(found[0]) < 1e15) assert.deepEqual(found.map((number) => Number(number) % 8), [0, 1, 7]);
  });
}

for (const solver of SOLVERS) {
  test(`pastec's solver ${solver}: ends when nobody reads any more, where SIGPIPE is ignored too`, { timeout: 60_000 }, async (t) => {
    if (!solverIsInstalled(t, solver)) return;
    const script = join(clientOf(t, NOBODY).folder, 'unread');
    writeFileSync(script, `${FUNCTIONS}
      set_traps; make_work_folder
      solver_works "$1" || exit 7
      [ "$1" != batches ] || { make_scratch_folder; : >"$work/reports"; }
      trap '' PIPE
      run_solver "$1" 00000000000000000000000000000000 32 0 1 2>/dev/null | :
      remove "$scratch"`);
    const { code } = await clientOf(t, NOBODY, SH, script).run([solver], { environment: { PATH: SYSTEM_FIRST } });
    assert.ok([0, 7].includes(Number(code)));
  });
}

/** A PATH that has a shell script first in place of a program; `$real` in it is that program. */
function standIn(t: TestContext, program: string, script: string): string {
  const programs = join(clientOf(t, NOBODY).folder, 'programs');
  const places = (process.env['PATH'] ?? '').split(delimiter);
  const real = places.map((place) => join(place, program)).find(existsSync);
  mkdirSync(programs);
  writeFileSync(join(programs, program), `#!/bin/sh\nreal='${real}'\n${script}\n`);
  chmodSync(join(programs, program), 0o755);
  return [programs, ...places].join(delimiter);
}

test('pastec\'s solver perl-base: needs no module but strict, where the one with Digest::SHA is refused', async (t) => {
  if (!isInstalled(t, 'perl')) return;
  const path = standIn(t, 'perl', `exec "$real" -e '
    BEGIN { unshift @INC, sub { $_[1] eq "strict.pm" ? () : die "there is no $_[1]" } }' "$@"`);
  assert.equal(await solutions(t, 'perl', randomPairs(1), { path }), null);
  assert.equal((await solutions(t, 'perl-base', randomPairs(8, 16, 18), { path }))?.length, 3);
});

for (const [compiler, script] of [
  ['knows no -march=native', 'case $* in *-march=native*) exit 1 ;; esac; exec "$real" "$@"'],
  ['knows no vectors', 'exec "$real" -D__attribute__\\(x\\)= "$@"'],
  [
    'makes programs that crash with vectors',
    'case $* in *-DPLAIN*) exec "$real" "$@" ;; esac; for last in "$@"; do :; done\n'
      + 'printf \'#!/bin/sh\\nkill -s ILL $$\\n\' >"$last"; chmod +x "$last"',
  ],
] as const) {
  test(`pastec's solver cc: a compiler that ${compiler} makes one that works`, async (t) => {
    if (!isInstalled(t, 'cc')) return;
    const found = await solutions(t, 'cc', randomPairs(8, 16, 20), { path: standIn(t, 'cc', script) });
    assert.equal(found?.length, 3);
  });
}

test('pastec\'s progress line: the time that is left on average, whatever has passed, and a bad case', async (t) => {
  const script = join(clientOf(t, NOBODY).folder, 'progress');
  writeFileSync(script, `${FUNCTIONS}shows_progress=yes
    elapsed=$1; shift
    tried_thousands=$(($1 - 100)); note_progress 100000 "$2"`);
  const { run } = clientOf(t, NOBODY, SH, script);
  for (const [elapsed, thousands, bits, words] of [
    [10, 500, 20, '10 s so far; from here about 21 s, could be 63'],
    [20, 1000, 20, '20 s so far; from here about 21 s, could be 63'],
    [10, 300_000, 32, '10 s so far; from here about 3 min, could be 9'],
    [3, 105, 32, '3 s so far; from here about 34 h, could be 102'],
    [2, 40_000, 8, '2 s so far; from here about 1 s, could be 3'],
  ] as const) {
    const { stderr } = await run([elapsed, thousands, bits].map(String));
    assert.equal(stderr, `\r\x1b[Kproof-of-work, ${bits} bits: ${words}`);
  }
  assert.equal((await run(['1', '500', '20'])).stderr, '', 'too early to tell');
});
