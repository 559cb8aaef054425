// The frame of the reliability campaign: what a row is, and what one unit of it may use. A row tries something on real
// processes, sockets and files, and reports what was lost. rows.ts lists the rows. scripts/campaign.mjs runs them,
// stops and continues; test/crash/campaign-*.test.ts run small versions of them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeeded, type Seeded } from '../support/seeded.ts';
import { startService, type Service, type ServiceOptions } from './service.ts';

/** `quick`: a few seconds, for the test suite. `full`: a unit of the whole campaign. */
export type Effort = 'quick' | 'full';

/** One property that must hold, and how it is tried. */
export interface Row {
  /** Its number in RELIABILITY.md; a letter after the number marks a second way of trying the same thing. */
  readonly name: string;
  readonly title: string;
  /** How much the whole campaign tries, in words. */
  readonly target: string;
  /** How many units of full effort reach the target. They are independent; a seed repeats one as closely as it can. */
  readonly units: number;
  /** Counts that all units must reach together, by more units if need be: how much one does depends on the machine. */
  readonly goals?: Readonly<Record<string, number>>;
  /**
   * What every unit, quick or full, must have counted with `unit.count`. A unit that lacks one of these is a loss,
   * because nothing can be lost of what was not tried.
   */
  readonly least: readonly string[];
  /** Upper bounds of what `unit.most` notes. The test suite does not check them, as they are about time and room. */
  readonly bars?: Readonly<Record<string, number>>;
  /** Why this machine cannot try the row with that effort; undefined where it can. */
  readonly obstacle?: (effort: Effort) => string | undefined;
  /** Resolves when the unit is done. Reports what breaks with `unit.lose`; a throw means that the row itself failed. */
  readonly run: (unit: Unit) => Promise<void>;
}

/** What came of a unit. */
export interface UnitResult {
  /** Counts by name; those of all units are added up. */
  readonly tried: Readonly<Record<string, number>>;
  /** The largest values seen, by name. */
  readonly most: Readonly<Record<string, number>>;
  readonly lost: readonly Loss[];
  /** In the order in which they were taken. */
  readonly samples: readonly Sample[];
}

/** Values that were measured at one moment, by name. */
export type Sample = Readonly<Record<string, number>>;

export interface Loss {
  readonly what: string;
  /** Whatever helps to find the cause, as JSON: a history, a request, a point of a fault. */
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
  /** The same as in ServiceOptions. */
  readonly ownGroup: boolean;
  /** Starts the built service; what still runs at the end of the unit is killed. */
  start(options: Omit<ServiceOptions, 'main' | 'ownGroup'>): Promise<Service>;
  /** Adds to what was tried. */
  count(name: string, amount?: number): void;
  /** Notes a value; the largest one is reported. */
  most(name: string, value: number): void;
  /** Keeps the values, to three decimals, for a table and a plot over time. */
  sample(values: Sample): void;
  /** Reports that something that must hold did not. */
  lose(what: string, evidence?: unknown): void;
  /** Whether there are so many losses that more would tell nothing new. Then the unit should end. */
  isHopeless(): boolean;
  /**
   * Whether the row should go on to another unit by itself, and keep all that it has started. If so, what was found
   * until now is written down as one unit, so that it is not lost when the campaign is stopped.
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
  /** Says whether the row may go on to another unit, and if so, keeps what this one found. Without this it may not. */
  readonly goesOn?: (result: UnitResult) => boolean;
  readonly note?: (text: string) => void;
}

const MANY_LOSSES = 20;

/**
 * Carries out a unit of a row, or several in one go, cleans up, and returns the result of the last one. A throw of the
 * row counts as a loss; what the row found before is kept, since it may say why.
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
      // NaN is neither above nor below a bar.
      if (!Number.isFinite(value)) throw new Error(`${name} is ${value}`);
      found.most[name] = Math.max(found.most[name] ?? 0, Math.round(value));
    },
    sample: (values) => {
      // There are thousands of samples, and they are kept for a long time.
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

/** A unit with losses may lack counts, since it may have ended early because of them. */
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
