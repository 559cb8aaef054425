// Visits every route of the service over TLS, with and without client certificates; then uses pastec, reads the
// metrics, and changes the certificate by SIGHUP. For tests of what the process does to its host meanwhile.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { KIB } from '../../src/core/time.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { binaryContent } from './app.ts';
import { type startServing } from './main-process.ts';
import type { Issued } from './pki.ts';
import { makeRequestPem } from './request.ts';
import { clientOf } from './shells.ts';
import { type Answered, type Asking, askTls, pairOfIssued, serverPair, shownBy, type TlsFiles, writePair } from './tls.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const AS_PAGE = { Accept: 'text/html,*/*;q=0.8' };
const FORM = { ...AS_PAGE, 'Content-Type': 'application/x-www-form-urlencoded' };

/** The settings that the tour needs, except secrets; `data` is a folder that the service writes to. */
export async function tourSettings(t: TestContext, data: string) {
  const files = writePair(t, await serverPair());
  const environment = {
    SERVICE_DB: join(data, 'pasted.db'),
    SERVICE_TLS_CERT: files.tlsCertPath,
    SERVICE_TLS_KEY: files.tlsKeyPath,
    SERVICE_PKI_ENABLED: '1',
    SERVICE_POW_DIFFICULTY: '0',
    SERVICE_REGISTER_POW: '0',
    SERVICE_RATE_MAX: '0',
    SERVICE_CONTACT: 'mailto:abuse@paste.example',
    SERVICE_METRICS_LISTEN: join(data, 'metrics'),
  };
  return { files, environment };
}

type Main = Awaited<ReturnType<typeof startServing>>;
type Ask = (status: number, endpoint: string, place?: string, asking?: Asking) => Promise<Answered>;

/** Leaves the service running, with another certificate than before. */
export async function takeTour(t: TestContext, main: Main, { files, environment }: Awaited<ReturnType<typeof tourSettings>>): Promise<void> {
  const visited = new Set<string>();
  const ask: Ask = async (status, endpoint, place = '', asking = {}) => {
    const route = ROUTES.find(({ method, path }) => `${method} ${path}` === endpoint) ?? assert.fail(endpoint);
    const answer = await askTls(main.port, `${route.method} ${route.path.replace(/\{\w+\}/, place)}`, asking);
    assert.equal(answer.status, status, `${endpoint}: ${answer.body.subarray(0, 1000)}`);
    visited.add(endpoint);
    return answer;
  };
  for (const path of ['/', '/health', '/challenge', '/.well-known/security.txt', '/client', '/register/challenge', '/pki']) {
    await ask(200, `GET ${path}`);
  }
  await ask(200, 'GET /', '', { headers: AS_PAGE });
  const admin = await visitAuthority(ask);
  await visitPastes(ask, admin);
  const all = ROUTES.map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(all.filter((endpoint) => !visited.has(endpoint)), [], 'every route was visited');
  await usePastec(t, main.url, files);
  await scrape(environment.SERVICE_METRICS_LISTEN);
  await changeCertificate(main, files);
}

async function visitAuthority(ask: Ask): Promise<Asking> {
  const json = (body: object, asking: Asking = {}): Asking => ({ ...asking, headers: JSON_TYPE, body: JSON.stringify(body) });
  await ask(201, 'POST /pki/ca');
  for (const name of ['ca.crt', 'ca.crl', 'ca.crl.pem']) await ask(200, `GET /pki/${name}`);
  const issue = async (name: string): Promise<Issued> => {
    return (await ask(201, 'POST /pki/issue', '', json({ common_name: name }))).json as unknown as Issued;
  };
  const admin = { as: pairOfIssued(await issue('admin')) };
  const other = await issue('other');
  // The first bundle is made on the thread that stays; the second has a password, and gets a thread of its own.
  await ask(200, 'POST /register', '', json({ common_name: 'alice' }));
  await ask(200, 'POST /register', '', json({ common_name: 'bob', p12_password: 'correct horse' }));
  await ask(201, 'POST /register', '', json({ csr: makeRequestPem() }));
  await ask(201, 'POST /register/renew', '', json({ csr: makeRequestPem() }, { as: pairOfIssued(other) }));
  await ask(200, 'GET /pki/certs', '', admin);
  await ask(200, 'POST /pki/revoke/{serial}', other.serial, { as: pairOfIssued(other) });
  return admin;
}

async function visitPastes(ask: Ask, admin: Asking): Promise<void> {
  const store = async (body: string | Uint8Array, asking: Asking = {}): Promise<string> => {
    return String((await ask(201, 'POST /', '', { body, ...asking })).json['id']);
  };
  const large = binaryContent(700 * KIB, 1);
  const stored = await store(large, admin);
  assert.deepEqual((await ask(200, 'GET /{id}/raw', stored)).body, Buffer.from(large));
  await ask(200, 'PUT /{id}', stored, { ...admin, body: 'other content' });
  await ask(200, 'GET /{id}', stored);
  await ask(200, 'GET /{id}', stored, { headers: AS_PAGE });
  await ask(200, 'GET /pastes', '', admin);
  await ask(200, 'DELETE /{id}', stored, admin);
  await ask(201, 'PUT /', '', { body: 'as curl -T sends it' });
  const once = await store('once', { headers: { 'X-Burn-After-Read': 'true' } });
  assert.equal((await ask(200, 'GET /{id}/raw', once)).body.toString(), 'once');
  await ask(404, 'GET /{id}/raw', once);
  const locked = await store('locked', { headers: { 'X-Paste-Password': 'p' } });
  await ask(200, 'POST /{id}', locked, { headers: FORM, body: 'password=p' });
  await ask(200, 'GET /audit', '', admin);
}

async function usePastec(t: TestContext, url: string, { tlsCertPath }: TlsFiles): Promise<void> {
  const { run } = clientOf(t, url);
  const environment = { CURL_CA_BUNDLE: tlsCertPath };
  const put = await run([], { input: 'from pastec', environment });
  assert.equal(put.code, 0, put.stderr);
  const got = await run(['get', put.text.trim()], { environment });
  assert.equal(got.text, 'from pastec', got.stderr);
}

async function scrape(socketPath: string): Promise<void> {
  const sent = httpRequest({ socketPath, path: '/metrics', agent: false }).end();
  const [answer] = await once(sent, 'response') as [IncomingMessage];
  assert.equal(answer.statusCode, 200);
  answer.resume();
  await once(answer, 'end');
}

async function changeCertificate(main: Main, { tlsCertPath, tlsKeyPath }: TlsFiles): Promise<void> {
  const { cert, key } = await serverPair();
  writeFileSync(tlsCertPath, cert);
  writeFileSync(tlsKeyPath, key);
  main.child.kill('SIGHUP');
  await main.printed(/ reloaded .*SERVICE_TLS_CERT/);
  assert.equal(await shownBy(main.port), cert);
}
