// The description of the API against what the running service answers, so that it can't drift from that. Against the
// tables it is made of: openapi.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { serviceHandlers } from '../../src/http/handlers/service.ts';
import { type Route, ROUTES } from '../../src/http/routes.ts';
import type { Parts } from '../../src/pastes/parts.ts';
import type { Store } from '../../src/store/open.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { problemsOf, resolve, type Schema } from '../support/json-schema.ts';
import { API, operationOf, type Response, responseOf } from '../support/openapi.ts';
import { PKI, withAdmin } from '../support/pki.ts';
import { makeRequestPem } from '../support/request.ts';
import { freshWork } from '../support/work.ts';

/** One request, and the checks of its answer against what is described for it. */
interface Asking {
  readonly app: RunningApp;
  readonly seen: Set<string>;
}

interface Sent {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

type Json = Readonly<Record<string, unknown>>;

async function ask({ app, seen }: Asking, endpoint: string, status: number, sent: Sent = {}): Promise<Json> {
  const route = routeOf(endpoint);
  const { path = route.path, headers = {} } = sent;
  const body = sent.body === undefined ? {} : { body: sent.body as string };
  const response = await app.request(path, { method: route.method, headers, ...body });
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, status, `${endpoint}: ${bytes}`);
  const described = responseOf(operationOf(route), status);
  assertHeaders(response.headers, described);
  seen.add(`${endpoint} ${status}`);
  const type = response.headers.get('content-type');
  if (type === null) return assertEmpty(bytes, described, endpoint);
  const content = described.content?.[type] ?? described.content?.['*/*'];
  assert.ok(content, `${endpoint}: ${type} is not described`);
  if (type !== 'application/json') return {};
  const json = JSON.parse(bytes.toString()) as Json;
  assert.deepEqual(problemsOf(json, content.schema ?? assert.fail(`${endpoint}: no schema`), API), []);
  if (status >= 400) assert.ok(described.description.split('; ').includes(String(json['error'])), `${endpoint}: ${json['error']}`);
  return json;
}

/** Checks the headers that are there: some depend on settings, or on the paste. */
function assertHeaders(headers: Headers, described: Response): void {
  for (const [name, header] of Object.entries(described.headers ?? {})) {
    const value = headers.get(name);
    const { schema } = resolve(String(header['$ref']), API) as { schema: Schema };
    const typed = schema['type'] === 'integer' ? Number(value) : value;
    if (value !== null) assert.deepEqual(problemsOf(typed, schema, API, name), []);
  }
}

function assertEmpty(bytes: Buffer, { content }: Response, endpoint: string): Json {
  assert.deepEqual([bytes.length, content], [0, undefined], endpoint);
  return {};
}

