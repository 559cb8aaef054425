// Real rqlite nodes on loopback, which can be suspended, killed and started again; of the version that rqlited() finds.
// How that version behaves; interop/rqlite-nodes.test.ts holds most of it:
// - it does not know level=linearizable (that came with 8.32), and takes an unknown level for weak: a leader that was
//   suspended shows the old state for an instant when it goes on. Only level=strong is exact;
// - "leadership lost while committing log", with status 200, does not tell the outcome: the change may be there later;
// - /db/execute?transaction undoes everything, whatever fails, and its last result is the one that failed;
// - /db/request?transaction keeps the other statements when one can't be prepared;
// - while the leader is suspended, /readyz, /nodes and ?redirect of a follower ask it and hang; /status does not.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request as requestInClear } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { openssl } from './pki.ts';
import { findProgram } from './programs.ts';
import { freePorts } from './proxy.ts';
import { ROOT } from './source.ts';

/** With the nodes' default settings an election takes at most 2.5 s; a slow machine gets more time. */
const PATIENCE_MS = 30_000;

/** A node that is not suspended tells its own state in some milliseconds. */
const STATUS_DEADLINE_MS = 2000;

export interface NodesOptions {
  readonly count?: number;
  /** Out of reach of the terminal's signals, as ServiceOptions of campaign/service.ts has it. */
  readonly ownGroup?: boolean;
  /** The only user, who may do everything. Without a user, everyone who reaches the nodes may. */
  readonly user?: { readonly username: string; readonly password: string };
  /** HTTPS, with a certificate that openssl made for 127.0.0.1. */
  readonly tls?: boolean;
  /** More arguments for each node. */
  readonly flags?: readonly string[];
  /** Folders for the files of single nodes, by their index; the caller makes and removes them. */
  readonly folders?: readonly (string | undefined)[];
}

export interface NodeAnswer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  /** The body as bytes, for one that is not text. */
  readonly bytes: Buffer;
}

export interface RqliteNode {
  /** Host and port of its HTTP, as clients are given it. */
  readonly address: string;
  /** GET, or POST with a body: bytes as they are, anything else as JSON. Rejects without a whole answer in time. */
  ask(path: string, body?: unknown, deadlineMs?: number): Promise<NodeAnswer>;
  /** SIGSTOP: its connections stay, and nothing is answered. */
  suspend(): void;
  /** SIGCONT: the node goes on with all that it knew. */
  resume(): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /**
   * Starts it after a kill, with its folder and addresses; resolves when it answers, whether or not there is a leader.
   * With half a snapshot, which a kill may leave, rqlite 8.26 ends at each start. Then the folder is emptied, as
   * README.md of scripts/deploy/cluster says, and the node takes everything from the others.
   */
  start(): Promise<void>;
  /** The last 10,000 characters that it wrote, also before a kill. */
  said(): string;
}

export interface RqliteNodes {
  readonly nodes: readonly RqliteNode[];
  /** The certificate of all nodes in PEM, which is its own authority; null without TLS. */
  readonly certificate: string | null;
  /** The node that takes itself for the leader, as more than half of all nodes do; waits until there is one. */
  findLeader(): Promise<RqliteNode>;
}

/** Why no nodes can be started here, for a test to be skipped with. */
export function rqliteMissing(): string | undefined {
  const program = rqlited();
  if (program === undefined) return 'rqlited is not installed';
  const { status, stderr, stdout } = spawnSync(program, ['-version'], { encoding: 'utf8' });
  return status === 0 ? undefined : `rqlited can't run here: ${stderr}${stdout}`;
}

/** The path of rqlited: in .runtime, where .ci/run puts it, before any other; of several versions the newest. */
export function rqlited(): string | undefined {
  const kept = join(ROOT, '.runtime');
  const folders = (existsSync(kept) ? readdirSync(kept) : []).filter((name) => name.startsWith('rqlite-'));
  folders.sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
  return findProgram('rqlited', ...folders.map((name) => join(kept, name)));
}

