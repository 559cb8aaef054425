// The metrics in the text that Prometheus reads: what is counted, what is read, and that the labels have bounds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { type Count, countNothing } from '../../src/core/events.ts';
import { REFUSALS } from '../../src/core/refusals.ts';
import { createMetrics, type GaugeReaders, type Metrics, METRICS } from '../../src/ops/metrics.ts';
import { cpuMsOf, turnsOf } from '../support/cpu.ts';
import { GAUGE_READERS } from '../support/metrics.ts';

const DURATION = 'pasted_http_request_duration_seconds';

function testMetrics(readers: Partial<GaugeReaders> = {}): Metrics {
  return createMetrics({ routes: ['/', '/', '/{id}'], readers: { ...GAUGE_READERS, ...readers } });
}

/** Sample lines as a map from name and labels to the value, in order. Each series may occur once only. */
async function samplesOf(metrics: Metrics): Promise<ReadonlyMap<string, number>> {
  const samples = new Map<string, number>();
  for (const line of (await metrics.render()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, series = '', value = ''] = /^(\S+) (\S+)$/.exec(line) ?? assert.fail(`no sample: ${line}`);
    assert.equal(samples.has(series), false, series);
    samples.set(series, Number(value));
  }
  return samples;
}

/** The values of the buckets of one series, in order, by their bound. */
function bucketsOf(samples: ReadonlyMap<string, number>, labels: string): [string, number][] {
  const start = `${DURATION}_bucket{${labels},le="`;
  return [...samples].filter(([series]) => series.startsWith(start))
    .map(([series, value]) => [series.slice(start.length, -2), value]);
}

test('render: every metric of the table has one HELP and one TYPE, in the order of the table', async () => {
  const lines = (await testMetrics().render()).split('\n');
  const headers = lines.filter((line) => line.startsWith('#'));
  assert.deepEqual(headers, Object.values(METRICS).flatMap(({ name, type, help }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
  ]));
  assert.equal(lines.at(-1), '', 'the last line ends with a newline');
});

test('render: samples follow the header of their own metric', async () => {
  let current = '';
  for (const line of (await testMetrics().render()).split('\n').slice(0, -1)) {
    if (line.startsWith('# HELP ')) current = line.split(' ')[2]!;
    else if (!line.startsWith('#')) assert.match(line, new RegExp(`^${current}(?:_bucket|_sum|_count)?[{ ]`));
  }
});

