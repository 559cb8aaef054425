// What the READMEs list is what there is: README.md's tables, the folders of test/, the commands and files of scripts/
// and the benchmark's operations. That its command lines work: readme-tour.test.ts and interop/readme-*.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { DAY_SECONDS, MIB } from '../../src/core/time.ts';
import { README, sections, tableUnder } from '../support/readme.ts';
import { repositoryFiles, ROOT, sourceFiles } from '../support/source.ts';

const OF_SCRIPTS = readFileSync(join(ROOT, 'scripts', 'README.md'), 'utf8');
const OF_TESTS = readFileSync(join(ROOT, 'test', 'README.md'), 'utf8');

/** Files right under `folder`, and its folders with a slash, but for the README itself. */
function entriesOf(folder: string): string[] {
  const inside = repositoryFiles().filter((path) => path.startsWith(`${folder}/`));
  const names = new Set(inside.map((path) => path.slice(folder.length + 1).replace(/\/.*/, '/')));
  return [...names].filter((name) => name !== 'README.md').sort();
}

/** What the first cells of a table have between backticks. */
function listed(rows: readonly string[][]): string[] {
  return rows.map(([cell = '']) => /^`([^`]+)`$/.exec(cell)?.[1] ?? cell);
}

test('README: is short enough to be read', () => {
  assert.ok(README.split('\n').length - 1 <= 250);
});

test('README: every shell block is one that a test runs', () => {
  const blocks = [...sections()].map(([heading, text]) => [heading, text.match(/^```sh$/gm)?.length ?? 0] as const);
  assert.deepEqual(Object.fromEntries(blocks.filter(([, count]) => count > 0)), {
    // api/hangup.test.ts runs npm start, from beginning to end.
    'Try it': 1,
    // readme-tour.test.ts runs these two, and the last block for a server.
    'A tour with pastec': 1,
    'The same with curl': 1,
    // interop/readme-server.test.ts
    'On a server in five minutes': 3,
    'Behind a proxy': 1,
    // interop/readme-examples.test.ts
    'Who may use it': 3,
    // interop/readme-server.test.ts
    'Looking after it': 2,
  });
});

