// A listener that passes bytes on to a service and keeps what went by in each direction, to see what a client sends and
// what it is given.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Relay {
  readonly url: string;
  /** All that clients have sent, and all that was sent to them. */
  readonly sent: () => Buffer;
  readonly received: () => Buffer;
  close(): void;
}

export async function startRelay(port: number): Promise<Relay> {
  const sent: Buffer[] = [];
  const received: Buffer[] = [];
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const service = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to, kept] of [[client, service, sent], [service, client, received]] as const) {
      open.add(from);
      from.on('data', (bytes) => kept.push(bytes)).on('close', () => to.destroy()).on('error', () => to.destroy());
      from.pipe(to);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => Buffer.concat(sent),
    received: () => Buffer.concat(received),
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
