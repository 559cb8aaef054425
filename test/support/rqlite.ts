// Real rqlite nodes on loopback, which can be suspended, killed and started again; of the version that rqlited() finds.
// What it does, most of which interop/rqlite-nodes.test.ts holds:
// - it knows no level=linearizable (that came with 8.32) and takes what it doesn't know for weak: a leader that was
//   suspended and goes on shows the old state for an instant. Only level=strong is exact;
// - "leadership lost while committing log", with status 200, says nothing about the outcome: it may be there later;
// - /db/execute?transaction undoes everything whatever fails, and the last of the results is what failed;
// - /db/request?transaction keeps the others when one can't be prepared;
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

/** An election takes 2.5 s at most with what the nodes have by default; a slow machine has more. */
const PATIENCE_MS = 30_000;

/** A node that is not suspended tells its own state in some milliseconds. */
const STATUS_DEADLINE_MS = 2000;

export interface NodesOptions {
  readonly count?: number;
  /** Out of reach of the terminal's signals, as ServiceOptions of campaign/service.ts has it. */
  readonly ownGroup?: boolean;
  /** The one user, who may do everything; without, whoever reaches the nodes may. */
  readonly user?: { readonly username: string; readonly password: string };
  /** HTTPS, with a certificate that openssl made for 127.0.0.1. */
  readonly tls?: boolean;
  /** More words for each node. */
  readonly flags?: readonly string[];
  /** Where one of them has its files; it goes with who made it. */
  readonly folders?: readonly (string | undefined)[];
}

export interface NodeAnswer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  /** The same, where it is no text. */
  readonly bytes: Buffer;
}

export interface RqliteNode {
  /** Host and port of its HTTP, as clients are given it. */
  readonly address: string;
  /** A GET, or with a body a POST: of bytes as they are, of anything else as JSON. Rejects without a whole answer in time. */
  ask(path: string, body?: unknown, deadlineMs?: number): Promise<NodeAnswer>;
  /** SIGSTOP: its connections stay, and nothing is answered. */
  suspend(): void;
  /** SIGCONT, with all that it knew. */
  resume(): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /**
   * After a kill, with its folder and addresses; resolves when it answers, whether or not there is a leader. With half a
   * snapshot, which a kill may leave, rqlite 8.26 ends at each start: then the folder is emptied, as README.md of
   * scripts/deploy/cluster has it, and it takes all from the others.
   */
  start(): Promise<void>;
  /** The last of what it wrote, with its life before a kill. */
  said(): string;
}

export interface RqliteNodes {
  readonly nodes: readonly RqliteNode[];
  /** The certificate of all in PEM, which is its own authority; null without TLS. */
  readonly certificate: string | null;
  /** The one that itself and most nodes, of all that there are, take for the leader; waits until there is one. */
  findLeader(): Promise<RqliteNode>;
}

/** Why no nodes can be started here, for a test to be skipped with. */
export function rqliteMissing(): string | undefined {
  const program = rqlited();
  if (program === undefined) return 'rqlited is not installed';
  const { status, stderr, stdout } = spawnSync(program, ['-version'], { encoding: 'utf8' });
  return status === 0 ? undefined : `rqlited can't run here: ${stderr}${stdout}`;
}

/** The one in .runtime before any other, where .ci/run puts it: of several versions the newest. */
export function rqlited(): string | undefined {
  const kept = join(ROOT, '.runtime');
  const folders = (existsSync(kept) ? readdirSync(kept) : []).filter((name) => name.startsWith('rqlite-'));
  folders.sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
  return findProgram('rqlited', ...folders.map((name) => join(kept, name)));
}

/**
 * Before 8.30.5 (https://github.com/rqlite/rqlite/pull/1905), with an older SQLite: what a snapshot had that could not
 * be kept, as while another is sent to a node, is in no later one, by which nodes that join or start again are made.
 */
export function damagesDatabases(): boolean {
  const { stdout, stderr } = spawnSync(rqlited()!, ['-version'], { encoding: 'utf8' });
  const [, minor = assert.fail(stdout)] = / sqlite3\.(\d+)/.exec(`${stdout}${stderr}`) ?? [];
  return Number(minor) < 46;
}

/** A test, or whatever else has an end. */
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

/** Writes what the nodes need to ask for a password and to speak TLS; the words that name it. */
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

/** All threads of a process. One that ends meanwhile has none to be asked for. */
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

/** What a node says at its end that finds a snapshot without its description. */
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
    // What starts them may end without its end: then they must not outlive it.
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
    // Until each of its threads has heard of it, it still takes part.
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

  /** Whom it takes for the leader, '' when it knows none; undefined while it does not answer. */
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
