// The frame of the reliability campaign: what a row is, and what one unit of it may use. A row tries something on real
// processes, sockets and files, and says what was lost. Which rows there are is rows.ts; who runs them, stops and goes
// on is scripts/campaign.mjs, and test/crash/campaign-*.test.ts in small.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeeded, type Seeded } from '../support/seeded.ts';
import { startService, type Service, type ServiceOptions } from './service.ts';

/** `quick`: a few seconds, for the test suite. `full`: a unit of the whole campaign. */
export type Effort = 'quick' | 'full';

/** One property that must hold, and how it is tried. */
export interface Row {
  /** As the paper numbers it; a letter after the number for a second way of trying the same. */
  readonly name: string;
  readonly title: string;
  /** What the whole campaign amounts to, in words. */
  readonly target: string;
  /** How many units of full effort make that. Each is independent, and for the same seed as much the same as can be. */
  readonly units: number;
  /** What they must have counted in all, where it depends on the machine how much a unit does: else there are more units. */
  readonly goals?: Readonly<Record<string, number>>;
  /**
   * What `unit.count` has counted after every unit, quick or full: nothing was lost of what was not tried, so a unit
   * without one of these is a loss.
   */
  readonly least: readonly string[];
  /** Upper bounds of what `unit.most` notes. The test suite does not judge by them: they are about time and room. */
  readonly bars?: Readonly<Record<string, number>>;
  /** Why it cannot be tried on this machine, with so much effort; undefined where it can. */
  readonly obstacle?: (effort: Effort) => string | undefined;
  /** Resolves when the unit is through. What breaks is told with `unit.lose`; a throw is a failure of the row. */
  readonly run: (unit: Unit) => Promise<void>;
}

/** What came of a unit. */
export interface UnitResult {
  /** How many of what, to be added up. */
  readonly tried: Readonly<Record<string, number>>;
  /** The largest seen of what. */
  readonly most: Readonly<Record<string, number>>;
  readonly lost: readonly Loss[];
  /** As they were taken, in their order. */
  readonly samples: readonly Sample[];
}

/** What was measured at a moment, by what it is. */
export type Sample = Readonly<Record<string, number>>;

export interface Loss {
  readonly what: string;
  /** Whatever helps to see why, as JSON: a history, a request, a point of a fault. */
  readonly evidence?: unknown;
}

/** What a row's `run` is given. */
export interface Unit {
  readonly seed: number;
  readonly effort: Effort;
  readonly random: Seeded;
  /** Empty, and removed afterwards. */
  readonly folder: string;
  /** The built service's entry, for a row that starts it in a way of its own. */
  readonly main: string;
  /** As ServiceOptions has it. */
  readonly ownGroup: boolean;
  /** Starts the built service; what still runs at the end of the unit is killed. */
  start(options: Omit<ServiceOptions, 'main' | 'ownGroup'>): Promise<Service>;
  /** Adds to what was tried. */
  count(name: string, amount?: number): void;
  /** Notes a value of which the largest is reported. */
  most(name: string, value: number): void;
  /** Keeps it, to three decimals, for a table and a plot over time. */
  sample(values: Sample): void;
  /** Something that must hold did not. */
  lose(what: string, evidence?: unknown): void;
  /** So many losses that further ones would tell nothing new: the unit should come to its end. */
  isHopeless(): boolean;
  /**
   * Whether the row should go on to another unit by itself, with all that it has started. What was found until then is
   * one unit, and written as such: it is not lost when the campaign is stopped.
   */
  goesOn(): boolean;
  /** A line for the person who waits. */
  note(text: string): void;
}

export interface UnitOptions {
  readonly seed: number;
  readonly effort: Effort;
  /** The built service's entry. */
  readonly main: string;
  readonly ownGroup?: boolean;
  /** Keeps what a unit found of which the row may go on to another; whether it may. Without this it may not. */
  readonly goesOn?: (result: UnitResult) => boolean;
  readonly note?: (text: string) => void;
}

const MANY_LOSSES = 20;

/**
 * Carries out a unit of a row, or several in one go, and cleans up. Gives the last. A row that throws has lost too: what
 * it found before may say why.
 */
export async function runUnit(row: Row, options: UnitOptions): Promise<UnitResult> {
  const { seed, effort, main, ownGroup = false, goesOn, note = () => {} } = options;
  const folder = mkdtempSync(join(tmpdir(), `pasted-campaign-${row.name}-`));
  const services: Service[] = [];
  let found = nothingFound();
  const unit: Unit = {
    seed,
    effort,
    main,
    ownGroup,
    random: createSeeded(seed),
    folder,
    start: async (how) => {
      const service = startService({ main, ownGroup, ...how });
      services.push(service);
      await service.ready;
      return service;
    },
    count: (name, amount = 1) => {
      found.tried[name] = (found.tried[name] ?? 0) + amount;
    },
    most: (name, value) => {
      // No bar is under it, and none over it.
      if (!Number.isFinite(value)) throw new Error(`${name} is ${value}`);
      found.most[name] = Math.max(found.most[name] ?? 0, Math.round(value));
    },
    sample: (values) => {
      // There are thousands, which are kept for long.
      const rounded = Object.entries(values).map(([name, value]) => [name, Math.round(value * 1000) / 1000] as const);
      found.samples.push(Object.fromEntries(rounded));
    },
    lose: (what, evidence) => {
      found.lost.push(evidence === undefined ? { what } : { what, evidence });
    },
    isHopeless: () => found.lost.length >= MANY_LOSSES,
    goesOn: () => {
      expectTried(row, found);
      const mayGoOn = goesOn?.(found) ?? false;
      if (mayGoOn) found = nothingFound();
      return mayGoOn;
    },
    note,
  };
  try {
    await row.run(unit);
    expectTried(row, found);
  } catch (error) {
    found.lost.push({ what: `the row itself failed: ${error instanceof Error ? error.stack : String(error)}` });
  } finally {
    await Promise.all(services.map((service) => service.kill()));
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
  return found;
}

/** One that lost so much that it came to an early end has said enough. */
function expectTried({ least }: Row, { tried, lost }: Found): void {
  const missing = least.filter((name) => (tried[name] ?? 0) === 0);
  if (missing.length > 0 && lost.length === 0) lost.push({ what: `nothing was tried of: ${missing.join(', ')}` });
}

interface Found extends UnitResult {
  readonly tried: Record<string, number>;
  readonly most: Record<string, number>;
  readonly lost: Loss[];
  readonly samples: Sample[];
}

function nothingFound(): Found {
  return { tried: {}, most: {}, lost: [], samples: [] };
}
