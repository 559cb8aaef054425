// The SQL of pastes: commands of the writer thread, lookups of the reading connection. Who calls them is
// open.ts.

import type { DatabaseSync } from 'node:sqlite';
import { compactBytes } from '../core/content.ts';
import { prepareAudit, prepareSpending, prepareSubmissions } from './records.ts';
import { PAGE_BYTES } from './schema.ts';
import {
  type AuditEvent, type CreationOutcome, type CreationTerms, type DeletionOutcome, type NewPaste, OWN_BYTES,
  passesQuota, type Paste, type PasteChanges, type PasteWithContent, type StoredUsage, type UpdateOutcome,
  type UpdateTerms,
} from './store.ts';

/** A paste to store, and what it depends on. */
export interface Creation {
  readonly paste: NewPaste;
  readonly terms: CreationTerms;
}

export interface BurnClaim {
  readonly id: string;
  /** What was checked; null when the paste had no password. */
  readonly passwordHash: string | null;
  readonly nowSeconds: number;
}

export interface ExpiryStep {
  readonly nowSeconds: number;
  /** Pastes at most. */
  readonly limit: number;
}

export interface Access {
  readonly id: string;
  readonly atSeconds: number;
}

/** What a removal did. The contents are marked as orphans in the same transaction; their chunks are still there. */
export interface Removal {
  /** Pastes removed. */
  readonly count: number;
  readonly orphanedContentIds: readonly string[];
}

/** Each runs inside the writer's transaction (batch.ts) and throws to have no effect. */
export interface PasteCommands {
  createPaste(creation: Creation): CreationOutcome;
  burnPaste(claim: BurnClaim): Removal;
  removeExpired(step: ExpiryStep): Removal;
  touchPastes(accesses: readonly Access[]): void;
}

export interface PasteLookups {
  /** With content of at most so many bytes: more of it is not even looked at, and then null too. */
  find(id: string, nowSeconds: number, mostContentBytes: number): PasteWithContent | undefined;
  usage(): StoredUsage;
}

export function pasteCommands(db: DatabaseSync): PasteCommands {
  const create = preparePasteCreation(db);
  const remove = preparePasteRemoval(db);
  // accessed_at is set from the start and keeps its width, so SQLite overwrites it in place and leaves the content's
  // pages be.
  const touch = db.prepare(`
    UPDATE pastes
    SET accessed_at = :atSeconds
    WHERE id = :id`);
  return {
    ...remove,
    createPaste: create,
    touchPastes(accesses) {
      for (const { id, atSeconds } of accesses) touch.run({ id, atSeconds });
    },
  };
}

/** Decides first and writes after, in one transaction: a refusal has no effect. */
function preparePasteCreation(db: DatabaseSync): PasteCommands['createPaste'] {
  const insert = preparePasteInsertion(db);
  const challenges = prepareSpending(db);
  const submissions = prepareSubmissions(db);
  const usage = prepareUsage(db);

  function refusal({ paste, terms }: Creation): CreationOutcome | undefined {
    const { sha256, createdAt, size } = paste;
    const unpaid = terms.spend === null ? undefined : challenges.refusal(terms.spend, createdAt);
    if (unpaid !== undefined) return unpaid;
    const excess = terms.duplicates === null ? undefined : submissions.excess(sha256, createdAt, terms.duplicates);
    if (excess !== undefined) return { kind: 'duplicate', ...excess };
    if (terms.maxStoredBytes === null) return undefined;
    const more = { contentBytes: size, unwrittenBytes: paste.contentId === null ? size : 0 };
    return passesQuota(usage(), terms.maxStoredBytes, more) ? { kind: 'storageFull' } : undefined;
  }

  return (creation) => {
    const refused = refusal(creation);
    if (refused !== undefined) return refused;
    const { paste, terms } = creation;
    if (terms.spend !== null) challenges.spend(terms.spend);
    if (terms.duplicates !== null) submissions.record(paste.sha256, paste.createdAt);
    insert(paste);
    return { kind: 'stored' };
  };
}

/** Sees what its own transaction has done. Of the database, pages in use: no count of rows could say it as exactly. */
export function prepareUsage(db: DatabaseSync): () => StoredUsage {
  const stored = db.prepare('SELECT pastes, bytes FROM usage');
  const pages = db.prepare('PRAGMA page_count');
  const freePages = db.prepare('PRAGMA freelist_count');
  return () => {
    const { pastes, bytes } = stored.get() as unknown as Pick<StoredUsage, 'pastes' | 'bytes'>;
    const usedPages = Number(pages.get()?.['page_count']) - Number(freePages.get()?.['freelist_count']);
    return { pastes, bytes, databaseBytes: Math.max(0, usedPages * PAGE_BYTES - OWN_BYTES) };
  };
}

function preparePasteInsertion(db: DatabaseSync): (paste: NewPaste) => void {
  const insert = db.prepare(`
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, password_hash,
      accessed_at, content_id, content)
    VALUES (:id, :owner, :mimeType, :size, :sha256, :createdAt, :expiresAt, :burnAfterRead, :passwordHash,
      :createdAt, :contentId, :content)`);
  const adopt = prepareAdoption(db);
  return (paste) => {
    adopt(paste);
    insert.run({ ...paste, burnAfterRead: paste.burnAfterRead ? 1 : 0 });
  };
}

