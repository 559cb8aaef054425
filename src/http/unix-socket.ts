// What listening on a unix socket needs beside the socket: a place that is free, and permissions.

import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';

/** Whoever may connect must be able to write to it: the service's user and its group. */
const SOCKET_MODE = 0o660;

/**
 * Removes what a process that was killed has left at this path. A socket that somebody listens on, and whatever is no
 * socket, stays: listening there then fails with EADDRINUSE.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket() === true && await isAbandoned(path)) await unlink(path);
}

export async function allowGroup(path: string): Promise<void> {
  await chmod(path, SOCKET_MODE);
}

/** Only a refusal to connect says so: any other failure may have other reasons. */
function isAbandoned(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
