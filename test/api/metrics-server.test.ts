// The listener of the metrics over real sockets: TCP, IPv6 and unix.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { LogEntry } from '../../src/core/events.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { Forwarding } from '../../src/http/forwarded.ts';
import { createMetricsServer } from '../../src/http/metrics-listener.ts';
import { createMetrics } from '../../src/ops/metrics.ts';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { startApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { movableClock } from '../support/clock.ts';
import { GAUGE_READERS } from '../support/metrics.ts';
import { post } from '../support/posting.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { testConfig } from '../support/test-config.ts';

const METRICS = createMetrics({ routes: ['/'], readers: GAUGE_READERS });
const MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** A server that does not listen yet, and is stopped when the test ends. */
function metricsServer(
  t: TestContext,
  listenOn: string,
  render = METRICS.render,
): ReturnType<typeof createMetricsServer> & { readonly logged: readonly LogEntry[] } {
  const logged: LogEntry[] = [];
  const config = testConfig({ shutdownGraceSeconds: 0, host: 'not.used.invalid', port: 1, metricsListen: listenOn });
  const server = createMetricsServer({
    config,
    metrics: { render },
    clock: movableClock(),
    newUuid,
    trust: new Forwarding(config, randomBytes),
    log: (entry) => logged.push(entry),
  });
  t.after(() => server.stop());
  return { ...server, logged };
}

function socketPath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-metrics-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'metrics.sock');
}

/** Status and body of GET /metrics on a unix socket. */
function getOverSocket(path: string): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: path, path: '/metrics', agent: false }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (text) => (body += text));
      res.on('end', () => resolve({ status: res.statusCode, body }));
    });
    sent.on('error', reject).end();
  });
}

test('GET /metrics: what render gives, as Prometheus text, with the common headers', async (t) => {
  const { port, url } = await metricsServer(t, '127.0.0.1:0').listen();
  assert.equal(url, `http://127.0.0.1:${port}`);
  const connection = await openRaw(t, port);
  connection.send(head('GET /metrics HTTP/1.1'));
  const answer = await connection.next();
  assert.equal(answer.status, 200);
  assert.equal(answer.header('content-type'), MEDIA_TYPE);
  assertContract(answer);
  assert.equal(answer.body.toString(), await METRICS.render());
});

test('GET /metrics: pastes and duplicates are counted, each once', async (t) => {
  const path = socketPath(t);
  const app = await startApp(t, { metricsListen: path, duplicateMax: 1, rateMax: 100 });
  const counted = async (): Promise<string[]> => {
    const { body } = await getOverSocket(path);
    return body.match(/(?<=^pasted_)(pastes_created|pastes_accessed|pastes_deleted|duplicate_checks)_.*/gm) ?? [];
  };
  const owner = presenting(newFingerprint());
  const own = await app.store('own', owner);
  const burning = await app.store('burning', { 'X-Burn-After-Read': 'true' });
  assert.equal((await post(app, 'own')).status, 429);
  assert.equal((await post(app, '')).status, 400);
  const change = (method: string, init: RequestInit = {}): Promise<Response> =>
    app.request(`/${own}`, { method, headers: owner, ...init });
  assert.equal((await change('PUT', { body: 'new' })).status, 200);
  assert.equal((await change('PUT', { body: 'burning' })).status, 429);
  assert.equal((await change('PUT', { headers: { ...owner, 'X-Expiry': '60' } })).status, 200);
  for (const [id, status] of [[own, 200], [burning, 200], [burning, 404]] as const) {
    assert.equal((await app.request(`/${id}/raw`)).status, status);
  }
  for (const status of [200, 404]) assert.equal((await change('DELETE')).status, status);
  assert.deepEqual(await counted(), [
    'pastes_created_total 2', 'pastes_accessed_total 2', 'pastes_deleted_total{reason="deleted"} 1',
    'pastes_deleted_total{reason="burned"} 1', 'pastes_deleted_total{reason="expired"} 0',
    'duplicate_checks_total{outcome="accepted"} 3', 'duplicate_checks_total{outcome="refused"} 2',
  ]);
  const { body } = await getOverSocket(path);
  assert.match(body, /^pasted_refusals_total\{refusal="duplicateContent"\} 2$/m);
  assert.match(body, /^pasted_http_request_duration_seconds_count\{route="\/\{id\}\/raw",status="2xx"\} 2$/m);
});

test('GET /metrics: where duplicates are not looked for, none is counted as looked at', async (t) => {
  const path = socketPath(t);
  const app = await startApp(t, { metricsListen: path, duplicateMax: 0 });
  const owner = presenting(newFingerprint());
  const id = await app.store('own', owner);
  assert.equal((await app.request(`/${id}`, { method: 'PUT', headers: owner, body: 'new' })).status, 200);
  const { body } = await getOverSocket(path);
  assert.deepEqual(body.match(/^pasted_duplicate_checks_total.*/gm), [
    'pasted_duplicate_checks_total{outcome="accepted"} 0', 'pasted_duplicate_checks_total{outcome="refused"} 0',
  ]);
});

