// The SQL of pastes and of lists of them. Commands run inside the writer's transaction (batch.ts) and have no effect if
// they throw; lookups run on the reading connection. open.ts calls both.

import { compactBytes } from '../core/content.ts';
import { prepareBanned } from './governing.ts';
import {
  amongFirst, prepareAdoption, prepareAudit, prepareChange, prepareQuota, prepareSpending, prepareSubmissions,
  prepareUsage,
} from './records.ts';
import type {
  AuditEvent, CreationOutcome, CreationTerms, Database, DeletionOutcome, Listed, ListedPaste, NewPaste, Page, Paste,
  PasteChanges, PasteFilter, PasteWithContent, Refused, StorageRefusal, UpdateOutcome, UpdateTerms,
} from './store.ts';

/** The contents were marked as orphans in the same transaction; their chunks are still there. */
export type Change<Outcome> = Readonly<{ outcome: Outcome; orphanedContentIds: readonly string[] }>;

export type Access = Readonly<{ id: string; atSeconds: number }>;

export function pasteCommands(db: Database) {
  // accessed_at is never null and keeps its width: SQLite overwrites it in place and leaves the content's pages alone.
  const touch = db.prepare('UPDATE pastes SET accessed_at = :atSeconds WHERE id = :id');
  const expired = amongFirst('pastes', 'expires_at <= :nowSeconds', 'expires_at, rowid');
  return {
    createPaste: prepareCreation(db), burnPaste: prepareBurning(db), updatePaste: prepareUpdate(db),
    deletePaste: prepareDeletion(db), takeDown: prepareTakingDown(db),
    removeExpired: prepareRemoving<{ nowSeconds: number; limit: number; skipped: number }>(db, expired),
    touchPastes: (accesses: readonly Access[]): void => {
      for (const { id, atSeconds } of accesses) touch.run({ id, atSeconds });
    },
  };
}

export function pasteLookups(db: Database) {
  const removals = db.prepare('SELECT count FROM removals');
  return {
    findPaste: prepareFinding(db), usage: prepareUsage(db), isFull: prepareQuota(db),
    /** How often another process has removed pastes. */
    countRemovals: () => Number(removals.get()?.['count']),
  };
}

/** Fetched as arrays, which cost node less than objects. */
type PasteRow = readonly [
  id: string, owner: string | null, mimeType: string, size: number, sha256: string, createdAt: number,
  expiresAt: number, burnAfterRead: number, passwordHash: string | null, contentId: string | null,
  content: Uint8Array | null,
];

/** Content of more bytes than `mostContentBytes` is not read: null is given for it. SQLite has no booleans. */
function prepareFinding(db: Database) {
  const find = db.prepare(`
    SELECT id, owner, mime_type, size, lower(hex(sha256)), created_at, expires_at, burn_after_read, password_hash,
      content_id, CASE WHEN size <= :mostContentBytes THEN content END
    FROM pastes
    WHERE id = :id
      AND expires_at > :nowSeconds`);
  find.setReturnArrays(true);
  return (id: string, nowSeconds: number, mostContentBytes = -1): PasteWithContent | undefined => {
    const row = find.get({ id, nowSeconds, mostContentBytes }) as unknown as PasteRow | undefined;
    return row && {
      id: row[0], owner: row[1], mimeType: row[2], size: row[3], sha256: row[4], createdAt: row[5], expiresAt: row[6],
      burnAfterRead: row[7] === 1, passwordHash: row[8], contentId: row[9], content: row[10] && compactBytes(row[10]),
    };
  };
}

/** Decides first and writes after: a refusal has no effect. */
function prepareCreation(db: Database) {
  const insert = db.prepare(`
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, password_hash,
      accessed_at, content_id, content)
    VALUES (:id, :owner, :mimeType, :size, :sha256, :createdAt, :expiresAt, :burnAfterRead, :passwordHash,
      :createdAt, :contentId, :content)`);
  const challenges = prepareSpending(db);
  const admit = prepareStorageRules(db);
  const adopt = prepareAdoption(db);
  return ({ paste, terms }: { paste: NewPaste; terms: CreationTerms }): CreationOutcome => {
    const { createdAt, size } = paste;
    const unpaid = terms.spend === null ? undefined : challenges.refusal(terms.spend, createdAt);
    const refused = unpaid ?? admit(paste, size, { ...terms, nowSeconds: createdAt });
    if (refused !== undefined) return refused;
    if (terms.spend !== null) challenges.spend(terms.spend);
    adopt(paste);
    insert.run({ ...paste, burnAfterRead: paste.burnAfterRead ? 1 : 0 });
    return { refused: null };
  };
}

