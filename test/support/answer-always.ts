// A server that is not a paste service: clients must notice that.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** Every request gets that status, line and headers; resolves with the server's address. */
export async function answerAlways(
  t: TestContext, status: number, line: string, headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, headers).end(`${line}\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
