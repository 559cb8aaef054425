// The table of background tasks (ops/cleanup.ts runs them), and what the operator is told about certificates.

import { type Config, SETTINGS } from '../config/settings.ts';
import {
  BACKDATE_SECONDS, type Clock, DAY_SECONDS, HOUR_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds,
} from '../core/time.ts';
import type { Cleanup, CleanupTask } from '../ops/cleanup.ts';
import type { Store } from '../store/open.ts';
import type { CertificatePlace, StoredAuthority } from '../store/store.ts';
import { SPENDABLE_SECONDS } from './admission.ts';
import type { Parts } from './parts.ts';

/** Small enough for a step of about 10 ms: a paste clears up to 64 KiB, and each record an index page of its own. */
const EXPIRED_PER_STEP = 32;
const PAGES_PER_STEP = 256;
const RECORDS_PER_STEP = 100;

/** How soon new pastes are taken again once a full disk has room, and how soon the log tells of a moved database. */
const DISK_SECONDS = 10;

/** If the clock is set back by less, no used challenge or certificate may be valid again after it was forgotten. */
const CLOCK_MARGIN_SECONDS = HOUR_SECONDS;

type Step = CleanupTask['step'];
type StoreTaskParts = Pick<Parts, 'config' | 'store' | 'clock'>;
type TaskParts = StoreTaskParts & Pick<Parts, 'count' | 'log' | 'rates'>;

type NoteRemoved = (task: string, removed: number) => void;

/** `isOpen`: whether anyone but this host's own users can connect. */
export function cleanupTasks(
  parts: TaskParts, isOpen: () => boolean, renewRevocationList: () => Promise<void>, warnOfTls: () => void,
): readonly CleanupTask[] {
  const { count, rates } = parts;
  const noteRemoved: NoteRemoved = (name, removed) => {
    if (name === 'expired pastes') count('pastesDeleted', 'expired', removed);
  };
  return [
    // First, since it does not wait for the store.
    task('TLS certificate', DAY_SECONDS, async () => warnOfTls()),
    task('doubts', DAY_SECONDS, () => logDoubts(parts, isOpen())),
    task('revocation list', DAY_SECONDS, renewRevocationList),
    ...storeTasks(parts, noteRemoved),
    task('rate records', 5 * MINUTE_SECONDS, async () => rates.sweep()),
    task('room in reserve', DISK_SECONDS, reserveStep(parts)),
    task('files', DISK_SECONDS, parts.store.upkeep.checkFiles),
  ];
}

/** The tasks in the database. Those that remove rows come before those that give the room back. */
export function storeTasks({ config, store, clock }: StoreTaskParts, noteRemoved: NoteRemoved): readonly CleanupTask[] {
  const { pastes, upkeep } = store;
  const challengeSeconds = SPENDABLE_SECONDS + CLOCK_MARGIN_SECONDS;
  /** Removes rows that ran out, or were made, `ageSeconds` ago or earlier. */
  const removal = (
    name: string, intervalSeconds: number, ageSeconds: number,
    remove: (untilSeconds: number, limit: number, skipped: number) => Promise<number>, limit = RECORDS_PER_STEP,
  ) => {
    let start = 0;
    return task(name, intervalSeconds, async () => {
      // After a step that fails, as at a damaged page, the next run first removes what comes behind those rows.
      const skipped = start;
      start += limit;
      const removed = await remove(unixSeconds(clock) - ageSeconds, limit, skipped);
      noteRemoved(name, removed);
      start = removed === limit ? skipped : 0;
      return removed === limit || skipped > 0;
    });
  };
  const records = (name: 'removeOldSubmissions' | 'removeExpiredChallenges' | 'removeOldAudit') => (
    (untilSeconds: number, limit: number, skipped: number) => store.run(name, { untilSeconds, limit, skipped })
  );
  return [
    removal('expired pastes', HOUR_SECONDS, 0, pastes.removeExpired, EXPIRED_PER_STEP),
    removal('duplicate records', 15 * MINUTE_SECONDS, config.duplicateWindowSeconds, records('removeOldSubmissions')),
    removal('used challenges', 5 * MINUTE_SECONDS, challengeSeconds, records('removeExpiredChallenges')),
    removal('audit log', DAY_SECONDS, config.auditRetentionSeconds, records('removeOldAudit')),
    task('expired certificates', DAY_SECONDS, certificatesStep(store, clock, noteRemoved)),
    task('free pages', 5 * MINUTE_SECONDS, releaseStep(store)),
    task('write-ahead log', MINUTE_SECONDS, async () => void (await upkeep.truncateWal())),
    task('statistics', 6 * HOUR_SECONDS, upkeep.optimize),
  ];
}

