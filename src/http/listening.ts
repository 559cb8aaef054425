// Makes a server listen at a place, whatever protocol it speaks. Where that is to be is listening-place.ts.

import { chmodSync } from 'node:fs';
import { access } from 'node:fs/promises';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import { dirname } from 'node:path';
import type { ListeningPlace } from './listening-place.ts';
import { removeStaleSocket } from './unix-socket.ts';

/** An address, or the path of a unix socket. */
export type Bound = Pick<AddressInfo, 'address' | 'port'> | { readonly path: string };

/** The system's reason is in `code`, such as EADDRINUSE, and what it said in `cause`. */
export class ListeningError extends Error {
  override readonly name = 'ListeningError';
  readonly place: ListeningPlace;
  readonly code: string;

  constructor(place: ListeningPlace, code: string, cause: Error) {
    super(cause.message, { cause });
    this.place = place;
    this.code = code;
  }
}

/**
 * As many as Linux allows for (net.core.somaxconn), since node sets a number of its own on an inherited socket too:
 * all who come while one process has ended and the next one starts wait there.
 */
const BACKLOG = 4096;

/** Resolves before the first connection is taken in. Rejects with ListeningError. */
export async function listenAt(server: Server, place: ListeningPlace): Promise<Bound> {
  try {
    if (!('path' in place)) {
      await listen(server, place);
    } else {
      // libuv would say EACCES of a folder that does not exist.
      await access(dirname(place.path));
      await removeStaleSocket(place.path);
      await listen(server, { path: place.path });
      // In the turn in which it began to listen: whoever connects is taken in later.
      chmodSync(place.path, place.mode);
    }
  } catch (error) {
    throw error instanceof Error && 'code' in error ? new ListeningError(place, String(error.code), error) : error;
  }
  return boundOf(server);
}

function listen(server: Server, place: ListenOptions | { fd: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...place, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Of a unix socket that it has not made itself, node does not know the path. */
function boundOf(server: Server): Bound {
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound : { path: bound ?? '(inherited)' };
}
