// The Debian package in the hands of dpkg: installed, started as its unit says, upgraded, removed, purged. systemd
// itself takes no part: its programs are stand-ins, and the test does what the unit asks of it.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { VERSION } from '../../src/version.ts';
import { debianRoot, type DebianRoot } from '../support/debian-root.ts';
import { run, type Finished } from '../support/programs.ts';
import { makeRelease } from '../support/release.ts';

const NEWER = `${VERSION}+newer`;

/** Paths of packages made from the release. */
interface Packages {
  readonly pasted: string;
  /** The same, under a higher version. */
  readonly newer: string;
  /** Nothing but its name and version: the program itself is in the root already. */
  readonly nodejs: string;
}

const folder = mkdtempSync(join(tmpdir(), 'pasted-packages-'));
after(() => rmSync(folder, { recursive: true }));

function makePackages(): Packages {
  makeRelease(folder);
  const pasted = join(folder, `pasted_${VERSION}_all.deb`);

  const tree = join(folder, 'newer');
  assert.equal(run('dpkg-deb', ['-R', pasted, tree], folder).output, '');
  const control = readFileSync(join(tree, 'DEBIAN/control'), 'utf8');
  writeFileSync(join(tree, 'DEBIAN/control'), control.replace(`\nVersion: ${VERSION}\n`, `\nVersion: ${NEWER}\n`));

  const nodejs = join(folder, 'nodejs');
  mkdirSync(join(nodejs, 'DEBIAN'), { recursive: true });
  const fields = { Package: 'nodejs', Version: '24.0.0', Architecture: 'all', Maintainer: 'A <a@example.invalid>' };
  const lines = Object.entries({ ...fields, Description: 'stand-in' }).map(([name, value]) => `${name}: ${value}\n`);
  writeFileSync(join(nodejs, 'DEBIAN/control'), lines.join(''));

  for (const name of ['newer', 'nodejs']) {
    const { status, output } = run('dpkg-deb', ['--root-owner-group', '-b', name, `${name}.deb`], folder);
    assert.equal(status, 0, output);
  }
  return { pasted, newer: join(folder, 'newer.deb'), nodejs: join(folder, 'nodejs.deb') };
}

let made: Packages | undefined;
/** Made once, and not where all tests are skipped. */
function thePackages(): Packages {
  made ??= makePackages();
  return made;
}

/** What systemd would run, and with which variables, as far as the unit says them literally. */
function unitCommand({ folder }: DebianRoot): { command: string[]; environment: Record<string, string> } {
  const unit = readFileSync(join(folder, 'usr/lib/systemd/system/pasted-tcp.service'), 'utf8').replaceAll('\\\n', ' ');
  const values = (key: string): string[] => {
    return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
  };
  const [command = ''] = values('ExecStart');
  const variables = values('Environment').flatMap((value) => value.split(' ')).map((pair) => pair.split('='));
  assert.deepEqual(values('StateDirectory'), ['pasted']);
  return { command: command.split(/\s+/), environment: Object.fromEntries(variables) as Record<string, string> };
}

/** Starts it, and resolves with its address once it listens. */
async function startService(root: DebianRoot): Promise<{ child: ChildProcess; url: string }> {
  const { command, environment } = unitCommand(root);
  mkdirSync(join(root.folder, 'var/lib/pasted'), { recursive: true });
  const ours = { STATE_DIRECTORY: '/var/lib/pasted', SERVICE_PORT: '0', SERVICE_POW_DIFFICULTY: '0' };
  const child = root.start(command, { ...environment, ...ours });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => assert.fail(`ended with ${code}: ${said}`));
  ended.catch(() => {});
  const listening = /"(http:\/\/127\.0\.0\.1:\d+)"/;
  while (!listening.test(said)) await Promise.race([once(child.stdout!, 'data'), ended]);
  return { child, url: listening.exec(said)![1]! };
}

async function stopService(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
}