/**
 * Whether rqlited is older than 8.30.5 (https://github.com/rqlite/rqlite/pull/1905), by its SQLite. If it can't keep a
 * snapshot, as while it sends another, later ones lack the changes in it, and nodes join or restart from those.
 */
export function damagesDatabases(): boolean {
  const { stdout, stderr } = spawnSync(rqlited()!, ['-version'], { encoding: 'utf8' });
  const [, minor = assert.fail(stdout)] = / sqlite3\.(\d+)/.exec(`${stdout}${stderr}`) ?? [];
  return Number(minor) < 46;
}

/** A test, or anything else that has an end. */
interface Lifetime {
  after(end: () => Promise<void>): void;
}

/** Nodes that have a leader. */
export async function startNodes(t: Lifetime, options: NodesOptions = {}): Promise<RqliteNodes> {
  const { count = 3 } = options;
  const program = rqlited();
  assert.ok(program);
  const folder = mkdtempSync(join(tmpdir(), 'pasted-rqlite-'));
  const started: StartedNode[] = [];
  t.after(async () => {
    await Promise.all(started.map((node) => node.kill()));
    rmSync(folder, { recursive: true });
  });

  const words = [...secured(folder, options), ...options.flags ?? []];
  const certificate = options.tls === true ? readFileSync(join(folder, 'node.crt'), 'utf8') : null;
  const ports = await freePorts(2 * count);
  const raftAddresses = ports.slice(count).map((port) => `127.0.0.1:${port}`);
  const together = ['-bootstrap-expect', String(count), '-join', raftAddresses.join(), '-join-interval', '200ms'];
  for (const [index, raftAddress] of raftAddresses.entries()) {
    const address = `127.0.0.1:${ports[index]}`;
    const own = ['-node-id', String(index), '-http-addr', address, '-raft-addr', raftAddress];
    const files = options.folders?.[index] ?? join(folder, String(index));
    const command = [program, ...own, ...count > 1 ? together : [], ...words, files];
    started.push(new StartedNode(command, address, { certificate, user: options.user, ownGroup: options.ownGroup ?? false }));
  }

  async function findLeader(): Promise<RqliteNode> {
    for (const startMs = performance.now(); performance.now() - startMs < PATIENCE_MS; await pause(20)) {
      const votes = await Promise.all(started.map((node) => node.leaderId()));
      const votesFor = (id: number): number => votes.filter((vote) => vote === String(id)).length;
      const elected = started.find((_, id) => votes[id] === String(id) && votesFor(id) > count / 2);
      if (elected !== undefined) return elected;
    }
    throw new Error(`no leader in ${PATIENCE_MS} ms:\n${started.map((node) => node.said()).join('\n')}`);
  }

  await findLeader();
  return { nodes: started, certificate, findLeader };
}

/** Writes the files that nodes need to ask for a password and to speak TLS; gives the arguments that name them. */
function secured(folder: string, { user, tls = false }: NodesOptions): string[] {
  const words: string[] = [];
  if (user !== undefined) {
    writeFileSync(join(folder, 'users.json'), JSON.stringify([{ ...user, perms: ['all'] }]), { mode: 0o600 });
    words.push('-auth', join(folder, 'users.json'), '-join-as', user.username);
  }
  if (tls) {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'node.key'];
    const names = ['-subj', '/CN=node', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2', '-out', 'node.crt'];
    openssl(folder, 'req', '-x509', ...key, ...names);
    words.push('-http-cert', join(folder, 'node.crt'), '-http-key', join(folder, 'node.key'));
  }
  return words;
}

interface Access {
  readonly certificate: string | null;
  readonly user: NodesOptions['user'];
  readonly ownGroup: boolean;
}

/** Whether all threads of a process are stopped. A thread that ends meanwhile counts as stopped. */
function areStopped(pid: number): boolean {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.every((id) => {
    try {
      return /\) T /.test(readFileSync(`/proc/${pid}/task/${id}/stat`, 'latin1'));
    } catch {
      return true;
    }
  });
}

