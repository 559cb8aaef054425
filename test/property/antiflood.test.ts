// Anti-flood against a model that looks at every millisecond, as the rule is worded.

import assert from 'node:assert/strict';
import test from 'node:test';
import { antifloodOf, type AntifloodOptions, freshToken } from '../support/antiflood.ts';
import { forSeeds, type Seeded } from '../support/seeded.ts';

/** In each millisecond, requests leave the window, then the level falls, then requests are recorded. */
class Model {
  #level = 0;
  #calmSinceMs: number | undefined = undefined;
  #requestsMs: number[] = [];
  readonly #options: AntifloodOptions;

  constructor(options: AntifloodOptions) {
    this.#options = options;
  }

  tick(nowMs: number): void {
    this.#requestsMs = this.#requestsMs.filter((stampMs) => nowMs - stampMs < this.#options.windowMs);
    if (this.#level > 0 && this.#isCalm()) this.#calmSinceMs ??= nowMs;
    if (this.#calmSinceMs === undefined || nowMs - this.#calmSinceMs < this.#options.decayMs) return;
    this.#level -= 1;
    this.#calmSinceMs = this.#level > 0 && this.#isCalm() ? nowMs : undefined;
  }

  record(nowMs: number): void {
    const { thresholdCount, maxEntries } = this.#options;
    this.#requestsMs = [...this.#requestsMs, nowMs].slice(-Math.max(maxEntries, thresholdCount + 1));
    const count = this.#requestsMs.length;
    const steps = count > thresholdCount ? Math.ceil((count - thresholdCount) / thresholdCount) : 0;
    this.#level = Math.max(this.#level, Math.min(steps, this.#highestLevel()));
    if (!this.#isCalm()) this.#calmSinceMs = undefined;
  }

  difficultyBits(): number {
    const { baseBits, stepBits, maxBits } = this.#options;
    return Math.max(baseBits, Math.min(maxBits, baseBits + this.#level * stepBits));
  }

  #isCalm(): boolean {
    return this.#requestsMs.length <= this.#level * this.#options.thresholdCount;
  }

  #highestLevel(): number {
    const { baseBits, stepBits, maxBits } = this.#options;
    let level = 0;
    while (baseBits + level * stepBits < maxBits) level += 1;
    return level;
  }
}

function generateOptions(random: Seeded): AntifloodOptions {
  const thresholdCount = random.between(1, 5);
  return {
    baseBits: random.between(1, 10),
    thresholdCount,
    windowMs: random.between(1, 40),
    stepBits: random.between(1, 4),
    maxBits: random.between(8, 20),
    decayMs: random.between(1, 40),
    maxEntries: random.oneIn(2) ? 1000 : random.between(1, 6 * thresholdCount),
  };
}

/** How many requests come at a moment: quiet stretches, single ones, bursts. */
function requestsAt(random: Seeded, burstOneIn: number): number {
  if (random.oneIn(burstOneIn)) return random.between(1, 25);
  return random.oneIn(4) ? 1 : 0;
}

test('Antiflood: agrees with the model on random schedules, asked at every moment', () => {
  forSeeds(250, (random) => {
    const options = generateOptions(random);
    const antiflood = antifloodOf(options);
    const model = new Model(options);
    let trickle = true;
    for (let nowMs = 0; nowMs < 400; nowMs += 1) {
      model.tick(nowMs);
      assert.equal(antiflood.difficultyBits(nowMs), model.difficultyBits(), `at ${nowMs} before requests`);
      if (random.oneIn(50)) trickle = !trickle;
      for (let left = trickle ? requestsAt(random, 60) : 0; left > 0; left -= 1) {
        antiflood.record(nowMs, freshToken());
        model.record(nowMs);
      }
      assert.equal(antiflood.difficultyBits(nowMs), model.difficultyBits(), `at ${nowMs} after requests`);
    }
  });
});

test('Antiflood: agrees with the model when it is seldom asked, or only recorded to', () => {
  forSeeds(400, (random) => {
    const options = generateOptions(random);
    const antiflood = antifloodOf(options);
    const model = new Model(options);
    const askedOneIn = random.pick([5, 50, 400]);
    const burstOneIn = random.pick([20, 60, 150]);
    for (let nowMs = 0; nowMs < 400; nowMs += 1) {
      model.tick(nowMs);
      for (let left = random.oneIn(3) ? requestsAt(random, burstOneIn) : 0; left > 0; left -= 1) {
        antiflood.record(nowMs, freshToken());
        model.record(nowMs);
      }
      if (!random.oneIn(askedOneIn)) continue;
      assert.equal(antiflood.difficultyBits(nowMs), model.difficultyBits(), `at ${nowMs}`);
    }
  });
});
