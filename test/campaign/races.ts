// Many requests at once: each on a connection of its own, all sent but for their last byte, and then released together.

import { createClient, type Answer, type Ask, type Client } from './client.ts';

export interface Racers {
  /** The answers, in the order of the requests; undefined where the connection broke off. At most as many as racers. */
  race(requests: readonly Ask[]): Promise<readonly (Answer | undefined)[]>;
  close(): void;
}

/** Costly work is shed under load, which is no success and no failure. Storage that is away has Retry-After 5. */
export function isShed(answer: Answer): boolean {
  return answer.status === 503 && answer.headers['retry-after'] === '1';
}

/** `count` connections, which take the ports in turn and are kept from race to race. */
export function createRacers(ports: number | readonly number[], count: number): Racers {
  const all = [ports].flat();
  const clients: readonly Client[] = Array.from({ length: count }, (_, racer) => createClient(all[racer % all.length]!));
  return {
    async race(requests) {
      const held = await Promise.all(requests.map((request, index) => clients[index]!.hold(request)));
      return Promise.all(held.map((release) => release()));
    },
    close: () => clients.forEach((client) => client.close()),
  };
}
