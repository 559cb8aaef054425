// Failures that the user can do something about, as words and exit codes; and which process has a file or a port.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { ConfigError } from '../config/load.ts';
import { SETTINGS } from '../config/settings.ts';
import { codeOf, orUndefined, reasonOf } from '../core/events.ts';
import { type ListeningError, placeName } from '../http/engine/listening.ts';
import type { Output } from '../ops/log.ts';
import { DatabaseInUseError, DatabaseRefusedError, isDamage, StoreError } from '../store/store.ts';

/** Exit codes. 75 and 78 are EX_TEMPFAIL and EX_CONFIG of sysexits.h: they say whether trying again can help. */
export const EXIT = { success: 0, failure: 1, usage: 2, busy: 75, configuration: 78 } as const;

/** Errors of a path that is wrong, so that trying again does not help. */
const LASTING = ['EACCES', 'EEXIST', 'ELOOP', 'ENAMETOOLONG', 'ENOENT', 'ENOTDIR', 'EPERM', 'EROFS'];

/** A command line that cannot be carried out; the message says why, and which name is nearest. */
export class UsageError extends Error {}

/** A command that failed; the message says it all, in one line. */
export class CommandError extends Error {}

/** Says on standard error what the user can act on, and returns the exit code. Throws a bug again, for main.ts. */
export function exitCodeOf({ stderr }: { readonly stderr: Pick<Output, 'write'> }, error: unknown): number {
  const failure = (exitCode: number, message: string): number => {
    stderr.write(`pasted: ${message}\n`);
    return exitCode;
  };
  if (error instanceof UsageError) return failure(EXIT.usage, `${error.message}\nTry: pasted help`);
  if (error instanceof CommandError) return failure(EXIT.failure, error.message);
  if (error instanceof ConfigError) {
    const problems = error.problems.map((problem) => `\n  ${problem}`).join('');
    return failure(EXIT.configuration, `the settings cannot be used${problems}`);
  }
  if (error instanceof DatabaseRefusedError) return failure(EXIT.configuration, error.message);
  if (error instanceof DatabaseInUseError) return failure(EXIT.busy, withHolder(error));
  if (error instanceof StoreError) {
    // The store says what could not be done. Its cause, from SQLite or the system, says why, unless the store did.
    const { cause } = error;
    const why = cause instanceof Error ? cause.message : '';
    const reason = codeOf(cause) === 'EDQUOT' ? 'EDQUOT' : why;
    const message = error.message.includes(reason) ? error.message : `${error.message}: ${reason}`;
    const isLasting = isDamage(error) || LASTING.includes(codeOf(cause));
    return failure(isLasting ? EXIT.configuration : EXIT.failure, `${message} (${SETTINGS.databasePath.name})`);
  }
  if (String(error).includes('uv_cwd')) return failure(EXIT.failure, 'the working folder was removed: go to another');
  // node --permission refused a file that this program looks for by itself, such as one beside the database.
  if (codeOf(error) !== 'ERR_ACCESS_DENIED') throw error;
  const { resource } = error as { resource?: string };
  return failure(EXIT.configuration, `${resource || 'a file'} cannot be used (${reasonOf(error)})`);
}

/** Says in one line which setting to change; else gives the error itself. `isPublic`: not the listener of metrics. */
export function listeningFailure(error: ListeningError, isPublic: boolean): Error {
  const reason = reasonsFor(error, isPublic)[error.code];
  return reason === undefined ? error : new CommandError(`cannot listen on ${placeName(error.place)}: ${reason}`);
}

