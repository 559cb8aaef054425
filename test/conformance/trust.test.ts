// What SECURITY.md and src/README.md tell somebody who trusts nobody: that each test they name is there, that the order
// of reading is complete and fits into a day, and that their commands print what they say.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { builtMain } from '../support/built.ts';
import { commandLines } from '../support/command-lines.ts';
import { sections } from '../support/readme.ts';
import { ROOT, sourceFiles } from '../support/source.ts';

const SECURITY = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
const OF_SOURCE = readFileSync(join(ROOT, 'src', 'README.md'), 'utf8');
const AUDIT = sections(OF_SOURCE).get('Auditing this in a day') ?? '';

/** The rows of a section's table, each by its cells, which may be empty. */
function rowsUnder(text: string, heading: string): string[][] {
  const lines = (sections(text).get(heading) ?? '').split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) => line.slice(1, -1).split('|').map((cell) => cell.trim()));
}

/** Title of each test of a file, as it stands between quotes there. */
function titlesIn(path: string): string[] {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const titles = source.matchAll(/\btest(?:Row|Stores)?\((?:\w+, )?(['`"])((?:\\.|(?!\1).)+)\1/g);
  return [...titles].map(([, , title = '']) => title.replace(/\\(.)/g, '$1'));
}

/** What a cell such as `` `test/x.test.ts` "a title" "another" `` names: pairs of file and title. */
function testsOf(cell: string): (readonly [string, string])[] {
  assert.match(cell, /^(?:`test\/[\w/.-]+\.test\.ts`(?: "[^"]+")+ ?)+$/, 'a file, then titles between double quotes');
  return [...cell.matchAll(/`([^`]+)`((?: "[^"]+")+)/g)].flatMap(([, path = '', titles = '']) => (
    [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => [path, title] as const)
  ));
}

for (const [page, text, heading, rows] of [
  ['SECURITY.md', SECURITY, 'Who can do what', 35],
  ['src/README.md', OF_SOURCE, 'What always holds, and what holds it', 15],
  ['src/README.md', OF_SOURCE, 'What holds in a cluster besides', 9],
] as const) {
  test(`${page}: each row under "${heading}" names tests that are there`, () => {
    const cells = rowsUnder(text, heading).map((row) => row.at(-1)!);
    assert.ok(cells.length >= rows, `${cells.length} rows`);
    const missing = cells.flatMap(testsOf).filter(([path, title]) => !titlesIn(path).includes(title));
    assert.deepEqual(missing, []);
  });
}

test('SECURITY.md: whoever is in the table can do something and cannot do something', () => {
  const rows = rowsUnder(SECURITY, 'Who can do what');
  assert.deepEqual(rows.filter(([who, can, cannot, ...others]) => (who === '') !== (can === '') || cannot === '' || others.length !== 1), []);
  assert.ok(rows.filter(([who]) => who !== '').length >= 10);
});

/** The rows of the tables that give the order of reading. */
function readingOrder(): { path: string; lines: number; minutes: number }[] {
  return [...AUDIT.matchAll(/^\| `([\w/.-]+\.ts)` \| (\d+) \| (\d+) \| .+ \|$/gm)].map(([, path = '', lines, minutes]) => {
    return { path: `src/${path}`, lines: Number(lines), minutes: Number(minutes) };
  });
}

test('src/README.md: the order of reading has each file about as long as it is, and fits into eight hours', () => {
  const lengths = new Map(sourceFiles().map(({ path, text }) => [path, text.split('\n').length - 1]));
  const order = readingOrder();
  const wrong = order.filter(({ path, lines }) => !(Math.abs(lines - (lengths.get(path) ?? NaN)) <= 10 + lines / 10));
  assert.deepEqual(wrong.map(({ path, lines }) => `${path}: ${lines} on the page, ${lengths.get(path)} in the file`), []);
  const hurried = order.filter(({ lines, minutes }) => minutes < Math.floor(lines / 30));
  assert.deepEqual(hurried, []);
  assert.ok(order.reduce((sum, { minutes }) => sum + minutes, 0) <= 480);
});

test('src/README.md: each file is in the order of reading once, or named as left out', () => {
  const order = readingOrder().map(({ path }) => path);
  assert.deepEqual(order, [...new Set(order)]);
  const leftOut = /^### What that leaves out\n([^]*?)^###/m.exec(AUDIT)?.[1] ?? assert.fail('nothing is left out');
  const named = [...leftOut.matchAll(/`([\w/.-]+(?:\.ts|\/))`/g)].map(([, path = '']) => `src/${path}`);
  const isLeftOut = (path: string): boolean => named.some((name) => (
    name.endsWith('/') ? path.startsWith(name) : path === name
  ));
  const paths = sourceFiles().map(({ path }) => path);
  assert.deepEqual(paths.filter((path) => order.includes(path) === isLeftOut(path)), []);
  assert.deepEqual([...order, ...named].filter((name) => !paths.some((path) => path.startsWith(name))), []);
});

test('src/README.md: every command of the audit prints what stands below it', async (t) => {
  builtMain();
  const shell = commandLines(t);
  const blocks = [...AUDIT.matchAll(/^```console\n([^]*?)^```$/gm)].map(([, block = '']) => block);
  const shown = blocks.flatMap((block) => block.split(/^\$ /m).slice(1)).map((part) => {
    const [, command = '', output = ''] = /^(.*\n(?:> .*\n)*)([^]*)$/.exec(part) ?? [];
    return { command: command.replace(/^> /gm, ''), output };
  });
  assert.ok(shown.length >= 9);
  for (const { command, output } of shown) {
    assert.equal(await shell.run(`cd '${ROOT}'\n${command}`), output, command);
  }
});
