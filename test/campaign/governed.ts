// Invitations, refused content and certificates by their holders, as they stand in a database, and the operator's
// commands that put them there.

import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { faultsOf } from '../../src/store/governing.ts';
import { makeRequestPem } from '../support/request.ts';
import { createClient, type Ask } from './client.ts';
import type { Commanded, Service } from './service.ts';

export interface Governed {
  /** What contradicts itself. */
  readonly faults: readonly string[];
  /** By id: how many uses are left. */
  readonly invitations: ReadonlyMap<number, number>;
  /** SHA-256 of the content that is banned, and of the content that is stored. */
  readonly banned: ReadonlySet<string>;
  readonly stored: ReadonlySet<string>;
  readonly certificates: readonly HeldCertificate[];
}

export interface HeldCertificate {
  readonly fingerprint: string;
  /** The first fingerprint of its chain of renewals. */
  readonly holder: string;
  readonly isRevoked: boolean;
  /** It came from a renewal, and was not presented yet. */
  readonly isUnused: boolean;
}

export function readGoverned(databasePath: string): Governed {
  const db = new DatabaseSync(databasePath, { readOnly: true, timeout: 5000 });
  const column = (sql: string): string[] => db.prepare(sql).all().map((row) => String(Object.values(row)[0]));
  try {
    db.exec('BEGIN');
    const invitations = db.prepare('SELECT id, uses_left AS left FROM invitations').all();
    const certificates = db.prepare(`
      SELECT fingerprint, holder, revoked_at IS NOT NULL AS isRevoked, is_unused AS isUnused FROM certificates`).all();
    const unaudited = column(`
      SELECT (SELECT count(*) FROM bans) - (SELECT count(*) FROM audit WHERE event = 'content_banned')`)[0];
    return {
      faults: [...faultsOf(db), ...(unaudited === '0' ? [] : [`${unaudited} bans more than in the audit log`])],
      invitations: new Map(invitations.map(({ id, left }) => [Number(id), Number(left)])),
      banned: new Set(column('SELECT lower(hex(sha256)) FROM bans')),
      stored: new Set(column('SELECT DISTINCT lower(hex(sha256)) FROM pastes')),
      certificates: certificates.map(({ fingerprint, holder, isRevoked, isUnused }) => ({
        fingerprint: String(fingerprint), holder: String(holder), isRevoked: isRevoked === 1, isUnused: isUnused === 1,
      })),
    };
  } finally {
    db.close();
  }
}

export function digestOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export async function createAuthority(service: Service): Promise<void> {
  const client = createClient(service.port());
  const answer = await client.ask({ method: 'POST', path: '/pki/ca' });
  client.close();
  if (answer?.status !== 201) throw new Error(`POST /pki/ca was answered ${answer?.status}`);
}

export interface Invited {
  readonly id: number;
  readonly code: string;
  readonly uses: number;
}

export async function invite(service: Service, uses: number): Promise<Invited> {
  const { output } = await carriedOut(service, ['invite', 'create', '--uses', String(uses), '--json']);
  const { id, code } = JSON.parse(output) as { id: number; code: string };
  return { id, code, uses };
}

/** Rejects when the command fails. */
export async function carriedOut(service: Service, words: readonly string[]): Promise<Commanded> {
  const ended = await service.beginCommand(words).ended;
  if (ended.status !== 0) throw new Error(`pasted ${words.join(' ')} ended with ${ended.status}: ${ended.output}`);
  return ended;
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** For a certificate with a key that the service makes. */
export function issuing(headers: Readonly<Record<string, string>> = {}): Ask {
  const body = Buffer.from('{"common_name":"campaign"}');
  return { method: 'POST', path: '/pki/issue', headers: { ...JSON_TYPE, ...headers }, body };
}

/** The same `csr` can be used for any number of renewals. */
export function renewing(fingerprint: string, csr: string): Ask {
  const headers = { ...JSON_TYPE, ...presenting(fingerprint) };
  return { method: 'POST', path: '/register/renew', headers, body: Buffer.from(JSON.stringify({ csr })) };
}

export const newRequest = (): string => makeRequestPem();

/** Answered 200 to a client with an identity, and 401 to all others, also to one that shows a revoked certificate. */
export function listing(fingerprint: string): Ask {
  return { method: 'GET', path: '/pastes?limit=1', headers: presenting(fingerprint) };
}

export function presenting(fingerprint: string): { 'X-SSL-Client-SHA1': string } {
  return { 'X-SSL-Client-SHA1': fingerprint };
}