test('Debian package: installs, serves, upgrades, is removed and purged', async (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  const inRoot = (path: string): string => join(root.folder, path);
  const kept = ['etc/pasted/credentials/SERVICE_PKI_CA_PASSWORD', 'var/lib/pasted/pasted.db'];
  let paste = '';

  await t.test('dpkg -i: waits for Node, then configures, enables and starts the service', () => {
    const early = root.dpkg('-i', packages.pasted);
    assert.equal(early.status, 1);
    assert.match(early.output, /pasted depends on nodejs \(>= 24\)/);
    assert.deepEqual(root.calls(), []);
    assert.equal(root.dpkg('-i', packages.nodejs).status, 0);
    const { status, output } = root.dpkg('--configure', 'pasted');
    assert.deepEqual({ status, output }, { status: 0, output: `Setting up pasted (${VERSION}) ...\n` });
    assert.deepEqual(root.calls(), [
      'deb-systemd-helper enable pasted.socket',
      'deb-systemd-helper enable pasted.service',
      'systemctl daemon-reload',
      'deb-systemd-invoke start pasted.socket pasted.service',
    ]);
  });

  await t.test('dpkg --verify: every file is as it was packed', () => {
    assert.deepEqual(root.dpkg('--verify', 'pasted'), { status: 0, stdout: '', output: '' });
    appendFileSync(inRoot('usr/lib/pasted/main.js'), '\n');
    assert.match(root.dpkg('--verify', 'pasted').stdout, /^\?\?5\?+ +\/usr\/lib\/pasted\/main\.js$/m);
    assert.equal(root.dpkg('-i', packages.pasted).status, 0);
    assert.equal(root.dpkg('--verify', 'pasted').output, '');
  });

  await t.test('/usr/bin/pasted: runs the commands', () => {
    assert.equal(root.run('/usr/bin/pasted', 'version').output, `pasted ${VERSION}\n`);
    const { status, output } = root.run('/usr/bin/pasted', 'no such command');
    assert.equal(status, 2);
    assert.match(output, /"no such command"/);
  });

  await t.test('the unit\'s own command: serves, and ends with 0', async () => {
    const { child, url } = await startService(root);
    assert.equal((await fetch(`${url}/health`)).status, 200);
    const stored = await fetch(url, { method: 'POST', body: 'kept over upgrades' });
    assert.equal(stored.status, 201);
    paste = (await stored.json() as { raw: string }).raw;
    await stopService(child);
    assert.ok(existsSync(inRoot('var/lib/pasted/pasted.db')));
  });

  await t.test('dpkg -i of a newer version: keeps settings and pastes, and restarts what runs', async () => {
    appendFileSync(inRoot('etc/pasted/pasted.env'), 'SERVICE_MIN_SIZE=1\n');
    writeFileSync(inRoot(kept[0]!), 'a passphrase');
    root.calls();
    const { status, output } = root.dpkg('-i', packages.newer);
    assert.equal(status, 0, output);
    assert.match(readFileSync(inRoot('etc/pasted/pasted.env'), 'utf8'), /^SERVICE_MIN_SIZE=1$/m);
    assert.deepEqual(root.calls().slice(2), [
      'systemctl daemon-reload',
      'deb-systemd-invoke try-restart pasted.service pasted-tcp.service',
      'deb-systemd-invoke start pasted.socket pasted.service',
    ]);
    const { child, url } = await startService(root);
    assert.equal(await (await fetch(`${url}${paste}`)).text(), 'kept over upgrades');
    await stopService(child);
  });

  await t.test('dpkg -i: does not enable what the administrator disabled', () => {
    writeFileSync(inRoot('disabled'), '');
    assert.equal(root.dpkg('-i', packages.newer).status, 0);
    assert.deepEqual(root.calls(), [
      'deb-systemd-helper update-state pasted.socket',
      'deb-systemd-helper update-state pasted.service',
      'systemctl daemon-reload',
      'deb-systemd-invoke try-restart pasted.service pasted-tcp.service',
    ]);
    rmSync(inRoot('disabled'));
  });

  await t.test('dpkg -r: stops everything, and leaves settings, secrets and pastes', () => {
    const { status, output } = root.dpkg('-r', 'pasted');
    assert.equal(status, 0, output);
    assert.deepEqual(root.calls(), [
      'deb-systemd-invoke stop pasted.socket pasted.service pasted-tcp.service', 'systemctl daemon-reload',
    ]);
    for (const path of [...kept, 'etc/pasted/pasted.env']) assert.ok(existsSync(inRoot(path)), path);
    for (const path of ['usr/bin/pasted', 'usr/lib/pasted', 'usr/lib/systemd', 'usr/share']) {
      assert.ok(!existsSync(inRoot(path)), path);
    }
  });

  await t.test('dpkg -P: forgets settings, and keeps what people entrusted to it, saying where', () => {
    const { status, output } = root.dpkg('-P', 'pasted');
    assert.equal(status, 0, output);
    assert.deepEqual(root.calls(), ['deb-systemd-helper purge pasted.socket pasted.service']);
    assert.deepEqual(readdirSync(inRoot('etc/pasted')), ['credentials']);
    for (const path of kept) assert.ok(existsSync(inRoot(path)), path);
    for (const folder of ['/var/lib/pasted', '/etc/pasted/credentials']) {
      assert.match(output, new RegExp(`^pasted: kept ${folder}; `, 'm'));
    }
    const listed = root.dpkg('-l', 'pasted').output;
    assert.match(listed, /no packages found|^un /m);
  });
});

