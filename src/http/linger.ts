// The lingering close (RFC 9112 section 9.6): the answer is written whole, this side is closed, and what the client
// still sends is read and thrown away within bounds. Closing at once would reset the connection under an answer that
// the client has not read yet.

import { Socket } from 'node:net';
import { MIB } from '../core/time.ts';

export interface LingerBounds {
  /** Past these a connection is cut off. */
  readonly maxBytes: number;
  readonly maxMs: number;
  /** More than so many at a time are closed without lingering. */
  readonly maxSockets: number;
}

export interface Lingering {
  /** Closes after what has been written, lingering. Requests that still arrive are not parsed any more. */
  close(socket: Socket): void;
  /** Makes node:http close the connection in this way, when it does so after the answer in progress. */
  arm(socket: Socket): void;
  /** From now on no connection lingers longer than this: the process is about to end. */
  hurry(ms: number): void;
}

const BOUNDS: LingerBounds = { maxBytes: 64 * MIB, maxMs: 5000, maxSockets: 64 };

export function createLingering(bounds: LingerBounds = BOUNDS): Lingering {
  const timers = new Map<Socket, NodeJS.Timeout>();
  let { maxMs } = bounds;

  function limit(socket: Socket): void {
    clearTimeout(timers.get(socket));
    timers.set(socket, setTimeout(() => socket.destroy(), maxMs));
  }

  function close(socket: Socket): void {
    if (socket.destroyed || timers.has(socket)) return;
    if (timers.size >= bounds.maxSockets) {
      Socket.prototype.destroySoon.call(socket);
      return;
    }
    let leftBytes = bounds.maxBytes;
    // node's parser is one of these listeners; adding another takes the socket's handle back from it.
    socket.removeAllListeners('data').on('data', (bytes: Uint8Array) => {
      leftBytes -= bytes.length;
      if (leftBytes < 0) socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(timers.get(socket));
      timers.delete(socket);
    });
    limit(socket);
    socket.end();
    socket.resume();
    // What made the handle read again after a pause was the parser's; resume() alone takes the handle to be reading.
    socket._read(0);
  }

  return {
    close,
    arm: (socket) => {
      socket.destroySoon = () => close(socket);
    },
    hurry: (ms) => {
      maxMs = Math.min(maxMs, ms);
      for (const socket of timers.keys()) limit(socket);
    },
  };
}
