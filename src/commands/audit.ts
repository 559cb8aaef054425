// `pasted audit`: the audit log for the operator, with the filters of GET /audit.

import { isoSeconds, unixSeconds } from '../core/time.ts';
import { presentAuditEntry } from '../http/present.ts';
import type { AuditEntry, AuditFilter, Page } from '../store/store.ts';
import { alignColumns } from './columns.ts';
import type { Given, Run } from './commands.ts';
import { EXIT, UsageError } from './failures.ts';
import { inOffice } from './operator.ts';
import { moment, wholeNumber } from './option-values.ts';

const FINGERPRINT = /^[0-9a-f]{40}$/;

export const run: Run = (terminal, given) => {
  const filter = readFilter(given, unixSeconds(terminal.clock));
  const page: Page = {
    limit: wholeNumber(given, '--limit', { minimum: 1, maximum: 100_000, fallback: 100 }),
    offset: wholeNumber(given, '--offset', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, fallback: 0 }),
  };
  return inOffice(terminal, { ifMissing: 'refuse' }, async ({ store }) => {
    const { items, total } = await store.audit.list(filter, page);
    const shown = { entries: items.map(presentAuditEntry), total, ...page };
    terminal.stdout.write(given.options.has('--json') ? `${JSON.stringify(shown)}\n` : tableOf(items));
    return EXIT.success;
  });
};

function readFilter(given: Given, nowSeconds: number): AuditFilter {
  return {
    event: given.values.get('--event') ?? null,
    outcome: given.values.get('--outcome') ?? null,
    clientId: readFingerprint(given.values.get('--client-id')),
    after: moment(given, '--after', nowSeconds) ?? Number.MIN_SAFE_INTEGER,
    before: moment(given, '--before', nowSeconds) ?? Number.MAX_SAFE_INTEGER,
  };
}

/** In any case, with or without colons, as tools print it. */
function readFingerprint(text: string | undefined): string | null {
  if (text === undefined) return null;
  const fingerprint = text.replaceAll(':', '').toLowerCase();
  if (!FINGERPRINT.test(fingerprint)) throw new UsageError('--client-id takes a SHA-1 fingerprint of 40 hex digits');
  return fingerprint;
}

/** The details last: nobody knows their width. */
function tableOf(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ time, event, outcome, clientId, clientIp, details }) => {
    return [isoSeconds(time), event, outcome, clientId ?? '-', clientIp ?? '-', showDetails(details)];
  });
  return alignColumns([['TIME', 'EVENT', 'OUTCOME', 'CLIENT ID', 'CLIENT IP', 'DETAILS'], ...rows]);
}

/** Text in quotes where it is no plain word, so that a name cannot look like another detail. */
function showDetails(details: AuditEntry['details']): string {
  const pairs = Object.entries(details).map(([name, value]) => {
    const isPlain = typeof value !== 'string' || /^[\w.:/@+-]+$/.test(value);
    return `${name}=${isPlain ? String(value) : JSON.stringify(value)}`;
  });
  return pairs.join(' ') || '-';
}
