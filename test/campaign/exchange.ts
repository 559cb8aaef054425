// Bytes sent on a connection of their own, in pieces as a network may cut them, and all that comes back until the other
// side has ended it.

import { connect } from 'node:net';
import { cutAtRandom, type Seeded } from '../support/seeded.ts';

export interface Exchanged {
  readonly received: Buffer;
  /** `open`: nothing came for so long that the connection was given up. */
  readonly end: 'closed' | 'reset' | 'refused' | 'open';
}

export interface ExchangeOptions {
  readonly port: number;
  readonly bytes: Buffer;
  /** Cuts the bytes into pieces; without it they are sent whole. */
  readonly cutBy?: Seeded | undefined;
  /** Silence after which nothing more is waited for. */
  readonly patienceMs: number;
}

/** Longer requests are sent whole, because a cut upload would take for ever. */
const MOST_CUT_BYTES = 2000;

/** Never rejects. */
export function exchange({ port, bytes, cutBy, patienceMs }: ExchangeOptions): Promise<Exchanged> {
  const isCut = cutBy !== undefined && bytes.length <= MOST_CUT_BYTES;
  const pieces = isCut ? cutAtRandom(bytes, cutBy, cutBy.between(1, 200)) : [bytes];
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    let isConnected = false;
    const finish = (end: Exchanged['end']): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ received: Buffer.concat(chunks), end });
    };
    const timer = setTimeout(() => finish('open'), patienceMs);
    socket.on('connect', () => {
      isConnected = true;
      void sendPieces(pieces, (piece) => !socket.destroyed && socket.write(piece));
    });
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      timer.refresh();
    });
    socket.on('end', () => finish('closed'));
    socket.on('error', () => finish(isConnected ? 'reset' : 'refused'));
  });
}

/** Each in a turn of the event loop of its own, so that each is a segment of its own. */
async function sendPieces(pieces: readonly Uint8Array[], send: (piece: Uint8Array) => void): Promise<void> {
  for (const piece of pieces) {
    send(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
