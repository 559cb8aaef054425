// The nodes of rqlite (https://rqlite.io/docs/api/): requests go to the one that led last, then to the leader that a
// node names, or to the others. Once all were asked, a follower may pass it on. A request without an answer may have
// been carried out, and is sent again: writer.ts makes sure that a repeated request takes effect once.

import { Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { ConfigError, readSettingFile } from '../config/load.ts';
import { type Config, nodesOf, SETTINGS } from '../config/settings.ts';
import { codeOf } from '../core/events.ts';
import { type Clock, MIB } from '../core/time.ts';
import { unavailable } from '../store/store.ts';

/** A statement with the values of its named parameters, as /db/execute and /db/query take it. */
export type Statement = readonly [sql: string, values: Readonly<Record<string, string | number | null>>];

/** The result of a statement. If a transaction fails, the last result is that of the statement that failed. */
export interface Result {
  readonly error?: string;
  readonly last_insert_id?: number;
  readonly values?: readonly (readonly unknown[])[];
}

/** Longer than nodes take to elect another leader: two to three seconds here, once the old leader is silent. */
export const DEADLINE_MS = 10_000;

/** A leader that is silent for this long may not lead any more. */
const SILENCE_MS = 2000;

/** A node makes a whole copy before it sends the first byte, and takes in a whole file before it answers. */
const COPY_SILENCE_MS = 60_000;
const LOAD_MS = 600_000;
const PAUSE_MS = 50;
/** For this long, nodes that answer are asked before one that was silent: by then they know a new leader, if any. */
const OTHERS_MS = 2000;

/** Far more than 8 chunks of content, which come in hexadecimal, or a list of a hundred thousand certificates. */
const MAX_ANSWER_BYTES = 128 * MIB;

const [LATE, SILENT, STRANGE] = ['no answer in time', 'silent', 'not what a node answers'];

/** Errors of `guards`, and of SQLite when the leader's disk is full. What failed with FULL is never asked for again. */
export const STALE = 'stale';
export const FULL = /disk is full/;

/** Each change has a numbered claim, and the newest is never removed: a node with a lower number lacks changes. */
const NEWEST: Statement = ['SELECT coalesce(max(rowid), 0) FROM claims', {}];
const LACKING = 'the node that leads lacks changes, as if its disk was full: restart it, or have it join anew';

export class Nodes implements Disposable {
  readonly #clock: Clock;
  readonly #options: readonly Place[];
  readonly #request: typeof httpRequest;
  readonly #agent: HttpAgent;
  #leader = 0;
  /** The newest claim that this host has seen. */
  #seen = 0;
  /** No node is asked after this moment. */
  #endMs = Infinity;

  /** Throws ConfigError for an invalid host or port, and for a certificate file that can't be read. */
  constructor(config: Config, clock: Clock) {
    const { hasTls, user, places } = nodesOf(config)!;
    const headers = user === undefined ? {} : { auth: `${user}:${config.clusterPassword}` };
    this.#clock = clock;
    this.#request = hasTls ? httpsRequest : httpRequest;
    const caPath = hasTls ? config.clusterCaPath : '';
    const unreadable = `${SETTINGS.clusterCaPath.name}: ${caPath} cannot be read`;
    const trust = caPath === '' ? {} : { ca: readSettingFile(caPath, unreadable) };
    this.#agent = new (hasTls ? HttpsAgent : HttpAgent)({ keepAlive: true, ...trust });
    this.#options = places.map((place) => {
      const found = placeIn(`${hasTls ? 'https' : 'http'}://${place}`);
      if (found === undefined) throw new ConfigError([`${SETTINGS.databasePath.name}: ${place} is no host and port`]);
      return { ...found, agent: this.#agent, ...headers };
    });
  }

  /** Runs one transaction. When this resolves, it is on the disks of most nodes, or the last result is an error. */
  execute(statements: readonly Statement[]): Promise<readonly Result[]> {
    return this.#resultsOf('/db/execute?transaction&redirect', statements, DEADLINE_MS);
  }

  /** A result for each. `weak` ones may be old, so changes check what they read; rqlite 8.26 has no `linearizable`. */
  async query(statements: readonly Statement[], level: 'weak' | 'strong', deadlineMs = DEADLINE_MS) {
    const results = await this.#resultsOf(`/db/query?level=${level}&redirect`, statements, deadlineMs);
    const failed = results.find(({ error }) => error !== undefined);
    if (failed !== undefined) throw unavailable(`a node refused to read: ${failed.error}`);
    return results.map(({ values }) => values ?? []);
  }

  /** Reads the present state. Rejects if the leader lacks changes, which it passes over while its disk is full. */
  async read(statements: readonly Statement[], deadlineMs?: number) {
    const seen = this.#seen;
    if (seen === 0) return this.query(statements, 'strong', deadlineMs);
    const [rows, ...found] = await this.query([NEWEST, ...statements], 'strong', deadlineMs);
    const newest = Number(onlyRow(rows)[0]);
    if (newest < seen) throw unavailable(LACKING);
    this.#seen = Math.max(this.#seen, newest);
    return found;
  }

  /** Like execute, for claims with their changes; changes nothing and rejects if the node lacks what this host saw. */
  async commit(claims: readonly Statement[]): Promise<readonly Result[]> {
    const guard: Statement = [`INSERT INTO guards SELECT (${NEWEST[0]}) >= :seen`, { seen: this.#seen }];
    const [seen, ...results] = await this.execute([guard, ...claims]);
    if (seen?.error === STALE) throw unavailable(LACKING);
    const { error } = results.at(-1) ?? seen!;
    if (error === undefined) this.#seen = Math.max(this.#seen, results[0]?.last_insert_id ?? 0);
    // Other nodes may have had room: they soon know what they have carried out, so this waits and then asks them.
    else if (FULL.test(error)) await setTimeout(4 * PAUSE_MS).then(() => this.look());
    return results.length === 0 ? [seen!] : results;
  }

  /** Asks each node how far it is: the leader must be as far as any. Those `behind` are silent, or not at `since`. */
  async look(since = 0) {
    const body = Buffer.from(JSON.stringify([NEWEST]));
    const behind = await Promise.all(this.#options.map(async ({ name }, node) => {
      const answer = await this.#askOne(node, '/db/query?level=none', body, SILENCE_MS, SILENCE_MS);
      const results = typeof answer === 'string' ? answer : resultsIn(answer, 1);
      const newest = typeof results === 'string' ? -1 : Number(results[0]?.values?.[0]?.[0] ?? 0);
      this.#seen = Math.max(this.#seen, newest);
      return newest < since ? [name] : [];
    }));
    return { behind: behind.flat(), seen: this.#seen };
  }

  /** A copy of the whole database, as a file of SQLite in pieces. */
  async copy(): Promise<AsyncIterable<Uint8Array>> {
    for (const endMs = this.#clock.monotonicMs() + COPY_SILENCE_MS; ; await setTimeout(PAUSE_MS)) {
      // The node that answers this leads, or passes on what the leader says, and lacks no changes.
      await this.read([['SELECT 1', {}]]);
      const copy = await this.#askForCopy();
      if (typeof copy !== 'string') return copy;
      // A node answers 500 while it makes a snapshot, or another copy.
      const isBusy = copy === '500' && this.#clock.monotonicMs() < endMs;
      if (!isBusy) throw unavailable(`a node gave no copy (${copy})`);
    }
  }

  /** A copy, or why there is none. */
  #askForCopy(): Promise<AsyncIterable<Uint8Array> | string> {
    const { promise, resolve } = Promise.withResolvers<AsyncIterable<Uint8Array> | string>();
    const options = { ...this.#options[this.#leader], path: '/db/backup', timeout: COPY_SILENCE_MS };
    const sent = this.#request(options, (response) => {
      resolve(response.statusCode === 200 ? response : `${response.resume().statusCode}`);
    });
    sent.on('timeout', () => sent.destroy(new Error(SILENT))).on('error', (error) => resolve(String(error)))
      .on('upgrade', (_, socket) => void (socket.destroy(), resolve('101'))).end();
    return promise;
  }

  /** Makes this file of SQLite the database of a node that is alone. By /db/load, three nodes did not take 80 MB. */
  async load(file: Uint8Array): Promise<void> {
    const answer = await this.#askOne(this.#leader, '/boot', file, LOAD_MS, LOAD_MS);
    const hint = 'only a node that is alone does, which the others join then';
    if (typeof answer === 'string') throw unavailable(`no node took the backup (${partOf(answer)}): ${hint}`);
  }

  /** Requests that are under way, or come later, are given up after this long. */
  endWithin(milliseconds: number): void {
    this.#endMs = this.#clock.monotonicMs() + milliseconds;
  }

  [Symbol.dispose](): void {
    this.endWithin(0);
    this.#agent.destroy();
  }

  #resultsOf(path: string, statements: readonly Statement[], deadlineMs: number): Promise<readonly Result[]> {
    const body = Buffer.from(JSON.stringify(statements));
    return this.#ask(path, body, deadlineMs, (answer) => resultsIn(answer, statements.length));
  }

  /** Asks until a node answers as the leader. `read` gives what it finds in an answer, or a text: why there is none. */
  async #ask<Found extends object>(
    path: string, body: Uint8Array, deadlineMs: number, read: (answer: Buffer) => Found | string,
  ): Promise<Found> {
    const endMs = this.#clock.monotonicMs() + deadlineMs;
    const reasons = new Map<string, string>();
    const asked = this.#options.map(() => 0);
    const silenceTimes = OTHERS_MS / PAUSE_MS / Math.max(1, asked.length - 1);
    for (let node = this.#leader; ; ) {
      const leftMs = Math.min(endMs, this.#endMs) - this.#clock.monotonicMs();
      // Waiting mends no wrong settings. Each node is asked twice, since something between may have answered for it.
      const isHopeless = asked.every((times) => times >= 2) && [...reasons.values()].every(hintFor);
      if (leftMs <= 0 || isHopeless) throw unavailable(told(reasons));
      // Waits longer after each silence, so that a slow node is not asked the same for ever.
      const patienceMs = SILENCE_MS * (1 + Math.floor(asked[node]! / silenceTimes));
      // Without `redirect` a follower passes it on: the leader may be out of reach here, or have a name not known here.
      const wanted = asked.includes(0) ? path : path.replace(/[?&]redirect/, '');
      const answer = await this.#askOne(node, wanted, body, leftMs, patienceMs);
      const found = typeof answer === 'string' ? answer : read(answer);
      if (typeof found !== 'string') {
        this.#leader = node;
        return found;
      }
      const { name } = this.#options[node]!;
      // An earlier reason says more than that time ran out.
      if (found === LATE && reasons.has(name)) continue;
      // What comes later does not decide whether a change has happened.
      if (!UNDECIDED.test(reasons.get(name) ?? '')) reasons.set(name, partOf(found));
      asked[node]! += found === SILENT ? silenceTimes : 1;
      const leader = placeIn(/^301 (\S+)/.exec(found)?.[1] ?? '')?.name;
      const named = this.#options.findIndex(({ name }) => name === leader);
      node = asked[named] === 0 ? named : asked.indexOf(Math.min(...asked));
      if (asked[node]! > 0) await setTimeout(PAUSE_MS);
    }
  }

  /** The body of an answer, or why there is none. */
  #askOne(node: number, path: string, body: Uint8Array, leftMs: number, silenceMs: number): Promise<Buffer | string> {
    const { promise, resolve } = Promise.withResolvers<Buffer | string>();
    // The deadline holds however slowly the answer comes.
    const signal = AbortSignal.timeout(Math.ceil(leftMs));
    const fail = (error: Error) => resolve(signal.aborted ? LATE : error.message || codeOf(error));
    const options = { ...this.#options[node], path, method: 'POST', timeout: silenceMs, signal };
    const sent = this.#request(options, (response) => {
      const pieces: Buffer[] = [];
      let leftBytes = MAX_ANSWER_BYTES;
      response.on('data', (piece: Buffer) => {
        leftBytes -= piece.length;
        if (leftBytes >= 0) pieces.push(piece);
        else sent.destroy(new Error('too long an answer'));
      });
      response.on('error', fail).on('end', () => {
        const whole = Buffer.concat(pieces);
        const { statusCode: status, statusMessage, headers: { location } } = response;
        resolve(status === 200 ? whole : `${status} ${location ?? (whole.toString() || statusMessage)}`);
      });
    });
    sent.on('timeout', () => sent.destroy(new Error(SILENT))).on('error', fail).end(body)
      .on('upgrade', (_, socket) => void (socket.destroy(), resolve('101')));
    return promise;
  }
}

