// What is new in memory: V8 would let it grow with the load, and give it back late.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServing } from '../support/main-process.ts';

const REQUESTS = 5000;
const AT_ONCE = 50;

/** Loaded into the server: says at each SIGUSR2 how large the young generation of the serving thread is. */
const REPORTER = `data:text/javascript,
  import { getHeapSpaceStatistics } from 'node:v8';
  process.on('SIGUSR2', () => {
    const { space_size: size } = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    process.stderr.write('new space ' + size + ' bytes;');
  });`.replaceAll(/\n\s*/g, ' ');

test('the young generation stays as it is when the service begins, whatever the load', async (t) => {
  const environment = { SERVICE_RATE_MAX: '0' };
  const { url, child, stderr } = await startServing(t, { environment, nodeOptions: ['--import', REPORTER] });
  const ask = async (): Promise<void> => void await (await fetch(`${url}/challenge`)).arrayBuffer();
  const reported = async (count: number): Promise<number> => {
    child.kill('SIGUSR2');
    for (;;) {
      const sizes = [...stderr().matchAll(/new space (\d+) bytes;/g)].map(([, size]) => Number(size));
      if (sizes.length === count) return sizes.at(-1)!;
      await ask();
    }
  };
  const before = await reported(1);
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, ask));
  const after = await reported(2);
  t.diagnostic(`${before} bytes, and then ${after}`);
  assert.ok(after <= before, `${before} bytes, and then ${after}`);
});
