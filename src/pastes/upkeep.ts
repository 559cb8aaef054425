// What the service does for itself: the table of background tasks (ops/cleanup.ts runs them), and what the operator is
// told about certificates at the start.

import { type Config, SETTINGS } from '../config/settings.ts';
import { type Clock, DAY_SECONDS, HOUR_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import type { Cleanup, CleanupTask } from '../ops/cleanup.ts';
import type { Store } from '../store/open.ts';
import { type CertificatePlace, StoreError } from '../store/store.ts';
import { SPENDABLE_SECONDS } from './admission.ts';
import type { Parts } from './parts.ts';

/** Small enough for a step of about 10 ms: a paste clears up to 64 KiB, each record a page of an index by itself. */
const EXPIRED_PER_STEP = 32;
const PAGES_PER_STEP = 256;
const RECORDS_PER_STEP = 100;
const CERTIFICATES_PER_STEP = 100;

/** How soon new pastes are taken again once a full disk has room. */
const BALLAST_SECONDS = 10;

/** A clock that is set back by less must not make a used challenge, or a certificate, valid and unknown at once. */
const CLOCK_MARGIN_SECONDS = HOUR_SECONDS;

type Step = CleanupTask['step'];
type RemoveUntil = (untilSeconds: number, limit: number) => Promise<number>;
type TaskParts = Pick<Parts, 'config' | 'store' | 'clock' | 'count' | 'rates'>;
type StoreTaskParts = Omit<TaskParts, 'rates'>;

export function cleanupTasks(parts: TaskParts, renewRevocationList: () => Promise<void>): readonly CleanupTask[] {
  const { store, rates } = parts;
  return [
    task('revocation list', DAY_SECONDS, inOneStep(renewRevocationList)),
    ...storeTasks(parts),
    task('rate records', 5 * MINUTE_SECONDS, inOneStep(() => rates.sweep())),
    task('room in reserve', BALLAST_SECONDS, inOneStep(() => store.upkeep.restoreBallast())),
  ];
}

/** The tasks in the database; what removes comes before what gives its room back. */
export function storeTasks(parts: StoreTaskParts): readonly CleanupTask[] {
  const { config, store, clock } = parts;
  const { upkeep } = store;
  const challengeSeconds = SPENDABLE_SECONDS + CLOCK_MARGIN_SECONDS;
  return [
    task('expired pastes', HOUR_SECONDS, () => removeExpired(parts)),
    task('duplicate records', 15 * MINUTE_SECONDS, pruneStep(
      clock, config.duplicateWindowSeconds, store.submissions.removeUntil,
    )),
    task('used challenges', 5 * MINUTE_SECONDS, pruneStep(clock, challengeSeconds, store.challenges.removeExpired)),
    task('audit log', DAY_SECONDS, pruneStep(clock, config.auditRetentionSeconds, store.audit.removeUntil)),
    task('expired certificates', DAY_SECONDS, certificatesStep(store, clock)),
    task('free pages', 5 * MINUTE_SECONDS, releaseStep(store)),
    task('write-ahead log', MINUTE_SECONDS, inOneStep(() => upkeep.truncateWal())),
    task('statistics', 6 * HOUR_SECONDS, inOneStep(() => upkeep.optimize())),
  ];
}

function task(name: string, intervalSeconds: number, step: Step): CleanupTask {
  return { name, intervalSeconds, step };
}

function inOneStep(work: () => unknown): Step {
  return async () => {
    await work();
    return false;
  };
}

async function removeExpired({ store, clock, count }: StoreTaskParts): Promise<boolean> {
  const removed = await store.pastes.removeExpired(unixSeconds(clock), EXPIRED_PER_STEP);
  count('pastesDeleted', 'expired', removed);
  return removed === EXPIRED_PER_STEP;
}

/** Removes records of that age, since they ran out or were made. */
function pruneStep(clock: Clock, ageSeconds: number, removeUntil: RemoveUntil): Step {
  return async () => (await removeUntil(unixSeconds(clock) - ageSeconds, RECORDS_PER_STEP)) === RECORDS_PER_STEP;
}

/** Goes through all that have expired, since what refers to one may go at any time. */
function certificatesStep({ certificates }: Pick<Store, 'certificates'>, clock: Clock): Step {
  let after: CertificatePlace | null = null;
  return async () => {
    const untilSeconds = unixSeconds(clock) - CLOCK_MARGIN_SECONDS;
    after = (await certificates.removeExpired(untilSeconds, after, CERTIFICATES_PER_STEP)).last;
    return after !== null;
  };
}

/** More to do as long as each step leaves fewer free pages than the one before. */
function releaseStep({ upkeep }: Pick<Store, 'upkeep'>): Step {
  let freeBefore = Infinity;
  return async () => {
    const free = await upkeep.releasePages(PAGES_PER_STEP);
    const goesOn = free > 0 && free < freeBefore;
    freeBefore = goesOn ? free : Infinity;
    return goesOn;
  };
}

/** From most to least that they give: what has expired, its pages, and what the log holds of it. */
const MAKES_ROOM = ['expired pastes', 'free pages', 'write-ahead log'];

/** Not more often, so that a flood of refusals for want of room costs nothing. */
const MAKING_ROOM_MS = 10_000;

/** What to call at each such refusal. */
export function createRoomMaking(run: Cleanup['run'], clock: Clock): () => Promise<void> {
  let begunMs = -Infinity;
  return async () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - begunMs < MAKING_ROOM_MS) return;
    begunMs = nowMs;
    for (const name of MAKES_ROOM) await run(name);
  };
}

