// A root folder in which dpkg installs packages, and programs run by chroot(2): Node, and a shell with little else. The
// programs of systemd and Debian's helpers are stand-ins that write down how they were called. The root is a plain
// folder without mounts, so removing it is all the cleaning up. Needs root, or user namespaces.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { isInstalled, type Finished } from './programs.ts';

export interface DebianRoot {
  readonly folder: string;
  /** Runs dpkg with this root instead of the host's. */
  dpkg(...args: readonly string[]): Finished;
  /** Runs a program of this root to its end. */
  run(program: string, ...args: readonly string[]): Finished;
  /** Starts a program of this root, which is killed with the test at the latest. */
  start(command: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess;
  /** The command that runs a program of this root from outside. */
  command(program: string, ...args: readonly string[]): readonly string[];
  /** How the stand-ins were called since this was asked last. */
  calls(): string[];
  /** Copies programs of the host into the root; false, with the test skipped, if the host lacks one. */
  borrow(t: TestContext, ...programs: readonly string[]): boolean;
  /** Puts a script in the place of a program. */
  standIn(program: string, script: string): void;
}

const RECORDED = ['systemctl', 'deb-systemd-helper', 'deb-systemd-invoke'];

/**
 * Writes down how it was called, except three queries: `deb-systemd-helper was-enabled` fails while there is a file
 * /disabled, `systemctl is-active` unless there is a file of the unit's name, and `is-enabled` unless there is one of
 * that name and `.enabled`. `deb-systemd-helper enable` fails while there is a file /masked.
 */
export const RECORDER = `#!/bin/sh
case $* in
  *was-enabled*) test ! -e /disabled; exit ;;
  *is-active*) for unit do :; done; test -e "/$unit"; exit ;;
  *is-enabled*) for unit do :; done; test -e "/$unit.enabled"; exit ;;
  enable*) test ! -e /masked || exit 1 ;;
esac
echo "\${0##*/} $*" >>/calls
`;

/** Undefined if no root can be made here: then the test is skipped and must return. */
export function debianRoot(t: TestContext): DebianRoot | undefined {
  for (const program of ['dpkg', 'dpkg-deb', 'chroot', 'ldd']) if (!isInstalled(t, program)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pasted-debian-'));
  furnish(folder);
  return rootIn(t, folder);
}

/** The root in a folder, removed with the test. If chroot(2) is not permitted, the test is skipped and must return. */
export function rootIn(t: TestContext, folder: string): DebianRoot | undefined {
  const children: { readonly child: ChildProcess; readonly ended: Promise<unknown> }[] = [];
  t.after(async () => {
    for (const { child } of children) child.kill('SIGKILL');
    await Promise.all(children.map(({ ended }) => ended));
    rmSync(folder, { recursive: true });
  });
  // In a user namespace everyone is root, and the files that belong to root there are the user's own.
  const asRoot = process.getuid?.() === 0 ? [] : ['unshare', '--map-root-user'];
  const environment = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`, LC_ALL: 'C.UTF-8' };

  function finish(command: readonly string[]): Finished {
    const [program = '', ...args] = [...asRoot, ...command];
    const options = { encoding: 'utf8', timeout: 30_000, env: environment } as const;
    const { status, stdout, stderr } = spawnSync(program, args, options);
    return { status, stdout: stdout ?? '', output: `${stdout ?? ''}${stderr ?? ''}` };
  }

  const probe = finish(['chroot', folder, '/bin/sh', '-c', 'echo ready']);
  if (probe.stdout !== 'ready\n') {
    t.skip('chroot is not permitted');
    return undefined;
  }

  return {
    folder,
    // Container images often leave documentation out, by /etc/dpkg/dpkg.cfg.d: this option brings it back.
    dpkg: (...args) => finish(['dpkg', `--root=${folder}`, `--log=${folder}/dpkg.log`, '--path-include=/*', ...args]),
    run: (program, ...args) => finish(['chroot', folder, program, ...args]),
    start: (command, variables) => {
      const [program = '', ...args] = [...asRoot, 'chroot', folder, ...command];
      // Only PATH, which finds chroot, is passed on: nothing else of the test's environment may hide what a unit sets.
      const env = { PATH: environment.PATH, ...variables };
      const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      children.push({ child, ended: once(child, 'close') });
      return child;
    },
    command: (program, ...args) => [...asRoot, 'chroot', folder, program, ...args],
    calls: () => {
      const file = join(folder, 'calls');
      const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter((line) => line !== '') : [];
      rmSync(file, { force: true });
      return lines;
    },
    borrow: (t, ...programs) => programs.every((program) => {
      if (!isInstalled(t, program)) return false;
      const { stdout } = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program], { encoding: 'utf8' });
      provide(folder, `/usr/bin/${program}`, realpathSync(stdout.trim()));
      return true;
    }),
    standIn: (program, script) => standIn(folder, program, script),
  };
}

function furnish(root: string): void {
  for (const path of ['dev', 'tmp', 'run/systemd/system', 'var/lib/dpkg/info', 'var/lib/dpkg/updates']) {
    mkdirSync(join(root, path), { recursive: true });
  }
  // A plain file is enough for /dev/null, since scripts only write to it.
  for (const path of ['dev/null', 'var/lib/dpkg/status', 'var/lib/dpkg/available']) writeFileSync(join(root, path), '');
  provide(root, '/bin/sh', realpathSync('/bin/sh'));
  for (const program of ['/bin/cat', '/bin/ls', '/bin/rm', '/bin/sed']) provide(root, program, realpathSync(program));
  provide(root, '/usr/bin/node', process.execPath);
  for (const name of RECORDED) standIn(root, name, RECORDER);
}

function standIn(root: string, program: string, script: string): void {
  writeFileSync(join(root, 'usr/bin', program), script);
  chmodSync(join(root, 'usr/bin', program), 0o755);
}

/** Copies the program and the libraries that it is linked to. */
function provide(root: string, path: string, program: string): void {
  copy(root, path, program);
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' });
  for (const [library] of stdout.matchAll(/\/\S+(?= \(0x)/g)) copy(root, library, library);
}

function copy(root: string, path: string, from: string): void {
  const target = join(root, path);
  if (existsSync(target)) return;
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(from, target);
}
