// `pasted check --files`: compares what runs here with the list of a release, both as the release makes them. For a
// Debian package: interop/debian-package.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync,
  truncateSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { builtMain } from '../support/built.ts';
import { run, temporaryFolder } from '../support/programs.ts';
import { makeRelease } from '../support/release.ts';

const folder = mkdtempSync(join(tmpdir(), 'pasted-files-'));
after(() => rmSync(folder, { recursive: true }));

/** The folder of an unpacked tarball. */
const released = join(folder, `pasted-${VERSION}`);
const list = join(folder, `pasted-${VERSION}.cdx.json`);
let files: string[] = [];

interface Bill {
  bomFormat: unknown;
  metadata: { component: { components: unknown; [name: string]: unknown } };
}

interface ListedFile {
  name: string;
  hashes: { alg: string; content: string }[];
}

before(() => {
  makeRelease(folder);
  assert.equal(run('tar', ['-xzf', `${released}.tar.gz`, '-C', folder], folder).status, 0);
  files = (readBill().metadata.component.components as ListedFile[]).map(({ name }) => name);
});

function readBill(): Bill {
  return JSON.parse(readFileSync(list, 'utf8')) as Bill;
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `check` of the program in the folder `dist`, with settings that could not be used. */
function check(dist: string, words: readonly string[], options: { uid?: number; before?: readonly string[] } = {}): Ended {
  const { before: first = [], ...others } = options;
  const env = { SERVICE_PORT: 'none', SERVICE_DB: join(folder, 'no', 'database') };
  const args = [...first, join(dist, 'main.js'), 'check', ...words];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: 60_000, env, ...others });
  return { code: status, stdout, stderr };
}

/** A copy of what was released, removed with the test; npm run coverage knows it by its name. */
function copyDist(t: TestContext, name = 'dist'): string {
  const dist = join(temporaryFolder(t), name);
  cpSync(join(released, 'dist'), dist, { recursive: true });
  return dist;
}

test('check --files: what was released, wherever it lies, is said in one line', (t) => {
  const dist = copyDist(t, 'lib');
  const built = join(builtMain(), '..');
  assert.ok(files.length > 50);
  for (const place of [join(released, 'dist'), dist, built]) {
    const stdout = `ok files: ${files.length} in ${place} are those of pasted ${VERSION}\n`;
    assert.deepEqual(check(place, ['--files', list]), { code: 0, stdout, stderr: '' });
  }
  // An empty folder has nothing that could run.
  mkdirSync(join(dist, 'empty'));
  // Nor does it count what lies beside the folder.
  writeFileSync(join(dist, '..', 'beside.js'), '');
  const { code, stdout } = check(dist, ['--files', join(released, 'sbom.cdx.json'), '--json']);
  const text = `${files.length} in ${dist} are those of pasted ${VERSION}`;
  assert.deepEqual([code, JSON.parse(stdout)], [0, { ok: true, checks: [{ name: 'files', level: 'ok', text }] }]);
  assert.ok(!existsSync(join(folder, 'no')));
});

