// A slower disk for one process, as far as its promises go: each sync takes some time more. Where there is a C
// compiler, on Linux.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./slow-sync.c', import.meta.url));

/** Why no sync can be delayed here; null when it can. @returns {string | null} */
export function slowSyncObstacle() {
  if (process.platform !== 'linux') return 'syncs are delayed on Linux only';
  return spawnSync('cc', ['--version']).status === 0 ? null : 'there is no C compiler (cc)';
}

/**
 * The environment of a process whose every fsync and fdatasync takes so much longer.
 * @param {string} folder where the library is built; it must stay while such a process runs
 * @param {number} delayMs whole milliseconds
 * @returns {NodeJS.ProcessEnv}
 */
export function slowSyncEnvironment(folder, delayMs) {
  const library = path.join(folder, 'slow-sync.so');
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, SOURCE, '-ldl'];
  const { status, stderr } = spawnSync('cc', flags, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cc ended with ${status}: ${stderr}`);
  return { LD_PRELOAD: library, SLOW_SYNC_MS: String(delayMs) };
}
