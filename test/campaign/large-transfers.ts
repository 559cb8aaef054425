// Large transfers at once, as a part of a row: uploads as fast as they are taken, or readers that take nothing at all.

import { connect, type Socket } from 'node:net';
import { runPart } from './part.ts';

export interface TransferOptions {
  readonly kind: 'upload' | 'stall';
  readonly port: number;
  readonly connections: number;
  /** Of each upload. */
  readonly bytes: number;
  /** Of the content that is read. */
  readonly path: string;
  /** Connections take these in turn, because no address may have all of the connections. */
  readonly addresses: readonly string[];
}

export interface Transferred {
  /** By status, or by what happened instead; of readers also how often one was `ended`. */
  readonly outcomes: Readonly<Record<string, number>>;
}

const PIECE = Buffer.alloc(64 * 1024, 'a line of a paste that is as long as lines of pastes are mostly\n');

/** Uploads end by themselves; readers stall until `over`, and connect again when they are ended. */
async function transfer(options: TransferOptions, over: Promise<void>): Promise<Transferred> {
  const outcomes: Record<string, number> = {};
  const note = (outcome: string): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  };
  if (options.kind === 'upload') {
    const uploads = Array.from({ length: options.connections }, (_, index) => upload(options, index).then(note));
    await Promise.all(uploads);
  } else await stall(options, over, note);
  return { outcomes };
}

/** Resolves with the status, or with what happened instead. Each upload has a content of its own. */
function upload({ port, bytes, addresses }: TransferOptions, index: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: addresses[index % addresses.length]! });
  socket.write(`POST / HTTP/1.1\r\nHost: paste.example\r\nContent-Length: ${bytes}\r\n\r\n`);
  const first = Buffer.from(`${index} of process ${process.pid} `.padEnd(64));
  let left = bytes - first.length;
  socket.write(first);
  const pour = (): void => {
    let takesMore = true;
    while (left > 0 && takesMore) {
      const piece = PIECE.subarray(0, left);
      left -= piece.length;
      takesMore = socket.write(piece);
    }
  };
  socket.on('drain', pour);
  pour();
  return new Promise((resolve) => {
    socket.once('data', (data) => {
      resolve(data.toString('latin1', 9, 12));
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve('closed'));
  });
}

async function stall(
  { port, connections, path, addresses }: TransferOptions,
  over: Promise<void>,
  note: (outcome: string) => void,
): Promise<void> {
  const open = new Set<Socket>();
  let isOver = false;
  const openOne = (index: number): void => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: addresses[index % addresses.length]! });
    open.add(socket);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: paste.example\r\n\r\n`);
    // Empty lines between requests mean nothing (RFC 9112 section 2.2), but a write shows that a connection is gone.
    const looking = setInterval(() => socket.write('\r\n'), 1000);
    // A reader stalls only after its first bytes: before that it would hold nothing up.
    socket.once('data', (begun) => {
      note(begun.toString('latin1', 9, 12));
      socket.pause();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(looking);
      open.delete(socket);
      if (isOver) return;
      note('ended');
      openOne(index);
    });
  };
  for (let index = 0; index < connections; index += 1) openOne(index);
  await over;
  isOver = true;
  for (const socket of open) socket.destroy();
}

await runPart(transfer);
