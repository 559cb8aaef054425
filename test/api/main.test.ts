// src/main.ts as a process: exit codes, signals, what goes to which stream, and streams that break.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SETTINGS, VERSION } from '../../src/config/settings.ts';
import { builtMain } from '../support/built.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { openRaw, type RawAnswer } from '../support/raw-http.ts';
import { smallFileSystem } from '../support/small-file-system.ts';

const CANARY = 'canary-2718281828';

interface JsonLine {
  readonly event: string;
  readonly details: Record<string, unknown>;
}

/** Code that runs in the process before main.ts does. */
function preload(code: string): string[] {
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}

test('main: a command in a working folder that was removed says so, without a stack trace', (t) => {
  const home = temporaryFolder(t);
  const env = { PATH: process.env['PATH'], SERVICE_DB: join(home, 'pasted.db') };
  writeFileSync(env.SERVICE_DB, '');
  for (const words of [['stats'], ['tls', 'self-signed', '--host', 'localhost']]) {
    const gone = join(home, 'gone');
    mkdirSync(gone);
    const script = 'rmdir "$PWD" && exec "$@"';
    const sh = spawnSync('sh', ['-c', script, 'sh', process.execPath, builtMain(), ...words], { cwd: gone, env, encoding: 'utf8' });
    assert.deepEqual([sh.status, sh.stderr], [1, 'pasted: the working folder was removed: go to another\n'], words.join(' '));
  }
});

test('main: settings that cannot be used end with 78, all of them named, no secret said, nothing opened', async (t) => {
  const main = startMain(t, [], {
    environment: {
      SERVICE_PORT: '65536',
      SERVICE_MAX_ANON: '3MB',
      SERVICE_PROXY_SECRET: `${CANARY}\u0001`,
      SERVICE_POW_SECRET_FILE: `/nowhere/${CANARY}`,
      SERVICE_PKI_CA_PASSWORD_FILE: '/dev/zero',
    },
  });
  assert.equal(await main.ended, 78);
  assert.equal(main.stdout(), '');
  assert.deepEqual(main.stderr().trimEnd().split('\n').map((line) => line.trim().split(':')[0]), [
    'pasted', 'SERVICE_PORT', 'SERVICE_PROXY_SECRET', 'SERVICE_MAX_ANON', 'SERVICE_POW_SECRET_FILE',
    'SERVICE_PKI_CA_PASSWORD_FILE',
  ]);
  assert.ok(!main.stderr().includes(CANARY));
  assert.throws(() => statSync(join(main.folder, 'data')), { code: 'ENOENT' });
});

test('main: a file that is no database ends with 78 and one line, and stays as it is', async (t) => {
  const path = join(temporaryFolder(t), 'diary.txt');
  writeFileSync(path, 'Dear diary,\n');
  const main = startMain(t, [], { environment: { SERVICE_PORT: '0', SERVICE_DB: path } });
  assert.equal(await main.ended, 78);
  assert.match(main.stderr(), /^pasted: [^\n]*diary\.txt[^\n]*SERVICE_DB[^\n]*\n$/);
  assert.equal(readFileSync(path, 'utf8'), 'Dear diary,\n');
});

test('main: a database that another process serves ends with 75 and one line that names the process', async (t) => {
  const first = await startServing(t, { environment: { SERVICE_DB: 'pasted.db' } });
  const path = join(first.folder, 'pasted.db');
  const second = startMain(t, [], { environment: { SERVICE_PORT: '0', SERVICE_DB: path } });
  assert.equal(await second.ended, 75);
  const command = `process ${first.child.pid} (${process.execPath} ${builtMain()})`;
  assert.equal(second.stderr(), `pasted: the database ${path} is in use by another process; it is ${command}\n`);
  assert.equal((await fetch(`${first.url}/health`)).status, 200);
});

