// Why listening fails, by the place and the system's code, as far as whoever runs the service can mend it.

import { SETTINGS } from '../config/settings.ts';
import { placeName, type ListeningPlace } from '../http/listening-place.ts';
import type { ListeningError } from '../http/listening.ts';
import { holderOfPort } from './holders.ts';

type Reasons = ReadonlyMap<string, string>;

const UNKNOWN_HOLDER = ' (root can see by which process: ss -ltnp)';

/** `host` and `port` are the settings that they come from. */
function addressReasons(host: string, port: string): Reasons {
  return new Map([
    ['EADDRINUSE', `the port is in use${UNKNOWN_HOLDER}; choose another ${port}`],
    ['EACCES', `not permitted below port 1024; choose another ${port}, or give this user the right to use it`],
    ['EADDRNOTAVAIL', `this host has no such address; choose another ${host}`],
    ['ENOTFOUND', `there is no host of that name; choose another ${host}`],
    ['EAI_AGAIN', `the name could not be resolved; choose an address as ${host}`],
  ]);
}

function socketReasons(setting: string): Reasons {
  const noFolder = `there is no such folder; make it, or choose another ${setting}`;
  return new Map([
    ['EADDRINUSE', `another process listens there, or it is a file; choose another ${setting}`],
    ['ENOENT', noFolder],
    ['ENOTDIR', noFolder],
    ['EACCES', `this user may not make a socket there; choose another ${setting}`],
    ['EROFS', `nothing can be made there; choose another ${setting}, under systemd in a RuntimeDirectory=`],
    // sun_path of unix(7) holds 107 bytes, which are fewer characters when these are not ASCII.
    ['EINVAL', `the path is too long for a socket; choose another ${setting}`],
    ['ENAMETOOLONG', `the path is too long for a socket; choose another ${setting}`],
  ]);
}

const ADDRESS = addressReasons(SETTINGS.host.name, SETTINGS.port.name);
const SOCKET = socketReasons(SETTINGS.listenOn.name);
const METRICS_ADDRESS = addressReasons(SETTINGS.metricsListen.name, SETTINGS.metricsListen.name);
const METRICS_SOCKET = socketReasons(SETTINGS.metricsListen.name);

/** A file, a datagram socket, or a connection that Accept=yes has taken already. */
const INHERITED: Reasons = new Map([
  ['EINVAL', 'it is no stream socket that takes connections; the socket unit needs ListenStream= and Accept=no'],
]);

function reasonsFor(place: ListeningPlace, isPublic: boolean): Reasons {
  if ('fd' in place) return INHERITED;
  if ('path' in place) return isPublic ? SOCKET : METRICS_SOCKET;
  return isPublic ? ADDRESS : METRICS_ADDRESS;
}

/** One line; undefined when nobody can do anything about it. Places that are not public are those of metrics. */
export function listeningFailure({ place, code }: ListeningError, isPublic: boolean): string | undefined {
  const reason = reasonsFor(place, isPublic).get(code);
  if (reason === undefined) return undefined;
  const holder = code === 'EADDRINUSE' && 'port' in place ? holderOfPort(place.port) : undefined;
  const words = holder === undefined ? reason : reason.replace(UNKNOWN_HOLDER, () => ` by ${holder}`);
  return `cannot listen on ${placeName(place)}: ${words}`;
}
