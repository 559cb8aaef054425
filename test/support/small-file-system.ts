// A file system that is small enough to fill, in memory. It is unmounted when the test ends.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { MIB } from '../../src/core/time.ts';

/** A file system of that many mebibytes; undefined where this user may not mount one. */
export function smallFileSystem(t: TestContext, mebibytes: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-full-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
  t.after(() => {
    // Lazily (-l), since processes that still have files open there end after this.
    if (mounted.status === 0) spawnSync('umount', ['-l', folder]);
    rmdirSync(folder);
  });
  return mounted.status === 0 ? folder : undefined;
}

/** Takes every byte that is left; gives the path of the file that has them. */
export function fillUp(folder: string, name = 'filler'): string {
  const path = join(folder, name);
  const descriptor = openSync(path, 'w');
  for (const piece of [new Uint8Array(MIB), new Uint8Array(4096)]) {
    try {
      while (writeSync(descriptor, piece) > 0);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
  closeSync(descriptor);
  assert.equal(statfsSync(folder).bavail, 0);
  return path;
}
