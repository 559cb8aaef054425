// The script that makes mutants. Running them is npm run mutate.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { ROOT } from '../support/source.ts';

interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

async function scripts(): Promise<{ mutantsOf: (source: string, path: string) => Mutant[] }> {
  const mutants: string = join(ROOT, 'scripts', 'mutation', 'mutants.mjs');
  return await import(mutants);
}

test('mutantsOf: changes operators, constants and conditions of code, and nothing else', async () => {
  const { mutantsOf } = await scripts();
  const made = (source: string): string[] =>
    mutantsOf(source, 'x.ts').map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end));
  assert.deepEqual(made('f(a < 10);'), ['f(a <= 10);', 'f(a >= 10);', 'f(a < 11);']);
  assert.deepEqual(made('if (a && !b) c();'), ['if (true) c();', 'if (false) c();', 'if (a || !b) c();', 'if (a && b) c();']);
  assert.deepEqual(made('x = a(1) ? -b : c?.d;'), [
    'x = true ? -b : c?.d;', 'x = false ? -b : c?.d;', 'x = a(2) ? -b : c?.d;', 'x = a(1) ? b : c?.d;',
    'x = a(1) ? -b : c.d;',
  ]);
  assert.deepEqual(made('while (a) b += 0xff;'), ['while (false) b += 0xff;', 'while (a) b -= 0xff;', 'while (a) b += 256;']);
  assert.deepEqual(made('const s = `${a + b} + c`;'), ['const s = `${a - b} + c`;']);
  assert.deepEqual(made('const n = 1_000n ?? true;'), ['const n = 1001n ?? true;', 'const n = 1_000n && true;', 'const n = 1_000n ?? false;']);
  // Where nothing is found the rest is not entered, so this is a mutant of the value before.
  assert.deepEqual(mutantsOf('a?.b + c?.(1);', 'x.ts').map(({ start, text }) => [start, text]), [
    [0, 'a.'], [5, '-'], [7, 'c'], [11, '2'],
  ]);
  for (const text of ['// a < b', "'a < b';", '/a+b/.test(s);', "'a' + b;", 'type A<B> = B | 1;', 'a!.b;', 'x.true;', 'f({ 1: a });']) {
    assert.deepEqual(made(text), [], text);
  }
});
