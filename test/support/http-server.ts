// The HTTP server alone, with a table of routes that stands for every kind of handler there is. Tests of src/http/ use
// it; tests of the service itself start all of it with app.ts.

import type { TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { emptyReply, type Handler, jsonReply, textReply } from '../../src/http/engine/reply.ts';
import type { Request } from '../../src/http/engine/request.ts';
import { publicPlace } from '../../src/http/engine/listening.ts';
import type { HttpServer } from '../../src/http/engine/server.ts';
import { Forwarding } from '../../src/http/forwarded.ts';
import type { Route } from '../../src/http/routes.ts';
import { createHttpServer } from '../../src/http/servers.ts';
import type { Tls } from '../../src/http/tls.ts';
import { movableClock, type MovableClock } from './clock.ts';
import { testConfig } from './test-config.ts';

/** How often this server looks at time-outs and rates: often, so that tests need not wait. */
const CHECK_MS = 20;

export interface RunningHttp {
  readonly server: HttpServer;
  readonly port: number;
  readonly url: string;
  readonly clock: MovableClock;
  readonly logged: LogEntry[];
  /** Resolves with the first `request` line of the log that fits, past or to come. */
  answered(fits: (details: NonNullable<LogEntry['details']>) => boolean): Promise<LogEntry>;
  /** Resolves when time-outs and rates have been checked since the call, and what follows from that has happened. */
  checked(): Promise<void>;
}

const TEST_ROUTES = [
  { name: 'index', method: 'GET', path: '/', summary: 'text' },
  { name: 'collect', method: 'POST', path: '/', summary: 'how many bytes the body has' },
  { name: 'view', method: 'GET', path: '/view', summary: 'the request as a handler sees it' },
  { name: 'single', method: 'GET', path: '/single', summary: 'reads X-Expiry as one value' },
  { name: 'empty', method: 'GET', path: '/empty', summary: '204' },
  { name: 'fail', method: 'GET', path: '/fail', summary: 'an unexpected error' },
  { name: 'paste', method: 'GET', path: '/{id}', summary: 'the id' },
  { name: 'raw', method: 'GET', path: '/{id}/raw', summary: 'bytes' },
] as const satisfies readonly Route[];

type TestHandlers = Record<(typeof TEST_ROUTES)[number]['name'], Handler>;

const HANDLERS: TestHandlers = {
  index: () => textReply(200, 'index'),
  collect: async (request) => {
    let bytes = 0;
    await request.body.pipe((chunk) => {
      bytes += chunk.length;
    });
    return jsonReply(201, { bytes, declared: request.body.declaredBytes ?? null });
  },
  view: (request) => jsonReply(200, viewOf(request)),
  single: (request) => jsonReply(200, { value: request.headers.single('x-expiry') ?? null }),
  empty: () => emptyReply(204),
  fail: () => {
    throw new Error('words for the operator');
  },
  paste: async (request) => jsonReply(200, { id: request.parameter }),
  raw: async () => ({
    status: 200,
    headers: { 'Content-Type': 'application/octet-stream' },
    body: Buffer.from('raw bytes'),
  }),
};

function viewOf(request: Request): object {
  return {
    id: request.id,
    method: request.method,
    route: request.route,
    parameter: request.parameter,
    query: [...request.query],
    address: request.origin.clientAddress,
    fingerprint: request.origin.fingerprint,
    url: request.publicUrl,
    text: request.prefersText,
  };
}

/** Starts the server on a free port of the loopback interface; stopped, whatever is in progress, when the test ends. */
export async function startHttp(
  t: TestContext,
  options: { config?: Partial<Config>; handlers?: Partial<TestHandlers>; tls?: Tls } = {},
): Promise<RunningHttp> {
  const logged: LogEntry[] = [];
  const waiting = new Set<(entry: LogEntry) => void>();
  const clock = movableClock();
  const config = testConfig({ shutdownGraceSeconds: 0, ...options.config });
  const trust = new Forwarding(config, randomBytes);
  await trust.replaceProxySecret(config.proxySecret);
  const server = createHttpServer({
    config,
    routes: TEST_ROUTES,
    handlers: { ...HANDLERS, ...options.handlers },
    tls: options.tls,
    clock,
    newUuid,
    trust,
    checkIntervalMs: CHECK_MS,
    log: (entry) => {
      logged.push(entry);
      for (const see of waiting) see(entry);
    },
  });
  t.after(() => server.stop());
  const { port, url } = await server.listen(publicPlace(config, 0));

  const answered: RunningHttp['answered'] = (fits) => new Promise((resolve) => {
    const see = (entry: LogEntry): void => {
      if (entry.event !== 'request' || !fits(entry.details ?? {})) return;
      waiting.delete(see);
      resolve(entry);
    };
    waiting.add(see);
    logged.forEach(see);
  });
  const checked = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 3 * CHECK_MS));
  return { server, port, url, clock, logged, answered, checked };
}
