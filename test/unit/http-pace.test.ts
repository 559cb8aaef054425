// The minimum rate of transfers, on a clock that is only numbers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from '../../src/http/engine/body.ts';
import { HttpServer, type HttpServerOptions } from '../../src/http/engine/server.ts';
import { movableClock } from '../support/clock.ts';
import { testConfig } from '../support/test-config.ts';

const START = { minBytesPerSecond: 1000, nowMs: 5000, movedBytes: 70 };

test('Pace: nothing moved is too slow after 10 s, not at 10 s', () => {
  for (const [ms, tooSlow] of [[9_999, false], [10_000, false], [10_001, true]] as const) {
    assert.equal(new Pace(START).isTooSlow(START.nowMs + ms, START.movedBytes), tooSlow, `${ms} ms`);
  }
});

test('Pace: looking more often changes nothing', () => {
  const pace = new Pace(START);
  for (let ms = 100; ms <= 10_000; ms += 100) assert.equal(pace.isTooSlow(START.nowMs + ms, START.movedBytes), false);
  assert.equal(pace.isTooSlow(START.nowMs + 10_001, START.movedBytes), true);
});

test('Pace: exactly the minimum rate goes on for ever, half of it for 20 s', () => {
  const even = new Pace(START);
  const half = new Pace(START);
  let halfLasted = 0;
  for (let second = 1; second <= 3600; second += 1) {
    const nowMs = START.nowMs + 1000 * second;
    assert.equal(even.isTooSlow(nowMs, START.movedBytes + 1000 * second), false);
    if (halfLasted === 0 && half.isTooSlow(nowMs, START.movedBytes + 500 * second)) halfLasted = second;
  }
  assert.equal(halfLasted, 21);
});

test('Pace: what was moved quickly is saved up to the bound only', () => {
  for (const [maxAllowances, ms] of [[1, 10_000], [3, 30_000]] as const) {
    const pace = new Pace({ ...START, maxAllowances });
    assert.equal(pace.isTooSlow(START.nowMs, 1_000_000), false);
    assert.equal(pace.isTooSlow(START.nowMs + ms, 1_000_000), false);
    assert.equal(pace.isTooSlow(START.nowMs + ms + 1, 1_000_000), true);
  }
});

test('Pace: at the start only one allowance is there, however much can be saved up', () => {
  const pace = new Pace({ ...START, maxAllowances: 3 });
  assert.equal(pace.isTooSlow(START.nowMs + 10_001, START.movedBytes), true);
});

test('Pace: time in which this side was not ready does not count', () => {
  const pace = new Pace(START);
  assert.equal(pace.isTooSlow(START.nowMs + 9_000, START.movedBytes), false);
  pace.pause(START.nowMs + 100_000, START.movedBytes);
  assert.equal(pace.isTooSlow(START.nowMs + 101_000, START.movedBytes), false);
  assert.equal(pace.isTooSlow(START.nowMs + 101_001, START.movedBytes), true);
});

test('Pace: a minimum of 0 allows anything', () => {
  const pace = new Pace({ ...START, minBytesPerSecond: 0 });
  assert.equal(pace.isTooSlow(START.nowMs + 1e12, START.movedBytes), false);
  assert.equal(pace.isTooSlow(START.nowMs + 2e12, START.movedBytes + 1), false);
});

test('HttpServer: none of node\'s own time-outs is for a whole body, or for a socket that is in use', () => {
  const options = { config: testConfig(), clock: movableClock() };
  const { node } = new HttpServer(options as unknown as HttpServerOptions);
  assert.deepEqual([node.requestTimeout, node.timeout], [0, 0]);
});
