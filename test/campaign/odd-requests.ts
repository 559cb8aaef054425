// Sends every odd request and judges what comes of it. Sent directly, it must get to the letter what the tables say.
// Through a proxy, which may refuse or repair it first, no request that nobody made may be answered.

import { head, type RawAnswer } from '../support/raw-http.ts';
import type { Seeded } from '../support/seeded.ts';
import { contractFaults, readAnswers } from './answers.ts';
import { exchange, type Exchanged } from './exchange.ts';
import { ODD_CHUNKS } from './odd-chunks.ts';
import { ODD_CODINGS } from './odd-codings.ts';
import { ODD_FIELDS } from './odd-fields.ts';
import { ODD_LENGTHS } from './odd-lengths.ts';
import { ODD_LINES } from './odd-lines.ts';
import { AFTER, INNER, OUTER, SITE_HOST, type OddRequest } from './odd-request.ts';
import { ODD_TARGETS } from './odd-targets.ts';

export const ODD_REQUESTS: readonly OddRequest[] = [
  ...ODD_LINES, ...ODD_TARGETS, ...ODD_FIELDS, ...ODD_LENGTHS, ...ODD_CODINGS, ...ODD_CHUNKS,
];

/** What came of one odd request. */
export interface Outcome {
  /** Request ids of the answers, in order. */
  readonly answered: readonly string[];
  readonly statuses: readonly number[];
  readonly faults: readonly string[];
}

/** Sent after each odd request on the same connection; it may be served only where the table says so. */
const CANARY = head('GET /health HTTP/1.1', SITE_HOST, `X-Request-ID: ${AFTER}`, 'Connection: close');

const PATIENCE_MS = 15_000;

/** Short, because a proxy waits much longer for the rest of what it takes for half a request. */
const PROXY_PATIENCE_MS = 1500;

/** Of a proxy by itself: what it refuses, cannot read, will not read, or got no answer to. */
const PROXY_REFUSALS = [400, 403, 404, 405, 408, 411, 413, 414, 417, 421, 422, 431, 494, 501, 502, 505];

/** `tag` has four characters, and makes the ids of this request unique. */
export function bytesOf(odd: OddRequest, tag: string): Buffer {
  return Buffer.from((odd.bytes + CANARY).replaceAll('@@@@', tag), 'latin1');
}

export interface Sending {
  readonly port: number;
  readonly tag: string;
  readonly cutBy?: Seeded | undefined;
}

export async function askDirectly(odd: OddRequest, { port, tag, cutBy }: Sending): Promise<Outcome> {
  const exchanged = await exchange({ port, bytes: bytesOf(odd, tag), cutBy, patienceMs: PATIENCE_MS });
  const { answers, faults } = readAnswers(exchanged.received, [odd.method]);
  const wrong = [...faults, ...endFaults(exchanged), ...countFaults(odd, answers, idsOf(tag))];
  for (const [index, answer] of answers.entries()) {
    wrong.push(...contractFaults(answer, index === 0 && odd.method === 'HEAD'));
    if (odd.answers[index]?.includes(answer.status) === false) wrong.push(`answer ${index + 1} is ${answer.status}`);
  }
  return {
    answered: answers.map((answer) => answer.headers.get('x-request-id')?.[0] ?? ''),
    statuses: answers.map(({ status }) => status),
    faults: wrong,
  };
}

function endFaults({ end, received }: Exchanged): string[] {
  if (end === 'closed') return [];
  return [`the connection was ${end === 'open' ? 'left open' : end} after ${received.length} bytes`];
}

function idsOf(tag: string): { outer: string; inner: string; after: string } {
  return { outer: OUTER.replace('@@@@', tag), inner: INNER.replace('@@@@', tag), after: AFTER.replace('@@@@', tag) };
}

type Ids = ReturnType<typeof idsOf>;

function countFaults({ answers: expected, then }: OddRequest, answers: readonly RawAnswer[], ids: Ids): string[] {
  const faults: string[] = [];
  const seen = answers.map((answer) => answer.headers.get('x-request-id')?.[0]);
  const served = answers.length - expected.length;
  const mayEndBefore = then === 'either' && answers.length > 0;
  if ((served < 0 && !mayEndBefore) || served > 1) faults.push(`${answers.length} answers`);
  if (served === 0 && then === 'goesOn') faults.push('what comes after is not served');
  if (served === 1 && (then === 'ends' || seen.at(-1) !== ids.after)) faults.push('what comes after is served');
  if (seen[0] === ids.inner || seen[0] === ids.after) faults.push('it has no answer of its own');
  if (expected.length === 1 && seen.includes(ids.inner)) faults.push('the hidden request is answered');
  return faults;
}

/** A proxy may repair a request as it likes, but no request that nobody made may be answered. */
export async function askThroughProxy(odd: OddRequest, { port, tag, cutBy }: Sending): Promise<Outcome> {
  const { received, end } = await exchange({ port, bytes: bytesOf(odd, tag), cutBy, patienceMs: PROXY_PATIENCE_MS });
  const parts = received.toString('latin1').split(/(?=HTTP\/1\.[01] \d{3} )/);
  const answers = parts.filter((part) => /^HTTP\/1\.[01] [2-5]/.test(part));
  const statuses = answers.map((answer) => Number(answer.slice(9, 12)));
  const seen = answers.map((answer) => /^x-request-id: (\S+)/im.exec(answer)?.[1]);
  const { outer, inner, after } = idsOf(tag);
  const faults: string[] = [];
  // A request that is whole for every reader must be answered; a proxy may wait for the rest of any other.
  const isSilent = received.length === 0 && end === 'closed';
  if (isSilent || (answers.length === 0 && odd.then === 'goesOn')) faults.push('no answer');
  // When a proxy repairs what the service would refuse, the hidden request is the next one, answered in its turn.
  const next = odd.then === 'ends' ? 2 : 1;
  if (answers.length > odd.answers.length + next) faults.push(`${answers.length} answers`);
  if (seen[0] === inner || seen[0] === after) faults.push('it has no answer of its own');
  if (seen.slice(1).includes(outer)) faults.push('it is answered twice');
  if (odd.answers.length === 1 && next === 1 && seen.includes(inner)) faults.push('the hidden request is answered');
  const possible = [200, 201, 204, ...PROXY_REFUSALS, ...odd.answers[0]!];
  if (statuses[0] !== undefined && !possible.includes(statuses[0])) faults.push(`answer 1 is ${statuses[0]}`);
  return { answered: seen.filter((id) => id !== undefined), statuses, faults };
}