test('main: a database that cannot be made ends with 78 and one line that names the setting, and leaves no file', async (t) => {
  const folder = temporaryFolder(t);
  const path = (name: string): string => join(folder, name);
  mkdirSync(path('folder'));
  writeFileSync(path('file'), '');
  symlinkSync('nowhere', path('dangling'));
  symlinkSync('loop', path('loop'));
  assert.equal(spawnSync('mkfifo', [path('pipe')]).status, 0);
  const names = readdirSync(folder);
  for (const databasePath of [
    path('folder'), path('pipe'), path('file/pasted.db'), path('file/more/pasted.db'), path('dangling/pasted.db'),
    path('loop/pasted.db'), path('n'.repeat(256)), '/dev/null', '/dev/null/pasted.db',
    // The folder above is there, but making a folder in it fails with ENOENT.
    '/proc/none/pasted.db', '/proc/none/more/pasted.db',
  ]) {
    for (const words of [['serve'], ['admin', 'create', '--out', 'admin.p12'], ['restore', path('file')]]) {
      const environment = { SERVICE_PORT: '0', SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: 'words' };
      const main = startMain(t, words, { environment });
      assert.equal(await main.ended, 78, `${words[0]} ${databasePath}: ${main.stderr()}`);
      assert.match(main.stderr(), /^pasted: [^\n]+SERVICE_DB[^\n]*\n$/);
      assert.ok(main.stderr().includes(databasePath), main.stderr());
    }
  }
  assert.deepEqual(readdirSync(folder), names);
});

test('main: a database, or its lock, of another user ends with 78 and one line that says so', async (t) => {
  const main = builtMain();
  const isRoot = process.getuid?.() === 0;
  const options = { ...(isRoot ? { uid: 65_534 } : {}), encoding: 'utf8', cwd: '/', timeout: 60_000 } as const;
  if (spawnSync(process.execPath, [main, 'version'], options).status !== 0) {
    t.skip('another user cannot run this Node');
    return;
  }
  const folder = temporaryFolder(t);
  const databasePath = join(folder, 'pasted.db');
  const first = await startServing(t, { environment: { SERVICE_DB: databasePath } });
  first.child.kill('SIGTERM');
  assert.equal(await first.ended, 0);
  chmodSync(folder, 0o777);
  for (const path of [databasePath, `${databasePath}-lock`]) {
    for (const name of ['pasted.db', 'pasted.db-lock']) chmodSync(join(folder, name), 0o666);
    // As root leaves a file after copying a backup there.
    chmodSync(path, 0o444);
    for (const command of ['serve', 'stats']) {
      const env = { SERVICE_PORT: '0', SERVICE_DB: databasePath };
      const { status, stderr } = spawnSync(process.execPath, [main, command], { ...options, env });
      const reason = `EACCES: permission denied, access '${path}' (SERVICE_DB)`;
      assert.deepEqual([status, stderr], [78, `pasted: the file ${path} cannot be used: ${reason}\n`], command);
    }
  }
  // As the service has its folder: there is a database in it, which others may not even see.
  chmodSync(folder, 0o700);
  if (!isRoot) chmodSync(folder, 0o000);
  for (const words of [['stats'], ['backup', '-'], ['prune'], ['pki', 'list']]) {
    const env = { SERVICE_DB: databasePath };
    const { status, stderr } = spawnSync(process.execPath, [main, ...words], { ...options, env });
    const reason = `EACCES: permission denied, open '${databasePath}' (SERVICE_DB)`;
    assert.deepEqual([status, stderr], [78, `pasted: the database ${databasePath} cannot be read: ${reason}\n`], words[0]);
  }
  chmodSync(folder, 0o700);
});

test('main: the folder of the database is made with those above it, for their owner alone', async (t) => {
  const folder = temporaryFolder(t);
  const main = await startServing(t, { environment: { SERVICE_DB: join(folder, 'one', 'two', 'pasted.db') } });
  assert.equal((await fetch(`${main.url}/health`)).status, 200);
  for (const name of ['one', 'one/two']) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o700);
});

test('main: port 0 is logged as the port it became; SIGTERM and SIGINT end with 0', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const main = await startServing(t);
    assert.equal((await fetch(`${main.url}/health`)).status, 200);
    main.child.kill(signal);
    assert.equal(await main.ended, 0);
    assert.match(main.stdout(), new RegExp(`main  listening  url=${main.url} version=${VERSION}\n`));
    assert.match(main.stdout(), new RegExp(`main  stopping  signal=${signal}\n.*main  stopped\n$`, 's'));
    assert.equal(main.stderr(), '');
  }
});

test('main: in production every line of standard output is JSON, start-up warnings included', async (t) => {
  const main = await startServing(t, { environment: { NODE_ENV: 'production', SERVICE_PROT: '1' } });
  await (await fetch(`${main.url}/health`)).text();
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  const lines = main.stdout().trimEnd().split('\n').map((line) => JSON.parse(line) as JsonLine);
  const doubts = lines.filter(({ event }) => event === 'setting doubtful');
  const messages = doubts.map(({ details }) => String(details['message']));
  assert.match(messages[0]!, /SERVICE_PROT.*SERVICE_PORT/);
  assert.match(messages[1]!, /^SERVICE_PROXY_SECRET is not set/);
  const events = lines.map(({ event }) => event);
  assert.ok(events.includes('request'));
  assert.deepEqual(events.slice(-2), ['stopping', 'stopped']);
});

