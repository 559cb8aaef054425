// The sliding window against a model that keeps every request for ever and counts anew each time.

import assert from 'node:assert/strict';
import test from 'node:test';
import { SlidingWindow } from '../../src/limits/windows.ts';
import { forSeeds, type Seeded } from '../support/seeded.ts';

interface Model {
  readonly allowed: Map<string, number[]>;
}

type Allowance = ReturnType<SlidingWindow['take']>;

function modelTake(model: Model, windowMs: number, key: string, max: number, nowMs: number): Allowance {
  const before = model.allowed.get(key) ?? [];
  const counted = before.filter((stampMs) => nowMs - stampMs < windowMs);
  const allowed = counted.length < max;
  const after = allowed ? [...counted, nowMs] : counted;
  if (allowed) model.allowed.set(key, [...before, nowMs]);
  let retryAtMs = nowMs;
  while (!allowed && counted.filter((stampMs) => retryAtMs - stampMs < windowMs).length >= max) retryAtMs += 1;
  return {
    allowed,
    remaining: Math.max(0, max - after.length),
    retryAfterMs: retryAtMs - nowMs,
    resetMs: Math.max(...after) + windowMs - nowMs,
  };
}

/** Steps that a schedule takes between requests: bursts, single milliseconds, and the borders of the window. */
function nextStepMs(random: Seeded, windowMs: number): number {
  return random.pick([0, 0, 0, 1, 1, random.below(5), random.below(windowMs), windowMs - 1, windowMs, windowMs + 1]);
}

test('SlidingWindow: agrees with the model on random schedules', () => {
  forSeeds(300, (random) => {
    const windowMs = random.between(1, 30);
    const maxima = random.oneIn(2) ? [random.between(1, 6)] : [random.between(1, 6), random.between(1, 6)];
    const keys = ['a', 'b', 'c'].slice(0, random.between(1, 3));
    const limit = new SlidingWindow({ windowMs, maxKeys: 3, cleanupThreshold: random.pick([0, 0.5, 1]) });
    const model: Model = { allowed: new Map() };
    let nowMs = random.below(100);
    for (let request = 0; request < 120; request += 1) {
      nowMs += nextStepMs(random, windowMs);
      if (random.oneIn(10)) limit.sweep(nowMs);
      const [key, max] = [random.pick(keys), random.pick(maxima)];
      const wanted = modelTake(model, windowMs, key, max, nowMs);
      assert.deepEqual(limit.take(key, max, nowMs), wanted, `request ${request} at ${nowMs}`);
    }
  });
});

test('SlidingWindow: no window holds more than the maximum, and none that could be had is lost', () => {
  forSeeds(200, (random) => {
    const windowMs = random.between(2, 40);
    const max = random.between(1, 8);
    const limit = new SlidingWindow({ windowMs, maxKeys: 10, cleanupThreshold: 0.8 });
    const allowedMs: number[] = [];
    // An adversary who asks several times at every moment, and gets all that is allowed.
    for (let nowMs = 0; nowMs < 10 * windowMs; nowMs += 1) {
      for (let attempt = random.below(max + 2); attempt > 0; attempt -= 1) {
        const inWindow = allowedMs.filter((stampMs) => stampMs > nowMs - windowMs).length;
        const { allowed } = limit.take('a', max, nowMs);
        assert.equal(allowed, inWindow < max);
        if (allowed) allowedMs.push(nowMs);
      }
    }
    for (const startMs of allowedMs) {
      const count = allowedMs.filter((stampMs) => stampMs >= startMs && stampMs < startMs + windowMs).length;
      assert.ok(count <= max, `${count} from ${startMs} on`);
    }
  });
});

test('SlidingWindow: more keys than are remembered stay within the bound, and those kept are exact', () => {
  forSeeds(100, (random) => {
    const maxKeys = random.between(1, 8);
    const windowMs = random.between(5, 50);
    const limit = new SlidingWindow({ windowMs, maxKeys, cleanupThreshold: random.pick([0, 0.5, 0.8, 1]) });
    // The keys of the model in the order of their last allowed request, so that the first is forgotten for a new one.
    const model = new Map<string, number[]>();
    let nowMs = 0;
    for (let request = 0; request < 200; request += 1) {
      nowMs += random.pick([0, 1, 2, windowMs]);
      const key = `key ${random.below(2 * maxKeys)}`;
      const live = (model.get(key) ?? []).filter((stampMs) => nowMs - stampMs < windowMs);
      if (!model.has(key)) makeRoom(model, maxKeys, windowMs, nowMs);
      const { allowed } = limit.take(key, 2, nowMs);
      assert.equal(allowed, live.length < 2, `request ${request}`);
      if (allowed) {
        model.delete(key);
        model.set(key, [...live, nowMs]);
      }
      assert.ok(limit.size <= maxKeys);
    }
  });
});

/** Keys that have run out go first. Whether those are forgotten earlier makes no difference to any answer. */
function makeRoom(model: Map<string, number[]>, maxKeys: number, windowMs: number, nowMs: number): void {
  for (const [key, stampsMs] of model) {
    if (stampsMs.every((stampMs) => nowMs - stampMs >= windowMs)) model.delete(key);
  }
  const [oldest] = model.keys();
  if (oldest !== undefined && model.size >= maxKeys) model.delete(oldest);
}
