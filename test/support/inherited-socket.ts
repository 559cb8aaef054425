// A listening socket that outlives the processes serving on it, as under systemd: a shell holds it and starts the built
// server on it again and again, with the environment that sd_listen_fds(3) describes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { builtMain } from './built.ts';

export interface Holder {
  /** 0 for a unix socket. */
  readonly port: number;
  /** Starts a server and resolves with the URL that it logs; the one before must have ended. */
  serve(): Promise<string>;
  /** Ends the server by SIGTERM and resolves with its exit code. */
  end(): Promise<number>;
  /** All that servers have written so far. */
  output(): string;
}

/** `exec` keeps the process, so the shell's own pid is right for LISTEN_PID. */
const ONE_SERVER = 'echo "pid $$"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 2>&1';
const HOLD = `while read -r _; do sh -c '${ONE_SERVER}' sh "$@"; echo "ended $?"; done`;

/** Everything is removed when the test ends. No process accepts on the socket before the first server does. */
export async function holdSocket(
  t: TestContext,
  place: { readonly port: number } | { readonly path: string },
  environment: Readonly<Record<string, string>> = {},
): Promise<Holder> {
  const socket = createServer().listen('path' in place ? place : { ...place, host: '127.0.0.1' });
  await once(socket, 'listening');
  const address = socket.address() as AddressInfo | string;
  const cwd = mkdtempSync(join(tmpdir(), 'pasted-held-'));
  const env = { PATH: process.env.PATH, ...environment };
  const stdio = ['pipe', 'pipe', 'inherit', descriptorOf(socket)] as const;
  const shell = spawn('sh', ['-c', HOLD, 'sh', process.execPath, builtMain()], { cwd, env, stdio: [...stdio] });
  const ended = once(shell, 'exit');
  let pid = 0;
  t.after(async () => {
    shell.stdin!.end();
    if (pid !== 0) process.kill(pid, 'SIGKILL');
    await ended;
    rmSync(cwd, { recursive: true });
  });
  const { next, output } = reader(shell.stdout!);
  // From here on the socket is the shell's alone.
  await letGo(socket, address);

  return {
    port: typeof address === 'string' ? 0 : address.port,
    output,
    serve: async () => {
      shell.stdin!.write('\n');
      pid = Number((await next(/^pid (\d+)\n/m))[1]);
      const [, url] = await next(/ listening {2}url=(\S+) |^ended \d+$/m);
      if (url === undefined) throw new Error(`the server ended:\n${output()}`);
      return url;
    },
    end: async () => {
      process.kill(pid, 'SIGTERM');
      const [, code] = await next(/^ended (\d+)\n/m);
      pid = 0;
      return Number(code);
    },
  };
}

/** node hands on any descriptor of its own; its types do not know that a listening socket has one. */
function descriptorOf(socket: Server): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd;
}

/** Closes this process's copy. libuv would also remove the path of a unix socket, so the path is renamed meanwhile. */
async function letGo(socket: Server, address: AddressInfo | string): Promise<void> {
  const closed = once(socket, 'close');
  if (typeof address === 'string') renameSync(address, `${address}.kept`);
  socket.close();
  await closed;
  if (typeof address === 'string') renameSync(`${address}.kept`, address);
}

/** `next` resolves with the first match after the one before it; rejects when the stream ends without a match. */
function reader(stream: NodeJS.ReadableStream): { next(pattern: RegExp): Promise<RegExpExecArray>; output(): string } {
  let text = '';
  let position = 0;
  let isOver = false;
  let wake = (): void => {};
  stream.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    wake();
  }).on('end', () => {
    isOver = true;
    wake();
  });
  const next = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(text.slice(position));
      if (match !== null) {
        position += match.index + match[0].length;
        return match;
      }
      if (isOver) throw new Error(`no ${pattern} in:\n${text}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { next, output: () => text };
}