function reasonsFor({ place, code }: ListeningError, isPublic: boolean): Record<string, string> {
  const { host, port, listenOn, metricsListen } = SETTINGS;
  // It may be a pipe, a file, a datagram socket, or a connection that Accept=yes has accepted already.
  const unfit = 'it is no stream socket that takes connections; the socket unit needs ListenStream= and Accept=no';
  if ('fd' in place) return { EINVAL: unfit, ENOTSOCK: unfit };
  if ('path' in place) return socketReasons(isPublic ? listenOn.name : metricsListen.name);
  const [hostName, portName] = isPublic ? [host.name, port.name] : [metricsListen.name, metricsListen.name];
  const holder = code === 'EADDRINUSE' ? holderOfPort(place.port) : undefined;
  const noAddress = `this host has no such address; choose another ${hostName}`;
  const byWhom = holder === undefined ? ' (root can see by which process: ss -ltnp)' : ` by ${holder}`;
  return {
    EADDRINUSE: `the port is in use${byWhom}; choose another ${portName}`,
    EACCES: `not permitted below port 1024; choose another ${portName}, or give this user the right to use it`,
    EADDRNOTAVAIL: noAddress, EAFNOSUPPORT: noAddress,
    EINVAL: `an address of one link needs its zone, which cannot be given here; choose another ${hostName}`,
    ENOTFOUND: `there is no host of that name; choose another ${hostName}`,
    EAI_AGAIN: `the name could not be resolved; choose an address as ${hostName}`,
  };
}

function socketReasons(setting: string): Record<string, string> {
  const noFolder = `there is no such folder; make it, or choose another ${setting}`;
  // sun_path of unix(7) holds 107 bytes, which are fewer characters when these are not ASCII.
  const tooLong = `the path is too long for a socket; choose another ${setting}`;
  // Some file systems have no sockets, such as FAT and shares of virtual machines; others have no room for a name.
  const noSocket = `no socket can be made there; choose another ${setting}, under systemd in a RuntimeDirectory=`;
  return {
    EADDRINUSE: `another process listens there, or it is a file; choose another ${setting}`,
    ENOENT: noFolder, ENOTDIR: noFolder, ELOOP: noFolder,
    EACCES: `this user may not make a socket there; choose another ${setting}`,
    EROFS: noSocket, EPERM: noSocket, ENOTSUP: noSocket, ENOSPC: noSocket,
    EINVAL: tooLong, ENAMETOOLONG: tooLong,
    ERR_ACCESS_DENIED: `its folder needs --allow-fs-read and --allow-fs-write of node; or choose another ${setting}`,
  };
}

// Which process has a file or a port, where there is /proc: root sees every process, others their own.

function withHolder({ message, lockPath }: DatabaseInUseError): string {
  if (lockPath === undefined) return message;
  const real = orUndefined(() => realpathSync(lockPath));
  const holder = real === undefined ? undefined : findHolder((target) => target === real);
  return `${message}; ${holder === undefined ? `root can see which: fuser ${lockPath}` : `it is ${holder}`}`;
}

/** TCP_LISTEN of proc(5), /proc/net/tcp. */
const LISTENING = '0A';

/** Who listens on this TCP port, on any address: `process 123 (node dist/main.js)`. */
function holderOfPort(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['tcp', 'tcp6'].flatMap((table) => (
    orUndefined(() => readFileSync(`/proc/net/${table}`, 'latin1').split('\n')) ?? []
  ));
  const sockets = lines.map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  return sockets.length === 0 ? undefined : findHolder((target) => sockets.includes(target));
}

/** The answer must come soon, also on a host with thousands of connections. */
const MAX_DESCRIPTORS = 50_000;

/** A process other than this one, with a descriptor whose link target `isIt` accepts. */
function findHolder(isIt: (target: string) => boolean): string | undefined {
  const own = orUndefined(() => readlinkSync('/proc/self'));
  let left = MAX_DESCRIPTORS;
  for (const pid of orUndefined(() => readdirSync('/proc')) ?? []) {
    if (!/^\d+$/.test(pid) || pid === own) continue;
    for (const descriptor of orUndefined(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      left -= 1;
      if (left < 0) return undefined;
      const target = orUndefined(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
      if (target !== undefined && isIt(target)) return `process ${pid} (${commandOf(pid)})`;
    }
  }
  return undefined;
}

/** The program, its script and its command. Later words are left out, since they may be anything, also secrets. */
function commandOf(pid: string): string {
  const words = orUndefined(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
  const shown = words.filter((word) => word !== '' && !word.startsWith('-')).slice(0, 3).join(' ');
  return shown.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120);
}