function routeOf(endpoint: string): Route {
  return ROUTES.find(({ method, path }) => `${method} ${path}` === endpoint) ?? assert.fail(`no route ${endpoint}`);
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const AS_TEXT = { Accept: 'text/plain' };
const AS_PAGE = { Accept: 'text/html,*/*;q=0.8' };
const FORM = { ...AS_PAGE, 'Content-Type': 'application/x-www-form-urlencoded' };

async function begin(t: TestContext, overrides: Parameters<typeof startApp>[1] = {}): Promise<Asking> {
  return { app: await startApp(t, overrides), seen: new Set() };
}

async function askAboutPastes(asking: Asking): Promise<void> {
  const { app } = asking;
  const owner = presenting(newFingerprint());
  const all = { 'X-Burn-After-Read': '1', 'X-Expiry': '60', 'X-Paste-Password': 'p' };
  await ask(asking, 'POST /', 201, { body: 'x' });
  await ask(asking, 'POST /', 201, { body: '{"content":"x"}', headers: { ...JSON_TYPE, ...owner, ...all } });
  await ask(asking, 'POST /', 201, { body: 'x', headers: AS_TEXT });
  await ask(asking, 'PUT /', 201, { body: 'x' });
  await ask(asking, 'POST /', 400);
  await ask(asking, 'POST /', 400, { body: '[]', headers: JSON_TYPE });
  await ask(asking, 'POST /', 413, { body: 'x'.repeat(1001) });
  await ask(asking, 'POST /', 415, { body: 'x', headers: { 'Content-Encoding': 'gzip' } });
  await ask(asking, 'POST /', 400, { body: 'x', headers: { 'X-Paste-Password': 'x'.repeat(1025) } });
  const open = await app.store('content', owner);
  const locked = await app.store('content', { 'X-Paste-Password': 'p' });
  await ask(asking, 'GET /{id}', 200, { path: `/${open}` });
  await ask(asking, 'GET /{id}', 200, { path: `/${locked}`, headers: { 'X-Paste-Password': 'p' } });
  await ask(asking, 'GET /{id}', 401, { path: `/${locked}` });
  await ask(asking, 'GET /{id}', 403, { path: `/${locked}`, headers: { 'X-Paste-Password': 'q' } });
  await ask(asking, 'GET /{id}', 404, { path: '/aaaaaa' });
  await ask(asking, 'GET /{id}', 400, { path: '/a' });
  await ask(asking, 'GET /{id}', 400, { path: `/${open}`, headers: { 'X-Paste-Password': 'x'.repeat(1025) } });
  await ask(asking, 'GET /{id}', 200, { path: `/${open}`, headers: AS_PAGE });
  await ask(asking, 'POST /{id}', 200, { path: `/${locked}`, headers: FORM, body: 'password=p' });
  const once = await app.store('x', { 'X-Burn-After-Read': '1' });
  await ask(asking, 'POST /{id}', 200, { path: `/${once}`, headers: FORM, body: 'reveal=1' });
  const binary = await app.store(Buffer.from([0xff]), { 'X-Burn-After-Read': '1' });
  await ask(asking, 'POST /{id}', 200, { path: `/${binary}`, headers: FORM, body: 'reveal=1' });
  const raw = `/${open}/raw`;
  await ask(asking, 'GET /{id}/raw', 200, { path: raw, headers: AS_PAGE });
  await ask(asking, 'GET /{id}/raw', 200, { path: raw });
  await ask(asking, 'GET /{id}/raw', 200, { path: `/${await app.store('x', { 'X-Burn-After-Read': '1' })}/raw` });
  await ask(asking, 'GET /{id}/raw', 206, { path: raw, headers: { Range: 'bytes=0-1' } });
  await ask(asking, 'GET /{id}/raw', 304, { path: raw, headers: { 'If-None-Match': '*' } });
  await ask(asking, 'GET /{id}/raw', 416, { path: raw, headers: { Range: 'bytes=100-' } });
  await ask(asking, 'GET /{id}/raw', 401, { path: `/${locked}/raw` });
  await ask(asking, 'GET /pastes', 200, { headers: owner });
  await ask(asking, 'GET /pastes', 200, { headers: { ...owner, ...AS_TEXT } });
  await ask(asking, 'GET /pastes', 400, { path: '/pastes?limit=x', headers: owner });
  await ask(asking, 'GET /pastes', 401);
  await ask(asking, 'GET /pastes', 403, { path: '/pastes?all=1', headers: owner });
  const own = { path: `/${open}`, headers: owner };
  await ask(asking, 'PUT /{id}', 200, { ...own, body: 'other content' });
  await ask(asking, 'PUT /{id}', 200, { ...own, headers: { ...owner, 'X-Paste-Password': 'p' } });
  await ask(asking, 'PUT /{id}', 400, own);
  await ask(asking, 'PUT /{id}', 400, { ...own, headers: { ...owner, 'X-Expiry': 'soon' } });
  await ask(asking, 'PUT /{id}', 400, { path: '/a', headers: owner, body: 'x' });
  await ask(asking, 'PUT /{id}', 401, { path: `/${open}`, body: 'x' });
  await ask(asking, 'PUT /{id}', 404, { path: '/aaaaaa', headers: owner, body: 'x' });
  await ask(asking, 'PUT /{id}', 413, { ...own, body: 'x'.repeat(1001) });
  await ask(asking, 'PUT /{id}', 415, { ...own, headers: { ...owner, 'Content-Encoding': 'gzip' }, body: 'x' });
  await ask(asking, 'PUT /{id}', 403, { path: `/${locked}`, headers: owner, body: 'x' });
  await ask(asking, 'DELETE /{id}', 400, { path: '/a', headers: owner });
  await ask(asking, 'DELETE /{id}', 401, { path: `/${open}` });
  await ask(asking, 'DELETE /{id}', 403, { path: `/${locked}`, headers: owner });
  await ask(asking, 'DELETE /{id}', 200, own);
  await ask(asking, 'DELETE /{id}', 404, own);
}

async function askAboutService(asking: Asking): Promise<void> {
  await ask(asking, 'GET /', 200);
  await ask(asking, 'GET /', 200, { headers: AS_PAGE });
  await ask(asking, 'GET /health', 200);
  await ask(asking, 'GET /client', 200);
  await ask(asking, 'GET /.well-known/security.txt', 200);
  for (const endpoint of ['GET /challenge', 'GET /register/challenge']) {
    await ask(asking, endpoint, 200);
    await ask(asking, endpoint, 200, { headers: AS_TEXT });
  }
  await ask(asking, 'GET /', 431, { headers: { 'X-Long': 'x'.repeat(17_000) } });
}

async function askAboutCertificates(asking: Asking): Promise<void> {
  const { app } = asking;
  await ask(asking, 'GET /pki', 200);
  await ask(asking, 'GET /pki/ca.crt', 404);
  await ask(asking, 'GET /pki/ca.crl', 404);
  const admin = presenting((await withAdmin(app)).fingerprint_sha1);
  await ask(asking, 'GET /pki', 200);
  await ask(asking, 'POST /pki/ca', 409);
  await ask(asking, 'GET /pki/ca.crt', 200);
  for (const path of ['/pki/ca.crl', '/pki/ca.crl.pem']) {
    await ask(asking, `GET ${path}`, 200);
    await ask(asking, `GET ${path}`, 304, { headers: { 'If-None-Match': '*' } });
  }
  const issued = await ask(asking, 'POST /pki/issue', 201, { body: '{"common_name":"a"}', headers: { ...admin, ...JSON_TYPE } });
  const csr = makeRequestPem();
  await ask(asking, 'POST /pki/issue', 201, { body: JSON.stringify({ common_name: 'b', csr }), headers: { ...admin, ...JSON_TYPE } });
  await ask(asking, 'POST /pki/issue', 400, { body: JSON.stringify({ common_name: 'c', csr }), headers: JSON_TYPE });
  await ask(asking, 'POST /pki/issue', 400, { body: '{}', headers: JSON_TYPE });
  await ask(asking, 'POST /pki/issue', 413, { body: 'x'.repeat(40_000), headers: JSON_TYPE });
  const revoke = { path: `/pki/revoke/${String(issued['serial'])}`, headers: admin };
  await ask(asking, 'POST /pki/revoke/{serial}', 400, {
    ...revoke, body: '{"reason":"none"}', headers: { ...admin, ...JSON_TYPE },
  });
  await ask(asking, 'POST /pki/revoke/{serial}', 401, { path: revoke.path });
  await ask(asking, 'POST /pki/revoke/{serial}', 403, { path: revoke.path, headers: presenting(newFingerprint()) });
  await ask(asking, 'POST /pki/revoke/{serial}', 200, revoke);
  await ask(asking, 'POST /pki/revoke/{serial}', 409, revoke);
  await ask(asking, 'POST /pki/revoke/{serial}', 404, { ...revoke, path: `/pki/revoke/${'0'.repeat(32)}` });
  await ask(asking, 'GET /pki/certs', 200, { headers: admin });
  await ask(asking, 'GET /pki/certs', 200);
  await ask(asking, 'POST /register', 200);
  await ask(asking, 'POST /register', 400, { body: '{"p12_profile":"none"}', headers: JSON_TYPE });
  await ask(asking, 'POST /register', 201, { body: JSON.stringify({ csr: makeRequestPem() }), headers: JSON_TYPE });
  await ask(asking, 'POST /register/renew', 200, { headers: admin });
  await ask(asking, 'POST /register/renew', 201, {
    body: JSON.stringify({ csr: makeRequestPem() }), headers: { ...admin, ...JSON_TYPE },
  });
  await ask(asking, 'POST /register/renew', 400, { body: '[]', headers: { ...admin, ...JSON_TYPE } });
  await ask(asking, 'POST /register/renew', 401);
  await ask(asking, 'POST /register/renew', 403, { headers: presenting(newFingerprint()) });
  await ask(asking, 'GET /audit', 200, { headers: admin });
  await ask(asking, 'GET /audit', 401);
  await ask(asking, 'GET /pastes', 200, { path: '/pastes?all=1', headers: admin });
}

test('openapi: what the service answers is as described, of every operation', async (t) => {
  const asking = await begin(t, { ...PKI, maxAnonBytes: 1000, rateMax: 1000, contact: 'mailto:a@paste.example' });
  await askAboutService(asking);
  await askAboutPastes(asking);
  await askAboutCertificates(asking);
  const fresh = { ...(await begin(t, PKI)), seen: asking.seen };
  await ask(fresh, 'POST /pki/ca', 400, { body: 'no JSON', headers: JSON_TYPE });
  await ask(fresh, 'POST /pki/ca', 400, { body: '{"common_name":1}', headers: JSON_TYPE });
  await ask(fresh, 'POST /pki/ca', 201, { body: '{"common_name":"A CA"}', headers: JSON_TYPE });
  for (const route of ROUTES) {
    const endpoint = `${route.method} ${route.path}`;
    const statuses = Object.keys(operationOf(route).responses).filter((status) => Number(status) < 400);
    const untried = statuses.filter((status) => !asking.seen.has(`${endpoint} ${status}`));
    assert.deepEqual(untried, [], `every success of ${endpoint} was tried`);
  }
});

test('openapi: what a service with limits answers is as described', async (t) => {
  const content = { minBytes: 2, minEntropyBits: 3, minEntropyBytes: 20, requireBinary: true };
  const limits = { ...content, rateMax: 2, lookupRateMax: 1, duplicateMax: 1 };
  const strict = await begin(t, limits);
  await ask(strict, 'POST /', 400, { body: 'x' });
  await ask(strict, 'POST /', 400, { body: 'plain text' });
  await ask(strict, 'POST /', 429, { body: 'x' });
  const entropy = await begin(t, { ...limits, rateMax: 0 });
  await ask(entropy, 'POST /', 400, { body: Buffer.alloc(30, 0xff) });
  await ask(entropy, 'POST /', 201, { body: Buffer.from([0xff, 1]) });
  await ask(entropy, 'POST /', 429, { body: Buffer.from([0xff, 1]) });
  await ask(entropy, 'GET /{id}', 404, { path: '/aaaaaa' });
  await ask(entropy, 'GET /{id}', 429, { path: '/aaaaaa' });
  const working = await begin(t, { powDifficultyBits: 4, registerPowDifficultyBits: 4, pkiCaPassword: PKI.pkiCaPassword });
  await ask(working, 'GET /', 200);
  await ask(working, 'GET /challenge', 200);
  await ask(working, 'GET /register/challenge', 200);
  await ask(working, 'POST /', 400, { body: 'x' });
  await ask(working, 'POST /register', 400);
  await ask(working, 'POST /register', 400, { headers: { 'X-PoW-Token': 'x', 'X-PoW-Solution': '1' } });
  await ask(working, 'GET /pki', 200);
  await ask(working, 'GET /pki/certs', 404);
  const unable = await begin(t, { registerPowDifficultyBits: 0 });
  await ask(unable, 'POST /register', 500);
  await ask(unable, 'GET /register/challenge', 200);
  await ask(unable, 'GET /', 200);
  const looking = await begin(t, { ...PKI, registerPowDifficultyBits: 1, lookupRateMax: 1 });
  await ask(looking, 'GET /{id}', 404, { path: '/aaaaaa' });
  await ask(looking, 'POST /register', 429, { headers: await freshWork(looking.app, '/register/challenge') });
  const closed = await begin(t, { ...PKI, registerBy: 'off' });
  await ask(closed, 'GET /register/challenge', 403);
  await ask(closed, 'POST /register', 403);
  await ask(closed, 'GET /', 200);
  const invited = await begin(t, { ...PKI, registerBy: 'invite' });
  await ask(invited, 'GET /register/challenge', 403);
  await ask(invited, 'POST /pki/issue', 403);
  await ask(invited, 'GET /', 200);
  const limited = await begin(t, { ...PKI, rateMax: 1 });
  await ask(limited, 'POST /pki/issue', 400);
  await ask(limited, 'POST /pki/issue', 429);
});

test('openapi: the longest texts that are described are taken, and those of one character more are not', async (t) => {
  const app = await startApp(t, { ...PKI, rateMax: 0 });
  const longest = (name: string, member: string): number => {
    const { properties } = API.components['schemas']![name] as { properties: Record<string, Schema> };
    return Number(properties[member]!['maxLength']);
  };
  const post = async (path: string, body: object): Promise<number> => {
    const response = await app.request(path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) });
    await response.arrayBuffer();
    return response.status;
  };
  const name = longest('RegistrationRequest', 'common_name');
  const password = longest('RegistrationRequest', 'p12_password');
  assert.equal(await post('/register', { common_name: 'n'.repeat(name) }), 200);
  assert.equal(await post('/register', { common_name: 'n'.repeat(name + 1) }), 400);
  assert.equal(await post('/register', { p12_password: 'p'.repeat(password) }), 200);
  assert.equal(await post('/register', { p12_password: 'p'.repeat(password + 1) }), 400);
  const request = (length: number) => ({ common_name: 'x', csr: makeRequestPem().padEnd(length, '\n') });
  assert.equal(await post('/pki/issue', request(longest('IssueRequest', 'csr'))), 201);
  assert.equal(await post('/pki/issue', request(longest('IssueRequest', 'csr') + 1)), 400);
});

test('openapi: GET /health of a service that stops is as described', async (t) => {
  const { config } = await startApp(t);
  const challenges = { difficultyBits: () => 0 };
  const healthy = { healthy: () => Promise.resolve(true) } as Store;
  const parts = { config, store: healthy, challenges } as unknown as Parts;
  const { health } = serviceHandlers(parts, async () => undefined, () => true);
  const { status, body } = await health();
  const { content } = responseOf(operationOf(routeOf('GET /health')), status);
  assert.deepEqual(problemsOf(JSON.parse(String(body)), content!['application/json']!.schema!, API), []);
});