type StoredContent = Pick<NewPaste, 'sha256' | 'contentId' | 'owner'>;

const OWNER_FULL = { hint: 'your pastes take as much as one owner may store: delete some, or wait until they expire' };

/**
 * Why so much more content, in chunks already written or in its row, can't be stored: bans, the duplicate throttle,
 * the quotas. Creating and updating both ask this, as their last check: what is not refused counts as a submission.
 */
function prepareStorageRules(db: Database) {
  const submissions = prepareSubmissions(db);
  const isStoreFull = prepareQuota(db);
  const isBanned = prepareBanned(db);
  // Expired pastes may still be there. Before a refusal the owner's are subtracted, by an index: others may have many.
  const ownerFull = db.prepare(`
    SELECT 1 FROM owners WHERE owner = :owner AND bytes > :leftBytes AND bytes > :leftBytes + (SELECT total(size)
      FROM pastes INDEXED BY pastes_by_owner WHERE owner = :owner AND expires_at <= :nowSeconds)`);
  return (content: StoredContent, contentBytes: number, terms: UpdateTerms): Refused<StorageRefusal> | undefined => {
    const { sha256, contentId, owner } = content;
    const { duplicates, maxStoredBytes, maxOwnerBytes, nowSeconds } = terms;
    if (isBanned(sha256)) return { refused: 'contentRefused' };
    const repeated = duplicates === null ? undefined : submissions.refusal(sha256, nowSeconds, duplicates);
    if (repeated !== undefined) return repeated;
    // An update that adds nothing is stored whatever the owner has: the limit may be newer than the pastes.
    if (owner !== null && maxOwnerBytes !== null && contentBytes > 0) {
      const named = { owner, leftBytes: maxOwnerBytes - contentBytes, nowSeconds };
      if (named.leftBytes < 0 || ownerFull.get(named)) return { refused: 'storageFull', fields: OWNER_FULL };
    }
    const unwrittenBytes = contentId === null ? contentBytes : 0;
    const isFull = maxStoredBytes !== null && isStoreFull({ maxStoredBytes, contentBytes, unwrittenBytes });
    if (isFull) return { refused: 'storageFull' };
    if (duplicates !== null) submissions.record(sha256, nowSeconds);
    return undefined;
  };
}

function prepareOrphaning(db: Database) {
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  return (rows: readonly object[]): readonly string[] => {
    const orphaned = (rows as { contentId: string | null }[]).flatMap(({ contentId }) => contentId ?? []);
    for (const contentId of orphaned) orphan.run({ contentId });
    return orphaned;
  };
}

function prepareRemoving<Named extends Record<string, string | number | null>>(db: Database, where: string) {
  const remove = prepareChange(db, { table: 'pastes', where, columns: 'content_id AS contentId' });
  const orphan = prepareOrphaning(db);
  return (named: Named): Change<number> => {
    const rows = remove(named);
    return { outcome: rows.length, orphanedContentIds: orphan(rows) };
  };
}

/** The claim that makes burning happen once; `passwordHash` is the one that was checked, null without a password. */
function prepareBurning(db: Database) {
  return prepareRemoving<{ id: string; passwordHash: string | null; nowSeconds: number }>(db, `
    id = :id
      AND burn_after_read = 1
      AND expires_at > :nowSeconds
      AND password_hash IS :passwordHash`);
}