test('check --files: each file that is changed, missing or added is named, and ends it with 1', (t) => {
  const dist = copyDist(t);
  appendFileSync(join(dist, 'core', 'time.js'), '\n');
  rmSync(join(dist, 'ops', 'cleanup.js'));
  writeFileSync(join(dist, 'added.js'), '');
  mkdirSync(join(dist, 'node_modules', 'x'), { recursive: true });
  writeFileSync(join(dist, 'node_modules', 'x', 'package.json'), '{}');
  writeFileSync(join(dist, 'a\nok files: b\u001b[2J\u202e.js'), '');
  // The same bytes, by a link that could lead elsewhere tomorrow.
  renameSync(join(dist, 'http', 'page.js'), join(dist, '..', 'page.js'));
  symlinkSync(join('..', '..', 'page.js'), join(dist, 'http', 'page.js'));
  symlinkSync('core', join(dist, 'linked'));
  symlinkSync('nowhere', join(dist, 'broken'));
  assert.equal(run('mkfifo', [join(dist, 'pipe')], folder).status, 0);
  rmSync(join(dist, 'README.md'));
  assert.equal(run('mkfifo', [join(dist, 'README.md')], folder).status, 0);
  // A file in the place of a folder hides what was in it.
  rmSync(join(dist, 'limits'), { recursive: true });
  writeFileSync(join(dist, 'limits'), '');
  const expected = [
    'fail dist/README.md: changed: no plain file',
    'fail dist/a?ok files: b?[2J?.js: added',
    'fail dist/added.js: added',
    'fail dist/broken: added',
    'fail dist/core/time.js: changed',
    'fail dist/http/page.js: changed: no plain file',
    'fail dist/limits: added',
    ...files.filter((name) => name.startsWith('dist/limits/')).map((name) => `fail ${name}: missing`),
    'fail dist/linked: added',
    'fail dist/node_modules/x/package.json: added',
    'fail dist/ops/cleanup.js: missing',
    'fail dist/pipe: added',
  ];
  const summary = `fail files: ${expected.length} in ${dist} are not those of pasted ${VERSION}`;
  const { code, stdout, stderr } = check(dist, ['--files', list]);
  assert.deepEqual([code, stderr, stdout.split('\n')], [1, '', [...expected, summary, '']]);
  const { ok, checks } = JSON.parse(check(dist, ['--files', list, '--json']).stdout) as { ok: boolean; checks: object[] };
  assert.deepEqual([ok, checks.length], [false, expected.length + 1]);
  assert.deepEqual(checks[2], { name: 'dist/added.js', level: 'fail', text: 'added' });
});

test('check --files: says what is missing though nothing else would run any more', (t) => {
  const dist = copyDist(t);
  for (const gone of ['authority', 'limits', 'pastes']) rmSync(join(dist, gone), { recursive: true });
  for (const gone of ['serve.js', 'operator/check.js', 'operator/session.js', 'store/open.js']) rmSync(join(dist, gone));
  const { code, stdout, stderr } = check(dist, ['--files', list]);
  assert.deepEqual([code, stderr], [1, '']);
  assert.match(stdout, /^fail dist\/operator\/check\.js: missing$/m);
  // When a file is missing that the comparison itself needs, node names it.
  rmSync(join(dist, 'crypto', 'digest.js'));
  const broken = check(dist, ['--files', list]);
  assert.deepEqual([broken.code, broken.stdout], [1, '']);
  assert.match(broken.stderr, /Cannot find module '.*digest\.js'/);
});

test('check --files: the list of another release says so by its version', (t) => {
  const other = join(temporaryFolder(t), 'other.json');
  const bill = readBill();
  (bill.metadata.component.components as ListedFile[])[0]!.hashes[0]!.content = '0'.repeat(64);
  for (const [version, shown] of [
    ['0.9', '0.9'], ['0.9\nok', '0.9?ok'], [undefined, 'of no version'], [null, 'of no version'], [9, 'of no version'],
  ]) {
    bill.metadata.component['version'] = version;
    writeFileSync(other, JSON.stringify(bill));
    const { code, stdout } = check(join(released, 'dist'), ['--files', other]);
    assert.deepEqual([code, stdout.split('\n').slice(1)], [
      1, [`fail files: 1 in ${join(released, 'dist')} are not those of pasted ${shown}`, ''],
    ]);
  }
});

