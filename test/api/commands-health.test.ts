// `pasted health` and http/probe.ts: what is asked, where and how, of servers that are well, ill, strange or silent.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Environment } from '../../src/config/load.ts';
import { probe, ProbeError } from '../../src/http/probe.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { startApp } from '../support/app.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { temporaryFolder } from '../support/programs.ts';
import { serverCertificate } from '../support/server-certificate.ts';

const HEALTHY = '{"status":"healthy","database":"ok"}\n';
const UNHEALTHY = '{"error":"health check failed","status":"unhealthy","database":"error"}\n';

async function health(words: readonly string[], environment: Environment = {}) {
  const fake = fakeTerminal(['health', ...words], { environment, readFile: (path) => readFileSync(path, 'utf8') });
  const code = await runCommandLine(fake.terminal);
  return { code, stdout: fake.stdout(), stderr: fake.stderr() };
}

/** Listens until the test ends; gives the port, or 0 for a path. */
async function listen(t: TestContext, server: Server, path?: string): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(path === undefined ? { host: '127.0.0.1', port: 0 } : { path });
  await once(server, 'listening');
  t.after(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return path === undefined ? (server.address() as AddressInfo).port : 0;
}

function answering(status: number, body: string): RequestListener {
  return (request, response) => {
    const { method, url, headers } = request;
    const isAsked = method === 'GET' && /(?:^|\/paste)\/health$/.test(url ?? '') && headers.host !== undefined;
    response.writeHead(isAsked ? status : 400, { 'Content-Type': 'application/json' }).end(body);
  };
}

test('health: a service is found by its settings, wherever it listens on this host', async (t) => {
  const { port } = await startApp(t);
  const healthy = { code: 0, stdout: 'healthy\n', stderr: '' };
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    assert.deepEqual(await health([], { SERVICE_HOST: host, SERVICE_PORT: String(port) }), healthy);
  }
  assert.deepEqual(await health(['--url', `http://localhost:${port}/`]), healthy);
  assert.deepEqual(await health(['--json', '--url', `http://127.0.0.1:${port}`]), { ...healthy, stdout: HEALTHY });
});

test('health: over a unix socket, by the settings and by --url', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  await listen(t, createServer(answering(200, HEALTHY)), path);
  assert.equal((await health([], { SERVICE_LISTEN: `unix:${path}` })).stdout, 'healthy\n');
  assert.equal((await health(['--url', `unix:${path}`])).stdout, 'healthy\n');
  const file = `${path}.file`;
  writeFileSync(file, '');
  for (const [place, reason] of [
    [`${path}.not`, 'there is no such socket'],
    // A reason that has no words of its own is told by its code.
    [`${file}/http`, 'it cannot be asked (ENOTDIR)'],
  ] as const) {
    const stderr = `pasted: unix:${place}: ${reason}\n`;
    assert.deepEqual(await health(['--url', `unix:${place}`]), { code: 1, stdout: '', stderr });
  }
});

test('health: by the settings, TLS with the very certificate of their file, whatever its name', async (t) => {
  const folder = temporaryFolder(t);
  const [own, other] = [await serverCertificate('paste.example'), await serverCertificate('paste.example')];
  const port = await listen(t, createTlsServer(own, answering(200, HEALTHY)));
  const settings = { SERVICE_PORT: String(port), SERVICE_TLS_CERT: join(folder, 'cert'), SERVICE_TLS_KEY: join(folder, 'key') };
  const url = `https://127.0.0.1:${port}/health`;
  for (const [pem, expected] of [
    [own.cert + other.cert, { code: 0, stdout: 'healthy\n', stderr: '' }],
    [other.cert + own.cert, {
      code: 1, stdout: '', stderr: `pasted: ${url}: it shows another certificate than the one expected\n`,
    }],
    ['no PEM', { code: 1, stdout: '', stderr: 'pasted: SERVICE_TLS_CERT: the file does not begin with a certificate in PEM\n' }],
  ] as const) {
    writeFileSync(join(folder, 'cert'), pem);
    assert.deepEqual(await health([], settings), expected);
  }
  const unreadable = { ...settings, SERVICE_TLS_CERT: join(folder, 'missing') };
  assert.equal((await health([], unreadable)).stderr, 'pasted: SERVICE_TLS_CERT: the file cannot be read (ENOENT)\n');
});

