// A server whose only paste burns, and comes only in part: clients must not lose that part.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** Sends the beginning of 60 bytes; then the connection breaks or stays open. Resolves with the server's address. */
export async function partialPaste(t: TestContext, beginning: string, then: 'breaks' | 'stays'): Promise<string> {
  const server = createServer(({ method }, response) => {
    response.writeHead(200, {
      'X-Burn-After-Read': 'true', 'X-Request-ID': 'one', 'Content-Type': 'text/plain', 'Content-Length': 60,
    });
    if (method === 'HEAD') response.end();
    else response.write(beginning, () => then === 'breaks' && response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
