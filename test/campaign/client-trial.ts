// One run of pastec with folders of its own and a relay to a service, with a program of the host broken or a disk full.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SCRIPT } from '../support/shells.ts';
import { unmount } from './mounts.ts';
import { startRelay, type Relay } from './relay.ts';

/** The folders of a run, each of which may be a disk of its own. */
export const PLACES = ['work', 'home', 'temporary'] as const;
export type Place = (typeof PLACES)[number];

export interface Trial {
  /** The folder above those of the run, for what the run must not find. */
  readonly root: string;
  readonly relay: Relay;
  readonly folders: Readonly<Record<Place, string>>;
  /** Of the service itself. */
  readonly port: number;
}

export interface Ended {
  readonly code: number | string;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Runs `use` with what a run needs; it may mount a disk in the place of a folder. */
export async function withTrial<Result>(
  folder: string, port: number, use: (trial: Trial) => Promise<Result>,
): Promise<Result> {
  const root = mkdtempSync(join(folder, 'trial-'));
  const folders = { work: join(root, 'work'), home: join(root, 'home'), temporary: join(root, 'temporary') };
  for (const path of Object.values(folders)) mkdirSync(path);
  const relay = await startRelay(port);
  try {
    return await use({ root, relay, folders, port });
  } finally {
    relay.close();
    for (const path of Object.values(folders)) if (statSync(path).dev !== statSync(root).dev) unmount(path);
    rmSync(root, { recursive: true });
  }
}

/** A run that takes longer hangs. */
const PATIENCE_MS = 60_000;

export async function runClient(
  { relay, folders }: Trial, args: readonly string[], input: string | Uint8Array,
  environment: Readonly<Record<string, string>>,
): Promise<Ended> {
  const env = {
    PATH: process.env['PATH'], HOME: folders.home, TMPDIR: folders.temporary, PASTEC_SERVER: relay.url, TERM: 'dumb',
    ...environment,
  };
  const child = spawn('/bin/sh', [SCRIPT, ...args], { cwd: folders.work, env, detached: true });
  const endGroup = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  };
  process.once('exit', endGroup);
  const timer = setTimeout(endGroup, PATIENCE_MS);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (bytes: Buffer) => stdout.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => stderr.push(bytes));
  child.stdin.on('error', () => undefined).end(input);
  const [code, signal] = await once(child, 'close') as [number | null, string | null];
  clearTimeout(timer);
  process.off('exit', endGroup);
  endGroup();
  return { code: code ?? signal ?? '', stdout: Buffer.concat(stdout), stderr: String(Buffer.concat(stderr)) };
}

/** The content of every file in these folders, by its path. */
export function filesOf(trial: Trial, places: readonly Place[] = PLACES): Map<string, Buffer> {
  const entries = places.flatMap((place) => {
    return readdirSync(trial.folders[place], { recursive: true, withFileTypes: true });
  });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(paths.map((path) => [path, readFileSync(path)]));
}