export interface Doubt {
  readonly level: 'warning' | 'error';
  readonly message: string;
}

/** A new authority means new certificates for everyone. */
const EXPIRY_NOTICE_SECONDS = 90 * DAY_SECONDS;
const EXPIRY_ALARM_SECONDS = 30 * DAY_SECONDS;

/** At the start. `isOpen`: others than this host's own users can connect. A failing storage is for others to report. */
export async function logDoubts({ config, store, clock, log }: Parts, isOpen: boolean): Promise<void> {
  const nowSeconds = unixSeconds(clock);
  try {
    const { valid, revoked, expired } = await store.certificates.countByStatus(nowSeconds);
    const admin = isOpen ? adminDoubt(config, valid + revoked + expired) : undefined;
    if (admin !== undefined) {
      log({ level: admin.level, logger: 'pki', event: 'no admin', details: { message: admin.message } });
    }
    const authority = await store.authority.find();
    const expiry = authority && authorityDoubt(authority.expiresAt, nowSeconds);
    if (expiry !== undefined) {
      const message = `the certificate authority ${expiry.message}`;
      log({ level: expiry.level, logger: 'pki', event: 'CA runs out', details: { message } });
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

/** With a password, POST /register makes whoever comes first the admin. `issued` is how many certificates there are. */
export function adminDoubt({ pkiCaPassword }: Config, issued: number): Doubt | undefined {
  if (pkiCaPassword === '' || issued > 0) return undefined;
  const message = `there is no admin, and ${SETTINGS.pkiCaPassword.name} is set: whoever registers first becomes ` +
    'the admin; before that: pasted admin create';
  return { level: 'warning', message };
}

export function authorityDoubt(expiresAt: number, nowSeconds: number): Doubt | undefined {
  const moment = isoSeconds(expiresAt);
  const leftSeconds = expiresAt - nowSeconds;
  if (leftSeconds <= 0) return { level: 'error', message: `ran out at ${moment}, and all of its certificates with it` };
  if (leftSeconds > EXPIRY_NOTICE_SECONDS) return undefined;
  const days = Math.floor(leftSeconds / DAY_SECONDS);
  const level = leftSeconds <= EXPIRY_ALARM_SECONDS ? 'error' : 'warning';
  return { level, message: `runs out soon, at ${moment} (${days} days), and all of its certificates with it` };
}
