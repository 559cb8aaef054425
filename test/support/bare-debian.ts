// Debian as it is when nothing has been installed yet, of any release that the archive has. mmdebstrap fetches one;
// it is kept in .runtime/ for the next time.

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

/** A root with that release alone. If one cannot be had here, the test is skipped and must return. */
export function bareDebian(t: TestContext, suite: string): DebianRoot | undefined {
  if (process.getuid?.() !== 0) {
    t.skip('only root can unpack a whole Debian');
    return undefined;
  }
  const archive = join(ROOT, '.runtime', `debian-${suite}.tar`);
  if (!existsSync(archive) && !fetchTo(t, archive, suite)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pasted-debian-'));
  run('tar', ['-xf', archive, '-C', folder], folder);
  return rootIn(t, folder);
}

function fetchTo(t: TestContext, archive: string, suite: string): boolean {
  if (!isInstalled(t, 'mmdebstrap')) return false;
  mkdirSync(join(ROOT, '.runtime'), { recursive: true });
  const partial = `${archive}.${process.pid}`;
  const { status, stderr } = spawnSync('mmdebstrap', ['--quiet', '--variant=apt', '--format=tar', suite, partial], {
    encoding: 'utf8',
    timeout: FETCH_MS,
  });
  if (status === 0) renameSync(partial, archive);
  else t.skip(`no Debian ${suite} could be fetched: ${stderr.trim().split('\n').at(-1)}`);
  rmSync(partial, { force: true });
  return status === 0;
}
