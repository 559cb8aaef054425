// What a result is valid for: the versions of everything that took part in it.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { spawnSync } from 'node:child_process';

/** `build` is the same exactly when dist/ is the same. */
export function describeVersions(root) {
  const db = new DatabaseSync(':memory:');
  const sqlite = String(db.prepare('SELECT sqlite_version() AS version').get()?.version);
  db.close();
  const git = (...words) => spawnSync('git', words, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? '';
  // With uncommitted changes in src/ there is no commit to name.
  const commit = git('status', '--porcelain', '--', 'src') === '' ? git('rev-parse', 'HEAD') || null : null;
  const stamp = path.join(root, '.runtime', 'dist.stamp');
  const build = createHash('sha256').update(existsSync(stamp) ? readFileSync(stamp) : '').digest('hex').slice(0, 16);
  return {
    node: process.versions.node,
    sqlite,
    openssl: process.versions.openssl,
    kernel: os.release(),
    cores: os.availableParallelism(),
    commit,
    build,
  };
}
