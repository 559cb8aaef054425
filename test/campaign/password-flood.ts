// A flood of wrong passwords, as a part of a row: every connection asks again as soon as it is answered.

import { Agent, request } from 'node:http';
import { runPart } from './part.ts';

export interface FloodOptions {
  readonly port: number;
  readonly connections: number;
  readonly path: string;
}

export interface Flooded {
  /** By status and whether there was a Retry-After, or by what happened instead. */
  readonly outcomes: Readonly<Record<string, number>>;
}

async function flood({ port, connections, path }: FloodOptions, over: Promise<void>): Promise<Flooded> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const outcomes: Record<string, number> = {};
  let isOver = false;
  void over.then(() => {
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
      // Those that are still asked for then are broken off.
      if (!isOver) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  }));
  return { outcomes };
}

await runPart(flood);
