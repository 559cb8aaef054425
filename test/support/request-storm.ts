// Generated requests against a running service, over real sockets, and what must hold of whatever comes back:
// well-formed answers with the common headers, errors that the table of refusals names, one answer for each whole
// request, and every connection ended once its client has ended it. Findings name the seed; nothing is thrown.

import { connect } from 'node:net';
import { REFUSALS } from '../../src/core/refusals.ts';
import { assertContract } from './answer-contract.ts';
import { generatedRequest, type GeneratedRequest, type Known } from './generated-requests.ts';
import { assertPage, only, textOf } from './html.ts';
import { wholeAnswers, type RawAnswer } from './raw-http.ts';
import { createSeeded, cutAtRandom, type Seeded } from './seeded.ts';

export interface StormOptions {
  readonly port: number;
  readonly known: Known;
  /** Connection n of the storm is made from seed `firstSeed + n`. */
  readonly firstSeed: number;
  readonly connections: number;
  /** How many connections there are at a time. */
  readonly atATime: number;
}

export interface StormResult {
  readonly requests: number;
  /** How many answers of each status. */
  readonly statuses: Readonly<Record<number, number>>;
  readonly findings: readonly string[];
}

/** How long the server may take to end its side. Unknown ids are answered as slowly as wrong passwords. */
const PATIENCE_MS = 30_000;

const MOST_FINDINGS = 20;

/** The contract names 500 for the authority alone, so the internal error is left out. */
const NAMED = Object.values(REFUSALS).filter(({ error }) => error !== REFUSALS.internal.error);

/** Statuses that are no refusal: successes, interim answers, and what ranges and entity tags give. */
const PLAIN_STATUSES = new Set([100, 200, 201, 204, 206, 304]);

export async function storm({ port, known, firstSeed, connections, atATime }: StormOptions): Promise<StormResult> {
  const statuses: Record<number, number> = {};
  const findings: string[] = [];
  let requests = 0;
  let next = firstSeed;

  async function connectionsInTurn(): Promise<void> {
    while (next < firstSeed + connections && findings.length < MOST_FINDINGS) {
      const seed = next;
      next += 1;
      const random = createSeeded(seed);
      const changed = random.oneIn(2);
      const sent = Array.from({ length: random.between(1, 4) }, () => generatedRequest(random, known, { changed }));
      requests += sent.length;
      try {
        const { answers, rest } = await exchange(port, sent, random);
        const wrong = wrongWith(sent, answers, rest);
        if (wrong !== undefined) findings.push(`seed ${seed}: ${wrong}`);
        for (const answer of answers) note(answer);
      } catch (error) {
        findings.push(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  function note(answer: RawAnswer): void {
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    const id = answer.status === 201 ? /"id":"([a-z2-7]{26})"/.exec(answer.body.toString())?.[1] : undefined;
    // Only a few, so that storage does not grow with the storm: the others expire or stay unread.
    if (id !== undefined && known.ids.length < 50) known.ids.push(id);
  }

  await Promise.all(Array.from({ length: atATime }, connectionsInTurn));
  return { requests, statuses, findings };
}

interface Exchanged {
  readonly answers: readonly RawAnswer[];
  readonly rest: Buffer;
}

/** Sends the requests in pieces on one connection, ends it, and reads until the server has. */
async function exchange(port: number, sent: readonly GeneratedRequest[], random: Seeded): Promise<Exchanged> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let isReset = false;
  const closed = new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => {
      const received = JSON.stringify(Buffer.concat(chunks).toString('latin1', 0, 200));
      reject(new Error(`the connection does not end; so far ${received}`));
      socket.destroy();
    }, PATIENCE_MS);
    socket.on('data', (bytes) => chunks.push(bytes));
    socket.on('error', () => (isReset = true));
    socket.on('end', () => socket.end());
    socket.on('close', () => {
      clearTimeout(late);
      resolve();
    });
  });
  const whole = Buffer.concat(sent.map(({ bytes }) => bytes));
  const pieces = random.oneIn(3) ? cutAtRandom(whole, random, whole.length > 5000 ? 20_000 : 200) : [whole];
  for (const piece of pieces) socket.write(piece);
  socket.end();
  await closed;
  const { answers, rest } = wholeAnswers(Buffer.concat(chunks), sent.map(({ method }) => method));
  // What was under way when a connection is reset may be lost.
  return { answers, rest: isReset ? Buffer.alloc(0) : rest };
}

function wrongWith(sent: readonly GeneratedRequest[], answers: readonly RawAnswer[], rest: Buffer): string | undefined {
  const final = answers.filter(({ status }) => status !== 100);
  for (const answer of final) {
    try {
      assertContract(answer);
    } catch (error) {
      return `answer ${answer.status}: ${error instanceof Error ? error.message : String(error)}`;
    }
    const wrong = wrongStatus(answer);
    if (wrong !== undefined) return wrong;
  }
  if (!sent.every(({ isWhole }) => isWhole)) return undefined;
  if (rest.length > 0) return `bytes that are no answer: ${JSON.stringify(rest.toString('latin1', 0, 200))}`;
  const isCutShort = final.at(-1)?.headers.get('connection')?.includes('close') ?? false;
  const isComplete = final.length === sent.length || (isCutShort && final.length < sent.length);
  return isComplete ? undefined : `${final.length} answers to ${sent.length} whole requests`;
}

function wrongStatus({ status, body }: RawAnswer): string | undefined {
  if (PLAIN_STATUSES.has(status)) return undefined;
  const text = body.toString();
  const named = NAMED.filter((refusal) => refusal.status === status);
  if (named.length === 0) return `status ${status}: ${text}`;
  if (text.startsWith('<!DOCTYPE')) return wrongPage(text, named.map(({ error }) => error));
  // An answer to HEAD has no body to say which it is.
  const isNamed = text === '' || named.some(({ error }) => text.startsWith(`{"error":${JSON.stringify(error).slice(0, -1)}`));
  return isNamed ? undefined : `status ${status} with ${text}`;
}

function wrongPage(text: string, errors: readonly string[]): string | undefined {
  try {
    const heading = textOf(only(assertPage(text), 'h1'));
    return errors.includes(heading) ? undefined : `a page about ${heading}`;
  } catch (error) {
    return `${String(error)} in ${text}`;
  }
}
