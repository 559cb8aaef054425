// Everyday use for a long time, as a part of a row: pastes that expire soon are created, read by popularity, looked at,
// listed, burned and deleted, at a given number of requests a second or at as many as are answered. Large uploads and
// registrations come by the clock.

import { runPart } from './part.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { createSeeded, type Seeded } from '../support/seeded.ts';

export interface SoakOptions {
  readonly port: number;
  readonly seed: number;
  readonly connections: number;
  /** 0 for as many as are answered. */
  readonly perSecond: number;
  /** How long pastes last. */
  readonly ttlSeconds: number;
  /** From one large upload, and from one registration, to the next. */
  readonly uploadSeconds: number;
  readonly registrationSeconds: number;
}

export interface Soaked {
  readonly requests: number;
  readonly uploads: number;
  readonly registrations: number;
  readonly seconds: number;
  /** Answers that were not as they must be, by what they were. */
  readonly wrong: Readonly<Record<string, number>>;
}

interface Known {
  readonly id: string;
  readonly owner: string;
  readonly burn: boolean;
  readonly content: string;
  readonly untilMs: number;
}

/** Nearly the most that the service takes from a client that only claims to be known. */
const UPLOAD_BYTES = 3_000_000;

/** Many, because lists get longer with an owner's pastes, among them expired ones until the next cleanup. */
const OWNERS = 1000;

/** On one connection. Older pastes are not asked for any more, and expire all the same. */
const MOST_KNOWN = 50;

/** For this long before a paste expires it is not asked for, so that every answer is certain. */
const MARGIN_MS = 1500;

async function soak(options: SoakOptions, over: Promise<void>): Promise<Soaked> {
  const { port, seed, connections, perSecond, ttlSeconds, uploadSeconds, registrationSeconds } = options;
  let isOver = false;
  void over.then(() => (isOver = true));
  const wrong: Record<string, number> = {};
  const startedMs = performance.now();
  let requests = 0;
  const note = (fault: string | undefined): void => {
    requests += 1;
    if (fault !== undefined) wrong[fault] = (wrong[fault] ?? 0) + 1;
  };

  async function everyday(index: number): Promise<void> {
    const random = createSeeded(seed * 1000 + index);
    const client = createClient(port);
    const known: Known[] = [];
    for (let turn = 0; !isOver; turn += 1) {
      // By the clock and not by the last answer, so that a pause is made up for.
      const dueMs = perSecond === 0 ? 0 : startedMs + ((turn * connections + index) * 1000) / perSecond;
      const waitMs = dueMs - performance.now();
      if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs));
      note(await askOne(client, random, known, ttlSeconds));
    }
    client.close();
  }

  /** Resolves with how often it asked. */
  async function byClock(seconds: number, ask: (client: Client, turn: number) => Promise<string | undefined>) {
    const client = createClient(port);
    let turn = 0;
    for (; !isOver; turn += 1) {
      note(await ask(client, seed * 1000 + turn));
      await Promise.race([over, new Promise((resolve) => setTimeout(resolve, seconds * 1000))]);
    }
    client.close();
    return turn;
  }

  const others = Promise.all(Array.from({ length: connections }, (_, index) => everyday(index)));
  const [uploads, registrations] = await Promise.all([
    byClock(uploadSeconds, (client, turn) => upload(client, turn, ttlSeconds)), byClock(registrationSeconds, register),
    others,
  ]);
  return { requests, uploads, registrations, seconds: (performance.now() - startedMs) / 1000, wrong };
}

function ownerOf(index: number): string {
  return String(index % OWNERS).padStart(40, 'c');
}

/** Stores a large paste and reads it again. */
async function upload(client: Client, turn: number, ttlSeconds: number): Promise<string | undefined> {
  const body = Buffer.alloc(UPLOAD_BYTES, `upload ${turn} `);
  const headers = { 'X-SSL-Client-SHA1': ownerOf(turn), 'X-Expiry': String(ttlSeconds) };
  const answer = await client.ask({ method: 'POST', path: '/', headers, body });
  if (answer?.status !== 201) return `upload: ${answer?.status}`;
  const { id } = JSON.parse(String(answer.body)) as { id: string };
  const read = await client.ask({ method: 'GET', path: `/${id}/raw` });
  return read?.body.equals(body) === true ? undefined : `upload: reading is answered ${read?.status}`;
}

async function register(client: Client): Promise<string | undefined> {
  const answer = await client.ask({ method: 'POST', path: '/register' });
  return answer?.status === 200 ? undefined : `register: ${answer?.status}`;
}

/** What was wrong with the answer, if anything. */
async function askOne(client: Client, random: Seeded, known: Known[], ttlSeconds: number): Promise<string | undefined> {
  while (known.length > 0 && (known[0]!.untilMs < Date.now() || known.length > MOST_KNOWN)) known.shift();
  // By popularity: the n-th of them about as often as 1 / n.
  const index = random.below(random.below(known.length) + 1);
  const paste = known[index];
  if (paste === undefined || random.oneIn(20)) return create(client, random, known, ttlSeconds);
  const expected = (what: string, answer: Answer | undefined, status: number): string | undefined => {
    return answer?.status === status ? undefined : `${what}: ${answer?.status}`;
  };
  const owned = { 'X-SSL-Client-SHA1': paste.owner };
  if (random.oneIn(40)) {
    known.splice(index, 1);
    return expected('delete', await client.ask({ method: 'DELETE', path: `/${paste.id}`, headers: owned }), 200);
  }
  if (random.oneIn(20)) {
    return expected('list', await client.ask({ method: 'GET', path: '/pastes?limit=20', headers: owned }), 200);
  }
  if (random.oneIn(4)) return expected('look', await client.ask({ method: 'GET', path: `/${paste.id}` }), 200);
  if (paste.burn) known.splice(index, 1);
  const read = await client.ask({ method: 'GET', path: `/${paste.id}/raw` });
  return expected('read', read, 200) ?? (String(read?.body) === paste.content ? undefined : 'read: another content');
}

async function create(client: Client, random: Seeded, known: Known[], ttlSeconds: number): Promise<string | undefined> {
  const burn = random.oneIn(4);
  const bytes = random.oneIn(100) ? random.between(65_000, 400_000) : random.between(20, 4000);
  const content = `${random.below(2 ** 31)} `.repeat(Math.ceil(bytes / 8)).slice(0, bytes);
  const terms = burn ? { 'X-Burn-After-Read': '1' } : {};
  const owner = ownerOf(random.below(OWNERS));
  const headers = { 'X-SSL-Client-SHA1': owner, 'X-Expiry': String(ttlSeconds), ...terms };
  const asked: Ask = { method: 'POST', path: '/', headers, body: Buffer.from(content) };
  const untilMs = Date.now() + ttlSeconds * 1000 - MARGIN_MS;
  const answer = await client.ask(asked);
  if (answer?.status !== 201) return `create: ${answer?.status}`;
  known.push({ id: (JSON.parse(String(answer.body)) as { id: string }).id, owner, burn, content, untilMs });
  return undefined;
}

await runPart(soak);
