// Faults between a host and the nodes of a cluster: a proxy in front of each node loses, delays, repeats or cuts what
// it is told to. Also a node without a cluster, for tests that need no other: SQLite in this process, which answers as
// rqlite.ts says that nodes do.

import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

export type Fault =
  /** The connection ends, and the node never gets the request. */
  | { readonly kind: 'lost' }
  /** The node gets the request only after the connection has ended. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The node carries the request out, and the connection ends without an answer. */
  | { readonly kind: 'unanswered' }
  /** The connection stays open without an answer; the node gets the request or not. */
  | { readonly kind: 'silent'; readonly isCarriedOut: boolean }
  /** The node carries the request out, and the connection ends in the middle of the answer. */
  | { readonly kind: 'cut' }
  /** The same, but the answer names no length, so it seems whole. */
  | { readonly kind: 'halved' }
  /** The answer comes byte by byte, and never ends. */
  | { readonly kind: 'dripping' }
  /** The answer is 101, which nobody asked for. */
  | { readonly kind: 'switched' }
  /** 300 MiB of something else; `sendMebibyte` is called before each MiB. */
  | { readonly kind: 'long'; readonly status: number; readonly sendMebibyte: () => void }
  | { readonly kind: 'delayed'; readonly ms: number }
  /** The node gets the request once more, later. */
  | { readonly kind: 'repeated'; readonly ms: number }
  /** Something else answers, though the node may carry the request out. */
  | {
    readonly kind: 'replaced'; readonly status: number; readonly body: string; readonly isCarriedOut: boolean;
    readonly location?: string;
  };

export interface Asked {
  /** The index of the node's address. */
  readonly place: number;
  readonly path: string;
  readonly body: string;
}

/** Bodies that are no node's answer to anything, except the last: its `error` leaves open what happened. */
export const STRANGE_BODIES: readonly string[] = [
  '', 'null', '{}', '[]', '7', '"leader"', '{"results":', '{"results":null}', '{"results":[]}', '{"results":{}}',
  '{"results":"abc"}', '{"results":[null]}', '{"results":[{"values":{}}]}', '{"results":[{"values":[7]}]}',
  '<html><body>Sign in to the network</body></html>',
  '{"results":[],"error":"leadership lost while committing log"}',
];

export interface FaultyNodes {
  /** One address for each node: that of its proxy. */
  readonly addresses: readonly string[];
  /** Resolves when no request that came so far is still on its way to a node. */
  settled(): Promise<void>;
}

/** Proxies that do with each request what `choose` says. They end with the test. */
export async function startFaultyNodes(
  t: Pick<TestContext, 'after'>, addresses: readonly string[], choose: (asked: Asked) => Fault | undefined,
): Promise<FaultyNodes> {
  const underWay = new Set<Promise<void>>();
  const proxies = addresses.map((address, place) => listen(t, async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const path = incoming.url ?? '';
    const fault = choose({ place, path, body: body.toString() });
    const ask = () => passOn(address, incoming, body);
    const done = fault === undefined ? answerWith(outgoing, ask()) : inject(fault, ask, outgoing);
    underWay.add(done);
    await done.finally(() => underWay.delete(done));
  }));
  const settled = async () => void await Promise.allSettled(underWay);
  return { addresses: await Promise.all(proxies), settled };
}

interface Answer {
  readonly status: number;
  readonly location?: string;
  readonly body: Uint8Array;
}

async function inject(fault: Fault, ask: () => Promise<Answer>, outgoing: ServerResponse): Promise<void> {
  switch (fault.kind) {
    case 'lost':
      return void outgoing.destroy();
    case 'late':
      outgoing.destroy();
      await pause(fault.ms);
      return void await ask();
    case 'unanswered':
      await ask();
      return void outgoing.destroy();
    case 'silent':
      if (fault.isCarriedOut) await ask();
      return;
    case 'delayed':
      await pause(fault.ms);
      return answerWith(outgoing, ask());
    case 'switched':
      outgoing.socket!.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n');
      return;
    case 'repeated':
      await answerWith(outgoing, ask());
      await pause(fault.ms);
      return void await ask();
    case 'long':
      return answerAtLength(fault, outgoing);
    case 'replaced':
      if (fault.isCarriedOut) await ask();
      return answerWith(outgoing, { ...fault, body: Buffer.from(fault.body) });
    default:
      return answerInPart(fault.kind, await ask(), outgoing);
  }
}

