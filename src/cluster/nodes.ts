// The nodes of rqlite (https://rqlite.io/docs/api/): requests go to the one that led last, then to whom a node names as
// the leader, or to the others. Once all were asked, one that follows may pass it on. What no answer came for may have
// been carried out, and is asked for again: writer.ts asks in a way that has it done once.

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

/** What came of a statement; of several in one transaction, the last is the one that failed. */
export interface Result {
  readonly error?: string;
  readonly last_insert_id?: number;
  readonly values?: readonly (readonly unknown[])[];
}

/** Longer than nodes take to elect another leader: two to three seconds here, once the one before is silent. */
export const DEADLINE_MS = 10_000;

/** A leader that is silent for so long may be none any more. */
const SILENCE_MS = 2000;

/** A node makes the whole copy before the first byte of it comes; and takes in all of one before it answers. */
const COPY_SILENCE_MS = 60_000;
const LOAD_MS = 600_000;

/** Before a node is asked once more. */
const PAUSE_MS = 50;
/** Those that answer are asked for so long before one that was silent: by then they know another leader, if any. */
const OTHERS_MS = 2000;

/** Far more than 8 chunks of content, which come in hexadecimal, or a list of a hundred thousand certificates. */
const MAX_ANSWER_BYTES = 128 * MIB;

const [LATE, SILENT] = ['no answer in time', 'silent'];

/** How the tables' `guards` refuse; and SQLite, where the node that leads has no room: never to be asked for again. */
export const STALE = 'stale';
export const FULL = /disk is full/;

/** Claims are numbered, each change has one, and the last is not removed: who has a lower number lacks changes. */
const NEWEST: Statement = ['SELECT coalesce(max(rowid), 0) FROM claims', {}];
const LACKING = 'the node that leads lacks changes, as if its disk was full: restart it, or have it join anew';

export class Nodes implements Disposable {
  readonly #clock: Clock;
  readonly #options: readonly Place[];
  readonly #request: typeof httpRequest;
  readonly #agent: HttpAgent;
  /** The node that answered last. */
  #leader = 0;
  /** The newest claim that this host has seen. */
  #seen = 0;
  /** Nothing is asked after that. */
  #endMs = Infinity;

  /** Throws ConfigError for a port that there is not, and a certificate file that can't be read. */
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

  /** One transaction, on the disks of most nodes when this resolves; then the last result may be an error. */
  execute(statements: readonly Statement[]): Promise<readonly Result[]> {
    return this.#resultsOf('/db/execute?transaction&redirect', statements, DEADLINE_MS);
  }

  /** A result for each. `weak` may be old, which who changes something checks; rqlite 8.26 has no `linearizable`. */
  async query(statements: readonly Statement[], level: 'weak' | 'strong', deadlineMs = DEADLINE_MS) {
    const results = await this.#resultsOf(`/db/query?level=${level}&redirect`, statements, deadlineMs);
    const failed = results.find(({ error }) => error !== undefined);
    if (failed !== undefined) throw unavailable(`a node refused to read: ${failed.error}`);
    return results.map(({ values }) => values ?? []);
  }

  /** As they are now. Rejects where the node that leads lacks changes: its disk was full, which it passes over. */
  async read(statements: readonly Statement[], deadlineMs?: number) {
    const seen = this.#seen;
    if (seen === 0) return this.query(statements, 'strong', deadlineMs);
    const [rows, ...found] = await this.query([NEWEST, ...statements], 'strong', deadlineMs);
    const newest = Number(onlyRow(rows)[0]);
    if (newest < seen) throw unavailable(LACKING);
    this.#seen = Math.max(this.#seen, newest);
    return found;
  }

  /** As execute, of claims with what they change; it changes nothing where the node lacks what this host has seen. */
  async commit(claims: readonly Statement[]): Promise<readonly Result[]> {
    const guard: Statement = [`INSERT INTO guards SELECT (${NEWEST[0]}) >= :seen`, { seen: this.#seen }];
    const [seen, ...results] = await this.execute([guard, ...claims]);
    if (seen?.error === STALE) throw unavailable(LACKING);
    const { error } = results.at(-1) ?? seen!;
    if (error === undefined) this.#seen = Math.max(this.#seen, results[0]?.last_insert_id ?? 0);
    // The others may have had room: they soon know what they have carried out, and nothing is asked before that.
    else if (FULL.test(error)) await setTimeout(4 * PAUSE_MS).then(() => this.look());
    return results.length === 0 ? [seen!] : results;
  }

  /** Asks each node for itself: whoever leads must have come as far. Those `behind` are silent, or not at `since`. */
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
      // The node that has answered this leads, or passes on what the leader says, and lacks nothing.
      await this.read([['SELECT 1', {}]]);
      const copy = await this.#askForCopy();
      if (typeof copy !== 'string') return copy;
      // That is what it says while it makes a snapshot, or another copy.
      const isBusy = copy === '500' && this.#clock.monotonicMs() < endMs;
      if (!isBusy) throw unavailable(`a node gave no copy (${copy})`);
    }
  }

