// The SQL of lists of pastes: a page and the count of all that match, both from an index that holds everything filtered
// and sorted by, so that neither reads the pastes that it skips. An owner's has all that is shown, too.

import type { DatabaseSync, StatementSync } from 'node:sqlite';

import type { Listed, ListedPaste, Page, PasteFilter } from './store.ts';

export interface PasteListLookups {
  listPastes(filter: PasteFilter, page: Page, nowSeconds: number): Listed<ListedPaste>;
}

interface ListStatements {
  readonly page: StatementSync;
  readonly total: StatementSync;
}

/** A statement for each kind of filter, since a condition that is always true costs as much as one that is not. */
export function pasteListLookups(db: DatabaseSync): PasteListLookups {
  const statements = new Map<string, ListStatements>();
  for (const ofOwner of [true, false]) {
    for (const ofType of [true, false]) statements.set(kindOf(ofOwner, ofType), prepareList(db, ofOwner, ofType));
  }
  return {
    listPastes({ owner, typeGlob, after, before }, page, nowSeconds) {
      const statement = statements.get(kindOf(owner !== null, typeGlob !== null))!;
      const named = { after, before, nowSeconds, ...(owner === null ? {} : { owner }), ...(typeGlob === null ? {} : { typeGlob }) };
      const rows = statement.page.all({ ...named, ...page }) as unknown as ListedRow[];
      return { items: rows.map(listedFromRow), total: Number(statement.total.get(named)?.['total']) };
    },
  };
}

function kindOf(ofOwner: boolean, ofType: boolean): string {
  return `${ofOwner ? 'owner' : 'all'} ${ofType ? 'type' : 'any'}`;
}

function prepareList(db: DatabaseSync, ofOwner: boolean, ofType: boolean): ListStatements {
  const matching = `
    FROM pastes
    WHERE created_at > :after
      AND created_at < :before
      AND expires_at > :nowSeconds
      ${ofOwner ? 'AND owner = :owner' : ''}
      ${ofType ? 'AND mime_type GLOB :typeGlob' : ''}`;
  // SQLite looks a row up when it needs a column that the index has not: of what is skipped, it never does.
  const page = db.prepare(`
    SELECT id, owner, mime_type, size, created_at, expires_at, burn_after_read, password_hash IS NOT NULL
    ${matching}
    ORDER BY created_at DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  page.setReturnArrays(true);
  return {
    page,
    total: db.prepare(`SELECT count(*) AS total ${matching}`),
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