/** What a node says when it ends because a snapshot lacks its description. */
const HALF_A_SNAPSHOT = 'failed to read meta for snapshot';

class StartedNode implements RqliteNode {
  readonly address: string;
  readonly #command: readonly string[];
  readonly #access: Access;
  #child: ChildProcess;
  #gone: Promise<unknown>;
  #answers = true;
  #said = '';

  constructor(command: readonly string[], address: string, access: Access) {
    this.address = address;
    this.#command = command;
    this.#access = access;
    [this.#child, this.#gone] = this.#spawn();
  }

  #spawn(): [ChildProcess, Promise<unknown>] {
    const [program = '', ...words] = this.#command;
    const { ownGroup } = this.#access;
    const child = spawn(program, words, { detached: ownGroup, stdio: ['ignore', 'ignore', 'pipe'] });
    // This process may end before the test does, and the node must not outlive it.
    const killAtExit = (): void => void child.kill('SIGKILL');
    process.once('exit', killAtExit);
    child.once('close', () => process.off('exit', killAtExit));
    child.stderr.setEncoding('utf8').on('data', (words: string) => {
      this.#said = (this.#said + words).slice(-10_000);
    });
    return [child, once(child, 'close')];
  }

  async ask(path: string, body?: unknown, deadlineMs = PATIENCE_MS): Promise<NodeAnswer> {
    const { certificate, user } = this.#access;
    const isBytes = body instanceof Uint8Array;
    const [scheme, request] = certificate === null ? ['http', requestInClear] : ['https', requestOverTls];
    const asked = request(`${scheme}://${this.address}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' },
      signal: AbortSignal.timeout(deadlineMs),
      agent: false,
      ...user === undefined ? {} : { auth: `${user.username}:${user.password}` },
      ...certificate === null ? {} : { ca: certificate },
    });
    asked.end(isBytes ? body : JSON.stringify(body));
    const [answer] = await once(asked, 'response') as [IncomingMessage];
    const bytes = await buffer(answer);
    return { status: answer.statusCode ?? 0, location: answer.headers.location, body: bytes.toString(), bytes };
  }

  suspend(): void {
    this.#answers = false;
    assert.ok(this.#child.kill('SIGSTOP'));
    // The node takes part until each of its threads has stopped.
    const startMs = performance.now();
    while (!areStopped(this.#child.pid!)) assert.ok(performance.now() - startMs < PATIENCE_MS, 'the node does not stop');
  }

  resume(): void {
    assert.ok(this.#child.kill('SIGCONT'));
    this.#answers = true;
  }

  async kill(): Promise<void> {
    this.#answers = false;
    this.#child.kill('SIGKILL');
    await this.#gone;
  }

  async start(): Promise<void> {
    [this.#child, this.#gone] = this.#spawn();
    this.#answers = true;
    let isAnew = false;
    for (const startMs = performance.now(); performance.now() - startMs < PATIENCE_MS; await pause(20)) {
      if (await this.leaderId() !== undefined) return;
      if (isAnew || this.#child.exitCode === null || !this.#said.slice(-1000).includes(HALF_A_SNAPSHOT)) continue;
      const folder = this.#command.at(-1)!;
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
      [this.#child, this.#gone] = this.#spawn();
      isAnew = true;
    }
    throw new Error(`no answer in ${PATIENCE_MS} ms:\n${this.#said}`);
  }

  /** The id of the node that it takes for the leader, '' if it knows none; undefined while it does not answer. */
  async leaderId(): Promise<string | undefined> {
    if (!this.#answers) return undefined;
    try {
      const { status, body } = await this.ask('/status', undefined, STATUS_DEADLINE_MS);
      if (status !== 200) return undefined;
      return (JSON.parse(body) as { store: { leader: { node_id: string } } }).store.leader.node_id;
    } catch {
      return undefined;
    }
  }

  said(): string {
    return this.#said;
  }
}