test('README: root opens nothing in the folder of the service, where its user could have put a link', () => {
  const blocks = [...README.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
  assert.deepEqual(blocks.join('').split('\n').filter((line) => line.includes('/var/lib')), []);
});

test('README, scripts/deploy: what is secret goes into no file that others may read', () => {
  const writing = /(?:admin create|pki issue|backup -|openssl rand).* > /;
  const lines = ['README.md', ...repositoryFiles().filter((path) => path.startsWith('scripts/deploy/'))]
    .flatMap((path) => readFileSync(join(ROOT, path), 'utf8').split('\n'))
    .filter((line) => writing.test(line));
  assert.ok(lines.length >= 8);
  assert.deepEqual(lines.filter((line) => !line.includes('(umask 077; ')), []);
});

test('README: the limits of each tier are the defaults', () => {
  const limits = (maxBytes: number, seconds: number, rate: number): string => {
    const days = seconds / DAY_SECONDS;
    return `${maxBytes / MIB} MiB, ${days} ${days === 1 ? 'day' : 'days'}, ${rate} a minute`;
  };
  const of = (name: string): number => {
    const setting = Object.values(SETTINGS).find((one) => one.name === name) ?? assert.fail(name);
    return setting.fallback as number;
  };
  const [anonymousMax, rate] = [of('SERVICE_MAX_ANON'), of('SERVICE_RATE_MAX')];
  assert.equal(of('SERVICE_RATE_WINDOW'), 60);
  assert.deepEqual(tableUnder(README, 'Who may use it').map((cells) => [cells[0], cells.at(-1)]), [
    ['anonymous', limits(anonymousMax, of('SERVICE_EXPIRY_ANON'), rate)],
    ['untrusted', limits(anonymousMax, of('SERVICE_EXPIRY_UNTRUSTED'), rate)],
    ['trusted', limits(of('SERVICE_MAX_AUTH'), of('SERVICE_EXPIRY_TRUSTED'), rate * of('SERVICE_RATE_AUTH_MULT'))],
    ['admin', 'as trusted'],
  ]);
});

test('README: each proxy has its secret and its revocation list where the table says', () => {
  const rows = tableUnder(README, 'Behind a proxy');
  const files = rows.map(([, link = '']) => /\((scripts\/deploy\/.*)\)$/.exec(link)?.[1] ?? assert.fail(link));
  const inDeploy = repositoryFiles().filter((path) => /^scripts\/deploy\/[^/]+$/.test(path));
  assert.deepEqual([...files, 'scripts/deploy/sysctl.conf'].sort(), inDeploy);
  for (const [index, [, , secret = '', revoked = '']] of rows.entries()) {
    const lines = readFileSync(join(ROOT, files[index]!), 'utf8').split('\n').filter((line) => !/^\s*#/.test(line));
    assert.ok(lines.some((line) => line.includes(secret.replaceAll('`', ''))), files[index]);
    assert.equal(lines.some((line) => line.includes('ca.crl.pem')), revoked.includes('ca.crl.pem'), files[index]);
  }
});

test('scripts/README: every command of package.json and every file is listed, and nothing else', () => {
  const card = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  const isShort = (name: string): boolean => ['start', 'test'].includes(name);
  const commands = Object.keys(card.scripts).map((name) => `npm ${isShort(name) ? '' : 'run '}${name}`);
  assert.deepEqual(listed(tableUnder(OF_SCRIPTS, 'Commands')), commands);
  assert.deepEqual(listed(tableUnder(OF_SCRIPTS, 'Files')), entriesOf('scripts'));
});

test('test/README: every folder is listed, and nothing else', () => {
  assert.deepEqual(listed(tableUnder(OF_TESTS, 'Folders')).sort(), entriesOf('test'));
});

test('scripts/README and test/README: every path that they name is there', () => {
  const paths = repositoryFiles();
  for (const text of [OF_SCRIPTS, OF_TESTS]) {
    const named = [...text.matchAll(/(?<![\w/.-])(?:scripts|test|src|\.ci)\/[\w./-]*[\w/]/g)].map(([path]) => path);
    assert.deepEqual(named.filter((name) => !paths.some((path) => path === name || path.startsWith(name))), []);
  }
});

test('src/README: every file and name on it is there, and names where the table says', () => {
  const text = readFileSync(join(ROOT, 'src', 'README.md'), 'utf8');
  const sources = new Map(sourceFiles().map(({ path, text: source }) => [path.replace(/^src\//, ''), source]));
  const inTests = repositoryFiles().filter((path) => path.startsWith('test/'));
  const isPath = (word: string): boolean => [...sources.keys(), ...inTests].some((path) => (
    word.endsWith('/') ? path.startsWith(word) : path === word || path.endsWith(`/${word}`)
  ));
  const words = [...text.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
  const isDeclared = (name: string, source: string): boolean => new RegExp(`(?<![\\w$])${name}\\b`).test(source);
  const missing = words.filter((word) => {
    if (/\/$|\.ts$/.test(word)) return !isPath(word);
    return /^#?[A-Za-z_]\w*$/.test(word) && ![...sources.values()].some((source) => isDeclared(word, source));
  });
  assert.deepEqual(missing.filter((word) => !['src/', 'dist/', 'pastec', 'prepare'].includes(word)), []);

  const places = [...text.matchAll(/^\|[^|]*\| `([\w/.-]+\.ts)` \| (.*) \|$/gm)];
  assert.ok(places.length > 30);
  for (const [, path = '', names = ''] of places) {
    const source = sources.get(path) ?? assert.fail(path);
    for (const [, name = ''] of names.matchAll(/`(\w+)`/g)) assert.ok(isDeclared(name, source), `${name} in ${path}`);
  }
  const pairs = [...text.matchAll(/`(#?\w+)` in `([\w/.-]+\.ts)`/g)];
  for (const [, name = '', path = ''] of pairs) assert.ok(isDeclared(name, sources.get(path) ?? ''), `${name} in ${path}`);
});

interface Operation {
  readonly name: string;
  readonly title: string;
  readonly floor: string;
  readonly unit: string;
  readonly bar: object;
}

test('scripts/README: every operation of the benchmark is listed, with its floor and its bar', async () => {
  const scripts: string = join(ROOT, 'scripts', 'bench');
  const { OPERATIONS }: { OPERATIONS: readonly Operation[] } = await import(join(scripts, 'operations.mjs'));
  const file = join(scripts, 'statistics.mjs');
  const { barText }: { barText: (bar: object, unit: string) => string } = await import(file);
  const expected = OPERATIONS.map(({ name, title, floor, unit, bar }) => {
    return [`\`${name}\``, title, floor, barText(bar, unit)];
  });
  assert.deepEqual(tableUnder(OF_SCRIPTS, 'Operations'), expected);
});
