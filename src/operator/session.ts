// What commands work with: the settings; the database, which a running server may have open too, with the rules of
// certificates; the operator's mark in the audit log. Below: files.

import {
  chmodSync, closeSync, fstatSync, ftruncateSync, linkSync, lstatSync, openSync, renameSync, rmSync, writeFileSync,
} from 'node:fs';
import { Authorities } from '../authority/authority.ts';
import { RevocationList } from '../authority/revocation-list.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import { type Config, isCluster, SETTINGS } from '../config/settings.ts';
import { codeOf, type Log, type LogEntry, orUndefined, reasonOf } from '../core/events.ts';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import type { Clock } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { WorkQueue } from '../limits/work-queue.ts';
import { type Audit, createAudit, type Requester } from '../pastes/identity.ts';
import { isWithoutLinks, syncFolderOf } from '../store/backup.ts';
import { FREE_RESERVE_BYTES, freeBytes, OWNER_ONLY_FILE, placeOf } from '../store/database.ts';
import type { Certificate } from '../store/store.ts';
import { type VisitedStore, visitStore } from '../store/visit.ts';
import { CommandError, UsageError } from './failures.ts';
import { printWarnings, showBytes, type Terminal } from './terminal.ts';

/** The operator has no certificate and comes from no address; `via` says in every event who it was. */
export const OPERATOR: Requester = { fingerprint: null, clientAddress: null };

export type OperatorSession = ReturnType<typeof openSession>;

/** A command that makes a database makes an authority too, which needs a password. Throws what failures.ts explains. */
export async function inSession<Result>(
  terminal: Terminal, work: (session: OperatorSession) => Promise<Result>, ifMissing: 'create' | 'refuse' = 'refuse',
): Promise<Result> {
  const config = operatorSettings(terminal);
  if (ifMissing === 'create' && config.pkiCaPassword === '') throw passwordMissing();
  const failures: LogEntry[] = [];
  const log: Log = (entry) => {
    if (entry.level === 'error') failures.push(entry);
  };
  const { clock } = terminal;
  const store = isCluster(config)
    ? await (await import('../cluster/visit.ts')).visitCluster({ config, clock, newId: randomMark, ifMissing })
    : await visitStore({ path: config.databasePath, clock, log, ifMissing });
  try {
    return await work(openSession(config, store, clock, log));
  } catch (error) {
    throw error instanceof Refusal ? inWords(error, failures) : error;
  } finally {
    await store.close();
  }
}

/** For commands: new files are for their owner alone, and a link to the database means its file. Throws ConfigError. */
export function operatorSettings(terminal: Terminal): Config & { readonly databaseName: string } {
  terminal.restrictNewFiles();
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  printWarnings(terminal, warnings);
  return { ...config, databasePath: placeOf(config.databasePath), databaseName: config.databasePath };
}

function openSession(config: ReturnType<typeof operatorSettings>, store: VisitedStore, clock: Clock, log: Log) {
  const unmarked = createAudit({ clock, log });
  const audit: Audit = {
    ...unmarked,
    event: (name, outcome, by, details) => unmarked.event(name, outcome, by, { ...details, via: 'command line' }),
  };
  // One command unlocks one key, once.
  const queue = new WorkQueue({ concurrency: 1, maxWaiting: 0, maxWaitMs: 0, clock });
  const parts = { config, store, audit, clock, random: randomBytes, log };
  const authorities = new Authorities({ ...parts, queue });
  return { ...parts, authorities, revocationList: new RevocationList({ ...parts, authorities }) };
}

const CA_PASSWORD = SETTINGS.pkiCaPassword.name;

const HINTS: ReadonlyMap<RefusalName, string> = new Map([
  ['authorityMissing', '`pasted admin create` makes one'],
  ['certificateNotFound', '`pasted pki list` shows those that there are'],
  ['issuanceFailed', '`pasted check` says why'],
]);

/** A refusal is worded for strangers; the operator is also told what the log knows. */
function inWords({ refusal, message }: Refusal, failures: readonly LogEntry[]): Error {
  if (refusal === 'authorityPasswordMissing') return passwordMissing();
  const reasons = failures.map(({ details }) => String(details?.['reason']));
  // As authority/authority.ts logs it.
  if (failures.some(({ event }) => event === 'CA key not usable')) {
    return new ConfigError([`${CA_PASSWORD}: ${reasons.join('; ')}`]);
  }
  const said = reasons.length > 0 ? reasons : [HINTS.get(refusal)];
  return new CommandError([message, ...said].filter((part) => part !== undefined).join(': '));
}

function passwordMissing(): ConfigError {
  return new ConfigError([`${CA_PASSWORD}: expected the password of the certificate authority's key`]);
}

/** Takes a serial as people copy it: upper or lower case, with or without colons. Throws what inSession explains. */
export async function findCertificate({ store }: OperatorSession, given: string): Promise<Certificate> {
  const serial = given.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(serial)) {
    throw new UsageError(`not a serial: ${JSON.stringify(given)}; one has 32 hexadecimal digits`);
  }
  const certificate = await store.read.findCertificateBySerial(serial);
  if (certificate === undefined) throw new Refusal('certificateNotFound');
  return certificate;
}

