// Row 15: the tables that remember clients stay within their bounds however many clients there are, and no limit is
// exceeded when the clock is set by an hour in between. The row calls the service's own parts with clocks that it
// moves: a million clients take seconds that way, and the clock of one process alone can't be set.

import type { Caller } from '../../src/core/callers.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { plainAddress } from '../../src/http/engine/head.ts';
import { SlidingWindow } from '../../src/limits/windows.ts';
import { createRates } from '../../src/pastes/admission.ts';
import { antifloodOf, freshToken } from '../support/antiflood.ts';
import { movableClock, type MovableClock } from '../support/clock.ts';
import type { Seeded } from '../support/seeded.ts';
import { testConfig } from '../support/test-config.ts';
import type { Row, Unit } from './row.ts';

const CLIENTS = { quick: 30_000, full: 1_000_000 };
const STEPS = { quick: 5000, full: 300_000 };

const REGULARS = 20;

const HOUR_MS = 3_600_000;
const WINDOW_MS = 60_000;
const ANYONE: Caller = { tier: 'anonymous', fingerprint: null };

export const boundsRow: Row = {
  name: '15',
  title: 'tables of clients within their bounds, limits with the clock set by an hour',
  target: 'a million distinct clients; no window above its maximum',
  units: 5,
  least: ['clients', 'requests with a clock that is set', 'creations'],
  async run(unit) {
    manyClients(unit);
    for (const kind of ['creation', 'lookup'] as const) {
      clockJumps(unit, kind);
      boundOf(unit, kind);
    }
    boundOfFlood(unit);
    floodOfStamps(unit);
  },
};

/**
 * Each comes once; in between come regulars, which must be counted exactly. A regular may be forgotten and counted
 * anew when as many others as have room came since it was last allowed anything (the contract: "oldest pruned").
 */
function manyClients(unit: Unit): void {
  const { rateMaxEntries: maxKeys, rateCleanupThreshold: cleanupThreshold } = testConfig();
  const { random } = unit;
  const table = new SlidingWindow({ windowMs: WINDOW_MS, maxKeys, cleanupThreshold });
  const regulars = createReference(WINDOW_MS);
  const lastAllowed = new Map<string, number>();
  const max = 10;
  let nowMs = 0;
  for (let client = 0; client < CLIENTS[unit.effort] && !unit.isHopeless(); client += 1) {
    // At times many clients come at one moment, and at times so slowly that the window empties.
    if (random.oneIn(3)) nowMs += random.pick([0, 1, 1, 5]);
    table.take(addressOf(client), max, nowMs);
    if (table.size > maxKeys) unit.lose(`${table.size} clients are remembered`, { client, nowMs });
    unit.most('clients remembered', table.size);
    if (!random.oneIn(20)) continue;
    const regular = `regular ${random.below(REGULARS)}`;
    const others = client - (lastAllowed.get(regular) ?? client);
    const mayBeForgotten = others + REGULARS >= maxKeys;
    const before = regulars.inWindow(regular, nowMs);
    const { allowed } = table.take(regular, max, nowMs);
    if (mayBeForgotten && allowed && before >= max) regulars.forget(regular);
    const isRight = mayBeForgotten || allowed === before < max;
    if (!isRight) unit.lose(`${before} in the window, and ${allowed}`, { client, nowMs });
    if (!allowed) continue;
    regulars.note(regular, nowMs);
    lastAllowed.set(regular, client);
  }
  unit.count('clients', CLIENTS[unit.effort]);
}

const FEW = 100;

/** The settings bound the tables of the service: a client that was pushed out of one is counted anew. */
function boundOf(unit: Unit, kind: 'creation' | 'lookup'): void {
  const clock = movableClock();
  const config = testConfig({ rateMax: 1, lookupRateMax: 1, rateMaxEntries: FEW, lookupRateMaxEntries: FEW });
  const rates = createRates({ config, clock, count: () => undefined });
  const isAllowed = (client: number): boolean => !isRefused((): unknown => (
    kind === 'creation' ? rates.countCreation(addressOf(client), ANYONE) : rates.countLookup(addressOf(client), ANYONE)
  ));
  for (let client = 0; client < FEW; client += 1) isAllowed(client);
  if (isAllowed(0)) unit.lose(`${kind}: fewer than ${FEW} clients are remembered`);
  isAllowed(FEW);
  if (!isAllowed(0)) unit.lose(`${kind}: more than ${FEW} clients are remembered`);
}