/**
 * Gives chunks to a paste. Only content that is whole and nobody's: an upload that is being discarded at this moment is
 * not.
 */
export function prepareAdoption(db: DatabaseSync): (content: Pick<NewPaste, 'contentId' | 'size'>) => void {
  const adopt = db.prepare(`
    DELETE FROM orphans
    WHERE content_id = :contentId
      AND :size = (SELECT sum(length(bytes)) FROM chunks WHERE content_id = :contentId)`);
  return ({ contentId, size }) => {
    if (contentId === null || adopt.run({ contentId, size }).changes === 1) return;
    throw new Error('the content of a paste is not there, or not whole');
  };
}

function preparePasteRemoval(db: DatabaseSync): Pick<PasteCommands, 'burnPaste' | 'removeExpired'> {
  const burn = db.prepare(`
    DELETE FROM pastes
    WHERE id = :id
      AND burn_after_read = 1
      AND expires_at > :nowSeconds
      AND password_hash IS :passwordHash
    RETURNING content_id AS contentId`);
  const expire = db.prepare(`
    DELETE FROM pastes
    WHERE rowid IN (
      SELECT rowid
      FROM pastes
      WHERE expires_at <= :nowSeconds
      ORDER BY expires_at
      LIMIT :limit)
    RETURNING content_id AS contentId`);
  const orphan = prepareOrphaning(db);
  return {
    burnPaste: (claim) => orphan(burn.all({ ...claim })),
    removeExpired: (step) => orphan(expire.all({ ...step })),
  };
}

/**
 * Marks the chunks of pastes as nobody's, from the rows `contentId` of those removed. The rows are those of all(), not
 * get(): get() can report rows of a change that did not come about (nodejs/node#63311).
 */
export function prepareOrphaning(db: DatabaseSync): (rows: readonly unknown[]) => Removal {
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  return (rows) => {
    const orphanedContentIds = [];
    for (const { contentId } of rows as readonly { contentId: string | null }[]) {
      if (contentId === null) continue;
      orphan.run({ contentId });
      orphanedContentIds.push(contentId);
    }
    return { count: rows.length, orphanedContentIds };
  };
}

/** In the order of PasteRow: such rows are had as arrays, which cost node less than objects. */
export const PASTE_COLUMNS = `id, owner, mime_type, size, lower(hex(sha256)), created_at, expires_at, burn_after_read,
      password_hash, content_id`;

export type PasteRow = readonly [
  id: string,
  owner: string | null,
  mimeType: string,
  size: number,
  sha256: string,
  createdAt: number,
  expiresAt: number,
  burnAfterRead: number,
  passwordHash: string | null,
  contentId: string | null,
];

export function pasteLookups(db: DatabaseSync): PasteLookups {
  const find = db.prepare(`
    SELECT ${PASTE_COLUMNS}, CASE WHEN size <= :mostContentBytes THEN content END
    FROM pastes
    WHERE id = :id
      AND expires_at > :nowSeconds`);
  find.setReturnArrays(true);
  return {
    find(id, nowSeconds, mostContentBytes) {
      const row = find.get({ id, nowSeconds, mostContentBytes }) as unknown as FoundRow | undefined;
      return row && { ...pasteFromRow(row), content: row[10] && compactBytes(row[10]) };
    },
    usage: prepareUsage(db),
  };
}

type FoundRow = readonly [...PasteRow, content: Uint8Array | null];

/** From a row that begins with PASTE_COLUMNS. SQLite has no booleans. */
export function pasteFromRow(row: readonly [...PasteRow, ...unknown[]]): Paste {
  return {
    id: row[0],
    owner: row[1],
    mimeType: row[2],
    size: row[3],
    sha256: row[4],
    createdAt: row[5],
    expiresAt: row[6],
    burnAfterRead: row[7] === 1,
    passwordHash: row[8],
    contentId: row[9],
  };
}

// The SQL of what owners and the admin do to pastes that exist: update and delete. Each is decided and done in one
// transaction.

export interface PasteUpdate {
  readonly id: string;
  readonly owner: string;
  readonly changes: PasteChanges;
  readonly terms: UpdateTerms;
}

export interface PasteDeletion {
  readonly id: string;
  readonly by: string;
  readonly nowSeconds: number;
  /** Recorded when the paste is another's; null for who may delete nothing but their own. */
  readonly asAdmin: AuditEvent | null;
}

export interface PasteChangeCommands {
  updatePaste(update: PasteUpdate): { readonly outcome: UpdateOutcome; readonly orphanedContentIds: readonly string[] };
  deletePaste(
    deletion: PasteDeletion,
  ): { readonly outcome: DeletionOutcome; readonly orphanedContentIds: readonly string[] };
}

type Selected = (id: string, nowSeconds: number) => Paste | undefined;

