// The repository's calling card: what it depends on, what lies in it, and what must not be in any of its files. How
// code may be arranged is layers.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { ROOT, repositoryFiles, sourceFiles } from '../support/source.ts';

interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

interface LockEntry {
  readonly version: string;
  readonly dev?: boolean;
  readonly resolved?: string;
  readonly devDependencies?: Record<string, string>;
}

const TOP_LEVEL = [
  '.ci', '.gitignore', '.npmrc', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package-lock.json',
  'package.json', 'scripts', 'src', 'test', 'tsconfig.json',
];
const MAX_LINES = 450;

const card = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>;
const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
const paths = repositoryFiles();
const texts = new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));

/** "path:line: found" for each match of `pattern` in files whose path matches `where`. */
function occurrences(pattern: RegExp, where: RegExp): string[] {
  return [...texts].filter(([path]) => where.test(path)).flatMap(([path, text]) => {
    return [...text.matchAll(pattern)].map(({ index, 0: found }) => {
      return `${path}:${text.slice(0, index).split('\n').length}: ${found}`;
    });
  });
}

test('package.json: the product depends on no package', () => {
  assert.deepEqual(Object.keys(card).filter((key) => /dependencies$/i.test(key)), ['devDependencies']);
  assert.deepEqual(Object.entries(lock.packages).filter(([path, entry]) => path !== '' && entry.dev !== true), []);
});

test('package.json: development needs exactly typescript, @types/node and tsx, each of one version', () => {
  const wanted = card['devDependencies'] as Record<string, string>;
  assert.deepEqual(Object.keys(wanted).sort(), ['@types/node', 'tsx', 'typescript']);
  for (const [name, version] of Object.entries(wanted)) {
    assert.match(version, /^\d+\.\d+\.\d+$/, name);
    assert.equal(lock.packages[`node_modules/${name}`]?.version, version, name);
  }
  assert.deepEqual(lock.packages['']?.devDependencies, wanted);
});

test('package.json: nothing runs when it is installed or packed', () => {
  const hooks = /^(?:pre|post)|^(?:install|uninstall|prepare|prepublish|prepublishOnly|prepack|dependencies)$/;
  assert.deepEqual(Object.keys(card['scripts'] as object).filter((name) => hooks.test(name)), []);
  for (const [name, allowed] of Object.entries(card['allowScripts'] as object)) assert.equal(allowed, false, name);
});

test('package.json: its version is the one that src/config/settings.ts reports', () => {
  assert.equal(card['version'], VERSION);
});

test('package-lock.json: says where no package comes from', () => {
  assert.deepEqual(Object.entries(lock.packages).filter(([, entry]) => 'resolved' in entry), []);
});

test('repository: its top level holds nothing but what is listed here', () => {
  const found = new Set(paths.map((path) => path.split('/')[0]!));
  assert.deepEqual([...found].filter((name) => !TOP_LEVEL.includes(name)), []);
});

test('src: no line is longer than 120 characters', () => {
  const long = sourceFiles().flatMap(({ path, text }) => text.split('\n')
    .map((line, index) => ({ place: `${path}:${index + 1}`, characters: [...line].length }))
    .filter(({ characters }) => characters > 120));
  assert.deepEqual(long, []);
});

test('repository: no file of code is longer than 450 lines', () => {
  const long = [...texts].filter(([path]) => /^(?:src|scripts|test)\/.*\.(?:ts|mjs)$/.test(path))
    .map(([path, text]) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES);
  assert.deepEqual(long, []);
});

test('src: each file opens with a comment', () => {
  const bare = [...texts].filter(([path]) => /^(?:src|scripts)\/.*\.(?:ts|mjs)$/.test(path))
    .filter(([, text]) => !/^(?:#!.*\n)?(?:\/\/|\/\*)/.test(text))
    .map(([path]) => path);
  assert.deepEqual(bare, []);
});

test('repository: nothing is left to do', () => {
  // Put together, so that this file does not hold the words. The reason phrase of 501 has two capitals.
  const marks = new RegExp(`\\b(?:TO${'DO'}|FIX${'ME'})\\b|\\b[Nn]ot (?:yet )?impl${'emented'}\\b`, 'g');
  assert.deepEqual(occurrences(marks, /^(?:src|scripts|test|\.ci)\//), []);
});

test('repository: no file names a package registry', () => {
  const hosts = /\bregistry\.[a-z][\w-]*\.[a-z]|\bnpmjs\.(?:org|com)\b|\bnpmmirror\b|\bnodejs\.org\/dist\b/gi;
  assert.deepEqual(occurrences(hosts, /^(?!test\/conformance\/card\.test\.ts$)/), []);
});

test('repository: no file names a path of one machine', () => {
  const ofThisOne = [ROOT, homedir()].filter((path) => path !== '/').map((path) => path.replace(/\W/g, '\\$&'));
  const ofAnyone = ['/home/\\w', '/Users/\\w', '/root/'];
  const paths = new RegExp(`(?<![\\w.~*})-])(?:${[...ofThisOne, ...ofAnyone].join('|')})(?![\\w-])`, 'g');
  assert.deepEqual(occurrences(paths, /^(?!test\/conformance\/card\.test\.ts$)/), []);
});

test('src: no line ends in white space', () => {
  assert.deepEqual(occurrences(/[ \t\r]+$/gm, /^(?:src|scripts)\/.*\.(?:ts|mjs)$/), []);
});
