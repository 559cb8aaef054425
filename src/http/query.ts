// Query parameters as typed values: integers clamped as decided, and what a list filters by. A parameter given twice is refused, since
// nobody can say which one was meant.

import { isGlob, sqliteGlob } from '../core/glob.ts';
import { Refusal } from '../core/refusals.ts';
import type { Page } from '../store/store.ts';

const INTEGER = /^-?\d+$/;

/** The value; null when absent. */
export function single(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal('queryInvalid', { hint: `give ${name} once`, parameter: name });
  return values[0] ?? null;
}

/** A whole number; the fallback when absent. Values past what a number holds exactly are clamped to that. */
export function integer(query: URLSearchParams, name: string, fallback: number): number {
  const value = single(query, name);
  if (value === null) return fallback;
  if (!INTEGER.test(value)) throw new Refusal('queryInvalid', { hint: `${name} must be an integer`, parameter: name });
  return clamp(Number(value), Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
}

/** `limit` from 1 to the maximum, `offset` from 0; beyond that they are clamped. */
export function page(query: URLSearchParams, bounds: { fallback: number; maximum: number }): Page {
  return {
    limit: clamp(integer(query, 'limit', bounds.fallback), 1, bounds.maximum),
    offset: Math.max(0, integer(query, 'offset', 0)),
  };
}

/** `after` and `before` as exclusive bounds that let everything through when absent. */
export function timeBounds(query: URLSearchParams): { after: number; before: number } {
  return {
    after: integer(query, 'after', Number.MIN_SAFE_INTEGER),
    before: integer(query, 'before', Number.MAX_SAFE_INTEGER),
  };
}

/** The `type` filter as SQLite takes it; null when absent. */
export function typeGlob(query: URLSearchParams): string | null {
  const glob = single(query, 'type');
  if (glob === null) return null;
  if (!isGlob(glob)) {
    const hint = 'type is a glob of at most 64 characters, such as image/*';
    throw new Refusal('queryInvalid', { hint, parameter: 'type' });
  }
  return sqliteGlob(glob);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