test('METRICS: counters and only counters end in _total, and every name is in base units', () => {
  for (const { name, type } of Object.values(METRICS)) {
    assert.match(name, /^pasted_[a-z_]+$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.doesNotMatch(name, /_(?:ms|milliseconds|minutes|kib|mib|percent)(?:_|$)/);
  }
});

test('count: every counter is there from the start, with every value of its label', async () => {
  const samples = await samplesOf(testMetrics());
  assert.equal(samples.get('pasted_pastes_created_total'), 0);
  assert.equal(samples.get('pasted_pastes_accessed_total'), 0);
  for (const reason of ['deleted', 'burned', 'expired']) {
    assert.equal(samples.get(`pasted_pastes_deleted_total{reason="${reason}"}`), 0);
  }
  for (const limit of ['creation', 'lookup']) {
    assert.equal(samples.get(`pasted_rate_limit_hits_total{limit="${limit}"}`), 0);
  }
  for (const outcome of ['accepted', 'refused']) {
    assert.equal(samples.get(`pasted_duplicate_checks_total{outcome="${outcome}"}`), 0);
  }
  for (const refusal of Object.keys(REFUSALS)) {
    assert.equal(samples.get(`pasted_refusals_total{refusal="${refusal}"}`), 0);
  }
});

test('count: raises exactly the series that it names', async () => {
  const metrics = testMetrics();
  const before = await samplesOf(metrics);
  metrics.count('pastesCreated');
  metrics.count('pastesCreated');
  metrics.count('pastesDeleted', 'burned');
  metrics.count('pastesDeleted', 'expired', 500);
  metrics.count('rateLimitHits', 'lookup');
  metrics.count('proofOfWork', 'powExpired');
  metrics.count('duplicateChecks', 'refused');
  metrics.count('refusals', 'powExpired');
  const raised = [...await samplesOf(metrics)].filter(([series, value]) => before.get(series) !== value);
  assert.deepEqual(raised, [
    ['pasted_pastes_created_total', 2],
    ['pasted_pastes_deleted_total{reason="burned"}', 1],
    ['pasted_pastes_deleted_total{reason="expired"}', 500],
    ['pasted_rate_limit_hits_total{limit="lookup"}', 1],
    ['pasted_proof_of_work_total{outcome="powExpired"}', 1],
    ['pasted_duplicate_checks_total{outcome="refused"}', 1],
    ['pasted_refusals_total{refusal="powExpired"}', 1],
  ]);
});

test('count: a name or a value that is not in the table adds nothing', async () => {
  const metrics = testMetrics();
  const before = await metrics.render();
  const count = metrics.count as (name: string, value?: string) => void;
  count('refusals', 'from a client');
  count('refusals');
  count('refusals', '__proto__');
  count('constructor');
  count('databaseBytes');
  count('pastesCreated', 'x');
  assert.equal(await metrics.render(), before);
});

test('proofOfWork: acceptance, and every refusal of proof-of-work there is', () => {
  assert.deepEqual(METRICS.proofOfWork.values, [
    'accepted', 'powRequired', 'powMalformedToken', 'powBadSignature', 'powExpired', 'powMalformedSolution',
    'powInsufficient', 'powAlreadyUsed',
  ]);
});

test('countNothing: takes everything', () => {
  const count: Count = countNothing;
  assert.equal(count('pastesDeleted', 'expired', 2), undefined);
});

test('observeRequest: buckets are cumulative, a bound belongs to its bucket, +Inf is the count', async () => {
  const metrics = testMetrics();
  for (const seconds of [0, 0.0009, 0.001, 0.0011, 60, 60.1]) metrics.observeRequest('/{id}', 200, seconds);
  const samples = await samplesOf(metrics);
  const labels = 'route="/{id}",status="2xx"';
  const buckets = bucketsOf(samples, labels);
  assert.deepEqual(buckets.slice(0, 3), [['0.001', 3], ['0.0025', 4], ['0.005', 4]]);
  assert.deepEqual(buckets.slice(-3), [['30', 4], ['60', 5], ['+Inf', 6]]);
  assert.equal(buckets.length, 16);
  assert.equal(samples.get(`${DURATION}_count{${labels}}`), 6);
  assert.ok(Math.abs(samples.get(`${DURATION}_sum{${labels}}`)! - 120.103) < 1e-9);
});

test('observeRequest: each route and class of status has its own series, and others are not shown', async () => {
  const metrics = testMetrics();
  const answered = [['/', 200], ['/', 299], ['/', 300], ['/{id}', 404], ['/{id}', 499], ['/{id}', 500]] as const;
  for (const [route, status] of answered) metrics.observeRequest(route, status, 0.5);
  const counts = [...await samplesOf(metrics)].filter(([series]) => series.startsWith(`${DURATION}_count`));
  assert.deepEqual(counts, [
    [`${DURATION}_count{route="/",status="2xx"}`, 2],
    [`${DURATION}_count{route="/",status="3xx"}`, 1],
    [`${DURATION}_count{route="/{id}",status="4xx"}`, 2],
    [`${DURATION}_count{route="/{id}",status="5xx"}`, 1],
  ]);
});

test('observeRequest: a route or status that is not known counts as -, however many there are', async () => {
  const metrics = testMetrics();
  for (let number = 0; number < 1000; number += 1) metrics.observeRequest(`/${number}`, 404, 0.1);
  for (const status of [0, 99, 600, NaN]) metrics.observeRequest('/', status, 0.1);
  const counts = [...await samplesOf(metrics)].filter(([series]) => series.startsWith(`${DURATION}_count`));
  assert.deepEqual(counts, [
    [`${DURATION}_count{route="-",status="4xx"}`, 1000],
    [`${DURATION}_count{route="/",status="-"}`, 4],
  ]);
});

test('observeRequest: takes less than a microsecond', () => {
  const metrics = testMetrics();
  const times = 200_000;
  const spentMs = cpuMsOf(() => {
    for (let number = 0; number < times; number += 1) metrics.observeRequest('/{id}', 200, (number % 100) / 10);
  });
  const microsecondsEach = (1000 * spentMs) / times;
  assert.ok(microsecondsEach < 1, `${microsecondsEach} us`);
});

test('render: what never occurred takes next to nothing: 6000 series of routes that nobody asked for', async () => {
  const routes = Array.from({ length: 1000 }, (_, index) => `/${index}`);
  const metrics = createMetrics({ routes, readers: GAUGE_READERS });
  const { totalMs } = await turnsOf(async () => {
    for (let times = 0; times < 10; times += 1) await metrics.render();
  });
  assert.ok(totalMs < 200, `${totalMs / 10} ms each`);
});

test('render: gauges are read each time, at once or later', async () => {
  let pastes = 0;
  const metrics = testMetrics({ pastesStored: () => pastes, walBytes: async () => pastes * 1000 });
  for (pastes of [1, 2]) {
    const samples = await samplesOf(metrics);
    assert.equal(samples.get('pasted_pastes_stored'), pastes);
    assert.equal(samples.get('pasted_wal_bytes'), pastes * 1000);
  }
});

test('render: every gauge has the number that its reader gave', async () => {
  const gauges = [...await samplesOf(testMetrics())].filter(([series]) => !/_total\b/.test(series));
  assert.deepEqual(gauges, [
    ['pasted_database_bytes', 4096],
    ['pasted_wal_bytes', 512],
    ['pasted_pastes_stored', 3],
    ['pasted_content_bytes_stored', 77],
    ['pasted_quota_bytes_used', 99],
    ['pasted_event_loop_delay_seconds{quantile="0.5"}', 0.001],
    ['pasted_event_loop_delay_seconds{quantile="0.99"}', 0.02],
    ['pasted_writer_queue_length', 5],
    ['pasted_password_checks_running', 1],
    ['pasted_password_checks_waiting', 2],
    ['pasted_certificates{status="valid"}', 6],
    ['pasted_certificates{status="revoked"}', 7],
    ['pasted_certificates{status="expired"}', 8],
    ['pasted_ca_expiry_timestamp_seconds', 2_000_000_000],
    ['pasted_connections_open', 9],
    [`pasted_build_info{version="${VERSION}"}`, 1],
  ]);
});

test('render: a reader that throws, rejects or has nothing to say leaves out its own metric and no other', async () => {
  const whole = await testMetrics().render();
  const partial = await testMetrics({
    databaseBytes: () => {
      throw new Error('no such file');
    },
    certificates: () => Promise.reject(new Error('store closed')),
    authorityExpiry: () => null,
  }).render();
  const left = /pasted_(?:database_bytes|certificates|ca_expiry_timestamp_seconds)\b/;
  assert.equal(partial, whole.split('\n').filter((line) => !left.test(line)).join('\n'));
  assert.notEqual(partial, whole);
});

test('render: values of a label that the table does not have are not shown', async () => {
  const certificates = { valid: 1, revoked: 2, expired: 3, 'from a client': 4 };
  const text = await testMetrics({ certificates: () => certificates }).render();
  assert.equal(text.includes('from a client'), false);
  assert.match(text, /pasted_certificates\{status="expired"\} 3\n/);
});