test('GET /metrics: sixteen connections are served, of one client too, and one more is 503', async (t) => {
  const { port } = await metricsServer(t, '127.0.0.1:0').listen();
  const statuses: number[] = [];
  for (let count = 1; count <= 17; count += 1) {
    const connection = await openRaw(t, port);
    connection.send(head('GET /metrics HTTP/1.1'));
    statuses.push((await connection.next()).status);
  }
  assert.deepEqual(statuses, [...Array(16).fill(200), 503]);
});

test('HEAD /metrics: the headers of GET and no body', async (t) => {
  const { port } = await metricsServer(t, '127.0.0.1:0').listen();
  const connection = await openRaw(t, port);
  connection.send(head('HEAD /metrics HTTP/1.1', 'Connection: close'));
  const answer = await connection.next('HEAD');
  assert.equal(answer.status, 200);
  assert.equal(answer.header('content-type'), MEDIA_TYPE);
  assert.equal(answer.header('content-length'), String(Buffer.byteLength(await METRICS.render())));
  assertContract(answer);
  assert.equal(await connection.rest(), '');
});

test('metrics listener: other paths are 404 and other methods 405, pastes are not there', async (t) => {
  const { port } = await metricsServer(t, '127.0.0.1:0').listen();
  const connection = await openRaw(t, port);
  for (const path of ['/', '/health', '/metrics/', '/metricsx', '/abcdefgh', '/abcdefgh/raw']) {
    connection.send(head(`GET ${path} HTTP/1.1`));
    assertRefused(await connection.next(), 404, 'not found');
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    connection.send(head(`${method} /metrics HTTP/1.1`, 'Content-Length: 0'));
    const answer = await connection.next();
    assertRefused(answer, 405, 'method not allowed');
    assert.equal(answer.header('allow'), 'GET, HEAD, OPTIONS');
  }
});

test('GET /metrics: a failure is 500 without detail, and logged; requests that succeed are not', async (t) => {
  let fails = false;
  const render = async () => (fails ? assert.fail('secret') : METRICS.render());
  const server = metricsServer(t, '127.0.0.1:0', render);
  const { port } = await server.listen();
  const connection = await openRaw(t, port);
  connection.send(head('GET /metrics HTTP/1.1'));
  assert.equal((await connection.next()).status, 200);
  assert.deepEqual(server.logged, []);
  fails = true;
  connection.send(head('GET /metrics HTTP/1.1'));
  const answer = await connection.next();
  assertRefused(answer, 500, 'internal server error');
  assert.equal(answer.body.includes('secret'), false);
  assert.deepEqual(server.logged.map(({ event }) => event), ['request failed']);
});

test('createMetricsServer: listens on an IPv6 address in brackets', async (t) => {
  const server = metricsServer(t, '[::1]:0');
  const listening = await server.listen().catch((error: NodeJS.ErrnoException) => error);
  if (listening instanceof Error) {
    assert.ok(listening.code === 'EADDRNOTAVAIL' || listening.code === 'EAFNOSUPPORT', listening.message);
    t.skip('this host has no IPv6');
    return;
  }
  assert.equal(listening.url, `http://[::1]:${listening.port}`);
  assert.equal((await fetch(`${listening.url}/metrics`)).status, 200);
});

test('createMetricsServer: a port in use rejects listen', async (t) => {
  const { port } = await metricsServer(t, '127.0.0.1:0').listen();
  await assert.rejects(metricsServer(t, `127.0.0.1:${port}`).listen(), { code: 'EADDRINUSE' });
});

test('unix socket: answers, is for user and group only, and goes when the server stops', async (t) => {
  const path = socketPath(t);
  const server = metricsServer(t, path);
  assert.equal((await server.listen()).url, `unix:${path}`);
  assert.equal(statSync(path).mode & 0o777, 0o660);
  assert.deepEqual(await getOverSocket(path), { status: 200, body: await METRICS.render() });
  await server.stop();
  assert.equal(existsSync(path), false);
});

test('unix socket: what a killed process left is replaced', async (t) => {
  const path = socketPath(t);
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listening'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  await assert.rejects(metricsServer(t, path).listen(), { code: 'EADDRINUSE' }, 'not while it lives');
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(statSync(path).isSocket(), true);
  await metricsServer(t, path).listen();
  assert.equal((await getOverSocket(path)).status, 200);
});

test('unix socket: a file that is no socket stays as it is', async (t) => {
  const path = socketPath(t);
  writeFileSync(path, 'kept');
  await assert.rejects(metricsServer(t, path).listen(), { code: 'EADDRINUSE' });
  assert.equal(statSync(path).isFile(), true);
});
