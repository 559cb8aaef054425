// Where a server may listen, where the settings tell it to, and how it begins to listen, whatever protocol it speaks.

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
  /** A socket that another process has opened and still owns. */
  | { readonly fd: number };

/** SD_LISTEN_FDS_START of sd_listen_fds(3). */
const FIRST_INHERITED = 3;

/** The service's user and its group may read metrics. */
const METRICS_SOCKET_MODE = 0o660;

/** Of the public server: a socket from systemd goes before SERVICE_LISTEN, which goes before host and port. */
export function publicPlace(config: Config, inheritedSockets: number): ListeningPlace {
  if (inheritedSockets > 1) {
    throw new ConfigError([`LISTEN_FDS: expected one socket from systemd, given ${inheritedSockets}; ` +
      'keep one ListenStream= in the socket unit ([::]:PORT takes IPv4 too)']);
  }
  if (inheritedSockets === 1) return { fd: FIRST_INHERITED };
  if (config.listenOn === '') return { host: config.host, port: config.port };
  return { path: config.listenOn.slice('unix:'.length), mode: Number.parseInt(config.listenMode, 8) };
}

/** The place that SERVICE_METRICS_LISTEN names: `host:port`, `[v6]:port`, or the path of a unix socket. */
export function metricsPlace(listenOn: string): ListeningPlace {
  if (listenOn.startsWith('/')) return { path: listenOn, mode: METRICS_SOCKET_MODE };
  const [, host = '', port] = /^\[?(.+?)\]?:(\d+)$/.exec(listenOn) ?? [];
  return { host, port: Number(port) };
}

/** The host's own addresses and their name; a name that has to be looked up may be anybody's. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** Whether other hosts can connect, as far as the place says: a file has permissions, systemd its own unit. */
export function isExposed(place: ListeningPlace): boolean {
  return 'host' in place && !LOOPBACK.test(place.host);
}

export function placeName(place: ListeningPlace): string {
  if ('fd' in place) return `descriptor ${place.fd} from systemd`;
  return 'path' in place ? `unix:${place.path}` : `${place.host} port ${place.port}`;
}

/** `code` is the system's reason, such as EADDRINUSE, if there is one; `cause` is the error itself. */
export class ListeningError extends Error {
  readonly place: ListeningPlace;
  readonly code: string;

  constructor(place: ListeningPlace, code: string, cause: Error) {
    super(cause.message, { cause });
    this.place = place;
    this.code = code;
  }
}

/** Linux's own limit: clients wait there between two processes. node would set its own, on inherited sockets too. */
const BACKLOG = 4096;

/** Resolves before the first connection is taken in. Rejects with ListeningError. */
export async function listenAt(server: Server, place: ListeningPlace): Promise<void> {
  try {
    if ('path' in place) {
      // For a folder that does not exist libuv would say EACCES.
      await access(dirname(place.path));
      await removeStaleSocket(place.path);
    }
    server.listen('path' in place ? { path: place.path, backlog: BACKLOG } : { ...place, backlog: BACKLOG });
    await once(server, 'listening');
    // In the same turn of the event loop in which it began to listen: connections are accepted in a later one.
    if ('path' in place) chmodSync(place.path, place.mode);
  } catch (error) {
    throw new ListeningError(place, codeOf(error), error as Error);
  }
}

/** Removes what a killed process left. For a socket in use, or another kind of file, listening says EADDRINUSE. */
async function removeStaleSocket(path: string): Promise<void> {
  if ((await lstat(path).catch(() => undefined))?.isSocket() !== true) return;
  const socket = connect({ path });
  const outcome = await once(socket, 'connect').catch(codeOf);
  socket.destroy();
  // Any other failure does not prove that nobody listens.
  if (outcome === 'ECONNREFUSED') await unlink(path);
}
