import assert from 'node:assert/strict';
import test from 'node:test';
import type { Antiflood } from '../../src/limits/windows.ts';
import { antifloodOf, type AntifloodOptions, freshToken } from '../support/antiflood.ts';
import { cpuMsOf } from '../support/cpu.ts';

const WINDOW_MS = 60_000;
const DECAY_MS = 30_000;

/** The settings' defaults. */
const DEFAULTS: AntifloodOptions = {
  baseBits: 20,
  thresholdCount: 30,
  windowMs: WINDOW_MS,
  stepBits: 2,
  maxBits: 28,
  decayMs: DECAY_MS,
  maxEntries: 10_000,
};

function floodOf(options: Partial<AntifloodOptions> = {}): Antiflood {
  return antifloodOf({ ...DEFAULTS, ...options });
}

function recordMany(antiflood: Antiflood, count: number, nowMs: number): void {
  for (let done = 0; done < count; done += 1) antiflood.record(nowMs, freshToken());
}

test('record: one more than the threshold is remembered at least, whatever order tokens are shown in', () => {
  for (const [maxEntries, bits] of [[10_000, 28], [10, 22], [1, 22]] as const) {
    const antiflood = floodOf({ maxEntries });
    for (let seconds = 300; seconds > 0; seconds -= 1) antiflood.record(0, { nonce: `of ${seconds}`, expiresAt: seconds });
    assert.equal(antiflood.difficultyBits(0), bits, `${maxEntries} entries`);
  }
});

test('difficultyBits: rises a step for each threshold that the count is above, up to the maximum', () => {
  const cases = [
    [0, 20], [1, 20], [29, 20], [30, 20], [31, 22], [60, 22], [61, 24], [90, 24], [91, 26], [120, 26], [121, 28],
    [122, 28], [1000, 28],
  ] as const;
  for (const [count, bits] of cases) {
    const antiflood = floodOf();
    recordMany(antiflood, count, 0);
    assert.equal(antiflood.difficultyBits(0), bits, `${count} requests`);
  }
});

test('difficultyBits: requests that have left the window raise nothing', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 30, 0);
  antiflood.record(WINDOW_MS, freshToken());
  assert.equal(antiflood.difficultyBits(WINDOW_MS), 20);

  const within = floodOf();
  recordMany(within, 30, 0);
  within.record(WINDOW_MS - 1, freshToken());
  assert.equal(within.difficultyBits(WINDOW_MS - 1), 22);
});

test('difficultyBits: falls one step each decay interval after the window has emptied', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 121, 0);
  const moments = [
    [WINDOW_MS + DECAY_MS - 1, 28], [WINDOW_MS + DECAY_MS, 26], [WINDOW_MS + 2 * DECAY_MS - 1, 26],
    [WINDOW_MS + 2 * DECAY_MS, 24], [WINDOW_MS + 3 * DECAY_MS, 22], [WINDOW_MS + 4 * DECAY_MS - 1, 22],
    [WINDOW_MS + 4 * DECAY_MS, 20], [10 * WINDOW_MS, 20],
  ] as const;
  for (const [nowMs, bits] of moments) assert.equal(antiflood.difficultyBits(nowMs), bits, String(nowMs));
});

test('difficultyBits: the same whether it was asked for in between or not', () => {
  for (const [nowMs, bits] of [[WINDOW_MS + 2 * DECAY_MS, 24], [WINDOW_MS + 4 * DECAY_MS, 20]] as const) {
    const antiflood = floodOf();
    recordMany(antiflood, 121, 0);
    assert.equal(antiflood.difficultyBits(nowMs), bits);
  }
});

test('difficultyBits: a request after the window has emptied does not hasten the fall', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 31, 0);
  antiflood.record(WINDOW_MS + 1, freshToken());
  assert.equal(antiflood.difficultyBits(WINDOW_MS + DECAY_MS - 1), 22);
  assert.equal(antiflood.difficultyBits(WINDOW_MS + DECAY_MS), 20);
});

test('difficultyBits: a burst during the decay interval starts it anew', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 31, 0);
  const burstMs = WINDOW_MS + DECAY_MS - 1;
  recordMany(antiflood, 31, burstMs);
  assert.equal(antiflood.difficultyBits(burstMs + WINDOW_MS + DECAY_MS - 1), 22);
  assert.equal(antiflood.difficultyBits(burstMs + WINDOW_MS + DECAY_MS), 20);
});

test('difficultyBits: stays at the level that the load keeps up, and falls from a peak to it', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 100, 0);
  assert.equal(antiflood.difficultyBits(0), 28 - 2);
  // One request a second from then on: 60 in any window, which is one step.
  let lowest = Infinity;
  for (let nowMs = 0; nowMs <= 20 * WINDOW_MS; nowMs += 1000) {
    antiflood.record(nowMs, freshToken());
    lowest = Math.min(lowest, antiflood.difficultyBits(nowMs));
  }
  assert.equal(lowest, 22);
  assert.equal(antiflood.difficultyBits(20 * WINDOW_MS), 22);
});

