// The public listener on a unix socket of its own: permissions, what was left behind, and whom its peers count as.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { MIB } from '../../src/core/time.ts';
import { Connections } from '../../src/http/engine/connections.ts';
import { startHttp } from '../support/http-server.ts';
import { startMain, temporaryFolder } from '../support/main-process.ts';
import { head } from '../support/raw-http.ts';
import { testConfig } from '../support/test-config.ts';

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Sent {
  readonly headers?: Record<string, string>;
  readonly agent?: Agent;
}

function get(socketPath: string, path: string, { agent, ...sent }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { socketPath, path, agent: agent ?? false, ...sent };
    request(options, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (text) => (body += text));
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body }));
    }).on('error', reject).end();
  });
}

/** A request as the handler of /view sees it. */
async function viewOf(socketPath: string, sent: Sent = {}): Promise<{ address: string; url: string }> {
  const { status, body } = await get(socketPath, '/view', sent);
  assert.equal(status, 200);
  return JSON.parse(body) as { address: string; url: string };
}

test('unix socket: peers are proxies of this host, believed like any that is trusted', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  const { url, answered } = await startHttp(t, { config: { listenOn: `unix:${path}`, trustedProxies: [] } });
  assert.equal(url, `unix:${path}`);
  const forwarded = { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'p.example' };
  const view = await viewOf(path, { headers: forwarded });
  assert.deepEqual([view.address, view.url], ['192.0.2.7', 'https://p.example']);
  const line = await answered(({ route }) => route === '/view');
  assert.equal(line.clientIp, '192.0.2.7');
});

test('unix socket: a peer that does not read is cut off like any other', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  const handlers = { raw: () => ({ status: 200, headers: {}, body: Buffer.alloc(32 * MIB) }) };
  const config = { listenOn: `unix:${path}`, minTransferRate: 100 * MIB };
  const { clock, checked, answered } = await startHttp(t, { config, handlers });
  const socket = connect(path);
  t.after(() => socket.destroy());
  socket.write(head('GET /abcdef/raw HTTP/1.1'));
  await once(socket, 'readable');
  await checked();
  clock.advance(10_100);
  await answered(({ route }) => route === '/{id}/raw');
});

test('unix socket: whoever forwards for nobody is the one client `unix`, at `localhost`', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  await startHttp(t, { config: { listenOn: `unix:${path}` } });
  for (const headers of [{}, { 'X-Forwarded-For': 'garbage' }]) {
    const { address, url } = await viewOf(path, { headers: { ...headers, Host: '' } });
    assert.deepEqual([address, url], ['unix', 'http://localhost']);
  }
});

test('unix socket: with a proxy secret, peers without it are not believed', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  await startHttp(t, { config: { listenOn: `unix:${path}`, proxySecret: 'hush' } });
  const headers = { 'X-Forwarded-For': '192.0.2.7' };
  assert.equal((await viewOf(path, { headers })).address, 'unix');
  assert.equal((await viewOf(path, { headers: { ...headers, 'X-Proxy-Secret': 'hush' } })).address, '192.0.2.7');
});

test('unix socket: a proxy may hold more connections than one client, and no more than there may be', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  await startHttp(t, { config: { listenOn: `unix:${path}`, maxConnectionsPerClient: 1, maxConnections: 3 } });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const three = await Promise.all([1, 2, 3].map(() => get(path, '/', { agent })));
  assert.deepEqual(three.map(({ status }) => status), [200, 200, 200]);
  assert.equal((await get(path, '/')).status, 503);
});

test('peerOf: a client of TCP that has gone already is no local peer', () => {
  const connections = new Connections(testConfig({ trustedProxies: ['0.0.0.0/0', '::/0'] }));
  const gone = { remoteAddress: undefined } as ReturnType<typeof connect>;
  const { address, isTrusted } = connections.peerOf(gone);
  assert.deepEqual([address, isTrusted], ['', false]);
  connections.peersAreLocal = true;
  assert.deepEqual(connections.peerOf(gone).address, 'unix');
});

test('SERVICE_LISTEN: a socket with its mode, logged, and gone with the process', async (t) => {
  for (const [mode, expected] of [['', 0o660], ['606', 0o606]] as const) {
    const path = join(temporaryFolder(t), 'http');
    const environment = { SERVICE_LISTEN: `unix:${path}`, SERVICE_LISTEN_MODE: mode, SERVICE_PORT: '1' };
    const main = startMain(t, [], { environment });
    await main.printed(new RegExp(` listening {2}url=unix:${path} `));
    assert.equal(statSync(path).mode & 0o777, expected);
    assert.equal((await get(path, '/health')).status, 200);
    main.child.kill('SIGTERM');
    assert.equal(await main.ended, 0);
    assert.equal(existsSync(path), false);
  }
});

test('SERVICE_LISTEN: a socket in use is refused, and one of a process that was killed replaced', async (t) => {
  const path = join(temporaryFolder(t), 'http');
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listening'))`;
  const other = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const refused = startMain(t, [], { environment: { SERVICE_LISTEN: `unix:${path}` } });
  assert.equal(await refused.ended, 1);
  const reason = 'another process listens there, or it is a file; choose another SERVICE_LISTEN';
  assert.equal(refused.stderr(), `pasted: cannot listen on unix:${path}: ${reason}\n`);
  other.kill('SIGKILL');
  await once(other, 'exit');
  assert.equal(statSync(path).isSocket(), true);
  const replaced = startMain(t, [], { environment: { SERVICE_LISTEN: `unix:${path}` } });
  await replaced.printed(/ listening {2}/);
  assert.equal((await get(path, '/health')).status, 200);
});

test('SERVICE_LISTEN: a file, a missing folder and too long a path end with one line that names it', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, 'kept');
  const cases = [
    [file, 'another process listens there, or it is a file'],
    [join(folder, 'none', 'http'), 'there is no such folder'],
    [join(file, 'http'), 'there is no such folder'],
    [join(folder, 'ü'.repeat(45)), 'the path is too long'],
  ] as const;
  const mains = cases.map(([path]) => startMain(t, [], { environment: { SERVICE_LISTEN: `unix:${path}` } }));
  for (const [index, [path, reason]] of cases.entries()) {
    const main = mains[index]!;
    assert.equal(await main.ended, 1);
    const [line = '', ...more] = main.stderr().split('\n');
    assert.ok(line.startsWith(`pasted: cannot listen on unix:${path}: ${reason}`), line);
    assert.match(line, /SERVICE_LISTEN\b/);
    assert.deepEqual(more, ['']);
  }
  assert.equal(statSync(file).size, 4);
});