test('check --files: what this user may not read is no match', (t) => {
  const dist = copyDist(t);
  chmodSync(join(dist, '..'), 0o755);
  chmodSync(join(dist, 'operator', 'openapi.json'), 0);
  const isRoot = process.getuid?.() === 0;
  const options = isRoot ? { uid: 65_534 } : {};
  const readable = join(dist, '..', 'list.json');
  cpSync(list, readable);
  const version = spawnSync(process.execPath, [join(dist, 'main.js'), 'version'], { ...options, encoding: 'utf8' });
  if (version.status !== 0) {
    t.skip('another user cannot run this Node');
    return;
  }
  const { code, stdout } = check(dist, ['--files', readable], options);
  assert.deepEqual([code, stdout.split('\n')[0]], [1, 'fail dist/operator/openapi.json: cannot be read (EACCES)']);
  mkdirSync(join(dist, 'closed'), { mode: 0 });
  const closed = check(dist, ['--files', readable], options);
  assert.deepEqual(closed, { code: 1, stdout: '', stderr: `pasted: not every folder of ${dist} can be read\n` });
});

test('check --files: a file of any size is read in pieces', (t) => {
  const dist = copyDist(t);
  truncateSync(join(dist, 'operator', 'openapi.json'), 400 * 1024 * 1024);
  const told = 'data:text/javascript,process.on("exit",()=>process.stderr.write(`${process.resourceUsage().maxRSS}`))';
  const { code, stdout, stderr } = check(dist, ['--files', list], { before: ['--import', told] });
  assert.deepEqual([code, stdout.split('\n')[0]], [1, 'fail dist/operator/openapi.json: changed']);
  assert.ok(Number(stderr) > 10_000 && Number(stderr) < 200_000, `${stderr} KiB`);
});

test('check --files: what is no list of a release ends it with 2, and says why', (t) => {
  const path = join(temporaryFolder(t), 'list');
  const bill = (change: (bill: Bill) => void): string => {
    const made = readBill();
    change(made);
    return JSON.stringify(made);
  };
  const components = (value: unknown): string => bill((made) => (made.metadata.component.components = value));
  const [noFormat, noFile] = ['is no CycloneDX in JSON', 'has no file of dist/'];
  const noSum = 'has no SHA-256 of dist/a?';
  const weak = { alg: 'MD5', content: '0'.repeat(32) };
  for (const [text, reason] of [
    ['', noFormat],
    ['{', noFormat],
    ['null', noFormat],
    ['[]', noFormat],
    ['"CycloneDX"', noFormat],
    [bill((made) => (made.bomFormat = 'SPDX')), noFormat],
    ['<bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>', noFormat],
    ['{"bomFormat":"CycloneDX"}', noFile],
    ['{"bomFormat":"CycloneDX","metadata":null}', noFile],
    ['{"bomFormat":"CycloneDX","metadata":{"component":null}}', noFile],
    ['{"bomFormat":"CycloneDX","metadata":{"component":5}}', noFile],
    ...[undefined, null, {}, [], 'dist/main.js', [null, 5, [], {}, { name: 5 }], [{ name: 'main.js' }]].map((value) => (
      [components(value), noFile] as const
    )),
    ...[undefined, null, 'x', [null], [weak], [{ alg: 'SHA-256' }], [{ alg: 'SHA-256', content: 'A'.repeat(64) }]].map(
      (hashes) => [components([{ name: 'dist/a\n', hashes }]), noSum] as const,
    ),
    [`${readFileSync(list, 'utf8')}${' '.repeat(1024 * 1024)}`, 'cannot be read (larger than 1 MiB)'],
  ] as const) {
    writeFileSync(path, text);
    const stderr = `pasted: --files takes the list of a release: ${path} ${reason}\nTry: pasted help\n`;
    assert.deepEqual(check(join(released, 'dist'), ['--files', path]), { code: 2, stdout: '', stderr }, text.slice(0, 200));
  }
  for (const [words, reason] of [
    [['--files', join(folder, 'none')], /none cannot be read \(ENOENT\)/],
    [['--files', folder], /cannot be read \(EISDIR\)/],
    [['--files', list, '--full'], /--files looks at no database: leave out --full/],
    [['--files'], /--files/],
  ] as const) {
    const { code, stdout, stderr } = check(join(released, 'dist'), words);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, reason);
  }
});