test('health --url: TLS verified as by any client', async (t) => {
  const own = await serverCertificate('localhost');
  const names: string[] = [];
  const SNICallback = (name: string, done: (error: null) => void): void => {
    names.push(name);
    done(null);
  };
  const port = await listen(t, createTlsServer({ ...own, SNICallback }, answering(200, HEALTHY)));
  for (const host of ['localhost', '127.0.0.1']) {
    const { code, stderr } = await health(['--url', `https://${host}:${port}`]);
    assert.equal(code, 1);
    assert.equal(stderr, `pasted: https://${host}:${port}/health: its certificate is not trusted; NODE_EXTRA_CA_CERTS can name it\n`);
  }
  // RFC 6066 section 3: an address is no server name that a client can ask for.
  assert.deepEqual(names, ['localhost']);
});

test('health: what is not well ends with 1 and one line; --json still prints the answer', async (t) => {
  for (const [status, body, reason, json] of [
    [503, UNHEALTHY, 'the service is unhealthy, or is stopping (503)', UNHEALTHY],
    [200, '{"status":"other"}', 'the answer is not that of this service (200)', '{"status":"other"}\n'],
    [200, 'welcome\u001b[2J', 'the answer is not that of this service (200)', ''],
    [200, '', 'the answer is not that of this service (200)', ''],
    [200, 'null', 'the answer is not that of this service (200)', ''],
    [404, HEALTHY, 'the answer is not that of this service (404)', HEALTHY],
    [200, `"${'x'.repeat(70_000)}"`, 'its answer is too long', ''],
  ] as const) {
    const url = `http://127.0.0.1:${await listen(t, createServer(answering(status, body)))}/paste`;
    const stderr = `pasted: ${url}/health: ${reason}\n`;
    assert.deepEqual(await health(['--url', url]), { code: 1, stdout: '', stderr });
    assert.deepEqual(await health(['--url', url, '--json']), { code: 1, stdout: json, stderr });
  }
});

test('health: nobody there, no HTTP, no TLS, no answer', async (t) => {
  const closed = createPlainServer();
  const closedPort = await listen(t, closed);
  closed.close();
  const garbage = await listen(t, createPlainServer((socket) => socket.on('error', () => {}).end('SSH-2.0-x\r\n')));
  const mute = await listen(t, createPlainServer((socket) => socket.on('error', () => {}).destroy()));
  for (const [url, reason] of [
    [`http://127.0.0.1:${closedPort}`, 'nothing listens there'],
    [`http://127.0.0.1:${garbage}`, 'it does not speak HTTP'],
    [`https://127.0.0.1:${garbage}`, 'it does not speak TLS'],
    [`http://127.0.0.1:${mute}`, 'the connection was closed without an answer'],
  ] as const) {
    assert.deepEqual(await health(['--url', url]), { code: 1, stdout: '', stderr: `pasted: ${url}/health: ${reason}\n` });
  }
});

test('probe: gives up on a server that is silent, before the answer and in it', async (t) => {
  const silent = await listen(t, createPlainServer((socket) => socket.on('error', () => {})));
  const halting = await listen(t, createServer((_request, response) => void response.writeHead(200).write('{')));
  for (const port of [silent, halting]) {
    const target = { place: { host: '127.0.0.1', port }, host: 'localhost', path: '/health' };
    await assert.rejects(probe({ ...target, tls: undefined }, 50), new ProbeError('no answer within 0.05 s'));
  }
  const target = { place: { host: '127.0.0.1', port: silent }, tls: {}, host: 'localhost', path: '/health' };
  await assert.rejects(probe(target, 50), new ProbeError('no answer within 0.05 s'));
});

test('health: refuses settings and options that name no place', async () => {
  const unknown = await health([], { SERVICE_PORT: '0' });
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^pasted: the settings do not say which port it listens on \(SERVICE_PORT\): give --url\n$/);
  assert.equal((await health([], { SERVICE_PORT: 'x' })).code, 78);
  for (const words of [['--url', 'localhost'], ['--url', 'unix:x'], ['--timeout', '0'], ['--timeout', '61']]) {
    assert.equal((await health(words)).code, 2, words.join(' '));
  }
});