test('difficultyBits: a flood of any length takes no longer to forget than the steps to the maximum', () => {
  const antiflood = floodOf();
  recordMany(antiflood, 9000, 0);
  assert.equal(antiflood.difficultyBits(WINDOW_MS + 4 * DECAY_MS - 1), 22);
  assert.equal(antiflood.difficultyBits(WINDOW_MS + 4 * DECAY_MS), 20);
});

test('difficultyBits: clipped to the maximum, also where no whole step reaches it', () => {
  const antiflood = floodOf({ stepBits: 3 });
  recordMany(antiflood, 61, 0);
  assert.equal(antiflood.difficultyBits(0), 26);
  recordMany(antiflood, 30, 0);
  assert.equal(antiflood.difficultyBits(0), 28);
});

test('difficultyBits: stays at the base when switched off, or when nothing could be above it', () => {
  const off = [{ thresholdCount: 0 }, { stepBits: 0 }, { maxBits: 20 }, { maxBits: 19 }, { maxBits: 0 }];
  for (const options of off) {
    const antiflood = floodOf(options);
    recordMany(antiflood, 1000, 0);
    assert.equal(antiflood.difficultyBits(0), 20, JSON.stringify(options));
  }
  const noWork = floodOf({ baseBits: 0 });
  recordMany(noWork, 1000, 0);
  assert.equal(noWork.difficultyBits(0), 0);
});

test('record: remembers no more requests than it may, but enough to raise the level once', () => {
  for (const [maxEntries, bits] of [[1, 22], [30, 22], [31, 22], [60, 22], [61, 24]] as const) {
    const antiflood = floodOf({ maxEntries });
    recordMany(antiflood, 1000, 0);
    assert.equal(antiflood.difficultyBits(0), bits, String(maxEntries));
  }
});

test('record: a token counts once, also in a later window', () => {
  const antiflood = floodOf();
  const tokens = Array.from({ length: 30 }, freshToken);
  for (let nowMs = 0; nowMs <= 5 * WINDOW_MS; nowMs += WINDOW_MS / 2) {
    for (const token of tokens) for (let times = 0; times < 5; times += 1) antiflood.record(nowMs, token);
    assert.equal(antiflood.difficultyBits(nowMs), 20, String(nowMs));
  }
  recordMany(antiflood, 30, 5 * WINDOW_MS);
  assert.equal(antiflood.difficultyBits(5 * WINDOW_MS), 20, 'those before count in their own window alone');
  antiflood.record(5 * WINDOW_MS, freshToken());
  assert.equal(antiflood.difficultyBits(5 * WINDOW_MS), 22);
});

test('record: a token that others have pushed out of memory does not count again, and new ones do', () => {
  const antiflood = floodOf({ maxEntries: 40 });
  const hoarded = Array.from({ length: 100 }, freshToken);
  // The order does not matter: the expiry of a token tells whether it was forgotten.
  for (const token of hoarded.toReversed()) antiflood.record(0, token);
  const laterMs = 10 * WINDOW_MS;
  for (let times = 0; times < 3; times += 1) for (const token of hoarded) antiflood.record(laterMs, token);
  assert.equal(antiflood.difficultyBits(laterMs), 20, 'by turns, more tokens than are remembered');
  recordMany(antiflood, 30, laterMs);
  assert.equal(antiflood.difficultyBits(laterMs), 20);
  antiflood.record(laterMs, freshToken());
  assert.equal(antiflood.difficultyBits(laterMs), 22);
});

test('record: tokens of a clock that was ahead, and was set back, keep none from counting', () => {
  const aheadSeconds = 365 * 86_400;
  const antiflood = floodOf({ maxEntries: 40 });
  for (let count = 0; count < 20; count += 1) {
    const { nonce, expiresAt } = freshToken();
    antiflood.record(0, { nonce, expiresAt: expiresAt + aheadSeconds });
  }
  // These push the tokens out of memory, one after another.
  recordMany(antiflood, 60, WINDOW_MS);
  const laterMs = 10 * WINDOW_MS;
  recordMany(antiflood, 31, laterMs);
  assert.equal(antiflood.difficultyBits(laterMs), 22);
  // A token that was forgotten since does not count again.
  const forgotten = Array.from({ length: 100 }, freshToken);
  for (const token of forgotten) antiflood.record(laterMs, token);
  const calmMs = 100 * WINDOW_MS;
  for (const token of forgotten) antiflood.record(calmMs, token);
  assert.equal(antiflood.difficultyBits(calmMs), 20);
});

test('record: a million requests cost little each', () => {
  const antiflood = floodOf();
  const cpuMs = cpuMsOf(() => {
    for (let count = 0; count < 1_000_000; count += 1) {
      antiflood.record(count / 50, freshToken());
      antiflood.difficultyBits(count / 50);
    }
  });
  assert.ok(cpuMs < 5000, `${cpuMs} ms`);
});