test('main: files of the database are for their owner alone', async (t) => {
  const main = await startServing(t, { environment: { SERVICE_DB: 'pasted.db' } });
  for (const suffix of ['', '-wal', '-shm']) {
    assert.equal(statSync(join(main.folder, `pasted.db${suffix}`)).mode & 0o077, 0, suffix);
  }
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
});

test('main: a second signal does not wait for requests in flight, and ends with 1', async (t) => {
  const main = await startServing(t, { environment: { SERVICE_POW_DIFFICULTY: '0' } });
  const socket = connect(main.port, '127.0.0.1').on('error', () => {});
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n');
  await once(socket, 'data');
  main.child.kill('SIGTERM');
  await main.printed(/main {2}stopping/);
  // Closer together, they would pass for copies of one signal.
  await new Promise((resolve) => setTimeout(resolve, 300));
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 1);
  assert.match(main.stdout(), /main {2}stopped at once {2}signal=SIGTERM\n$/);
});

test('main: a port in use ends with 1 and one line that names the setting, and the process that has it', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const main = startMain(t, [], { environment: { SERVICE_PORT: String(port) } });
  assert.equal(await main.ended, 1);
  const said = /^pasted: cannot listen on 127\.0\.0\.1 port (\d+): the port is in use by process (\d+) \((.*)\); (.*)\n$/;
  const [, ...words] = said.exec(main.stderr()) ?? assert.fail(main.stderr());
  assert.deepEqual([words[0], words[1], words[3]], [String(port), String(process.pid), 'choose another SERVICE_PORT']);
  assert.match(words[2]!, /node/);
});

test('main: an address that this host does not have ends with 1 and names SERVICE_HOST', async (t) => {
  // RFC 5737: an address of documentation, which no host has.
  const main = startMain(t, [], { environment: { SERVICE_PORT: '0', SERVICE_HOST: '192.0.2.1' } });
  assert.equal(await main.ended, 1);
  assert.match(main.stderr(), /^pasted: cannot listen on 192\.0\.2\.1 port 0: [^\n]*SERVICE_HOST\n$/);
});

test('main: an error that nothing catches is logged, on standard error with its stack, and ends with 1', async (t) => {
  for (const [failing, printed] of [
    ['throw new Error(\'boom\')', /^pasted: Error: boom\n {4}at /],
    ['Promise.reject(new Error(\'boom\'))', /^pasted: Error: boom\n {4}at /],
    // A thrown value that is no Error has no stack.
    ['throw \'boom\'', /^pasted: boom\n$/],
  ] as const) {
    const nodeOptions = preload(`process.on('SIGUSR2', () => { ${failing} })`);
    const main = await startServing(t, { nodeOptions, environment: { NODE_ENV: 'production' } });
    main.child.kill('SIGUSR2');
    assert.equal(await main.ended, 1);
    assert.match(main.stderr(), printed);
    const last = JSON.parse(main.stdout().trimEnd().split('\n').at(-1)!) as Record<string, unknown>;
    assert.deepEqual([last['level'], last['event'], last['details']], ['error', 'uncaught error', { reason: 'boom' }]);
  }
});

test('main: without the thread that writes it stops with 1, so that systemd starts it again, and answers what is under way', async (t) => {
  const nodeOptions = preload(`
    import { syncBuiltinESMExports } from 'node:module';
    import threads from 'node:worker_threads';
    threads.Worker = class extends threads.Worker {
      constructor(...given) {
        super(...given);
        process.on('SIGUSR2', () => this.terminate());
      }
    };
    syncBuiltinESMExports();`);
  const environment = { NODE_ENV: 'production', SERVICE_POW_DIFFICULTY: '0' };
  // Both ways to start it: only without words has it made the thread before anything else.
  for (const words of [[], ['serve', '--']]) {
    const main = await startServing(t, { nodeOptions, environment, words });
    assert.equal((await fetch(main.url, { method: 'POST', body: 'stored before' })).status, 201);
    const late = await openRaw(t, main.port);
    late.send('POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n');
    assert.equal((await late.next()).status, 100);
    main.child.kill('SIGUSR2');
    await main.printed(/"event":"stopping"/);
    late.send('under way');
    assert.equal((await late.next()).status, 503);
    assert.equal(await main.ended, 1);
    const lines = main.stdout().trimEnd().split('\n').map((line) => JSON.parse(line) as JsonLine);
    const told = lines.filter(({ event }) => /writer thread|stop/.test(event)).map(({ event, details }) => [event, details?.['reason']]);
    assert.deepEqual(told, [
      ['writer thread ended', 'exited'], ['stopping', 'writer thread ended'], ['stopped', undefined],
    ]);
    assert.equal(main.stderr(), '');
  }
});