function prepareUpdate(db: Database) {
  const find = prepareFinding(db);
  const admit = prepareStorageRules(db);
  const write = prepareUpdateWriting(db);
  return (update: { id: string; owner: string; changes: PasteChanges; terms: UpdateTerms }): Change<UpdateOutcome> => {
    const { id, owner, changes, changes: { content } } = update;
    const before = find(id, update.terms.nowSeconds);
    if (before === undefined) return unchanged({ refused: 'pasteNotFound' });
    const { onlySha256 = before.sha256 } = update.terms;
    if (before.owner !== owner) return unchanged({ refused: 'permissionDenied' });
    if (before.burnAfterRead) return unchanged({ refused: 'burnNotUpdatable' });
    if (onlySha256 !== before.sha256) return unchanged({ refused: 'preconditionFailed' });
    // The same content again is no duplicate: it is stored once, before and after.
    const isSame = content !== undefined && Buffer.from(content.sha256).toString('hex') === before.sha256;
    const terms = isSame ? { ...update.terms, duplicates: null } : update.terms;
    const refused = content && admit({ ...content, owner }, content.size - before.size, terms);
    if (refused !== undefined) return unchanged(refused);
    return { outcome: { refused: null, paste: changed(before, changes) }, orphanedContentIds: write(before, changes) };
  };
}

function changed({ content: _, ...before }: PasteWithContent, { content, ...changes }: PasteChanges): Paste {
  const { passwordHash = before.passwordHash, expiresAt = before.expiresAt } = changes;
  const paste = { ...before, passwordHash, expiresAt };
  if (content === undefined) return paste;
  const { mimeType, size, contentId, sha256 } = content;
  return { ...paste, mimeType, size, contentId, sha256: Buffer.from(sha256).toString('hex') };
}

function unchanged<Outcome>(outcome: Outcome): Change<Outcome> {
  return { outcome, orphanedContentIds: [] };
}

/** Writes the changes; gives the contents that no paste refers to any more. */
function prepareUpdateWriting(db: Database): (before: Paste, changes: PasteChanges) => readonly string[] {
  // A column of an index is only set when it changes: setting it, even to the same value, writes a page of the index.
  const prepareSetting = (columns: string) => db.prepare(`UPDATE pastes SET ${columns} WHERE id = :id`);
  const contentColumns = 'sha256 = :sha256, content_id = :contentId, content = :content';
  const setContent = prepareSetting(contentColumns);
  const setSizedContent = prepareSetting(`size = :size, ${contentColumns}`);
  const setMimeType = prepareSetting('mime_type = :mimeType');
  const setPassword = prepareSetting('password_hash = :passwordHash');
  const setExpiry = prepareSetting('expires_at = :expiresAt');
  const adopt = prepareAdoption(db);
  const orphan = prepareOrphaning(db);
  return ({ id, ...before }, { content, passwordHash, expiresAt }) => {
    if (passwordHash !== undefined) setPassword.run({ id, passwordHash });
    if (expiresAt !== undefined) setExpiry.run({ id, expiresAt });
    if (content === undefined) return [];
    adopt(content);
    const { mimeType, size, ...stored } = content;
    if (size === before.size) setContent.run({ id, ...stored });
    else setSizedContent.run({ id, size, ...stored });
    if (mimeType !== before.mimeType) setMimeType.run({ id, mimeType });
    return orphan([{ contentId: before.contentId }]);
  };
}

/** `by` is null for a caller with the token of a paste without owner. `asAdmin` is recorded for another's paste. */
function prepareDeletion(db: Database) {
  const find = prepareFinding(db);
  const remove = prepareRemoving<{ id: string }>(db, 'id = :id');
  const audit = prepareAudit(db);
  return (deletion: {
    id: string; by: string | null; nowSeconds: number; asAdmin: AuditEvent | null; onlySha256?: string | undefined;
  }) => {
    const { id, by, nowSeconds, asAdmin } = deletion;
    const paste = find(id, nowSeconds);
    if (paste === undefined) return unchanged<DeletionOutcome>({ refused: 'pasteNotFound' });
    const { onlySha256 = paste.sha256 } = deletion;
    const isOwn = paste.owner === by;
    if (!isOwn && asAdmin === null) return unchanged<DeletionOutcome>({ refused: 'permissionDenied' });
    if (onlySha256 !== paste.sha256) return unchanged<DeletionOutcome>({ refused: 'preconditionFailed' });
    const audited = isOwn ? null : asAdmin && { ...asAdmin, details: { ...asAdmin.details, owner: paste.owner } };
    if (audited !== null) audit(audited);
    return { ...remove({ id }), outcome: { refused: null, audited } };
  };
}

