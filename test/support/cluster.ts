// Built servers over rqlite nodes, all real processes on loopback, and requests to them.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type MainProcess, startMain, startServing } from './main-process.ts';
import { type NodesOptions, rqliteMissing, type RqliteNodes, startNodes } from './rqlite.ts';

type Environment = Readonly<Record<string, string>>;
type Headers = Readonly<Record<string, string>>;

export type Host = Awaited<ReturnType<typeof startServing>>;

export interface Cluster extends RqliteNodes {
  readonly hosts: readonly Host[];
  readonly environment: Environment;
  /** Starts one more host, or one in the place of a host that was killed. */
  addHost(changes?: Environment): Promise<Host>;
  /** Runs a command of the program with the same settings, to its end. */
  pasted(words: readonly string[], changes?: Environment): Promise<Pick<MainProcess, 'stdout' | 'stderr'> & { code: number | string }>;
  /** Runs one statement on the leader, and gives the rows that it finds; none for a change. */
  sql(statement: string): Promise<readonly (readonly unknown[])[]>;
}

export interface Answered {
  readonly status: number;
  readonly headers: globalThis.Headers;
  readonly body: Buffer;
  readonly json: Record<string, unknown>;
}

/** Settings with which nothing is refused for the number of requests. */
const WITHOUT_LIMITS: Environment = {
  SERVICE_RATE_MAX: '0',
  SERVICE_LOOKUP_RATE_MAX: '0',
  SERVICE_DEDUP_MAX: '0',
  SERVICE_POW_DIFFICULTY: '0',
  SERVICE_REGISTER_POW: '0',
  SERVICE_PKI_ENABLED: '1',
  SERVICE_PKI_CA_PASSWORD: 'the password of the CA',
};

/** Undefined where there can be no nodes: then the test is skipped, and must return. */
export async function startCluster(
  t: TestContext,
  { environment = {}, hosts: count = 3, secure, nodes: given = {} }: {
    environment?: Environment; hosts?: number; secure?: (nodes: RqliteNodes) => Environment; nodes?: NodesOptions;
  } = {},
): Promise<Cluster | undefined> {
  const missing = rqliteMissing();
  if (missing !== undefined) return void t.skip(missing);
  const nodes = await startNodes(t, given);
  const SERVICE_DB = addressOf(nodes);
  const settings = { ...WITHOUT_LIMITS, SERVICE_DB, ...environment, ...secure?.(nodes) };
  const addHost = (changes: Environment = {}) => startServing(t, { environment: { ...settings, ...changes } });
  const hosts: Host[] = await Promise.all(Array.from({ length: count }, () => addHost()));
  return {
    ...nodes,
    hosts,
    environment: settings,
    addHost,
    async pasted(words, changes = {}) {
      const { ended, stdout, stderr } = startMain(t, words, { environment: { ...settings, ...changes } });
      return { code: await ended, stdout, stderr };
    },
    async sql(statement) {
      const leader = await nodes.findLeader();
      const path = /^SELECT/.test(statement) ? '/db/query?level=strong' : '/db/execute';
      const { status, body } = await leader.ask(path, [statement]);
      const { results: [result] = [] } = JSON.parse(body) as { results?: { values?: unknown[][]; error?: string }[] };
      assert.ok(status === 200 && result !== undefined && result.error === undefined, body);
      return result.values ?? [];
    },
  };
}

/** The value of SERVICE_DB for the nodes. */
export function addressOf({ nodes, certificate }: Pick<RqliteNodes, 'nodes' | 'certificate'>, user = ''): string {
  const addresses = nodes.map(({ address }) => address).join();
  return `rqlite${certificate === null ? '' : 's'}://${user}${addresses}`;
}

/** Sends `GET /path` and so on; fails unless the answer has that status. */
export async function ask(
  { url, stdout }: Host, status: number, request: string, { body, headers = {} }: { body?: string | Uint8Array; headers?: Headers } = {},
): Promise<Answered> {
  const [method = '', path = ''] = request.split(' ');
  const response = await fetch(`${url}${path}`, { method, headers, body: (body ?? null) as NonNullable<RequestInit['body']> | null });
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, status, `${request}: ${bytes.subarray(0, 500).toString()}\n${stdout().slice(-2000)}`);
  return {
    status: response.status,
    headers: response.headers,
    body: bytes,
    get json() {
      return JSON.parse(bytes.toString()) as Record<string, unknown>;
    },
  };
}
