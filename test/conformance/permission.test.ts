// The service under node --permission, as the systemd units and `SERVICE_PERMISSION=1 npm start` run it: all of it works,
// code that got into it is stopped where the manual says so, and commands that can't work say why.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { builtMain } from '../support/built.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { plantedBuild } from '../support/planted.ts';
import { isInstalled } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';
import { serverPair, shownBy, writePair } from '../support/tls.ts';
import { takeTour, tourSettings } from '../support/tour.ts';
import { startedAs } from '../support/unit-start.ts';

const START = join(ROOT, 'scripts', 'start.mjs');

test('node --permission: every route works as pasted-tcp.service starts it, and SIGHUP', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const data = temporaryFolder(t);
  const settings = await tourSettings(t, data);
  // As with LoadCredential=.
  writeFileSync(join(data, 'SERVICE_PKI_CA_PASSWORD'), 'of the authority');
  const { tlsCertPath, tlsKeyPath } = settings.files;
  const how = startedAs('pasted-tcp.service', data);
  // As by a drop-in.
  const more = { NODE_OPTIONS: `--allow-fs-read=${tlsCertPath} --allow-fs-read=${tlsKeyPath}` };
  const environment = { ...settings.environment, ...more, CREDENTIALS_DIRECTORY: data };
  const main = await startServing(t, { ...how, environment });
  await takeTour(t, main, settings);
  main.child.kill('SIGTERM');
  assert.deepEqual([await main.ended, main.stderr()], [0, '']);
});

test('SERVICE_PERMISSION=1 npm start: permits the files that settings name, and every route works', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const folder = temporaryFolder(t);
  const settings = await tourSettings(t, join(folder, 'new', 'data'));
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'of the authority');
  const environment = { ...settings.environment, SERVICE_PERMISSION: '1', SERVICE_PKI_CA_PASSWORD_FILE: secret };
  const main = await startServing(t, { build: START, environment });
  await takeTour(t, main, settings);
  main.child.kill('SIGTERM');
  assert.deepEqual([await main.ended, main.stderr()], [0, '']);
});