function task(name: string, intervalSeconds: number, step: Step): CleanupTask {
  return { name, intervalSeconds, step };
}

/** Each run looks at all expired certificates: what still referred to one may have been removed since. */
function certificatesStep(store: Store, clock: Clock, noteRemoved: NoteRemoved): Step {
  let after: CertificatePlace | null = null;
  return async () => {
    const step = { untilSeconds: unixSeconds(clock) - CLOCK_MARGIN_SECONDS, after, limit: RECORDS_PER_STEP };
    const { removed, last } = await store.run('removeExpiredCertificates', step);
    noteRemoved('expired certificates', removed);
    after = last;
    return after !== null;
  };
}

/** There is more to do as long as each step leaves fewer free pages than the one before. */
function releaseStep({ upkeep }: Store): Step {
  let freeBefore = Infinity;
  return async () => {
    const free = await upkeep.releasePages(PAGES_PER_STEP);
    const goesOn = free > 0 && free < freeBefore;
    freeBefore = goesOn ? free : Infinity;
    return goesOn;
  };
}

/** Logs once that the disk is full, when content is refused with 507, and once that it has room again. */
function reserveStep({ store, log }: TaskParts): Step {
  let isFull = false;
  return async () => {
    const wasFull = isFull;
    isFull = !(await store.upkeep.restoreBallast());
    const event = isFull ? 'disk full' : 'room on the disk again';
    if (isFull !== wasFull) log({ level: isFull ? 'warning' : 'info', logger: 'store', event });
  };
}

/** The tasks that give most room come first: expired pastes, then their pages, then what the log holds of them. */
const MAKES_ROOM = ['expired pastes', 'free pages', 'write-ahead log'];

/** At most once in this time, so that a flood of requests refused for want of room costs nothing. */
const MAKING_ROOM_MS = 10_000;

export function createRoomMaking(run: Cleanup['run'], clock: Clock): () => Promise<void> {
  let begunMs = -Infinity;
  return async () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - begunMs < MAKING_ROOM_MS) return;
    begunMs = nowMs;
    for (const name of MAKES_ROOM) await run(name);
  };
}

/** Time to act in: proxies must get the renewed authority, and certificates from the old one end when it does. */
const EXPIRY_NOTICE_SECONDS = 90 * DAY_SECONDS;
const EXPIRY_ALARM_SECONDS = 30 * DAY_SECONDS;

async function logDoubts({ config, store, clock, log }: TaskParts, isOpen: boolean): Promise<void> {
  const nowSeconds = unixSeconds(clock);
  const admin = isOpen ? adminDoubt(config, await store.read.hasCertificates()) : undefined;
  if (admin !== undefined) log({ level: 'warning', logger: 'pki', event: 'no admin', details: { message: admin } });
  const authority = await store.read.findAuthority();
  const doubt = authority && authorityDoubt(authority, nowSeconds);
  if (doubt !== undefined) {
    const { level, event, message } = doubt;
    log({ level, logger: 'pki', event, details: { message: `the certificate authority ${message}` } });
  }
}

/** Whoever gets the first certificate becomes the admin. */
export function adminDoubt({ pkiCaPassword }: Config, hasCertificates: boolean): string | undefined {
  if (pkiCaPassword === '' || hasCertificates) return undefined;
  return `there is no admin, and ${SETTINGS.pkiCaPassword.name} is set: whoever gets the first certificate becomes ` +
    'the admin; before that: pasted admin create';
}

type Doubt = Readonly<{ level: 'warning' | 'error'; event: string; message: string }>;

export function authorityDoubt(
  { createdAt, expiresAt }: Pick<StoredAuthority, 'createdAt' | 'expiresAt'>, nowSeconds: number,
): Doubt | undefined {
  const beginsAt = createdAt - BACKDATE_SECONDS;
  const early = `is not valid before ${isoSeconds(beginsAt)}, nor is what it has issued: pasted pki ca renew`;
  if (beginsAt > nowSeconds) return { level: 'error', event: 'CA is not valid yet', message: early };
  const [event, moment] = ['CA runs out', isoSeconds(expiresAt)];
  const leftSeconds = expiresAt - nowSeconds;
  const advice = 'and all of its certificates with it: pasted pki ca renew';
  if (leftSeconds <= 0) return { level: 'error', event, message: `ran out at ${moment}, ${advice}` };
  if (leftSeconds > EXPIRY_NOTICE_SECONDS) return undefined;
  const days = Math.floor(leftSeconds / DAY_SECONDS);
  const level = leftSeconds <= EXPIRY_ALARM_SECONDS ? 'error' : 'warning';
  return { level, event, message: `runs out soon, at ${moment} (${days} days), ${advice}` };
}
