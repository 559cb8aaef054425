// The SQL of what owners and the admin do to pastes that exist: update and delete. Each is decided and done in one transaction.

import type { DatabaseSync } from 'node:sqlite';

import { prepareAudit } from './audit.ts';
import { PASTE_COLUMNS, pasteFromRow, prepareAdoption, prepareOrphaning, prepareUsage } from './pastes.ts';
import type { PasteRow } from './pastes.ts';
import { passesQuota } from './store.ts';
import type { AuditEvent, DeletionOutcome, Paste, PasteChanges, UpdateOutcome, UpdateTerms } from './store.ts';
import { prepareSubmissions } from './submissions.ts';

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
  deletePaste(deletion: PasteDeletion): { readonly outcome: DeletionOutcome; readonly orphanedContentIds: readonly string[] };
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
    const excess = terms.duplicates === null ? undefined : submissions.excess(content.sha256, terms.nowSeconds, terms.duplicates);
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
    if (content !== undefined && update.terms.duplicates !== null) submissions.record(content.sha256, update.terms.nowSeconds);
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
    const audited = isOwn || asAdmin === null ? null : { ...asAdmin, details: { ...asAdmin.details, owner: paste.owner } };
    if (audited !== null) audit(audited);
    return { outcome: { kind: 'deleted', audited }, orphanedContentIds: orphan(remove.all({ id })).orphanedContentIds };
  };
}
