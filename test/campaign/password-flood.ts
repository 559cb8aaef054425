// A flood of wrong passwords, as a part of a row: every connection asks again as soon as it is answered. When told to
// end, it goes on until one guess was checked and another was told to come back: before that it was no flood, and how
// long that takes depends on the machine.

import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { runPart } from './part.ts';

export interface FloodOptions {
  readonly port: number;
  readonly connections: number;
  readonly path: string;
}

/** For both answers, from when it is told to end. */
const PATIENCE_MS = 30_000;

export interface Flooded {
  /** By status and whether there was a Retry-After, or by what happened instead. */
  readonly outcomes: Readonly<Record<string, number>>;
}

async function flood({ port, connections, path }: FloodOptions, over: Promise<void>): Promise<Flooded> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const outcomes: Record<string, number> = {};
  let isOver = false;
  const flooded = Promise.withResolvers<void>();
  void over.then(() => Promise.race([flooded.promise, setTimeout(PATIENCE_MS)])).then(() => {
    isOver = true;
    agent.destroy();
  });

  function askOnce(): Promise<string> {
    return new Promise((resolve) => {
      const headers = { 'X-Paste-Password': 'a guess' };
      const req = request({ port, host: '127.0.0.1', path, agent, headers }, (res) => {
        const retryAfter = res.headers['retry-after'];
        const outcome = retryAfter === undefined ? String(res.statusCode) : `${res.statusCode} after ${retryAfter}`;
        res.resume().on('end', () => resolve(outcome)).on('error', (error) => resolve(error.message));
      });
      req.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
    });
  }

  await Promise.all(Array.from({ length: connections }, async () => {
    while (!isOver) {
      const outcome = await askOnce();
      // Requests that are under way at the end are broken off, and do not count.
      if (!isOver) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if ('403' in outcomes && '503 after 1' in outcomes) flooded.resolve();
    }
  }));
  return { outcomes };
}

await runPart(flood);