/** `name` is for messages and for comparing; node:http has no such option. */
type Place = RequestOptions & { readonly name: string };

function placeIn(address: string): Place | undefined {
  const url = URL.parse(address);
  if (url === null) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port || (url.protocol === 'https:' ? 443 : 80);
  return { host, port, name: `${host}:${port}` };
}

/** The ends of requests that may have been carried out. */
const UNDECIDED = new RegExp(`^(?:${LATE}|${SILENT}|${STRANGE})|hang up|ECONNRESET|aborted|too long|lost while`);
const LOOK = 'if this was a change, it may have happened: look before you repeat it';
const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^401/, `set the user in ${SETTINGS.databasePath.name} and ${SETTINGS.clusterPassword.name}`],
  [/self-signed|unable to (get|verify)/, `set ${SETTINGS.clusterCaPath.name} to who signed their certificates`],
  [/wrong version number/, 'they speak HTTP: write rqlite:// without s'],
  [/HTTPS server/, 'write rqlites://'],
];

/** On one line, and not all of it, as the text may not be that of a node. */
const partOf = (answer: string): string => answer.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim().slice(0, 160);

function hintFor(reason: string): string | undefined {
  return HINTS.find(([pattern]) => pattern.test(reason))?.[1];
}

/** Why there is no answer: the last reason from each node, and hints what to change. */
function told(reasons: ReadonlyMap<string, string>): string {
  const all = Array.from(reasons, ([node, reason]) => `${node}: ${reason}`).join('; ');
  const hints = new Set([...reasons.values()].flatMap((one) => (UNDECIDED.test(one) ? LOOK : hintFor(one)) ?? []));
  return [`no node of the cluster answered as its leader (${all})`, ...hints].join('; ');
}

/** The results of `count` statements, or why there are none. */
function resultsIn(body: Buffer, count: number): readonly Result[] | string {
  try {
    const { results, error } = JSON.parse(body.toString()) as { results: readonly Result[]; error?: string };
    if (error !== undefined) return FULL.test(error) ? [{ error }] : String(error);
    const areRows = results.every(({ values = [] }) => values.every((row) => Array.isArray(row)));
    // In a transaction, no result follows that of a statement that failed.
    if (areRows && (results.length === count || results.at(-1)?.error !== undefined)) return results;
  } catch {
    // The answer was cut, or comes from something between.
  }
  return STRANGE;
}

export function onlyRow(rows: readonly (readonly unknown[])[] | undefined): readonly unknown[] {
  if (rows?.[0] === undefined) throw unavailable('a node answered without a row');
  return rows[0];
}
