// Where a server may listen, and where the settings say that it does. What is done there is listening.ts.

import { ConfigError } from '../config/load.ts';
import type { Config } from '../config/settings.ts';

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

/**
 * Of the public listener: a socket from systemd comes before SERVICE_LISTEN, and that before host and port. Throws
 * ConfigError for several sockets: one takes IPv4 and IPv6, and a proxy needs no second.
 */
export function publicPlace(config: Config, inheritedSockets: number): ListeningPlace {
  if (inheritedSockets > 1) {
    throw new ConfigError([`LISTEN_FDS: expected one socket from systemd, given ${inheritedSockets}; ` +
      'keep one ListenStream= in the socket unit ([::]:PORT takes IPv4 too)']);
  }
  if (inheritedSockets === 1) return { fd: FIRST_INHERITED };
  if (config.listenOn === '') return { host: config.host, port: config.port };
  return { path: config.listenOn.slice('unix:'.length), mode: Number.parseInt(config.listenMode, 8) };
}

/**
 * Of the listener of metrics: `host:port`, `[v6]:port`, or the absolute path of a unix socket. Throws a RangeError for
 * anything else.
 */
export function metricsPlace(listenOn: string): ListeningPlace {
  if (listenOn.startsWith('/')) return { path: listenOn, mode: METRICS_SOCKET_MODE };
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(listenOn) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new RangeError(`not host:port and not the path of a socket: ${listenOn}`);
  return { host, port: Number(port) };
}

/** The host's own addresses and the name of them; a name that the host has to look up may be anybody's. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** Whether others than this host can connect, as far as the place says: files have permissions, systemd its own unit. */
export function isExposed(place: ListeningPlace): boolean {
  return 'host' in place && !LOOPBACK.test(place.host);
}

/** For a message to the operator. */
export function placeName(place: ListeningPlace): string {
  if ('fd' in place) return `descriptor ${place.fd} from systemd`;
  return 'path' in place ? `unix:${place.path}` : `${place.host} port ${place.port}`;
}
