// Prometheus' own checker (Debian package `prometheus`) as the judge of names, types, units and text format.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { ROUTES } from '../../src/http/routes.ts';
import { createMetrics } from '../../src/ops/metrics.ts';
import { GAUGE_READERS } from '../support/metrics.ts';
import { isInstalled } from '../support/programs.ts';

/** Everything that promtool says, on both streams, and how it ended. */
function check(text: string): { status: number | null; output: string } {
  const options = { input: text, encoding: 'utf8', timeout: 30_000 } as const;
  const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], options);
  if (error !== undefined) throw error;
  return { status, output: `${stdout}${stderr}` };
}

test('promtool check metrics: has nothing to say against a new service, nor a used one', async (t) => {
  if (!isInstalled(t, 'promtool')) return;
  const metrics = createMetrics({ routes: ROUTES.map(({ path }) => path), readers: GAUGE_READERS });
  assert.deepEqual(check(await metrics.render()), { status: 0, output: '' });
  for (const { path } of [...ROUTES, { path: '/unknown' }]) metrics.observeRequest(path, 200, 0.2);
  metrics.count('pastesDeleted', 'expired', 1e9);
  assert.deepEqual(check(await metrics.render()), { status: 0, output: '' });
});

test('promtool check metrics: would object to a counter without _total', async (t) => {
  if (!isInstalled(t, 'promtool')) return;
  const { status, output } = check('# HELP x Help.\n# TYPE x counter\nx 1\n');
  assert.notEqual(status, 0);
  assert.match(output, /_total/);
});
