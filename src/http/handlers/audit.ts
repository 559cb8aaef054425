// GET /audit: the audit log for the admin.

import { requireAdmin } from '../../service/identity.ts';
import type { AuditStore } from '../../store/store.ts';
import type { CallerOf } from '../callers.ts';
import type { Handlers } from '../handler.ts';
import { presentAuditEntry } from '../present.ts';
import { page, single, timeBounds } from '../query.ts';
import { jsonReply } from '../reply.ts';

/** The contract's bound of one query. */
const PAGING = { fallback: 100, maximum: 500 };

export function createAuditHandlers(parts: { auditLog: AuditStore; callerOf: CallerOf }): Pick<Handlers, 'listAudit'> {
  const { auditLog, callerOf } = parts;
  return {
    listAudit: async (request) => {
      requireAdmin(await callerOf(request));
      const { query } = request;
      const asked = page(query, PAGING);
      const filter = {
        ...timeBounds(query),
        event: single(query, 'event'),
        outcome: single(query, 'outcome'),
        clientId: single(query, 'client_id'),
      };
      const { items, total } = await auditLog.list(filter, asked);
      return jsonReply(200, { entries: items.map(presentAuditEntry), total, ...asked });
    },
  };
}