// Files that commands read and write, and what the operator is told when that fails.

export const READABLE_BY_ALL = 0o644;

/** A file that must not exist before, and is removed at the end of its scope unless it is kept. Throws CommandError. */
export function createNewFile(terminal: Terminal, path: string, mode = OWNER_ONLY_FILE, shownPath = path) {
  // For appending, so that after ftruncate the new bytes begin where the file was cut.
  const descriptor = attempt(shownPath, () => openSync(path, 'ax', mode));
  let isKept = false;
  terminal.onStopSignal((signal) => {
    // If the file has content, that may be the only copy of a certificate that is recorded by now.
    if (lstatSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path);
    terminal.endBy(signal);
  });
  return {
    /** Makes these bytes, durably, all that the file holds. Throws CommandError. */
    write: (bytes: Uint8Array): void => attempt(shownPath, () => {
      ftruncateSync(descriptor);
      writeFileSync(descriptor, bytes, { flush: true });
      syncFolderOf(path);
    }),
    /** The file stays unless it is empty, which it says. */
    keep: (): boolean => (isKept = orUndefined(() => fstatSync(descriptor).size) !== 0),
    [Symbol.dispose]: (): void => {
      closeSync(descriptor);
      // An error here would replace the error that ended the scope, and be taken for a bug.
      if (!isKept) orUndefined(() => rmSync(path));
    },
  };
}

/** Part of the name of a draft, which nobody else uses. */
export function randomMark(): string {
  return Buffer.from(randomBytes(8)).toString('hex');
}

/** Makes or replaces a file that requireFree let pass; all may read it, and it is always whole. Throws CommandError. */
export function replaceFile(terminal: Terminal, path: string, bytes: Uint8Array): void {
  const draft = `${path}.${randomMark()}`;
  // No keep(): once the file is published, nothing has the name of the draft.
  using file = createNewFile(terminal, draft, OWNER_ONLY_FILE, path);
  file.write(bytes);
  // In spite of the umask, which keeps the database's files from everyone else.
  attempt(path, () => chmodSync(draft, READABLE_BY_ALL));
  publishFile(draft, path, 'replace');
}

/** Gives a whole file its name, in the same folder. Throws CommandError for a taken name that is not to be replaced. */
export function publishFile(draft: string, path: string, existing: 'refuse' | 'replace'): void {
  attempt(path, () => (existing === 'replace' ? renameSync(draft, path) : nameAnew(draft, path)));
  try {
    syncFolderOf(path);
  } catch (error) {
    const reason = `its folder cannot be synced (${codeOf(error)})`;
    throw new CommandError(`${path} is written, but a power cut may undo that: ${reason}`);
  }
}

function nameAnew(draft: string, path: string): void {
  try {
    linkSync(draft, path);
    rmSync(draft);
  } catch (error) {
    // Where a file can have only one name, nothing but this look keeps an existing file from being replaced.
    if (!isWithoutLinks(error) || lstatSync(path, { throwIfNoEntry: false })) throw error;
    renameSync(draft, path);
  }
}

/** Throws CommandError when the disk of that path has no room for so many bytes beside what the service needs. */
export function requireRoom(path: string, bytes: number): void {
  const free = attempt(path, () => freeBytes(path));
  if (free - bytes > FREE_RESERVE_BYTES) return;
  const needed = `${showBytes(bytes)} and ${showBytes(FREE_RESERVE_BYTES)} to spare`;
  throw new CommandError(`${path} cannot be written: it may take ${needed}, and ${showBytes(free)} are free`);
}

/** The text of a file. Every error of node is the file's fault, also one without a system code, as for its size. */
export function readText({ readFile }: Terminal, path: string | 0, name: string): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new CommandError(`${name} cannot be read (${reasonOf(error)})`);
  }
}

/** Throws a CommandError in the place of a system error. */
export function attempt<Result>(path: string, work: () => Result, purpose: 'written' | 'read' = 'written'): Result {
  try {
    return work();
  } catch (error) {
    throw explained(error, path, purpose);
  }
}

/** A CommandError for an error of the system or of node --permission; any other is an error of this program. */
export function explained(error: unknown, path: string, purpose: 'written' | 'read' = 'written'): unknown {
  const code = codeOf(error);
  if (!/^(?:E[A-Z0-9]+|ERR_ACCESS_DENIED|ERR_FS_FILE_TOO_LARGE)$/.test(code)) return error;
  if (code === 'EEXIST') return new CommandError(`${path} exists already, and is not overwritten`);
  return new CommandError(`${path} cannot be ${purpose} (${reasonOf(error)})`);
}

/** Called before a secret goes to standard output: that may be a file which the shell made readable to all. */
export function requireSecretOutput({ stderr, writesToScreen, writesForOthers }: Terminal, refusal: string): void {
  if (writesToScreen) throw new UsageError(refusal);
  if (!writesForOthers()) return;
  stderr.write('pasted: warning: others may read the file that standard output is: chmod 600 it, or umask 077 first\n');
}
