// A server that takes every paste without work and keeps what it was sent, for tests of what a client gives away.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

export interface Taken {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface TakingServer {
  readonly url: string;
  /** Every POST so far. */
  readonly taken: Taken[];
}

interface Registration {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** `registration` is the answer to POST /register. */
export async function takingServer(t: TestContext, registration?: Registration): Promise<TakingServer> {
  const taken: Taken[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => Buffer.of());
    if (request.method !== 'POST') return response.writeHead(404).end('{"error":"not found"}\n');
    taken.push({ headers: request.headers, body });
    if (request.url === '/register') return response.writeHead(200, registration?.headers).end(registration?.body);
    return response.writeHead(201, { 'X-Delete-Token': 'A'.repeat(43) }).end('{"id":"abcdefgh"}\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, taken };
}
