// A file system that is small enough to fill, in memory. It is unmounted when the test ends.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

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
