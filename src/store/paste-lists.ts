// The SQL of lists of pastes: a page and the count of all that match, both from an index that holds everything filtered
// and sorted by, so that neither reads the pastes that it skips. An owner's has all that is shown, too.

import type { DatabaseSync } from 'node:sqlite';
import type { Listed, ListedPaste, Page, PasteFilter } from './store.ts';

export interface PasteListLookups {
  listPastes(filter: PasteFilter, page: Page, nowSeconds: number): Listed<ListedPaste>;
}

/** With more types than this, the glob is matched against each paste: collecting the types would cost more. */
const MOST_TYPES = 1000;

/** What comes after a `*` is tried at every place: microseconds for some globs, where others are matched in no time. */
const TRIES_PLACES = /\*./;

type Named = Record<string, string | number>;

/** A statement for each kind of filter, since a condition that is always true costs as much as one that is not. */
export function pasteListLookups(db: DatabaseSync): PasteListLookups {
  const own = prepareLists(db, 'AND owner = :owner');
  const everyones = prepareLists(db, '');
  return {
    listPastes({ owner, typeGlob, after, before }, page, nowSeconds) {
      const named = { after, before, nowSeconds };
      return owner === null ? everyones(named, typeGlob, page) : own({ ...named, owner }, typeGlob, page);
    },
  };
}

function prepareLists(
  db: DatabaseSync,
  ofOwner: string,
): (named: Named, typeGlob: string | null, page: Page) => Listed<ListedPaste> {
  const ofAnyType = `
    FROM pastes
    WHERE created_at > :after
      AND created_at < :before
      AND expires_at > :nowSeconds
      ${ofOwner}`;
  const any = prepareList(db, ofAnyType);
  const ofNamedTypes = prepareList(db, `${ofAnyType} AND mime_type IN (SELECT value FROM json_each(:types))`);
  const ofFittingTypes = prepareList(db, `${ofAnyType} AND mime_type GLOB :typeGlob`);
  // Materialized, or SQLite would match the glob against each paste first.
  const findTypes = db.prepare(`
    WITH stored AS MATERIALIZED (SELECT DISTINCT mime_type ${ofAnyType} LIMIT ${MOST_TYPES + 1})
    SELECT count(*) AS stored, json_group_array(mime_type) FILTER (WHERE mime_type GLOB :typeGlob) AS types
    FROM stored`);
  return (named, typeGlob, page) => {
    if (typeGlob === null) return any(named, page);
    const fitting = { ...named, typeGlob };
    if (!TRIES_PLACES.test(typeGlob)) return ofFittingTypes(fitting, page);
    const { stored, types } = findTypes.get(fitting) as { stored: number; types: string };
    if (stored > MOST_TYPES) return ofFittingTypes(fitting, page);
    return types === '[]' ? { items: [], total: 0 } : ofNamedTypes({ ...named, types }, page);
  };
}

function prepareList(db: DatabaseSync, matching: string): (named: Named, page: Page) => Listed<ListedPaste> {
  // SQLite looks a row up when it needs a column that the index has not: of what is skipped, it never does.
  const select = db.prepare(`
    SELECT id, owner, mime_type, size, created_at, expires_at, burn_after_read, password_hash IS NOT NULL
    ${matching}
    ORDER BY created_at DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  select.setReturnArrays(true);
  const count = db.prepare(`SELECT count(*) AS total ${matching}`);
  return (named, page) => {
    const total = Number(count.get(named)?.['total']);
    if (total <= page.offset) return { items: [], total };
    const rows = select.all({ ...named, ...page }) as unknown as ListedRow[];
    return { items: rows.map(listedFromRow), total };
  };
}

type ListedRow = readonly [
  id: string,
  owner: string | null,
  mimeType: string,
  size: number,
  createdAt: number,
  expiresAt: number,
  burnAfterRead: number,
  hasPassword: number,
];

function listedFromRow(row: ListedRow): ListedPaste {
  return {
    id: row[0],
    owner: row[1],
    mimeType: row[2],
    size: row[3],
    createdAt: row[4],
    expiresAt: row[5],
    burnAfterRead: row[6] === 1,
    hasPassword: row[7] === 1,
  };
}
