// The place of a unix socket: free for whoever wants to listen there, or not.

import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';

/**
 * Removes what a process that was killed has left at this path. A socket that somebody listens on, and whatever is no
 * socket, stays: listening there then fails with EADDRINUSE.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket() === true && await isAbandoned(path)) await unlink(path);
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
