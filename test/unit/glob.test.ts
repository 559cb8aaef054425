// SQLite matches the pattern, so the tests ask SQLite.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { after } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { typeGlob } from '../../src/http/input.ts';
import { cpuMsOf } from '../support/cpu.ts';
import { forSeeds } from '../support/seeded.ts';

const database = new DatabaseSync(':memory:');
const matching = database.prepare('SELECT :text GLOB :pattern AS matches');
after(() => database.close());

const LETTERS = ['a', 'b', '/', '[', ']', '^', '-'];

const patternOf = (type: string): string | null => typeGlob(new URLSearchParams({ type }));

function matches(text: string, glob: string): boolean {
  return matching.get({ text, pattern: patternOf(glob) })!['matches'] === 1;
}

function isTaken(glob: string): boolean {
  try {
    return patternOf(glob) !== null;
  } catch (error) {
    assert.ok(error instanceof Refusal && error.refusal === 'queryInvalid');
    return false;
  }
}

/** The same by definition: `*` is any text, `?` is any character, and every other character is itself. */
function matchesByDefinition(text: string, glob: string): boolean {
  const parts = [...glob].map((character) => {
    if (character === '*') return '.*';
    return character === '?' ? '.' : character.replace(/[\\^$.|+()[\]{}/-]/, '\\$&');
  });
  return new RegExp(`^${parts.join('')}$`, 's').test(text);
}

test('typeGlob: matches media types', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['image/png', 'image/png', true],
    ['image/png', 'image/*', true],
    ['image/png', '*', true],
    ['image/png', '*/png', true],
    ['image/png', 'image/p?g', true],
    ['image/png', 'IMAGE/*', true],
    ['image/png', 'image/', false],
    ['image/png', 'image', false],
    ['image/png', 'mage/*', false],
    ['image/png', 'image/pn', false],
    ['image/png', 'image/png?', false],
    ['image/png', 'image/png*', true],
    ['image/png', 'video/*', false],
  ];
  for (const [text, glob, wanted] of cases) assert.equal(matches(text, glob), wanted, glob);
});

test('typeGlob: everything but * and ? stands for itself', () => {
  for (const text of [
    'a[b]c', '[', ']', '[[]', '[^a]', '[a-z]', 'a%b', 'a_b', 'a\\b', "a'b", 'a"b', '{a,b}', '\u20ac',
  ]) {
    assert.equal(matches(text, text), true, text);
  }
  for (const glob of ['[a]', '[a-z]', '[^b]', '%', '_', '\\a', '[[]']) assert.equal(matches('a', glob), false, glob);
});

test('typeGlob: agrees with the definition on generated globs', () => {
  let matched = 0;
  forSeeds(5000, (random) => {
    const text = Array.from({ length: random.between(1, 6) }, () => random.pick(LETTERS)).join('');
    const other = [...LETTERS, '*', '*', '?', '?'];
    const glob = [...text].map((letter) => (random.oneIn(2) ? letter : random.pick(other))).join('');
    const wanted = matchesByDefinition(text, glob);
    assert.equal(matches(text, glob), wanted, `${text} against ${glob}`);
    if (wanted) matched += 1;
  });
  assert.ok(matched > 1000 && matched < 4000, `${matched} matched`);
});

test('typeGlob: no acceptable glob is slow to match', () => {
  const text = `image/${'a'.repeat(58)}`;
  const globs = [
    '*a'.repeat(32), `${'*a'.repeat(31)}*b`, '*?a'.repeat(21), '*a?'.repeat(21), '*['.repeat(32), `${'a*'.repeat(31)}b`,
    `*${'a'.repeat(62)}b`, `*${'a'.repeat(31)}b*`, `*${'?'.repeat(62)}b`,
  ];
  const cpuMs = cpuMsOf(() => {
    for (const glob of globs) for (let times = 0; times < 20; times += 1) matches(text, glob);
  });
  // Measured at 3 ms for all; backtracking would take longer than anyone waits.
  assert.ok(cpuMs < 2000, `${cpuMs} ms`);
});

test('typeGlob: 1 to 64 characters', () => {
  for (const [length, wanted] of [[0, false], [1, true], [63, true], [64, true], [65, false]] as const) {
    assert.equal(isTaken('a'.repeat(length)), wanted, String(length));
  }
});

test('typeGlob: no control characters', () => {
  for (const text of [
    '\0', 'image/png\0*', 'a\nb', '\n', 'a\n', '\u001f', '\u007f',
  ]) {
    assert.equal(isTaken(text), false, JSON.stringify(text));
  }
  for (const text of [' ', '~', '\u00a0', '*', '?']) assert.equal(isTaken(text), true, JSON.stringify(text));
});