/** Where the link leads, nothing if it has gone meanwhile. */
function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}

test('main: without a file descriptor left it says 503 to what needs code that was not read yet, and serves once there are', async (t) => {
  const through = ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath] as const;
  const main = await startServing(t, { through, environment: { SERVICE_MAX_CONNECTIONS_PER_CLIENT: '0' } });
  const asked = await openRaw(t, main.port);
  const askForPage = async (): Promise<RawAnswer> => {
    asked.send('GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n');
    return asked.next();
  };
  asked.send('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
  assert.equal((await asked.next()).status, 200);
  const held = Array.from({ length: 64 }, () => connect(main.port, '127.0.0.1').on('error', () => {}));
  t.after(() => held.forEach((socket) => socket.destroy()));
  const openFiles = () => readdirSync(`/proc/${main.child.pid}/fd`).length;
  // What a start still does in the background, such as making the room in reserve, would give its descriptor back.
  const folder = `/proc/${main.child.pid}/fd`;
  const isFull = (): boolean => {
    const files = readdirSync(folder).filter((name) => Number(name) < 64).flatMap((name) => linkOf(join(folder, name)));
    return files.length === 64 && !files.some((file) => file.endsWith('-ballast'));
  };
  for (const deadline = Date.now() + 30_000; !isFull(); await sleep(20)) {
    assert.ok(Date.now() < deadline);
    held.push(connect(main.port, '127.0.0.1').on('error', () => {}));
  }
  const refused = await askForPage();
  assert.deepEqual([refused.status, refused.json()], [503, { error: 'too many connections' }]);
  assert.equal(refused.header('retry-after'), '5');
  for (const socket of held) socket.destroy();
  for (const deadline = Date.now() + 10_000; openFiles() >= 50; await sleep(20)) assert.ok(Date.now() < deadline);
  const shown = await askForPage();
  assert.equal(shown.status, 200);
  assert.match(shown.header('content-type'), /^text\/html/);
  assert.match(main.stdout(), /warning  http  request failed  .*EMFILE/);
});

test('main: an older Node is told what is needed, in one sentence', async (t) => {
  const cases = [['9.11.2', false], ['23.11.1', false], ['24.0.0', true], ['100.0.0', true]] as const;
  for (const [version, isEnough] of cases) {
    const versions = `{ ...process.versions, node: '${version}' }`;
    const nodeOptions = preload(`Object.defineProperty(process, 'versions', { value: ${versions} })`);
    const main = startMain(t, ['version'], { nodeOptions });
    assert.equal(await main.ended, isEnough ? 0 : 1);
    assert.equal(main.stderr(), isEnough ? '' : `pasted needs Node.js 24 or later, and this is Node.js ${version}\n`);
    assert.equal(main.stdout(), isEnough ? `pasted ${VERSION}\n` : '');
  }
});

test('main: goes on serving when nobody reads its log any more', async (t) => {
  const main = await startServing(t);
  main.child.stdout!.destroy();
  for (let index = 0; index < 20; index += 1) assert.equal((await fetch(`${main.url}/health`)).status, 200);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  assert.equal(main.stderr(), '');
});

test('main: goes on serving when the reader of its log stands still, and ends in time', async (t) => {
  const main = await startServing(t);
  main.child.stdout!.pause();
  // More than a pipe and the reader's own buffer hold.
  const headers = { 'X-Request-ID': 'x'.repeat(128) };
  for (let round = 0; round < 30; round += 1) {
    const answers = Array.from({ length: 50 }, () => fetch(`${main.url}/health`, { headers }));
    for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200);
  }
  main.child.kill('SIGTERM');
  const [code] = await once(main.child, 'exit') as [number];
  assert.equal(code, 0);
  main.child.stdout!.resume();
  await main.ended;
});

