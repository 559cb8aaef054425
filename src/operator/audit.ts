// `pasted audit`: what the audit log has, and with --follow its new entries as they come.

import { setTimeout } from 'node:timers/promises';
import { isCluster } from '../config/settings.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { presentAuditEntry } from '../http/present.ts';
import { OPERATOR_NAME } from '../store/pastes.ts';
import { type AuditEntry, type AuditFilter, type Page } from '../store/store.ts';
import { type AuditTail, TAIL_ENTRIES, tailAudit } from '../store/visit.ts';
import { spanSeconds, wholeNumber } from './arguments.ts';
import { UsageError } from './failures.ts';
import { inSession, randomMark } from './session.ts';
import { alignColumns, type Given, report, type Run, type Terminal } from './terminal.ts';

export const audit: Run = (terminal, given) => {
  const { options } = given;
  const nowSeconds = unixSeconds(terminal.clock);
  const filter: AuditFilter = {
    event: options.get('--event') ?? null,
    outcome: options.get('--outcome') ?? null,
    clientId: readFingerprint(options.get('--client-id')),
    after: readMoment('--after', options.get('--after'), nowSeconds) ?? Number.MIN_SAFE_INTEGER,
    before: readMoment('--before', options.get('--before'), nowSeconds) ?? Number.MAX_SAFE_INTEGER,
  };
  const page: Page = {
    limit: wholeNumber(given, '--limit', { minimum: 1, maximum: 100_000, fallback: 100 }),
    offset: wholeNumber(given, '--offset', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, fallback: 0 }),
  };
  if (options.has('--follow')) return follow(terminal, given, filter);
  return inSession(terminal, async ({ store }) => {
    const { items, total } = await store.read.listAudit(filter, page);
    const table = alignColumns([HEADINGS, ...items.map(rowOf)]);
    report(terminal.stdout, given, { entries: items.map(presentAuditEntry), total, ...page }, table);
  });
};

const HEADINGS = ['TIME', 'EVENT', 'OUTCOME', 'CLIENT ID', 'CLIENT IP', 'DETAILS'];

function rowOf({ time, event, outcome, clientId, clientIp, details }: AuditEntry): readonly string[] {
  return [isoSeconds(time), event, outcome, clientId ?? '-', clientIp ?? '-', showDetails(details)];
}

const LOOK_EVERY_MS = 200;

/** As wide as the usual entries, since those to come are not known. */
const WIDE_HEADINGS = HEADINGS.map((heading, column) => heading.padEnd([20, 19, 7, 40, 15][column] ?? 0));

const SAID_OF_STATE = {
  same: '',
  replaced: 'pasted: the database was replaced: following the new one from its end\n',
  away: 'pasted: the database cannot be read at the moment: trying again\n',
};

/** Goes on until a signal comes, or until nobody reads what it prints. */
async function follow(terminal: Terminal, given: Given, filter: AuditFilter): Promise<void> {
  const surplus = ['--before', '--limit', '--offset'].find((name) => given.options.has(name));
  if (surplus !== undefined) throw new UsageError(`--follow goes on until it is stopped: ${surplus} has no meaning`);
  const fromStart = given.options.has('--after');
  const look = await inSession(terminal, async ({ config, clock }): Promise<AuditTail> => {
    // If the name is a link, it is followed at each look: it may lead to another file by then.
    if (!isCluster(config)) return tailAudit(config.databaseName, filter, fromStart);
    return (await import('../cluster/visit.ts')).tailCluster({ config, clock, newId: randomMark }, filter, fromStart);
  });
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => terminal.onStopSignal(() => resolve(stopping.abort())));
  // One race for all: each that `stopped` loses leaves something there, and five in a second are 128 MiB in a day.
  await Promise.race([stopped, print(terminal, look, given.options.has('--json'), stopping.signal)]);
}

async function print({ stdout, stderr }: Terminal, look: AuditTail, isJson: boolean, signal: AbortSignal) {
  let saidOf: keyof typeof SAID_OF_STATE = 'same';
  for (let text = isJson ? '' : `${WIDE_HEADINGS.join('  ')}\n`; !signal.aborted; text = '') {
    const { entries, state } = await look();
    if (state !== saidOf) stderr.write(SAID_OF_STATE[state]);
    saidOf = state;
    text += isJson
      ? entries.map((entry) => `${JSON.stringify(presentAuditEntry(entry))}\n`).join('')
      : alignColumns([WIDE_HEADINGS, ...entries.map(rowOf)]).replace(/^.*\n/, '');
    if (text !== '' && !(await stdout.writeWhole(Buffer.from(text)))) return;
    await setTimeout(entries.length < TAIL_ENTRIES ? LOOK_EVERY_MS : 0);
  }
}

/** In upper or lower case, with or without colons, as tools print it. */
function readFingerprint(text: string | undefined): string | null {
  if (text === undefined) return null;
  const fingerprint = text.replaceAll(':', '').toLowerCase();
  if (/^[0-9a-f]{40}$/.test(fingerprint) || fingerprint === OPERATOR_NAME) return fingerprint;
  throw new UsageError(`--client-id takes a SHA-1 fingerprint of 40 hex digits, or ${OPERATOR_NAME}`);
}

/** Gives Unix seconds. Takes the same, a date and time in UTC, or how long ago. Throws UsageError. */
export function readMoment(name: string, text: string | undefined, nowSeconds: number): number | undefined {
  if (text === undefined) return undefined;
  const seconds = secondsOf(text, nowSeconds);
  if (Number.isSafeInteger(seconds)) return seconds;
  throw new UsageError(`${name} takes a moment: Unix seconds, 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 7d`);
}

/** `2026-01-31`, `2026-01-31T12:00` or `2026-01-31T12:00:00`, with or without the `Z`: UTC is always meant. */
const ISO_MOMENT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(?::(\d{2}))?Z?)?$/;

function secondsOf(text: string, nowSeconds: number): number {
  if (/^\d+$/.test(text)) return Number(text);
  const agoSeconds = spanSeconds(text);
  if (!Number.isNaN(agoSeconds)) return nowSeconds - agoSeconds;
  const [, date, minutes = '00:00', seconds = '00'] = ISO_MOMENT.exec(text) ?? [];
  const iso = `${date}T${minutes}:${seconds}.000Z`;
  const unixMs = Date.parse(iso);
  // Date takes the 30th of February for the 2nd of March.
  return !Number.isNaN(unixMs) && new Date(unixMs).toISOString() === iso ? unixMs / 1000 : NaN;
}

/** Text that is not a plain word is quoted, so that a name cannot look like another detail. */
function showDetails(details: AuditEntry['details']): string {
  const pairs = Object.entries(details).map(([name, value]) => {
    const isPlain = typeof value !== 'string' || /^[\w.:/@+-]+$/.test(value);
    return `${name}=${isPlain ? String(value) : JSON.stringify(value)}`;
  });
  return pairs.join(' ') || '-';
}
