// The SQL of the audit log. What is worth an entry is decided in service/; entries are written with what they record, in the same
// transaction.

import type { DatabaseSync } from 'node:sqlite';

import type { PruneStep } from './challenges.ts';
import type { AuditEntry, AuditEvent, AuditFilter, Listed, Page } from './store.ts';

export interface AuditCommands {
  recordAudit(event: AuditEvent): void;
  /** How many were removed. */
  removeOldAudit(step: PruneStep): number;
}

export interface AuditLookups {
  listAudit(filter: AuditFilter, page: Page): Listed<AuditEntry>;
}

/** For commands that must be answered for. */
export function prepareAudit(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = db.prepare(`
    INSERT INTO audit (time, event, outcome, client_id, client_ip, details)
    VALUES (:time, :event, :outcome, :clientId, :clientIp, :details)`);
  return (event) => {
    insert.run({ ...event, details: JSON.stringify(event.details) });
  };
}

export function auditCommands(db: DatabaseSync): AuditCommands {
  const remove = db.prepare(`
    DELETE FROM audit
    WHERE id IN (
      SELECT id
      FROM audit
      WHERE time <= :untilSeconds
      ORDER BY time
      LIMIT :limit)`);
  return {
    recordAudit: prepareAudit(db),
    removeOldAudit: (step) => Number(remove.run({ ...step }).changes),
  };
}

export function auditLookups(db: DatabaseSync): AuditLookups {
  const matching = `
    FROM audit
    WHERE time > :after
      AND time < :before
      AND (:event IS NULL OR event = :event)
      AND (:outcome IS NULL OR outcome = :outcome)
      AND (:clientId IS NULL OR client_id = :clientId)`;
  const page = db.prepare(`
    SELECT id, time, event, outcome, client_id AS clientId, client_ip AS clientIp, details ${matching}
    ORDER BY time DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  const total = db.prepare(`SELECT count(*) AS total ${matching}`);
  return {
    listAudit(filter, { limit, offset }) {
      const items = page.all({ ...filter, limit, offset }).map((row) => fromAuditRow(row));
      return { items, total: Number(total.get({ ...filter })?.['total']) };
    },
  };
}

function fromAuditRow(row: Record<string, unknown>): AuditEntry {
  return { ...(row as unknown as AuditEntry), details: JSON.parse(row['details'] as string) };
}