test('node --permission: the line of the manual serves', async (t) => {
  const data = temporaryFolder(t);
  const { files, environment } = await tourSettings(t, data);
  const manual = readFileSync(join(ROOT, 'scripts', 'release', 'chapters.md'), 'utf8');
  const [, line = ''] = /^`node (--permission [^`]*) \/usr\/lib\/pasted\/main\.js`/m.exec(manual) ?? [];
  const places = { '/usr/lib/pasted': dirname(builtMain()), '/etc/pasted/tls': dirname(files.tlsKeyPath), '/var/lib/pasted': data };
  const options = line.split(/\s+/).map((option) => {
    return Object.entries(places).reduce((text, [named, here]) => text.replace(named, here), option);
  });
  const nodeOptions = [...options, ...process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []];
  const main = await startServing(t, { nodeOptions, environment });
  assert.equal(await shownBy(main.port), readFileSync(files.tlsCertPath, 'utf8'));
});

test('SERVICE_PERMISSION of npm start: other words are refused, and a path that node would take for a pattern', async (t) => {
  const tried = async (environment: Record<string, string>) => {
    const main = startMain(t, [], { build: START, environment });
    return [await main.ended, main.stderr()];
  };
  assert.deepEqual(await tried({ SERVICE_PERMISSION: 'yes' }), [78, 'pasted: SERVICE_PERMISSION: expected 1 or 0\n']);
  const [code, words] = await tried({ SERVICE_PERMISSION: '1', SERVICE_DB: '/nowhere/a*/pasted.db' });
  assert.deepEqual([code, /\* in \/nowhere\/a\*/.test(String(words))], [78, true], String(words));
  const [unusable, problems] = await tried({ SERVICE_PERMISSION: '1', SERVICE_PORT: 'x' });
  assert.deepEqual([unusable, /SERVICE_PORT: expected/.test(String(problems))], [78, true], String(problems));
  // The service may read who signed the certificates of its nodes, and so it gets as far as asking them.
  const { tlsCertPath } = writePair(t, await serverPair());
  const nodes = { SERVICE_DB: 'rqlites://127.0.0.1:1', SERVICE_DB_CA: tlsCertPath };
  const [, silence] = await tried({ SERVICE_PERMISSION: '1', ...nodes });
  assert.match(String(silence), /ECONNREFUSED/);
});

/** Each attempt gives its result or `done`, or the code of the error that stopped it. `places` are of the test. */
const INTRUDER = (places: object) => `
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import inspector from 'node:inspector';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
const { data, outside, build } = ${JSON.stringify(places)};
const inWorker = (options) => new Promise((resolve) => {
  const code = "require('node:fs').readFileSync('/etc/passwd'); require('node:worker_threads').parentPort.postMessage(0)";
  const worker = new Worker(code, { ...options, eval: true });
  worker.once('message', resolve).once('error', ({ code }) => resolve(code));
});
const attempts = {
  'read outside': () => fs.readFileSync('/etc/passwd'),
  'read outside, later': () => fs.promises.readFile('/etc/passwd'),
  'list outside': () => fs.readdirSync('/etc'),
  'write outside': () => fs.writeFileSync(outside + '/written', ''),
  'write to its program': () => fs.writeFileSync(build + '/main.js', ''),
  'move outside': () => { fs.writeFileSync(data + '/own', ''); fs.renameSync(data + '/own', outside + '/own'); },
  'link to outside': () => fs.symlinkSync('/etc/passwd', data + '/link'),
  'spawn': () => { const { error } = spawnSync('/bin/true'); if (error) throw error; },
  'execve': () => process.execve('/bin/true', ['true'], {}),
  'add-on': () => process.dlopen({ exports: {} }, build + '/addon.node'),
  'inspector': () => inspector.open(0, '127.0.0.1'),
  'extension of SQLite': () => new DatabaseSync(':memory:', { allowExtension: true }),
  'a thread reads outside': () => inWorker({}),
  // What it does not stop.
  'write to its data': () => fs.writeFileSync(data + '/own', ''),
  'a database outside': () => new DatabaseSync(outside + '/new.db').exec('CREATE TABLE new (x)'),
  'an unrestricted thread': () => inWorker({ execArgv: [] }),
};
export async function plant() {
  const results = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      const result = await attempt();
      results[name] = typeof result === 'string' ? result : 'done';
    } catch (error) {
      results[name] = error.code;
    }
  }
  return results;
}
`;

async function intrude(t: TestContext, isRestricted: boolean): Promise<Record<string, string>> {
  const folder = temporaryFolder(t);
  const [data, outside] = [join(folder, 'data'), join(folder, 'outside')];
  for (const path of [data, outside]) mkdirSync(path);
  const build = plantedBuild(folder, INTRUDER({ data, outside, build: join(folder, 'dist') }));
  const how = isRestricted ? startedAs('pasted-tcp.service', data, build) : { build };
  const main = await startServing(t, { ...how, environment: { SERVICE_DB: join(data, 'pasted.db') } });
  const results = await (await fetch(`${main.url}/health`)).json() as Record<string, string>;
  assert.equal(existsSync(join(outside, 'new.db')), true, 'SQLite opens files by itself');
  assert.equal(existsSync(join(outside, 'written')), !isRestricted);
  return results;
}

test('node --permission: code in the service reads and writes nothing else by node:fs, and starts no program', async (t) => {
  const denied = 'ERR_ACCESS_DENIED';
  assert.deepEqual(await intrude(t, true), {
    'read outside': denied,
    'read outside, later': denied,
    'list outside': denied,
    'write outside': denied,
    'write to its program': denied,
    'move outside': denied,
    'link to outside': denied,
    'spawn': denied,
    'execve': denied,
    'add-on': 'ERR_DLOPEN_DISABLED',
    'inspector': denied,
    'extension of SQLite': 'ERR_LOAD_SQLITE_EXTENSION',
    'a thread reads outside': denied,
    'write to its data': 'done',
    'a database outside': 'done',
    'an unrestricted thread': 'done',
  });
});

const WORKING = ['check', 'stats', 'audit', 'prune', 'config', 'version', 'openapi', 'pki list', 'invite create', 'paste bans'];
const DURABLE = ['backup new.db', 'backup -', 'restore backup.db', 'pki issue --common-name a --out a.p12'];

test('node --permission: commands work, and those that must make a file durable say why they do not', async (t) => {
  const data = temporaryFolder(t);
  const environment = { SERVICE_DB: join(data, 'pasted.db'), SERVICE_PKI_CA_PASSWORD: 'of the authority' };
  const served = await startServing(t, { environment });
  served.child.kill('SIGTERM');
  await served.ended;
  assert.equal(await startMain(t, ['backup', join(data, 'backup.db')], { environment }).ended, 0);

  const permitted = ['--permission', '--allow-worker', '--disable-warning=PERM0006', `--allow-fs-read=${dirname(builtMain())}`];
  const own = [`--allow-fs-read=${data}`, `--allow-fs-write=${data}`];
  const tried = async (words: readonly string[], nodeOptions = [...permitted, ...own]) => {
    const main = startMain(t, words, { nodeOptions, environment });
    return { code: await main.ended, errors: main.stderr() };
  };
  for (const line of WORKING) assert.deepEqual(await tried(line.split(' ')), { code: 0, errors: '' }, line);
  assert.equal((await tried(['admin', 'create', '--out', '-'])).code, 0);
  for (const line of DURABLE) {
    const { code, errors } = await tried(line.split(' ').map((word) => (word.includes('.') ? join(data, word) : word)));
    assert.equal(code, 1, errors);
    assert.match(errors, /^pasted: .*\(ERR_ACCESS_DENIED: node --permission forbids fsync, so run this without it\)\n$/);
  }
  const { code, errors } = await tried(['tls', 'self-signed', '--host', 'paste.example']);
  assert.equal(code, 1);
  assert.match(errors, /server\.crt cannot be written \(ERR_ACCESS_DENIED: node --permission needs --allow-fs-write for it\)\n$/);
  assert.equal(existsSync(join(data, 'new.db')), false);
  const elsewhere = await tried(['stats'], permitted);
  assert.equal(elsewhere.code, 78);
  assert.match(elsewhere.errors, /pasted\.db.* cannot be used \(ERR_ACCESS_DENIED: node --permission needs --allow-fs-read for it\)\n$/);
});

test('node --permission: a file of a setting that it does not permit is named by its setting', async (t) => {
  const data = temporaryFolder(t);
  const settings = await tourSettings(t, data);
  const how = startedAs('pasted.service', data);
  const main = startMain(t, [], { ...how, environment: settings.environment });
  assert.equal(await main.ended, 78);
  assert.match(main.stderr(), /SERVICE_TLS_CERT: .*\(ERR_ACCESS_DENIED: node --permission needs --allow-fs-read for it\)/);
  const socket = startMain(t, [], { ...how, environment: { SERVICE_DB: join(data, 'pasted.db'), SERVICE_LISTEN: `unix:${data}.http` } });
  assert.equal(await socket.ended, 1);
  assert.match(socket.stderr(), /^pasted: cannot listen on unix:.* --allow-fs-read and --allow-fs-write of node/);
});