/** Anti-flood counts no more requests than it may remember. */
function boundOfFlood(unit: Unit): void {
  const antiflood = antifloodOf({
    baseBits: 4, maxBits: 28, maxEntries: FEW, thresholdCount: FEW / 2, stepBits: 2, windowMs: WINDOW_MS, decayMs: 30_000,
  });
  for (let request = 0; request < 10 * FEW; request += 1) antiflood.record(0, freshToken());
  const bits = antiflood.difficultyBits(0);
  if (bits !== 6) unit.lose(`${bits} bits: more than ${FEW} requests are remembered`);
}

/** The rates as the service counts them; the clock of the host is set forward and back while they do. */
function clockJumps(unit: Unit, kind: 'creation' | 'lookup'): void {
  const clock = movableClock();
  const max = 10;
  const config = testConfig({ rateMax: max, lookupRateMax: max, rateWindowSeconds: 60, lookupRateWindowSeconds: 60 });
  const rates = createRates({ config, clock, count: () => undefined });
  const reference = createReference(WINDOW_MS);
  const take = (address: string): unknown =>
    kind === 'creation' ? rates.countCreation(address, ANYONE) : rates.countLookup(address, ANYONE);
  for (let step = 0; step < STEPS[unit.effort] && !unit.isHopeless(); step += 1) {
    move(clock, unit.random);
    if (unit.random.oneIn(50)) rates.sweep();
    // Two spellings of one client, in the form that every address of a request has, and two clients of one network.
    const address = plainAddress(unit.random.pick(['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::1', '2001:db8::2']))!;
    const client = address.startsWith('2001') ? 'network' : 'host';
    const before = reference.inWindow(client, clock.monotonicMs());
    const isAllowed = !isRefused(() => take(address));
    if (isAllowed) reference.note(client, clock.monotonicMs());
    if (isAllowed !== before < max) unit.lose(`${kind}: allowed is ${isAllowed} with ${before} in the window`, { step });
  }
  unit.count('requests with a clock that is set', STEPS[unit.effort]);
}

/** Anti-flood forgets the oldest of too many requests, and neither stops counting nor goes above its maximum. */
function floodOfStamps(unit: Unit): void {
  const { antifloodMaxEntries: maxEntries } = testConfig();
  const [baseBits, maxBits] = [4, 28];
  const antiflood = antifloodOf({
    baseBits, maxBits, maxEntries, thresholdCount: 30, stepBits: 2, windowMs: WINDOW_MS, decayMs: 30_000,
  });
  let nowMs = 0;
  for (let request = 1; request <= CLIENTS[unit.effort]; request += 1) {
    antiflood.record(nowMs, freshToken());
    const bits = antiflood.difficultyBits(nowMs);
    if (bits > maxBits || (request > 1000 && bits < maxBits)) unit.lose(`${bits} bits after ${request} requests`);
    if (unit.random.oneIn(50)) nowMs += 1;
    if (unit.isHopeless()) return;
  }
  nowMs += WINDOW_MS + 30_000 * 30;
  if (antiflood.difficultyBits(nowMs) !== baseBits) unit.lose('the difficulty does not fall again');
  unit.count('creations', CLIENTS[unit.effort]);
}

/** Time goes by; now and then the host's clock is set by up to an hour, either way. */
function move(clock: MovableClock, random: Seeded): void {
  clock.advance(random.pick([0, 0, 1, 100, random.below(WINDOW_MS), WINDOW_MS - 1, WINDOW_MS]));
  if (random.oneIn(5)) clock.jump(random.pick([HOUR_MS, -HOUR_MS, random.between(-HOUR_MS, HOUR_MS)]));
}

function isRefused(take: () => unknown): boolean {
  try {
    take();
    return false;
  } catch (error) {
    if (error instanceof Refusal) return true;
    throw error;
  }
}

/** The same count, computed anew from all stamps each time. */
function createReference(windowMs: number) {
  const stamps = new Map<string, number[]>();
  const recent = (key: string, nowMs: number): number[] =>
    (stamps.get(key) ?? []).filter((stampMs) => nowMs - stampMs < windowMs);
  return {
    note: (key: string, nowMs: number): void => void stamps.set(key, [...recent(key, nowMs), nowMs]),
    forget: (key: string): void => void stamps.delete(key),
    inWindow: (key: string, nowMs: number): number => recent(key, nowMs).length,
  };
}

function addressOf(client: number): string {
  return `10.${client >> 16}.${(client >> 8) & 0xff}.${client & 0xff}`;
}
