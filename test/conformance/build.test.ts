// What building makes of src/: the same bytes each time, the same lines, and a folder that runs wherever it is put.
// The server's own behaviour is tested elsewhere.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import test, { after } from 'node:test';
import { builtMain, compileTo } from '../support/built.ts';
import { olderNode } from '../support/older-node.ts';
import { ROOT } from '../support/source.ts';

const folder = mkdtempSync(join(tmpdir(), 'pasted-build-'));
after(() => rmSync(folder, { recursive: true }));

const dist = dirname(builtMain());
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

/** Path relative to `root` -> content, of all files under it. */
function contentsOf(root: string): Map<string, Buffer> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  return new Map(paths.map((path) => [relative(root, path), readFileSync(path)]));
}

/** The paths whose content is not the same in both folders, or that only one of them has. */
function differences(one: string, other: string): string[] {
  const [ones, others] = [contentsOf(one), contentsOf(other)];
  return [...new Set([...ones.keys(), ...others.keys()])].filter((path) => {
    return !ones.get(path)?.equals(others.get(path) ?? Buffer.alloc(0));
  });
}

function runCopy(node: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const copy = join(folder, 'elsewhere');
  if (!existsSync(copy)) cpSync(dist, copy, { recursive: true });
  return spawnSync(node, [join(copy, 'main.js'), ...args], { cwd: folder, encoding: 'utf8', env: { PATH: '' } });
}

test('build: two builds are byte-identical', () => {
  for (const name of ['one', 'two']) compileTo(join(folder, name));
  assert.deepEqual(differences(join(folder, 'one'), join(folder, 'two')), []);
  assert.deepEqual(differences(join(folder, 'one'), dist), []);
});

test('build: dist holds a file for each of src, and one that says its modules are ES modules', () => {
  const expected = [...contentsOf(join(ROOT, 'src')).keys()].map((path) => path.replace(/\.ts$/, '.js'));
  assert.deepEqual([...contentsOf(dist).keys()].sort(), [...expected, 'package.json'].sort());
  assert.equal(readFileSync(join(dist, 'package.json'), 'utf8'), '{"type":"module"}\n');
});

test('build: each line of dist is the line of src with its types blanked, in its column', () => {
  for (const [path, content] of contentsOf(join(ROOT, 'src'))) {
    if (!path.endsWith('.ts')) continue;
    const original = content.toString().split('\n');
    const lines = readFileSync(join(dist, path.replace(/\.ts$/, '.js')), 'utf8').split('\n');
    assert.equal(lines.length, original.length, `${path} keeps its number of lines`);
    lines.forEach((line, index) => assert.ok(isBlanked(line, original[index]!), `${path}:${index + 1}: ${line}`));
  }
});

/**
 * Whether `line` is `original` with characters made blank. Besides, relative names end in .js instead of .ts, and the
 * stripper may put a semicolon or a parenthesis into a blank to keep the meaning.
 */
function isBlanked(line: string, original: string): boolean {
  const renamed = original.replace(/(?<=['"]\.{1,2}\/[^'"]*)\.ts(?=['"])/g, '.js');
  return line.length <= renamed.length
    && line.split('').every((character, column) => character === renamed[column] || ' ;)'.includes(character));
}

test('build: what is gone from src goes from the folder that is built', () => {
  const target = join(folder, 'again');
  cpSync(dist, target, { recursive: true });
  cpSync(join(target, 'main.js'), join(target, 'left-over.js'));
  compileTo(target);
  assert.deepEqual(differences(target, dist), []);
});

test('build: takes nothing from another process that builds, and removes what a killed one left an hour ago', (t) => {
  const copy = mkdtempSync(join(tmpdir(), 'pasted-build-'));
  t.after(() => rmSync(copy, { recursive: true }));
  for (const name of ['src', 'scripts']) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  for (const name of ['building-old', 'building-new']) mkdirSync(join(copy, '.runtime', name), { recursive: true });
  utimesSync(join(copy, '.runtime', 'building-old'), 0, Date.now() / 1000 - 3700);
  const { status } = spawnSync(process.execPath, [join(copy, 'scripts', 'compile.mjs')], { stdio: 'ignore' });
  assert.deepEqual([status, readdirSync(join(copy, '.runtime')).sort()], [0, ['building-new', 'dist.stamp']]);
});

test('dist: runs from a folder of its own, with no package beside it', () => {
  const { status, stdout, stderr } = runCopy(process.execPath, 'version');
  assert.equal(stderr, '');
  assert.match(stdout, new RegExp(`(?<![\\d.])${version.replaceAll('.', '\\.')}\\n$`));
  assert.equal(status, 0);
});

test('dist: an older Node says in one line what is needed, and exits with 1', (t) => {
  const older = olderNode(t);
  if (older === undefined) return;
  const { status, stdout, stderr } = runCopy(older, 'version');
  assert.match(stderr, /^[^\n]*\b24\b[^\n]*\n$/);
  assert.equal(stdout, '');
  assert.equal(status, 1);
});