async function answerInPart(kind: 'cut' | 'halved' | 'dripping', answer: Answer, outgoing: ServerResponse) {
  const { status, body } = answer;
  const half = body.subarray(0, body.length / 2);
  if (kind === 'halved') {
    outgoing.shouldKeepAlive = false;
    outgoing.useChunkedEncodingByDefault = false;
    return void outgoing.writeHead(status).end(half);
  }
  outgoing.writeHead(status, { 'content-length': body.length + 1_000_000 });
  if (kind === 'cut') return void outgoing.write(half, () => outgoing.destroy());
  while (!outgoing.destroyed) {
    outgoing.write(' ');
    await pause(20);
  }
}

async function answerAtLength({ status, sendMebibyte }: Fault & { kind: 'long' }, outgoing: ServerResponse): Promise<void> {
  const piece = Buffer.alloc(2 ** 20, ' ');
  outgoing.writeHead(status);
  for (let sent = 0; sent < 300 && !outgoing.destroyed; sent += 1) {
    sendMebibyte();
    if (!outgoing.write(piece)) await Promise.race([once(outgoing, 'drain'), once(outgoing, 'close')]);
  }
  outgoing.end();
}

async function answerWith(outgoing: ServerResponse, answer: Answer | Promise<Answer>): Promise<void> {
  const { status, location, body } = await answer;
  if (location !== undefined) outgoing.setHeader('location', location);
  outgoing.writeHead(status, { 'content-length': body.length }).end(body);
}

/** Passes the request on as it came. If the node is away, the answer is 502, as from other people's proxies. */
async function passOn(address: string, { method, url, headers }: IncomingMessage, body: Uint8Array): Promise<Answer> {
  const sent = request(`http://${address}${url}`, { method, headers: { ...headers, host: address }, agent: false });
  sent.end(body);
  try {
    const [answer] = await once(sent, 'response') as [IncomingMessage];
    return { status: answer.statusCode ?? 0, body: await buffer(answer) };
  } catch (error) {
    return { status: 502, body: Buffer.from(String(error)) };
  }
}

export interface ImitatedNode {
  readonly address: string;
  readonly db: DatabaseSync;
}

type Statements = readonly (readonly [sql: string, values: Record<string, string | number | null>])[];

/** One node, which leads. */
export async function startImitatedNode(t: Pick<TestContext, 'after'>): Promise<ImitatedNode> {
  const db = new DatabaseSync(':memory:');
  const address = await listen(t, async (incoming, outgoing) => {
    const statements = JSON.parse((await buffer(incoming)).toString()) as Statements;
    const isQuery = incoming.url?.startsWith('/db/query') === true;
    const results = isQuery ? query(db, statements) : execute(db, statements);
    await answerWith(outgoing, { status: 200, body: Buffer.from(JSON.stringify({ results })) });
  });
  t.after(() => db.close());
  return { address, db };
}

function query(db: DatabaseSync, statements: Statements): object[] {
  return statements.map(([sql, values]) => {
    const statement = db.prepare(sql);
    statement.setReturnArrays(true);
    const rows = statement.all(values);
    return rows.length === 0 ? {} : { values: rows };
  });
}

/** Runs the statements in one transaction. If one fails, the last result is its error. */
function execute(db: DatabaseSync, statements: Statements): object[] {
  const results: object[] = [];
  db.exec('BEGIN');
  try {
    for (const [sql, values] of statements) {
      const { lastInsertRowid } = db.prepare(sql).run(values);
      results.push({ last_insert_id: lastInsertRowid });
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    results.push({ error: (error as Error).message });
  }
  return results;
}

async function listen(
  t: Pick<TestContext, 'after'>, answer: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>,
): Promise<string> {
  const server: Server = createServer((incoming, outgoing) => {
    // A client may go away in the middle of its request.
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