test('main: goes on serving when the disk of its log is full, and logs again once there is room', async (t) => {
  const folder = smallFileSystem(t, 1);
  if (folder === undefined) return t.skip('no file system can be mounted here');
  const path = join(folder, 'log');
  const descriptor = openSync(path, 'a');
  const main = startMain(t, [], { environment: { SERVICE_PORT: '0' }, stdout: descriptor });
  closeSync(descriptor);
  const logged = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const [, found] = pattern.exec(readFileSync(path, 'utf8')) ?? [];
      if (found !== undefined) return found;
      await sleep(20);
    }
  };
  const url = await logged(/(http:\/\/127\.0\.0\.1:\d+)\b/);
  const ask = async (id: string): Promise<void> => {
    assert.equal((await fetch(`${url}/health`, { headers: { 'X-Request-ID': id } })).status, 200);
  };
  assert.throws(() => writeFileSync(join(folder, 'hog'), Buffer.alloc(2 ** 21)), { code: 'ENOSPC' });
  for (let index = 0; index < 50; index += 1) await ask(`full-${'x'.repeat(120)}`);
  assert.ok(statSync(path).size <= 4096, 'a page that the file had already');
  rmSync(join(folder, 'hog'));
  await ask('room');
  await logged(/(request_id=room)\n/);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  assert.equal(main.stderr(), '');
});

test('main: the log in a file is whole', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'log');
  const descriptor = openSync(path, 'w');
  const environment = { SERVICE_PORT: '0', SERVICE_DB: '/dev/null/pasted.db', SERVICE_PROT: '1' };
  const main = startMain(t, [], { environment, stdout: descriptor });
  closeSync(descriptor);
  assert.equal(await main.ended, 78);
  assert.match(readFileSync(path, 'utf8'), /^\S+ warning {2}config {2}setting doubtful {2}message="[^\n]*"\n$/);
});

test('main: help lists every setting, with its default', async (t) => {
  const main = startMain(t, ['help']);
  assert.equal(await main.ended, 0);
  for (const { name, fallback } of Object.values(SETTINGS)) {
    const plain = String(typeof fallback === 'boolean' ? Number(fallback) : fallback);
    assert.ok(main.stdout().includes(`\n  ${name}  ${plain || '(not set)'}  [`), name);
  }
});

test('main: config shows what serve would use, from the environment, a file and a credential', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'pow'), `${CANARY}-1\n`);
  writeFileSync(join(folder, 'SERVICE_PKI_CA_PASSWORD'), `${CANARY}-2\n`);
  const main = startMain(t, ['config', '--json'], {
    environment: {
      PORT: '3000',
      SERVICE_PROXY_SECRET: CANARY,
      SERVICE_POW_SECRET_FILE: join(folder, 'pow'),
      CREDENTIALS_DIRECTORY: folder,
    },
  });
  assert.equal(await main.ended, 0);
  assert.ok(!main.stdout().includes(CANARY));
  const { settings } = JSON.parse(main.stdout()) as { settings: { name: string; value: unknown; source: string }[] };
  const changed = settings.filter(({ source }) => source !== 'default');
  assert.deepEqual(changed.map(({ name, value, source }) => [name, value, source]), [
    ['SERVICE_PORT', 3000, 'environment'],
    ['SERVICE_PROXY_SECRET', '(set)', 'environment'],
    ['SERVICE_POW_SECRET', '(set)', 'file'],
    ['SERVICE_PKI_CA_PASSWORD', '(set)', 'credential'],
  ]);
});

test('main: what a command prints arrives whole, also what a pipe does not hold at once', () => {
  const command = ['-c', '"$0" "$1" openapi | { head -c 1; cat; }', process.execPath, builtMain()];
  const printed = spawnSync('sh', command, { encoding: 'utf8', env: { PATH: process.env['PATH'] } }).stdout;
  assert.ok(printed.length > 2 ** 16);
  assert.equal((JSON.parse(printed) as { openapi: string }).openapi, '3.1.0');
});

test('main: a command whose reader has gone ends without a word', async (t) => {
  const main = startMain(t, ['help']);
  main.child.stdout!.destroy();
  assert.equal(await main.ended, 0);
  assert.equal(main.stderr(), '');
});

test('main: a wrong command line ends with 2', async (t) => {
  const main = startMain(t, ['sevre']);
  assert.equal(await main.ended, 2);
  assert.equal(main.stderr(), 'pasted: unknown command "sevre"; did you mean serve?\nTry: pasted help\n');
});
