// The values of options as what they stand for: numbers and moments. Each is refused with a UsageError that names its
// option.

import { DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS } from '../core/time.ts';
import type { Given } from './commands.ts';
import { UsageError } from './failures.ts';

const DIGITS = /^\d+$/;

/** `2026-01-31`, `2026-01-31T12:00` or `2026-01-31T12:00:00`, with or without the `Z` of UTC, which is always meant. */
const ISO_MOMENT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(?::(\d{2}))?Z?)?$/;

const AGO = /^(\d{1,9})([smhd])$/;
const AGO_SECONDS: Readonly<Record<string, number>> = {
  s: 1, m: MINUTE_SECONDS, h: HOUR_SECONDS, d: DAY_SECONDS,
};

/** A whole number within the bounds; the fallback when the option is not given. */
export function wholeNumber(
  { values }: Given,
  name: string,
  bounds: { readonly minimum: number; readonly maximum: number; readonly fallback: number },
): number {
  const { minimum, maximum, fallback } = bounds;
  const text = values.get(name);
  if (text === undefined) return fallback;
  const number = DIGITS.test(text) ? Number(text) : NaN;
  if (number >= minimum && number <= maximum) return number;
  throw new UsageError(`${name} takes a whole number from ${minimum} to ${maximum}`);
}

/** A moment in Unix seconds, given as such, as a date and time in UTC, or as how long ago; undefined without one. */
export function moment({ values }: Given, name: string, nowSeconds: number): number | undefined {
  const text = values.get(name);
  if (text === undefined) return undefined;
  const seconds = momentOf(text, nowSeconds);
  if (Number.isSafeInteger(seconds)) return seconds;
  throw new UsageError(`${name} takes a moment: Unix seconds, 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 7d`);
}

function momentOf(text: string, nowSeconds: number): number {
  if (DIGITS.test(text)) return Number(text);
  const [, count, unit = ''] = AGO.exec(text) ?? [];
  if (count !== undefined) return nowSeconds - Number(count) * AGO_SECONDS[unit]!;
  const [, date, minutes = '00:00', seconds = '00'] = ISO_MOMENT.exec(text) ?? [];
  const iso = `${date}T${minutes}:${seconds}.000Z`;
  const parsed = new Date(iso);
  // Date takes the 30th of February for the 2nd of March.
  return date !== undefined && !Number.isNaN(parsed.getTime()) && parsed.toISOString() === iso
    ? parsed.getTime() / 1000
    : NaN;
}
