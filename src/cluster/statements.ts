// The same SQL as in one process, carried out by nodes elsewhere. The rules of store/ run here without waiting. Reads
// whose result is not known yet are noted and looked up, and the rule runs again; changes are noted. Then writer.ts has
// the nodes check, in the transaction of the changes, that everything that was read is still the same.

import { openModel } from '../store/database.ts';
import { CLUSTER_TABLES } from '../store/schema.ts';
import type { Database, Statement as Prepared } from '../store/store.ts';
import type { Statement } from './nodes.ts';

/** Counted for each paste besides its content, for its row and its entries in indexes. */
const PASTE_BYTES = 1024;

/** What statements found, as the nodes give it: JSON by statement and values. */
export type Known = Map<string, string>;

/** How far a rule gets with what is known. If nothing is missing, its answer and its changes are good. */
export type Rehearsal<Answer> = Notes & { readonly answer: Answer | undefined };

interface Notes {
  readonly known: Known;
  readonly reads: Map<string, Statement>;
  readonly missing: Map<string, Statement>;
  readonly changes: Statement[];
}

export class Statements implements Database {
  /** Not counted in pages: each node has a file of its own, and all must come to the same decision. */
  readonly databaseBytes = `bytes + ${PASTE_BYTES} * pastes + (SELECT coalesce(sum(promised), 0) FROM leases) + (
    SELECT coalesce(sum(length(chunks.bytes)), 0)
    FROM chunks
    WHERE content_id IN (SELECT content_id FROM orphans))`;

  /** Lives in memory, as long as this object. */
  readonly #model = openModel(CLUSTER_TABLES);
  #notes: Notes | undefined;

  prepare(sql: string): Prepared {
    let asArrays = false;
    let columns: readonly string[] = [];
    const all = (named: object = {}): unknown[] => {
      if (columns.length === 0) columns = this.#model.prepare(sql).columns().map(({ name }) => name);
      const rows = rowsOf(this.#read(bind(inJson(sql, columns.length), named)));
      return asArrays ? rows : rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])));
    };
    return {
      all,
      get: (named?: object) => all(named)[0],
      run: (named: object = {}) => this.#require().changes.push(bind(sql, named)),
      setReturnArrays: (enabled: boolean) => void (asArrays = enabled),
      setAllowUnknownNamedParameters: () => {},
    } as unknown as Prepared;
  }

  /** Runs a rule; none reads what it has changed. Throws what the rule throws, unless something was missing. */
  rehearse<Answer>(known: Known, rule: () => Answer): Rehearsal<Answer> {
    const notes: Notes = { known, reads: new Map(), missing: new Map(), changes: [] };
    this.#notes = notes;
    try {
      return { ...notes, answer: rule() };
    } catch (error) {
      if (notes.missing.size === 0) throw error;
      return { ...notes, answer: undefined };
    } finally {
      this.#notes = undefined;
    }
  }

  #require(): Notes {
    if (this.#notes === undefined) throw new Error('a statement outside a rule');
    return this.#notes;
  }

  /** A statement whose result is missing reads as if there were no rows. */
  #read(statement: Statement): string {
    const { known, reads, missing } = this.#require();
    const key = JSON.stringify(statement);
    reads.set(key, statement);
    const found = known.get(key);
    if (found === undefined) missing.set(key, statement);
    return found ?? '[]';
  }
}

/** A guard that fails unless the rows are those found, in whatever order: it depends on each node's own statistics. */
export function guardOf([sql, values]: Statement, found: string): Statement {
  const [now, then] = found.includes('],[') ? [sorted(`(${sql})`), sorted(':found')] : [`(${sql})`, ':found'];
  return [`INSERT INTO guards SELECT ${now} IS ${then}`, { ...values, found }];
}

function sorted(list: string): string {
  return `(SELECT json_group_array(value ORDER BY value) FROM json_each(${list}))`;
}

/** Finds all rows as one text, the same for the same rows: blobs in hexadecimal, and a letter for each value's type. */
function inJson(sql: string, columns: number): string {
  const names = Array.from({ length: columns }, (_, index) => `c${index}`);
  const values = names.map((name) => `iif(typeof(${name}) = 'blob', hex(${name}), ${name})`);
  const kinds = names.map((name) => `substr(typeof(${name}), 1, 1)`).join(' || ');
  const row = `json_array(${values.join()}, ${kinds})`;
  return `WITH found(${names.join()}) AS (${sql}) SELECT json_group_array(${row}) FROM found`;
}

function rowsOf(json: string): unknown[][] {
  return (JSON.parse(json) as unknown[][]).map((row) => {
    const kinds = row.pop() as string;
    const bytesOf = (hex: unknown) => new Uint8Array(Buffer.from(hex as string, 'hex'));
    return row.map((value, index) => (kinds[index] === 'b' ? bytesOf(value) : value));
  });
}

/** Adds the parameters' values. rqlite 8.26 takes no blobs, 8.31 takes texts like x'41' for blobs: both go in hex. */
function bind(sql: string, named: object): Statement {
  const given = named as Record<string, string | number | null | Uint8Array>;
  const values: Record<string, string | number | null> = {};
  const text = sql.replaceAll(/:(\w+)/g, (parameter, name: string) => {
    const value = given[name];
    if (value === undefined) throw new Error(`a statement without a value for ${parameter}`);
    // JSON has no infinite numbers.
    if (value === Infinity || value === -Infinity) return value > 0 ? '9e999' : '-9e999';
    const isBytes = value instanceof Uint8Array;
    const isText = typeof value === 'string' && /^x'/i.test(value);
    values[name] = isBytes || isText ? Buffer.from(value as string).toString('hex') : value;
    if (isText) return `CAST(unhex(${parameter}) AS TEXT)`;
    return isBytes ? `unhex(${parameter})` : parameter;
  });
  return [text, values];
}
