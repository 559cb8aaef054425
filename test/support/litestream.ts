// The deployment of scripts/deploy/litestream in a folder, with the real Litestream, which .ci/run fetches.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram, run } from './programs.ts';
import { ROOT } from './source.ts';

export const LITESTREAM_FOLDER = join(ROOT, 'scripts', 'deploy', 'litestream');

/** The version that the files are for. */
const VERSION = '0.5.17';

/** The name in README.md of the deployment, where the replica is under /var/lib/private. */
const REPLICA = 'pasted-replica';

export interface LitestreamOptions {
  /** The built service's entry. */
  readonly main: string;
  /** Changes the settings of litestream.yml. */
  readonly change?: (configuration: string) => string;
}

export interface Deployment {
  readonly databasePath: string;
  /** The folder of the replicas of all hosts. */
  readonly replica: string;
  /** What systemd would set, and PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs each ExecStartPre= of replica.conf. */
  prepare(): void;
  /** ExecStart= of replica.conf: the program and its arguments. */
  readonly replicate: readonly string[];
  /** Gives the service that starts next a replica of its own, as failing over does. */
  moveReplica(name: string): void;
  /** The first command of failing over. */
  restore(to: string): ReturnType<typeof run>;
}

export const deployed = (name: string): string => readFileSync(join(LITESTREAM_FOLDER, name), 'utf8');

/** Why Litestream cannot be tried here; undefined if it can. */
export function litestreamMissing(): string | undefined {
  const program = findLitestream();
  if (program === undefined) return 'litestream is not installed';
  const version = run(program, ['version'], '/').stdout.trim();
  return version === VERSION ? undefined : `litestream is ${version}, and the files are for ${VERSION}`;
}

/** The path of Litestream: the one that .ci/run has fetched, before any other. */
export function findLitestream(): string | undefined {
  return findProgram('litestream', join(ROOT, '.runtime', `litestream-${VERSION}`));
}

/** Writes the deployment's files with paths in `folder` instead of a server's. The log is shortened more often. */
export function deployLitestream(folder: string, { main, change = (text) => text }: LitestreamOptions): Deployment {
  const program = findLitestream();
  assert.ok(program);
  const databasePath = join(folder, 'data', 'pasted.db');
  const replica = join(folder, REPLICA);
  const configurationPath = join(folder, 'litestream.yml');
  const servePath = join(folder, 'serve-replicated');
  for (const name of ['data', REPLICA, 'credentials']) mkdirSync(join(folder, name), { mode: 0o700 });
  const placed = (text: string, ...places: readonly (readonly [string, string])[]): string => {
    for (const [from] of places) assert.ok(text.includes(from), from);
    return places.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
  };
  writeFileSync(configurationPath, change(placed(
    deployed('litestream.yml'), ['/var/lib/pasted/pasted.db', databasePath], [`/var/lib/private/${REPLICA}`, replica],
  )));
  writeFileSync(servePath, placed(
    deployed('serve-replicated'), ['/usr/lib/pasted', dirname(main)], ['/usr/local/lib/pasted', LITESTREAM_FOLDER],
    ['" 60 &', '" 1 &'],
  ));
  chmodSync(servePath, 0o755);
  return {
    databasePath,
    replica,
    environment: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      STATE_DIRECTORY: `${join(folder, 'data')}:${replica}`, CREDENTIALS_DIRECTORY: join(folder, 'credentials'),
    },
    prepare: () => {
      const unit = placed(
        deployed('replica.conf').replaceAll(/ *\\\n */g, ' '), ['/var/lib/pasted', dirname(databasePath)],
        ['/usr/local/lib/pasted', LITESTREAM_FOLDER], ['/usr/bin/litestream', program],
        ['/etc/pasted/litestream.yml', configurationPath], ['$$', '$'],
      );
      const lines = [...unit.matchAll(/^ExecStartPre=(.*)$/gm)].map(([, line = '']) => line);
      for (const line of lines) {
        const { status, output } = run('sh', ['-c', line.replace(/\bnode\b/, process.execPath)], folder);
        assert.equal(status, 0, `${line}: ${output}`);
      }
    },
    replicate: [program, 'replicate', '-config', configurationPath, '-exec', servePath],
    moveReplica: (name) => {
      const configuration = readFileSync(configurationPath, 'utf8');
      writeFileSync(configurationPath, configuration.replace(/pasted-replica\/.*/, `pasted-replica/${name}`));
    },
    // Without the umask Litestream would make a file that all can read.
    restore: (to) => run('sh', [
      '-c', 'umask 077; exec "$0" restore -config "$1" -o "$2" "$3"', program, configurationPath, to, databasePath,
    ], folder),
  };
}

/** The pid of the service itself, which runs in the shell that is the only child of Litestream. */
export function serviceUnder(litestreamPid: number): number | undefined {
  const [shell, ...others] = childrenOf(litestreamPid);
  assert.deepEqual(others, []);
  if (shell === undefined) return undefined;
  return childrenOf(shell).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').endsWith('main.js\0serve\0'));
}

function childrenOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  const children = readdirSync(tasks).map((task) => readFileSync(join(tasks, task, 'children'), 'utf8').trim());
  return children.join(' ').split(' ').filter((number) => number !== '').map(Number);
}
