// The Debian packages of a release, and the service started as its unit says in a root where they are installed.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import type { DebianRoot } from './debian-root.ts';
import { run } from './programs.ts';
import { makeRelease } from './release.ts';

const NEWER = `${VERSION}+newer`;

/** Paths of packages made from the release. */
export interface Packages {
  readonly pasted: string;
  readonly tarball: string;
  /** The same, under a higher version. */
  readonly newer: string;
  /** Nothing but its name and version, since the program itself is in the root already. */
  readonly nodejs: string;
}

let made: Packages | undefined;
let folder: string | undefined;
// At the top level, since inside of a test it would run after that test.
after(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

/** Made once, when a test first asks for them, and removed after the last test of the file. */
export function thePackages(): Packages {
  made ??= makePackages();
  return made;
}

function makePackages(): Packages {
  folder = mkdtempSync(join(tmpdir(), 'pasted-packages-'));
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
  const tarball = join(folder, `pasted-${VERSION}.tar.gz`);
  return { pasted, tarball, newer: join(folder, 'newer.deb'), nodejs: join(folder, 'nodejs.deb') };
}

/** Specifiers of systemd.unit(5), with the folders that they stand for in the root. */
const SPECIFIERS: Readonly<Record<string, string>> = { '%S': '/var/lib', '%t': '/run' };

/** What systemd would run, and with which variables. */
function unitCommand({ folder }: DebianRoot): { command: string[]; environment: Record<string, string> } {
  const unit = readFileSync(join(folder, 'usr/lib/systemd/system/pasted-tcp.service'), 'utf8').replaceAll('\\\n', ' ');
  const values = (key: string): string[] => {
    return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
  };
  const [command = ''] = values('ExecStart');
  const variables = values('Environment').flatMap((value) => value.split(' ')).map((pair) => pair.split('='));
  assert.deepEqual(values('StateDirectory'), ['pasted']);
  const words = [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => (quoted ?? word).replaceAll('$$', '$'));
  const [shell = '', option = '', script = '', ...options] = words.map((word) => {
    return word.replaceAll('%t/credentials/%n', '/run/credentials').replaceAll(/%[St]/g, (name) => SPECIFIERS[name]!);
  });
  const inPlaces = `PATH=${values('ExecSearchPath')[0] ?? ''}; ${script}`;
  const all = [shell, option, inPlaces, ...options];
  return { command: all, environment: Object.fromEntries(variables) as Record<string, string> };
}

/** Starts the service on a free port, and resolves with its address once it listens. */
export async function startService(
  root: DebianRoot,
  more: Readonly<Record<string, string>> = {},
): Promise<{ child: ChildProcess; url: string }> {
  const { command, environment } = unitCommand(root);
  mkdirSync(join(root.folder, 'var/lib/pasted'), { recursive: true, mode: 0o700 });
  const ours = { STATE_DIRECTORY: '/var/lib/pasted', SERVICE_PORT: '0', SERVICE_POW_DIFFICULTY: '0', ...more };
  const child = root.start(command, { ...environment, ...ours });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => assert.fail(`ended with ${code}: ${said}`));
  ended.catch(() => {});
  const listening = /"(https?:\/\/127\.0\.0\.1:\d+)"/;
  while (!listening.test(said)) await Promise.race([once(child.stdout!, 'data'), ended]);
  return { child, url: listening.exec(said)![1]! };
}

export async function stopService(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
}
