// Small disks in memory, for rows that fill them.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Why there can be no small disks here; undefined where there can. */
export function mountObstacle(): string | undefined {
  const mayMount = process.platform === 'linux' && process.getuid?.() === 0;
  return mayMount ? undefined : 'only root may mount a small disk, and on Linux';
}

/** A disk in the place of an empty folder. `options` as tmpfs(5) has them. Unmounted by `unmount`. */
export function mountDisk(folder: string, options: string): void {
  mount(['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
}

/** A disk of so many mebibytes in a new folder, for as long as it is used. */
export async function onDisk(folder: string, mebibytes: number, use: (disk: string) => Promise<void>): Promise<void> {
  mkdirSync(folder);
  mountDisk(folder, `size=${mebibytes}m`);
  try {
    await use(folder);
  } finally {
    unmount(folder);
  }
}

/** Puts a disk in the place of the folder, with all that it has and with no more room than `room` beside it. */
export function mountFilled(folder: string, room: { readonly pages?: number; readonly files?: number }): void {
  const copy = mkdtempSync(join(dirname(folder), 'copy-'));
  cpSync(folder, copy, { recursive: true });
  mountDisk(folder, 'size=64m,nr_inodes=1k');
  cpSync(copy, folder, { recursive: true });
  rmSync(copy, { recursive: true });
  const { blocks, bfree, bsize, files, ffree } = statfsSync(folder);
  // At least 1, because a size of 0 would mean no bound.
  const options = [
    ...(room.pages === undefined ? [] : [`size=${Math.max(1, (blocks - bfree) * bsize + room.pages * 4096)}`]),
    ...(room.files === undefined ? [] : [`nr_inodes=${files - ffree + room.files}`]),
  ];
  mount(['-o', ['remount', ...options].join(','), folder]);
}

/** Lazily: what still has files there ends after this. */
export function unmount(folder: string): void {
  spawnSync('umount', ['-l', folder]);
}

function mount(args: readonly string[]): void {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`mount ended with ${status}: ${stderr}`);
}
