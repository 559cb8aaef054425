// The host's own Node when it is too old for pasted, for tests of what such a host gets to see.

import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';

/** The path of a Node 18 to 23 on PATH. If there is none, the test is skipped and must return. */
export function olderNode(t: TestContext): string | undefined {
  const found = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node')).find((node) => {
    const { status, stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
    const major = Number(/^v(\d+)\./.exec(stdout ?? '')?.[1]);
    return status === 0 && major >= 18 && major < 24;
  });
  if (found === undefined) t.skip('there is no Node from 18 to 23 on PATH');
  return found;
}
