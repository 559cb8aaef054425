// CHANGELOG.md as the release reads it: what is in the package and when it was made follow from it.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { ROOT } from '../support/source.ts';

test('readChangelog: what is unreleased belongs to the version below until that has its date', async () => {
  const module: string = join(ROOT, 'scripts', 'release', 'changelog.mjs');
  const { readChangelog } = await import(module) as {
    readChangelog: (text: string, version: string) => readonly { version: string; changes: readonly string[] }[];
  };
  const text = (heading: string): string => `# C\n\n## Unreleased\n\n- new\n\n## ${heading}\n\n- old\n\n## 1.0.0\n`;
  const entries = readChangelog(text('1.1.0 (not released yet)'), '1.1.0');
  assert.deepEqual(entries.map(({ version, changes }) => [version, changes]), [['1.1.0', ['new', 'old']], ['1.0.0', []]]);
  assert.throws(() => readChangelog(text('1.1.0 (2030-01-02)'), '1.1.0'), /begins with Unreleased/);
  assert.throws(() => readChangelog(text('1.1.0 (2030-02-30)'), '1.1.0'), { message: 'CHANGELOG.md: 2030-02-30 is no date' });
});
