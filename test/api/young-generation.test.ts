// The memory for new objects: V8 would let it grow with the load, and give it back late.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServing } from '../support/main-process.ts';

const REQUESTS = 3000;
const AT_ONCE = 50;

/** For both halves together: V8's own bound is 32 MiB or more for one. */
const MOST_BYTES = 16 * 1024 * 1024;

/** Loaded into the server: says at each SIGUSR2 how large the young generation of the serving thread is. */
const REPORTER = `data:text/javascript,
  import { getHeapSpaceStatistics } from 'node:v8';
  process.on('SIGUSR2', () => {
    const { space_size: size } = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    process.stderr.write('new space ' + size + ' bytes;');
  });`.replaceAll(/\n\s*/g, ' ');

test('the young generation stays within its bound, whatever the load', async (t) => {
  const environment = { SERVICE_RATE_MAX: '0', SERVICE_POW_DIFFICULTY: '0', SERVICE_DEDUP_MAX: '0' };
  const { url, child, stderr } = await startServing(t, { environment, nodeOptions: ['--import', REPORTER] });
  const headers = { 'Content-Type': 'application/json' };
  const store = async (number: number): Promise<void> => {
    // What is parsed of the body is new, and lives until it is stored.
    const body = JSON.stringify({ content: `${number} `.padEnd(30_000, 'abc') });
    const response = await fetch(url, { method: 'POST', headers, body });
    await response.arrayBuffer();
    assert.equal(response.status, 201);
  };
  let largest = 0;
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => store(sent + index)));
    child.kill('SIGUSR2');
    await store(REQUESTS + sent);
    for (const [, size] of stderr().matchAll(/new space (\d+) bytes;/g)) largest = Math.max(largest, Number(size));
  }
  t.diagnostic(`${largest} bytes at most`);
  assert.ok(largest > 0 && largest <= MOST_BYTES, `${largest} bytes`);
});
