// pastes/admission.ts, rates: for whom each request counts, up to which limit, and what refused callers are told.
// The counting itself is test/property/sliding-window.test.ts; over real sockets: test/api/rate-limits.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import type { Count } from '../../src/core/events.ts';
import { Refusal, type RefusalName } from '../../src/core/refusals.ts';
import { SlidingWindow } from '../../src/limits/windows.ts';
import { createRates } from '../../src/pastes/admission.ts';
import { movableClock } from '../support/clock.ts';
import { testConfig } from '../support/test-config.ts';

const CLIENT = '192.0.2.1';
const UNTRUSTED: Caller = { tier: 'untrusted', fingerprint: 'a'.repeat(40) };
const TRUSTED: Caller = { tier: 'trusted', fingerprint: 'b'.repeat(40) };

const SETTINGS: Partial<Config> = {
  rateMax: 2,
  rateWindowSeconds: 60,
  rateMaxEntries: 3,
  lookupRateMax: 3,
  lookupRateWindowSeconds: 10,
  lookupRateMaxEntries: 2,
  rateCleanupThreshold: 1,
  rateTrustedFactor: 2,
};

function ratesOf(settings: Partial<Config> = {}) {
  const clock = movableClock();
  const counted: string[] = [];
  const rates = createRates({
    config: testConfig({ ...SETTINGS, ...settings }),
    clock,
    count: ((...labels: readonly string[]) => void counted.push(labels.join(' '))) as Count,
  });
  const create = (client: string = CLIENT, caller: Caller = ANONYMOUS) => rates.countCreation(client, caller);
  const lookUp = (client: string = CLIENT, caller: Caller = ANONYMOUS): void => rates.countLookup(client, caller);
  return { create, lookUp, clock, counted, sweep: () => rates.sweep(), nowSeconds: () => clock.unixMs() / 1000 };
}

/** The terms of the refusal that `act` throws. */
function refusal(act: () => unknown, name: RefusalName): Refusal['terms'] {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof Refusal);
    assert.equal(error.refusal, name);
    return error.terms;
  }
  return assert.fail('not refused');
}

/** How many calls in a row are let through. */
function allowed(act: () => unknown, most = 20): number {
  for (let times = 0; times < most; times += 1) {
    try {
      act();
    } catch (error) {
      assert.ok(error instanceof Refusal);
      return times;
    }
  }
  return most;
}

test('countCreation: says what is left and the second in which all of it is there again', () => {
  const { create, clock, counted, nowSeconds } = ratesOf();
  const startSeconds = nowSeconds();
  assert.deepEqual(create(), { limit: 2, remaining: 1, resetAtSeconds: startSeconds + 60 });
  clock.advance(1);
  const last = { limit: 2, remaining: 0, resetAtSeconds: startSeconds + 61 };
  assert.deepEqual(create(), last);
  assert.deepEqual(counted, []);
  clock.advance(999);
  assert.deepEqual(refusal(create, 'rateLimited'), { retryAfterSeconds: 59, rate: last });
  assert.deepEqual(counted, ['rateLimitHits creation']);
  clock.advance(59_000);
  assert.deepEqual(create(), { limit: 2, remaining: 0, resetAtSeconds: startSeconds + 120 });
});

test('countLookup: counts apart from creations, in a window of its own', () => {
  const { create, lookUp, clock, counted } = ratesOf();
  assert.equal(allowed(create), 2);
  assert.equal(allowed(lookUp), 3);
  clock.advance(9500);
  assert.deepEqual(refusal(lookUp, 'lookupRateLimited'), { retryAfterSeconds: 0.5 });
  assert.deepEqual(counted, ['rateLimitHits creation', 'rateLimitHits lookup', 'rateLimitHits lookup']);
  clock.advance(500);
  assert.equal(allowed(lookUp), 3);
  assert.equal(allowed(create), 0);
});

test('countCreation and countLookup: trusted callers have a multiple, others of the same address do not', () => {
  for (const [caller, factor] of [[UNTRUSTED, 1], [TRUSTED, 2], [{ ...TRUSTED, tier: 'admin' }, 2]] as const) {
    const { create, lookUp } = ratesOf();
    assert.equal(allowed(() => create(CLIENT, caller)), 2 * factor, caller.tier);
    assert.equal(allowed(() => lookUp(CLIENT, caller)), 3 * factor, caller.tier);
    assert.equal(allowed(create), 0);
  }
});

test('countCreation and countLookup: 0 is no limit, for each by itself', () => {
  const freeCreation = ratesOf({ rateMax: 0 });
  assert.equal(freeCreation.create(), null);
  assert.deepEqual([allowed(freeCreation.create), allowed(freeCreation.lookUp)], [20, 3]);
  const freeLookup = ratesOf({ lookupRateMax: 0 });
  assert.deepEqual([allowed(freeLookup.create), allowed(freeLookup.lookUp)], [2, 20]);
  const one = ratesOf({ rateMax: 1, lookupRateMax: 1 });
  assert.deepEqual([allowed(one.create), allowed(one.lookUp)], [1, 1]);
});

test('countCreation and countLookup: an IPv6 network of 64 bits is one client', () => {
  const { create, lookUp } = ratesOf();
  const clients = ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'];
  assert.deepEqual(clients.map((client) => allowed(() => create(client))), [2, 0, 2]);
  assert.deepEqual(clients.map((client) => allowed(() => lookUp(client))), [3, 0, 3]);
});

test('countCreation and countLookup: as many clients are remembered as their settings say', () => {
  const { create, lookUp } = ratesOf();
  const clients = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'];
  for (const client of clients) allowed(() => create(client));
  assert.equal(allowed(() => create(clients[1]!)), 0);
  assert.equal(allowed(() => create(clients[0]!)), 2, 'the fourth took the place of the first');
  for (const client of clients.slice(0, 3)) allowed(() => lookUp(client));
  assert.equal(allowed(() => lookUp(clients[1]!)), 0);
  assert.equal(allowed(() => lookUp(clients[0]!)), 3, 'the third took the place of the first');
});

test('sweep: forgets nothing that still counts', () => {
  const { create, lookUp, clock, sweep } = ratesOf();
  allowed(create);
  clock.advance(50_000);
  allowed(lookUp);
  clock.advance(9_999);
  sweep();
  assert.deepEqual([allowed(create), allowed(lookUp)], [0, 0]);
  clock.advance(1);
  sweep();
  assert.deepEqual([allowed(create), allowed(lookUp)], [2, 3]);
});

test('sweep: of creations and of lookups, so that the memory for clients who have gone is given back', (t) => {
  const { create, lookUp, clock, sweep } = ratesOf();
  create();
  lookUp();
  clock.advance(60_000);
  const swept = t.mock.method(SlidingWindow.prototype, 'sweep');
  sweep();
  assert.deepEqual(swept.mock.calls.map(({ this: window }) => (window as SlidingWindow).size), [0, 0], 'clients forgotten');
});
