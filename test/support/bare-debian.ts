// A fresh Debian with nothing installed yet, of any release that the archive has. mmdebstrap fetches a release, and it
// is kept in .runtime/ for the next time.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { rootIn, type DebianRoot } from './debian-root.ts';
import { isInstalled, run } from './programs.ts';
import { ROOT } from './source.ts';

/** Several minutes at the slowest: it is some 50 MB. */
const FETCH_MS = 200_000;

/** A root with that release and `more` packages. If one cannot be had here, the test is skipped and must return. */
export function bareDebian(t: TestContext, suite: string, ...more: readonly string[]): DebianRoot | undefined {
  if (process.getuid?.() !== 0) {
    t.skip('only root can unpack a whole Debian');
    return undefined;
  }
  const archive = join(ROOT, '.runtime', `debian-${[suite, ...more].join('-')}.tar`);
  if (!existsSync(archive) && !fetchTo(t, archive, suite, more)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pasted-debian-'));
  run('tar', ['-xf', archive, '-C', folder], folder);
  return rootIn(t, folder);
}

/** Whether mmdebstrap has found no archive of Debian: a later failure has nothing to do with the network. */
export function isUnreachable(stderr: string): boolean {
  return /^E: apt-get update .*failed$/m.test(stderr);
}

function fetchTo(t: TestContext, archive: string, suite: string, more: readonly string[]): boolean {
  if (!isInstalled(t, 'mmdebstrap')) return false;
  mkdirSync(join(ROOT, '.runtime'), { recursive: true });
  const partial = `${archive}.${process.pid}`;
  const included = more.map((name) => `--include=${name}`);
  const args = ['--quiet', '--variant=apt', '--format=tar', ...included, suite, partial];
  const { status, stderr } = spawnSync('mmdebstrap', args, { encoding: 'utf8', timeout: FETCH_MS });
  if (status === 0) renameSync(partial, archive);
  rmSync(partial, { force: true });
  if (status === 0) return true;
  assert.ok(isUnreachable(stderr), stderr);
  t.skip(`no Debian ${suite} can be fetched`);
  return false;
}