export function pasteChangeCommands(db: DatabaseSync): PasteChangeCommands {
  const select = db.prepare(`
    SELECT ${PASTE_COLUMNS}
    FROM pastes
    WHERE id = :id
      AND expires_at > :nowSeconds`);
  select.setReturnArrays(true);
  const selected: Selected = (id, nowSeconds) => {
    const row = select.get({ id, nowSeconds }) as unknown as PasteRow | undefined;
    return row && pasteFromRow(row);
  };
  return { updatePaste: prepareUpdate(db, selected), deletePaste: prepareDeletion(db, selected) };
}

function prepareUpdate(db: DatabaseSync, selected: Selected): PasteChangeCommands['updatePaste'] {
  const write = prepareUpdateWriting(db);
  const submissions = prepareSubmissions(db);
  const usage = prepareUsage(db);

  function refusal(paste: Paste | undefined, { owner, changes, terms }: PasteUpdate): UpdateOutcome | undefined {
    if (paste === undefined) return { kind: 'notFound' };
    if (paste.owner !== owner) return { kind: 'notOwner' };
    if (paste.burnAfterRead) return { kind: 'burnAfterRead' };
    const { content } = changes;
    if (content === undefined) return undefined;
    const { duplicates, nowSeconds } = terms;
    const excess = duplicates === null ? undefined : submissions.excess(content.sha256, nowSeconds, duplicates);
    if (excess !== undefined) return { kind: 'duplicate', ...excess };
    if (terms.maxStoredBytes === null) return undefined;
    const contentBytes = content.size - paste.size;
    const more = { contentBytes, unwrittenBytes: content.contentId === null ? contentBytes : 0 };
    return passesQuota(usage(), terms.maxStoredBytes, more) ? { kind: 'storageFull' } : undefined;
  }

  return (update) => {
    const before = selected(update.id, update.terms.nowSeconds);
    const refused = refusal(before, update);
    if (refused !== undefined || before === undefined) {
      return { outcome: refused ?? { kind: 'notFound' }, orphanedContentIds: [] };
    }
    const { content } = update.changes;
    const { duplicates, nowSeconds } = update.terms;
    if (content !== undefined && duplicates !== null) submissions.record(content.sha256, nowSeconds);
    const orphanedContentIds = write(before, update.changes);
    const paste = selected(update.id, -Infinity);
    if (paste === undefined) throw new Error('an updated paste is not there');
    return { outcome: { kind: 'updated', paste }, orphanedContentIds };
  };
}

/** Writes the changes; which contents no paste refers to any more. */
function prepareUpdateWriting(db: DatabaseSync): (before: Paste, changes: PasteChanges) => readonly string[] {
  // Setting what lists show, even as it was, writes the entries of their indexes: a page of each beside the row's.
  const setSizedContent = db.prepare(`
    UPDATE pastes
    SET size = :size, sha256 = :sha256, content_id = :contentId, content = :content
    WHERE id = :id`);
  const setContent = db.prepare(`
    UPDATE pastes
    SET sha256 = :sha256, content_id = :contentId, content = :content
    WHERE id = :id`);
  const setMimeType = db.prepare('UPDATE pastes SET mime_type = :mimeType WHERE id = :id');
  const setPassword = db.prepare('UPDATE pastes SET password_hash = :passwordHash WHERE id = :id');
  const setExpiry = db.prepare('UPDATE pastes SET expires_at = :expiresAt WHERE id = :id');
  const adopt = prepareAdoption(db);
  const orphan = prepareOrphaning(db);
  return (before, { content, passwordHash, expiresAt }) => {
    const { id } = before;
    if (passwordHash !== undefined) setPassword.run({ id, passwordHash });
    if (expiresAt !== undefined) setExpiry.run({ id, expiresAt });
    if (content === undefined) return [];
    adopt(content);
    const { mimeType, size, ...stored } = content;
    if (size === before.size) setContent.run({ id, ...stored });
    else setSizedContent.run({ id, size, ...stored });
    if (mimeType !== before.mimeType) setMimeType.run({ id, mimeType });
    return orphan([{ contentId: before.contentId }]).orphanedContentIds;
  };
}

function prepareDeletion(db: DatabaseSync, selected: Selected): PasteChangeCommands['deletePaste'] {
  const remove = db.prepare(`
    DELETE FROM pastes
    WHERE id = :id
    RETURNING content_id AS contentId`);
  const orphan = prepareOrphaning(db);
  const audit = prepareAudit(db);
  return ({ id, by, nowSeconds, asAdmin }) => {
    const paste = selected(id, nowSeconds);
    if (paste === undefined) return { outcome: { kind: 'notFound' }, orphanedContentIds: [] };
    const isOwn = paste.owner === by;
    if (!isOwn && asAdmin === null) return { outcome: { kind: 'notOwner' }, orphanedContentIds: [] };
    const audited = isOwn || asAdmin === null
      ? null
      : { ...asAdmin, details: { ...asAdmin.details, owner: paste.owner } };
    if (audited !== null) audit(audited);
    return { outcome: { kind: 'deleted', audited }, orphanedContentIds: orphan(remove.all({ id })).orphanedContentIds };
  };
}
