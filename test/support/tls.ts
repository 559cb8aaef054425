// HTTPS for tests: a server's certificate in files, the assembly that shows it, and requests with a certificate or
// without. These clients accept any server; curl does not, where it is used. raw-http.ts is for tests of connections.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { makeSerial, makeServerCertificate, validityFrom } from '../../src/authority/certificates.ts';
import { encodePem, generateKeyPair, privateKeyPem } from '../../src/authority/keys.ts';
import type { Config } from '../../src/config/settings.ts';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { type RunningApp, startApp } from './app.ts';
import type { TestClient } from './authority.ts';
import { movableClock } from './clock.ts';
import type { Issued } from './pki.ts';

/** A certificate and its key in PEM, as node:tls takes them. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export type TlsFiles = Pick<Config, 'tlsCertPath' | 'tlsKeyPath'>;

/** A self-signed certificate for 127.0.0.1. */
export async function serverPair({ days = 90, nowMs = Date.now() } = {}): Promise<Pair> {
  const keyPair = await generateKeyPair('prime256v1');
  const certificate = await makeServerCertificate({
    names: [{ name: '127.0.0.1', address: Uint8Array.of(127, 0, 0, 1) }],
    serial: makeSerial(randomBytes),
    validity: validityFrom(Math.floor(nowMs / 1000), days),
    ...keyPair,
  });
  return { cert: encodePem('CERTIFICATE', certificate), key: privateKeyPem(keyPair.privateKey) };
}

/** Writes the pair into a folder that is removed when the test ends. */
export function writePair(t: TestContext, { cert, key }: Pair): TlsFiles {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = { tlsCertPath: join(folder, 'server.crt'), tlsKeyPath: join(folder, 'server.key') };
  writeFileSync(files.tlsCertPath, cert);
  writeFileSync(files.tlsKeyPath, key);
  return files;
}

/** What a client shows if the test made its certificate. */
export function pairOf({ certificate, keyPair }: TestClient): Pair {
  return { cert: encodePem('CERTIFICATE', certificate), key: privateKeyPem(keyPair.privateKey) };
}

/** What a client shows if POST /pki/issue made its certificate. */
export function pairOfIssued({ certificate_pem: cert, private_key_pem: key }: Issued): Pair {
  return { cert, key };
}

export interface Asking {
  readonly as?: Pair | undefined;
  readonly version?: SecureVersion;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Used instead of a connection for this request alone. */
  readonly agent?: Agent;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly json: Record<string, unknown>;
}

/** An agent that keeps one connection, for several requests on it. */
export function oneConnection(t: TestContext, as?: Pair): Agent {
  const agent = new Agent({ ...as, rejectUnauthorized: false, keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  return agent;
}

/** A request to a port of the loopback interface; `request` is the method and the path. */
export async function askTls(port: number, request: string, asking: Asking = {}): Promise<Answered> {
  const [method = '', path = ''] = request.split(' ');
  const { as, version, headers = {}, body, agent = false } = asking;
  const versions = version === undefined ? {} : { minVersion: version, maxVersion: version };
  const connection = { agent, rejectUnauthorized: false, ...as, ...versions };
  const sent = httpsRequest({ host: '127.0.0.1', port, method, path, headers, ...connection });
  sent.end(body);
  const [answer] = await once(sent, 'response') as [IncomingMessage];
  const received: Buffer[] = [];
  for await (const part of answer as AsyncIterable<Buffer>) received.push(part);
  const bytes = Buffer.concat(received);
  const isJson = answer.headers['content-type'] === 'application/json';
  const json = isJson && bytes.length > 0 ? JSON.parse(bytes.toString()) as Answered['json'] : {};
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: bytes, json };
}

/** The certificate that the server shows on a new connection, in PEM. */
export async function shownBy(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate()?.raw ?? new Uint8Array();
  socket.destroy();
  return encodePem('CERTIFICATE', certificate);
}

export interface RunningTlsApp extends RunningApp {
  ask(request: string, asking?: Asking): Promise<Answered>;
}

/**
 * The assembly with TLS. OpenSSL knows only the host's time, so the app's clock begins there, or `daysAgo` days before.
 */
export async function startTlsApp(
  t: TestContext,
  overrides: Partial<Config> = {},
  { daysAgo = 0, pair }: { daysAgo?: number; pair?: Pair } = {},
): Promise<RunningTlsApp> {
  const files = writePair(t, pair ?? await serverPair());
  const clock = movableClock(Date.now() - daysAgo * DAY_SECONDS * 1000);
  const app = await startApp(t, { ...files, ...overrides }, clock);
  return { ...app, clock, ask: (request, asking) => askTls(app.port, request, asking) };
}
