// Runs test files in a copy of the repository: each process in a group of its own that is killed as a whole, with a
// folder for temporary files that is emptied afterwards. It does not decide what to run.

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { coverageEnv } from './entered.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const reporter = join(root, 'scripts', 'mutation', 'first-failure.mjs');
const leftOut = ['.git', '.runtime', 'node_modules', 'data'];

const folders = new Set();
const groups = new Set();

process.on('exit', () => {
  for (const pid of groups) killGroup(pid);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]]) {
  process.on(signal, () => process.exit(code));
}

/** A copy of the repository without the folders of `leftOut`; it is removed when this process ends. */
export function copyOfRepository() {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-mutation-'));
  folders.add(folder);
  const copy = join(folder, 'copy');
  const isCopied = (path) => !leftOut.some((name) => `${path}${sep}`.startsWith(join(root, name) + sep));
  cpSync(root, copy, { recursive: true, filter: isCopied });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/**
 * Runs the test files (relative to `copy`, in one process) until one of their tests fails. Resolves to 'passed',
 * 'failed' or 'late', and how long it took. V8 writes its coverage files into `coverageFolder`.
 */
export function runTests(copy, files, { timeoutMs, coverageFolder }) {
  const temporary = join(dirname(copy), 'tmp');
  mkdirSync(temporary, { recursive: true });
  const inherited = coverageFolder === undefined ? process.env : coverageEnv(coverageFolder);
  const env = { ...inherited, TMPDIR: temporary, NODE_DISABLE_COMPILE_CACHE: '1' };
  const args = [
    '--test', '--test-isolation=none', '--test-timeout=60000',
    `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', ...files,
  ];
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: copy, env, stdio: 'ignore', detached: true });
    groups.add(child.pid);
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      killGroup(child.pid);
    }, timeoutMs);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(late);
      killGroup(child.pid);
      groups.delete(child.pid);
      rmSync(temporary, { recursive: true, force: true, maxRetries: 3 });
      resolve({ outcome: isLate ? 'late' : code === 0 ? 'passed' : 'failed', ms: performance.now() - startedAt });
    });
  });
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