/** In the place of systemd-run: keeps its words, is interrupted with its caller, and ends as the command would. */
const SYSTEMD_RUN = `#!/bin/sh
printf '%s\\0' "$@" >/words
kill -INT $PPID
echo 'what the command says'
exit 75
`;

test('pastedctl: has systemd run the command as the service would', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  assert.equal(root.dpkg('-i', packages.nodejs, packages.pasted).status, 0);
  const provide = (name: string, script: string): void => {
    writeFileSync(join(root.folder, 'usr/bin', name), script, { mode: 0o755 });
  };
  const control = (...words: string[]): Finished => root.run('/usr/sbin/pastedctl', ...words);
  provide('systemd-run', SYSTEMD_RUN);
  provide('id', '#!/bin/sh\necho 0\n');
  root.calls();

  const { status, output } = control('pki', 'revoke', 'a $HOME  b');
  assert.deepEqual({ status, output }, { status: 75, output: 'what the command says\n' });
  const words = readFileSync(join(root.folder, 'words'), 'utf8').split('\0').slice(0, -1);
  // systemd.service(5): two dollar signs are one.
  assert.deepEqual(words.slice(-4), ['/usr/lib/pasted/main.js', 'pki', 'revoke', 'a $$HOME  b']);
  assert.ok(words.includes('--description=pasted pki revoke a $HOME  b'));
  const unit = words.find((word) => word.startsWith('--unit='))?.slice('--unit='.length);
  assert.deepEqual(root.calls(), [`systemctl stop ${unit}`]);

  rmSync(join(root.folder, 'words'));
  for (const word of [undefined, '--', '--version', 'serve']) {
    assert.equal(control(...(word === undefined ? [] : [word])).status, 2, word);
  }
  assert.match(control('--help').stdout, /^Usage: pastedctl COMMAND/);
  provide('id', '#!/bin/sh\necho 1000\n');
  assert.deepEqual([control('stats').status, control('stats').stdout], [1, '']);
  provide('id', '#!/bin/sh\necho 0\n');
  rmSync(join(root.folder, 'run/systemd'), { recursive: true });
  assert.match(control('stats').output, /^pastedctl: systemd does not run here/);
  assert.ok(!existsSync(join(root.folder, 'words')));
});

test('Debian package: installs and is purged where there is no systemd', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  for (const path of ['run/systemd', 'usr/bin/systemctl', 'usr/bin/deb-systemd-helper', 'usr/bin/deb-systemd-invoke']) {
    rmSync(join(root.folder, path), { recursive: true });
  }
  for (const args of [['-i', packages.nodejs, packages.pasted], ['-P', 'pasted']]) {
    const { status, output } = root.dpkg(...args);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /not found|error/);
  }
  assert.ok(!existsSync(join(root.folder, 'etc/pasted')));
});
