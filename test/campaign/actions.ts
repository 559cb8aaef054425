// The actions of the model as requests to the service, and what their answers mean.

import { contentOf, versionOf, type Action, type Attempt, type PasteModel, type Seen, type Terms } from './model.ts';
import type { Answer, Ask, Client } from './client.ts';

/** The owner of every paste that these actions create. */
export const OWNER = 'c0ffee'.padEnd(40, '0');

/** Carries an action out; `wrong` says in words what is wrong with its answer, or is undefined. */
export async function carryOut(
  client: Pick<Client, 'ask'>,
  model: PasteModel,
  action: Action,
  terms: Terms = {},
): Promise<{ attempt: Attempt; seen: Seen; wrong: string | undefined; endMs: number }> {
  const attempt = model.begin(action, Date.now(), terms.bytes);
  const answer = await client.ask(requestOf(model, attempt, terms));
  const seen = meaningOf(model, action, answer);
  const endMs = Date.now();
  return { attempt, seen, wrong: model.end(attempt, seen, endMs), endMs };
}

export function requestOf(model: PasteModel, { action, version }: Attempt, { ttlSeconds }: Terms): Ask {
  const path = `/${model.id() ?? ''}`;
  const headers = { 'X-SSL-Client-SHA1': OWNER };
  switch (action) {
    case 'create': {
      const burn = model.burn ? { 'X-Burn-After-Read': '1' } : {};
      const expiry = ttlSeconds === undefined ? {} : { 'X-Expiry': String(ttlSeconds) };
      const body = contentOf(model.label, version, model.bytesOf(version));
      return { method: 'POST', path: '/', headers: { ...headers, ...burn, ...expiry }, body };
    }
    case 'update':
      return { method: 'PUT', path, headers, body: contentOf(model.label, version, model.bytesOf(version)) };
    case 'read':
      return { method: 'GET', path: `${path}/raw` };
    case 'look':
      return { method: 'GET', path };
    case 'delete':
      return { method: 'DELETE', path, headers };
  }
}

function meaningOf(model: PasteModel, action: Action, answer: Answer | undefined): Seen {
  if (answer === undefined) return { kind: 'unknown' };
  const { status, body } = answer;
  if (status >= 500) return { kind: 'refused', status };
  if (status === 404 && action !== 'create') return { kind: 'absent' };
  if (status !== (action === 'create' ? 201 : 200)) return { kind: 'wrong', why: `answered ${status} ${body}` };
  if (action === 'create') {
    const { id, expires_at: expiresAt = Infinity } = JSON.parse(String(body)) as { id: string; expires_at?: number };
    return { kind: 'done', id, expiresAt };
  }
  if (action !== 'read') return { kind: 'done' };
  const version = versionOf(model, body);
  if (version !== undefined) return { kind: 'done', version };
  return { kind: 'wrong', why: `${body.length} bytes that begin with ${body.toString('latin1', 0, 60)}` };
}
