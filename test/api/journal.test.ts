// src/main.ts with the journal as its standard output: a file that JOURNAL_STREAM says is one.

import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startMain, temporaryFolder } from '../support/main-process.ts';

/** What a start that fails has written to its log, with JOURNAL_STREAM as `streamOf` makes it of device and inode. */
async function logOf(
  t: TestContext,
  streamOf: (dev: bigint, ino: bigint) => string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const path = join(temporaryFolder(t), 'log');
  const descriptor = openSync(path, 'w');
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  const failing = { SERVICE_PORT: '0', SERVICE_DB: '/dev/null/pasted.db', SERVICE_PROT: '1' };
  const main = startMain(t, [], {
    environment: { ...failing, ...environment, JOURNAL_STREAM: streamOf(dev, ino) },
    stdout: descriptor,
  });
  closeSync(descriptor);
  assert.equal(await main.ended, 78);
  return readFileSync(path, 'utf8');
}

test('main: lines for the journal begin with their priority, and have no time of their own', async (t) => {
  const log = await logOf(t, (dev, ino) => `${dev}:${ino}`);
  assert.match(log, /^<4>warning {2}config {2}setting doubtful {2}message="[^\n]*"\n$/);
});

test('main: in production the journal gets priorities and JSON', async (t) => {
  const log = await logOf(t, (dev, ino) => `${dev}:${ino}`, { NODE_ENV: 'production' });
  const lines = log.trimEnd().split('\n');
  assert.ok(lines.length >= 2);
  for (const line of lines) {
    assert.match(line, /^<4>\{/);
    assert.equal((JSON.parse(line.slice('<4>'.length)) as { level: string }).level, 'warning');
  }
});

test('main: JOURNAL_STREAM of another stream, as children inherit it, changes nothing', async (t) => {
  const log = await logOf(t, (dev, ino) => `${dev}:${ino + 1n}`);
  assert.match(log, /^\d{4}-\S+ warning {2}config {2}setting doubtful {2}/);
});