  /** Or why there is none. */
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

  /** Makes this file of SQLite the database of all nodes. */
  async load(file: Uint8Array): Promise<void> {
    await this.#ask('/db/load?redirect', file, LOAD_MS, (answer) => answer, LOAD_MS);
  }

  /** What is under way, or comes, is given up after so long. */
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

  /** Asks until a node answers as the leader. What `read` finds in an answer, or a text that says why it is none. */
  async #ask<Found extends object>(
    path: string, body: Uint8Array, deadlineMs: number, read: (answer: Buffer) => Found | string,
    silenceMs = SILENCE_MS,
  ): Promise<Found> {
    const endMs = this.#clock.monotonicMs() + deadlineMs;
    const reasons = new Map<string, string>();
    const asked = this.#options.map(() => 0);
    const silenceTimes = OTHERS_MS / PAUSE_MS / Math.max(1, asked.length - 1);
    for (let node = this.#leader; ; ) {
      const leftMs = Math.min(endMs, this.#endMs) - this.#clock.monotonicMs();
      // Waiting changes no settings. Twice, since something between may have answered.
      const isHopeless = asked.every((times) => times >= 2) && [...reasons.values()].every(hintFor);
      if (leftMs <= 0 || isHopeless) throw unavailable(told(reasons));
      // Longer after each silence: a node that is slow is not asked the same for ever.
      const patienceMs = silenceMs * (1 + Math.floor(asked[node]! / silenceTimes));
      // The leader may be out of this host's reach, or have a name that is not known here.
      const wanted = asked.includes(0) ? path : path.replace(/[?&]redirect/, '');
      const answer = await this.#askOne(node, wanted, body, leftMs, patienceMs);
      const found = typeof answer === 'string' ? answer : read(answer);
      if (typeof found !== 'string') {
        this.#leader = node;
        return found;
      }
      const { name } = this.#options[node]!;
      // That the time was over says less than what came before.
      if (found === LATE && reasons.has(name)) continue;
      // In part, as it may be no node that says so.
      reasons.set(name, found.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim().slice(0, 160));
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
    // However slowly it comes.
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

/** `name` is to be told and compared: node:http knows no such option. */
type Place = RequestOptions & { readonly name: string };

function placeIn(address: string): Place | undefined {
  const url = URL.parse(address);
  if (url === null) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port || (url.protocol === 'https:' ? 443 : 80);
  return { host, port, name: `${host}:${port}` };
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^401/, `set the user in ${SETTINGS.databasePath.name} and ${SETTINGS.clusterPassword.name}`],
  [/self-signed|unable to (get|verify)/, `set ${SETTINGS.clusterCaPath.name} to who signed their certificates`],
  [/wrong version number/, 'they speak HTTP: write rqlite:// without s'],
  [/HTTPS server/, 'write rqlites://'],
];

function hintFor(reason: string): string | undefined {
  return HINTS.find(([pattern]) => pattern.test(reason))?.[1];
}

/** Why there is no answer: what came last from each, and what to change about it. */
function told(reasons: ReadonlyMap<string, string>): string {
  const all = Array.from(reasons, ([node, reason]) => `${node}: ${reason}`).join('; ');
  const hints = new Set([...reasons.values()].map(hintFor).filter((hint) => hint !== undefined));
  return [`no node of the cluster answered as its leader (${all})`, ...hints].join('; ');
}

/** The results of so many statements; or why there are none. */
function resultsIn(body: Buffer, count: number): readonly Result[] | string {
  try {
    const { results, error } = JSON.parse(body.toString()) as { results: readonly Result[]; error?: string };
    if (error !== undefined) return FULL.test(error) ? [{ error }] : String(error);
    const areRows = results.every(({ values = [] }) => values.every((row) => Array.isArray(row)));
    // In a transaction nothing follows what failed.
    if (areRows && (results.length === count || results.at(-1)?.error !== undefined)) return results;
  } catch {
    // It was cut, or is of something between.
  }
  return 'not what a node answers';
}

export function onlyRow(rows: readonly (readonly unknown[])[] | undefined): readonly unknown[] {
  if (rows?.[0] === undefined) throw unavailable('a node answered without a row');
  return rows[0];
}
