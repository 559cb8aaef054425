// What commands work with beside a running server: the settings, the database, the rules of certificates, and the
// operator's mark in the audit log.

import { Authorities } from '../authority/authority.ts';
import { RevocationList } from '../authority/revocation-list.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import { type Config, SETTINGS } from '../config/settings.ts';
import type { Log, LogEntry } from '../core/events.ts';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import type { Clock } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { WorkQueue } from '../limits/work-queue.ts';
import { type Audit, createAudit, type Requester } from '../pastes/identity.ts';
import type { Certificate } from '../store/store.ts';
import { type VisitedStore, type VisitOptions, visitStore } from '../store/visit.ts';
import { CommandError, printWarnings, type Terminal, UsageError } from './terminal.ts';

/** The operator has no certificate and comes from no address; `via` says in every event who it was. */
export const OPERATOR: Requester = { fingerprint: null, clientAddress: null };

export type OperatorSession = ReturnType<typeof openSession>;

/**
 * Does the work in a session that is closed afterwards. What makes a database makes an authority too, which needs its
 * password. Throws what terminal.ts explains.
 */
export async function inSession<Result>(
  terminal: Terminal,
  work: (session: OperatorSession) => Promise<Result>,
  ifMissing: VisitOptions['ifMissing'] = 'refuse',
): Promise<Result> {
  const config = operatorSettings(terminal);
  if (ifMissing === 'create' && config.pkiCaPassword === '') throw passwordMissing();
  const failures: LogEntry[] = [];
  const log: Log = (entry) => {
    if (entry.level === 'error') failures.push(entry);
  };
  const { clock } = terminal;
  const store = await visitStore({ path: config.databasePath, clock, log, ifMissing });
  try {
    return await work(openSession(config, store, clock, log));
  } catch (error) {
    throw error instanceof Refusal ? inWords(error, failures) : error;
  } finally {
    await store.close();
  }
}

/** For commands that make files: theirs are for their owner alone. Prints the doubts. Throws ConfigError. */
export function operatorSettings(terminal: Terminal): Config {
  terminal.restrictNewFiles();
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  printWarnings(terminal, warnings);
  return config;
}

function openSession(config: Config, store: VisitedStore, clock: Clock, log: Log) {
  const unmarked = createAudit({ clock, log });
  const audit: Audit = {
    ...unmarked,
    event: (name, outcome, by, details) => unmarked.event(name, outcome, by, { ...details, via: 'command line' }),
  };
  // One command unlocks one key, once.
  const queue = new WorkQueue({ concurrency: 1, maxWaiting: 0, maxWaitMs: 0, clock });
  // The operator pays with no work, so none is refused.
  const challenges = { notSpent: () => new Refusal('powAlreadyUsed') };
  const parts = { config, store, audit, clock, random: randomBytes, log, challenges };
  const authorities = new Authorities({ ...parts, queue });
  return { ...parts, authorities, revocationList: new RevocationList({ ...parts, authorities }) };
}

/** What authority/authority.ts logs when the password does not open the stored key. */
const KEY_NOT_USABLE = 'CA key not usable';

const HINTS: ReadonlyMap<RefusalName, string> = new Map([
  ['authorityMissing', '`pasted admin create` makes one'],
  ['certificateNotFound', '`pasted pki list` shows those that there are'],
]);

/** A refusal is worded for strangers; the operator is also told what the log knows. */
function inWords({ refusal, message }: Refusal, failures: readonly LogEntry[]): Error {
  if (refusal === 'authorityPasswordMissing') return passwordMissing();
  const reasons = failures.map(({ details, event }) => String(details?.['reason'] ?? event));
  if (failures.some(({ event }) => event === KEY_NOT_USABLE)) {
    return new ConfigError([`${SETTINGS.pkiCaPassword.name}: ${reasons.join('; ')}`]);
  }
  return new CommandError([message, ...reasons, HINTS.get(refusal)].filter((part) => part !== undefined).join(': '));
}

function passwordMissing(): ConfigError {
  return new ConfigError([`${SETTINGS.pkiCaPassword.name}: expected the password of the certificate authority's key`]);
}

/** Of a serial as people copy it: in any case, with or without colons. Throws what inSession explains. */
export async function findCertificate({ store }: OperatorSession, given: string): Promise<Certificate> {
  const serial = given.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(serial)) {
    throw new UsageError(`not a serial: ${JSON.stringify(given)}; one has 32 hexadecimal digits`);
  }
  const certificate = await store.certificates.findBySerial(serial);
  if (certificate === undefined) throw new Refusal('certificateNotFound');
  return certificate;
}
