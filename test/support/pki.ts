// The PKI's endpoints as tests call them: requests with a JSON body and an identity, and their answers.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { startApp, type RunningApp } from './app.ts';
import { presenting } from './certificates.ts';
import type { Answer } from './posting.ts';
import { run } from './programs.ts';

export const CA_PASSWORD = 'the password of the CA';

/** Settings with the `/pki` endpoints, a password for the authority, and no work for registering. */
export const PKI = {
  pkiEnabled: true,
  pkiCaPassword: CA_PASSWORD,
  registerPowDifficultyBits: 0,
} as const satisfies Partial<Config>;

const JSON_TYPE = { 'Content-Type': 'application/json' };

export interface Issued {
  readonly serial: string;
  readonly fingerprint_sha1: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly certificate_pem: string;
  readonly private_key_pem: string;
  readonly is_admin: boolean;
}

interface Sending {
  /** Sent as JSON; text as it is. */
  readonly body?: unknown;
  /** The fingerprint that the request presents. */
  readonly as?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request whose answer is JSON; `request` is the method and the path. */
export async function send(app: RunningApp, request: string, { body, as, headers }: Sending = {}): Promise<Answer> {
  const [method = '', path = ''] = request.split(' ');
  const response = await app.request(path, {
    method,
    headers: { ...(body === undefined ? {} : JSON_TYPE), ...headers, ...(as === undefined ? {} : presenting(as)) },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  assert.equal(response.headers.get('content-type'), 'application/json', request);
  return { status: response.status, headers: response.headers, json: await response.json() as Answer['json'] };
}

/** Creates the authority. */
export async function createAuthority(app: RunningApp): Promise<void> {
  const { status, json } = await send(app, 'POST /pki/ca');
  assert.equal(status, 201, JSON.stringify(json));
}

/** A certificate of POST /pki/issue. */
export async function issue(app: RunningApp, commonName = 'alice', sending: Sending = {}): Promise<Issued> {
  const body = { common_name: commonName, ...(sending.body as object) };
  const { status, json } = await send(app, 'POST /pki/issue', { ...sending, body });
  assert.equal(status, 201, JSON.stringify(json));
  return json as unknown as Issued;
}

/** Creates an authority and its first certificate, which is the admin's. */
export async function withAdmin(app: RunningApp): Promise<Issued> {
  await createAuthority(app);
  return issue(app, 'admin');
}

/** Stops the app, and starts one with other settings on its database for as long as `use` takes. */
export async function withRestarted(
  t: TestContext,
  { app, config: { databasePath } }: RunningApp,
  overrides: Partial<Config>,
  use: (after: RunningApp) => Promise<void>,
): Promise<void> {
  await app.close();
  const after = await startApp(t, { ...PKI, ...overrides, databasePath });
  // Closed here, because the first app removes the folder at the end of the test.
  await use(after).finally(() => after.app.close());
}

export interface Registered {
  readonly status: number;
  readonly headers: Headers;
  readonly bundle: Buffer;
  /** The body of a refusal. */
  readonly json: Record<string, unknown>;
}

export async function register(
  app: Pick<RunningApp, 'request'>,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Registered> {
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const response = await app.request('/register', { method: 'POST', headers: { ...JSON_TYPE, ...headers }, ...sent });
  const bundle = Buffer.from(await response.arrayBuffer());
  const json = response.status === 200 ? {} : JSON.parse(bundle.toString()) as Registered['json'];
  return { status: response.status, headers: response.headers, bundle, json };
}

/** Entries of GET /audit, the oldest first: event, outcome, whom it names and the details. */
export async function audited(
  app: RunningApp,
  admin: Issued,
  query = '',
  sending: Sending = {},
): Promise<readonly AuditEntry[]> {
  const { status, json } = await send(app, `GET /audit?limit=500${query}`, { ...sending, as: admin.fingerprint_sha1 });
  assert.equal(status, 200, JSON.stringify(json));
  return (json['entries'] as AuditEntry[]).toReversed();
}

export interface AuditEntry {
  readonly event: string;
  readonly outcome: string;
  readonly client_id: string | null;
  readonly client_ip: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The certificate of the authority, as GET /pki/ca.crt gives it. */
export async function authorityPem(app: RunningApp): Promise<string> {
  return (await app.request('/pki/ca.crt')).text();
}

export function certificateOf({ certificate_pem: pem }: Issued): X509Certificate {
  return new X509Certificate(pem);
}

/** Writes files with these names and contents into the folder, for programs to read. */
export function writeFiles(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}

/** Runs openssl in the folder; fails the test unless it succeeds. Gives all that it says. */
export function openssl(folder: string, ...args: readonly string[]): string {
  const { status, output } = run('openssl', args, folder);
  assert.equal(status, 0, output);
  return output;
}

/** Makes a new key in `<name>.key`, P-384 by default; gives openssl's certification request for it in PEM. */
export function requestByOpenssl(folder: string, name: string, curve = 'secp384r1'): string {
  openssl(folder, 'ecparam', '-name', curve, '-genkey', '-noout', '-out', `${name}.key`);
  return openssl(folder, 'req', '-new', '-key', `${name}.key`, '-subj', `/CN=${name}/O=ignored`);
}