/** Names the operator, where a deletion or an audit entry tells who caused it; no owner has this name. */
export const OPERATOR_NAME = 'operator';

/**
 * Removes a paste, whoever owns it, even an expired one; with `content`, only while it has that. Whether it did.
 * A service that runs notices the new count, and then discards the content itself.
 */
function prepareTakingDown(db: Database) {
  const remove = prepareDeletion(db);
  const note = db.prepare('UPDATE removals SET count = count + 1');
  return ({ id, content, removed }: { id: string; content: string | null; removed: AuditEvent }): boolean => {
    const onlySha256 = content ?? undefined;
    const { outcome } = remove({ id, by: OPERATOR_NAME, nowSeconds: -Infinity, asAdmin: removed, onlySha256 });
    if (outcome.refused === null) note.run();
    return outcome.refused === null;
  };
}

// Lists: a page and the count of all that match. Both come from an index with every column that is filtered or sorted
// by, so skipped pastes are never read. The index for an owner's list has all that is shown, too.

/** With more types than this, the glob is matched against each paste: collecting the types would cost more. */
const MOST_TYPES = 1000;

/** What follows a `*` is tried at every place, which takes microseconds; globs without that are cheap. */
const TRIES_PLACES = /\*./;

type Named = Record<string, string | number>;

/** A statement for each kind of filter, since a condition that is always true costs as much as one that is not. */
export function pasteListLookups(db: Database) {
  const own = prepareLists(db, 'AND owner = :owner');
  const everyones = prepareLists(db, '');
  return {
    listPastes({ owner, typeGlob, after, before }: PasteFilter, page: Page, nowSeconds: number) {
      const named = { after, before, nowSeconds };
      return owner === null ? everyones.list(named, typeGlob, page) : own.list({ ...named, owner }, typeGlob, page);
    },
    /** When the last of the newest `rows` was made, listed or not. Undefined if there are fewer, or no costly glob. */
    nthPasteAt({ owner, typeGlob, after, before }: PasteFilter, rows: number): number | undefined {
      if (typeGlob === null || !TRIES_PLACES.test(typeGlob)) return undefined;
      const named = { after, before, nowSeconds: -Infinity, offset: rows - 1 };
      const nth = owner === null ? everyones.nth.get(named) : own.nth.get({ ...named, owner });
      return nth?.['createdAt'] as number | undefined;
    },
  };
}

function prepareLists(db: Database, ofOwner: string) {
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
  const nth = db.prepare(`SELECT created_at AS createdAt ${ofAnyType} ORDER BY created_at DESC LIMIT 1 OFFSET :offset`);
  const list = (named: Named, typeGlob: string | null, page: Page): Listed<ListedPaste> => {
    if (typeGlob === null) return any(named, page);
    const fitting = { ...named, typeGlob };
    if (!TRIES_PLACES.test(typeGlob)) return ofFittingTypes(fitting, page);
    const { stored, types } = findTypes.get(fitting) as { stored: number; types: string };
    if (stored > MOST_TYPES) return ofFittingTypes(fitting, page);
    return types === '[]' ? { items: [], total: 0 } : ofNamedTypes({ ...named, types }, page);
  };
  return { list, nth };
}

function prepareList(db: Database, matching: string): (named: Named, page: Page) => Listed<ListedPaste> {
  // SQLite reads a row only for columns that the index lacks, and never one that OFFSET skips.
  const select = db.prepare(`
    SELECT id, owner, mime_type AS mimeType, size, created_at AS createdAt, expires_at AS expiresAt,
      burn_after_read AS burnAfterRead, password_hash IS NOT NULL AS hasPassword
    ${matching}
    ORDER BY created_at DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  const count = db.prepare(`SELECT count(*) AS total ${matching}`);
  return (named, page) => {
    const total = Number(count.get(named)?.['total']); // NaN in a cluster at first: one request asks for both.
    const items = select.all({ ...named, ...page }).map((row) => (
      { ...row, burnAfterRead: row['burnAfterRead'] === 1, hasPassword: row['hasPassword'] === 1 } as ListedPaste
    ));
    return { items, total };
  };
}
