// The built service for tests that run it as a process. scripts/test.mjs has built it before any test; a test file
// that is run by hand builds it here when it is missing or older than src/.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './source.ts';

let isBuilt = false;

/** The path of dist/main.js, built from src/ as it was at the first call. Throws when src/ cannot be built. */
export function builtMain(): string {
  if (!isBuilt) compileTo();
  isBuilt = true;
  return join(ROOT, 'dist', 'main.js');
}

/** Builds src/ into `folder`, or into dist/ when dist/ is out of date. */
export function compileTo(folder?: string): void {
  const script = join(ROOT, 'scripts', 'compile.mjs');
  const args = ['--disable-warning=ExperimentalWarning', script, ...(folder === undefined ? [] : [folder])];
  const { status, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`building ended with ${status ?? signal}: ${stderr}`);
}
