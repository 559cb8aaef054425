// Proof-of-work as a client does it: asks for a challenge and solves it by the contract's rule, with none of the
// service's own code.

import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import type { RunningApp } from './app.ts';

/** What GET /challenge says when there is work to do. */
export interface PasteChallenge {
  readonly enabled: true;
  readonly difficulty: number;
  readonly nonce: string;
  readonly expires: number;
  readonly token: string;
  readonly base_difficulty: number;
  readonly elevated: boolean;
}

/** Leading zero bits of SHA-256 of `<nonce>:<solution>`, no more than 32 of them counted. */
export function workBits(nonce: string, solution: string): number {
  return Math.clz32(Number.parseInt(hash('sha256', `${nonce}:${solution}`, 'hex').slice(0, 8), 16));
}

/** The first of 0, 1, 2 ..., each written by `form`, whose bits fit. */
export function findSolution(
  nonce: string,
  fits: (bits: number) => boolean,
  form: (n: number) => string = String,
): string {
  for (let n = 0; ; n += 1) {
    const solution = form(n);
    if (fits(workBits(nonce, solution))) return solution;
  }
}

export function solve(nonce: string, difficulty: number): string {
  return findSolution(nonce, (bits) => bits >= difficulty);
}

export async function getChallenge(app: Pick<RunningApp, 'request'>, path = '/challenge'): Promise<PasteChallenge> {
  const response = await app.request(path);
  assert.equal(response.status, 200);
  return await response.json() as PasteChallenge;
}

/** The request headers that show work: a token and what is said to solve it. */
export function showing(token: string, solution: string): Record<string, string> {
  return { 'X-PoW-Token': token, 'X-PoW-Solution': solution };
}

/** The request headers for one paste, or for something else that takes work: a new challenge, solved. */
export async function freshWork(
  app: Pick<RunningApp, 'request'>,
  path = '/challenge',
): Promise<Record<string, string>> {
  const { token, nonce, difficulty } = await getChallenge(app, path);
  return showing(token, solve(nonce, difficulty));
}

/** The hint of a refusal because work is missing: where to get a challenge, and how to have the client solve it. */
export function workHint(url: string, path = '/challenge', command = 'sh pastec FILE'): string {
  const download = `curl -fsS ${url}/client -o pastec`;
  return `request a new challenge: GET ${path}; or let the client do the work: ${download} && ${command}`;
}
