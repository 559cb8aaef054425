// POST / and its answers as tests of the abuse controls look at them: status, JSON body and rate headers.

import assert from 'node:assert/strict';
import type { RunningApp } from './app.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

export async function post(
  app: RunningApp,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await app.request('/', { method: 'POST', body: body as string, headers });
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

/** A body without Content-Length, in pieces of 1000 bytes. */
export async function postChunked(
  app: RunningApp,
  content: Uint8Array,
  headers: Record<string, string> = {},
): Promise<Answer> {
  let start = 0;
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(content.slice(start, start += 1000));
      if (start >= content.length) controller.close();
    },
  });
  const response = await app.request('/', { method: 'POST', body, duplex: 'half', headers } as RequestInit);
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

export function assertStored({ status, json }: Answer, what?: string): void {
  assert.equal(status, 201, `${what ?? 'POST /'}: ${JSON.stringify(json)}`);
}

/** The whole body: the error, these members and no others. */
export function assertError({ status, json }: Answer, expected: number, error: string, members: object = {}): void {
  assert.deepEqual({ status, ...json }, { status: expected, error, ...members });
}

/** A refusal because work is missing: this error, and a hint that names where to get a challenge. */
export function assertWorkRefused({ status, json }: Answer, error: string): void {
  const { hint, ...rest } = json;
  assert.deepEqual({ status, ...rest }, { status: 400, error });
  assert.match(String(hint), /\bGET \/challenge\b/);
}

/** How many of all these answers have each status. */
export function statusCounts(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The rate-limit headers as numbers; null when none of them is there. */
export function rateOf({ headers }: Pick<Answer, 'headers'>): { limit: number; remaining: number; reset: number } | null {
  const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) => headers.get(`X-RateLimit-${name}`));
  if (limit === null && remaining === null && reset === null) return null;
  for (const value of [limit, remaining, reset]) assert.match(value ?? '', /^\d+$/);
  return { limit: Number(limit), remaining: Number(remaining), reset: Number(reset) };
}

/** As a client behind a trusted proxy. */
export function from(address: string): Record<string, string> {
  return { 'X-Forwarded-For': address };
}
