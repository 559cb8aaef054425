// Where a server may listen, where the settings say that it does, and how it begins to, whatever protocol it speaks.

import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { access, lstat, unlink } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { ConfigError } from '../../config/load.ts';
import type { Config } from '../../config/settings.ts';
import { codeOf } from '../../core/events.ts';

export type ListeningPlace =
  | { readonly host: string; readonly port: number }
  /** A unix socket that is made at this absolute path; `mode` is its permissions. */
  | { readonly path: string; readonly mode: number }
  /** A socket that somebody else has opened, and that stays theirs. */
  | { readonly fd: number };

/** SD_LISTEN_FDS_START of sd_listen_fds(3). */
const FIRST_INHERITED = 3;

/** Where those who read metrics are let in: the service's user and its group. */
const METRICS_SOCKET_MODE = 0o660;

/** Of the public server: a socket from systemd comes before SERVICE_LISTEN, and that before host and port. */
export function publicPlace(config: Config, inheritedSockets: number): ListeningPlace {
  if (inheritedSockets > 1) {
    throw new ConfigError([`LISTEN_FDS: expected one socket from systemd, given ${inheritedSockets}; ` +
      'keep one ListenStream= in the socket unit ([::]:PORT takes IPv4 too)']);
  }
  if (inheritedSockets === 1) return { fd: FIRST_INHERITED };
  if (config.listenOn === '') return { host: config.host, port: config.port };
  return { path: config.listenOn.slice('unix:'.length), mode: Number.parseInt(config.listenMode, 8) };
}

/** Of SERVICE_METRICS_LISTEN as its setting has it: `host:port`, `[v6]:port`, or the path of a unix socket. */
export function metricsPlace(listenOn: string): ListeningPlace {
  if (listenOn.startsWith('/')) return { path: listenOn, mode: METRICS_SOCKET_MODE };
  const [, host = '', port] = /^\[?(.+?)\]?:(\d+)$/.exec(listenOn) ?? [];
  return { host, port: Number(port) };
}

/** The host's own addresses and their name; a name that has to be looked up may be anybody's. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** Whether other hosts can connect, as far as the place says: files have permissions, systemd has its own unit. */
export function isExposed(place: ListeningPlace): boolean {
  return 'host' in place && !LOOPBACK.test(place.host);
}

export function placeName(place: ListeningPlace): string {
  if ('fd' in place) return `descriptor ${place.fd} from systemd`;
  return 'path' in place ? `unix:${place.path}` : `${place.host} port ${place.port}`;
}

/** The system's reason is in `code`, such as EADDRINUSE, where it has one, and what it said in `cause`. */
export class ListeningError extends Error {
  readonly place: ListeningPlace;
  readonly code: string;

  constructor(place: ListeningPlace, code: string, cause: Error) {
    super(cause.message, { cause });
    this.place = place;
    this.code = code;
  }
}

/** Linux's own limit: who comes between two processes waits there. node would set its own, on inherited sockets too. */
const BACKLOG = 4096;

/** Resolves before the first connection is taken in. Rejects with ListeningError. */
export async function listenAt(server: Server, place: ListeningPlace): Promise<void> {
  try {
    if ('path' in place) {
      // libuv would say EACCES of a folder that does not exist.
      await access(dirname(place.path));
      await removeStaleSocket(place.path);
    }
    server.listen('path' in place ? { path: place.path, backlog: BACKLOG } : { ...place, backlog: BACKLOG });
    await once(server, 'listening');
    // In the turn in which it began to listen: whoever connects is taken in later.
    if ('path' in place) chmodSync(place.path, place.mode);
  } catch (error) {
    throw new ListeningError(place, codeOf(error), error as Error);
  }
}

/** Left by a process that was killed. Of a socket in use, and of what is no socket, listening says EADDRINUSE. */
async function removeStaleSocket(path: string): Promise<void> {
  if ((await lstat(path).catch(() => undefined))?.isSocket() !== true) return;
  const socket = connect({ path });
  const outcome = await once(socket, 'connect').catch(codeOf);
  socket.destroy();
  // Any other failure may have other reasons.
  if (outcome === 'ECONNREFUSED') await unlink(path);
}
