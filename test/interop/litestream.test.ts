// scripts/deploy/litestream with the real Litestream as the parent of the service: what a replica has after kills, that
// what was burned leaves the files, and that socket and signals reach the service. Needs the version that the files are
// for; .ci/run fetches it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { builtMain } from '../support/built.ts';
import { deployed, deployLitestream, litestreamMissing, serviceUnder } from '../support/litestream.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { execStartOf, UNITS_FOLDER } from '../support/unit-start.ts';

/** Whatever is waited for comes within some seconds; a slow machine has more. */
const PATIENCE_MS = 30_000;

async function until<Value>(
  what: string, look: () => Value | undefined | false | Promise<Value | undefined | false>, more: () => string = () => '',
): Promise<Value> {
  for (const startMs = performance.now(); performance.now() - startMs < PATIENCE_MS; await pause(20)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
  }
  throw new Error(`never happened: ${what}\n${more()}`);
}

/** Another version counts as missing, since the files are not for it. */
function hasLitestream(t: TestContext): boolean {
  const missing = litestreamMissing();
  if (missing !== undefined) t.skip(missing);
  return missing === undefined;
}

function deploy(t: TestContext, change?: (configuration: string) => string) {
  const folder = temporaryFolder(t);
  const deployment = deployLitestream(folder, { main: builtMain(), ...change === undefined ? {} : { change } });
  const { databasePath, replica, replicate, restore, moveReplica } = deployment;
  const environment = {
    ...deployment.environment, SERVICE_PORT: '0',
    SERVICE_POW_DIFFICULTY: '0', SERVICE_RATE_MAX: '0', SERVICE_LOOKUP_RATE_MAX: '0', SERVICE_DEDUP_MAX: '0',
  };

  /** Starts a command in a process group of its own, all of which ends with the test. */
  function begin(command: string, words: readonly string[]) {
    const stdio = ['ignore', 'pipe', 'pipe'] as const;
    const child = spawn(command, words, { cwd: folder, env: environment, detached: true, stdio: [...stdio] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    }
    const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
    t.after(async () => {
      killGroup(child);
      await ended;
    });
    const printed = (pattern: RegExp) => (
      until(`${pattern} is printed`, () => pattern.exec(output) ?? undefined, () => output)
    );
    return { child, ended, printed };
  }

  const serveAlone = () => begin(process.execPath, [builtMain(), 'serve']);
  const [program, ...words] = replicate as [string, ...string[]];
  return {
    folder, databasePath, replica, serveAlone,
    /** The first start is without Litestream, as replica.conf wants it. */
    async makeDatabase(): Promise<void> {
      const { child, printed, ended } = serveAlone();
      await printed(/ listening /);
      child.kill('SIGTERM');
      assert.equal(await ended, 0);
    },
    serve: () => {
      deployment.prepare();
      return begin(program, words);
    },
    /** LISTEN_PID is the process id of Litestream, as under systemd. */
    serveOn: (socketPath: string) => {
      const settings = Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`);
      return begin('systemd-socket-activate', ['--listen', socketPath, ...settings, ...replicate]);
    },
    restore, moveReplica,
    pasted: (words: readonly string[], database = databasePath) => (
      run('env', [`SERVICE_DB=${database}`, process.execPath, builtMain(), ...words], folder)
    ),
  };
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // The whole group has ended already.
  }
}

const urlIn = async (printed: (pattern: RegExp) => Promise<RegExpExecArray>): Promise<string> => (
  (await printed(/ listening {2}url=(http:\S+)/))[1]!
);

async function store(url: string, content: Uint8Array<ArrayBuffer> | string, headers: Record<string, string> = {}) {
  const answer = await fetch(url, { method: 'POST', body: content, headers });
  assert.equal(answer.status, 201);
  return (await answer.json() as { id: string }).id;
}

function filesUnder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** 0 when the file has gone meanwhile. */
function timeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Whether any of the files has any of the marks; a file that has gone meanwhile has none. */
function holds(files: readonly string[], marks: readonly Buffer[]): boolean {
  return files.some((file) => {
    try {
      const bytes = readFileSync(file);
      return marks.some((mark) => bytes.includes(mark));
    } catch {
      return false;
    }
  });
}

test('litestream: what was burned leaves the database, its log, the copies beside it and the replica', async (t) => {
  if (!hasLitestream(t)) return;
  const { databasePath, replica, makeDatabase, serve } = deploy(t, (configuration) => configuration
    .replace('interval: 30s', 'interval: 1s').replace('interval: 5m', 'interval: 2s')
    .replace('l0-retention: 1m', 'l0-retention: 1s\nl0-retention-check-interval: 1s')
    .replace('interval: 1h', 'interval: 3s').replace('retention: 1h', 'retention: 3s'));
  await makeDatabase();
  const { printed, child, ended } = serve();
  const url = await urlIn(printed);
  // Too random to be compressed, and in several pages.
  const content = randomBytes(30_000);
  const marks = [2000, 9000, 17_000, 25_000].map((start) => content.subarray(start, start + 32));
  const log = `${databasePath}-wal`;
  const beside = (): string[] => filesUnder(join(databasePath, '..', '.pasted.db-litestream'));
  const elsewhere = (): string[] => filesUnder(replica);
  // The paste goes into the log behind others, so that later writes begin before it and do not reach it. Litestream
  // must not begin a new log in between, nor be stopped while writes wait for it.
  await until('nothing changes any more', () => Date.now() - statSync(log).mtimeMs > 1000);
  child.kill('SIGSTOP');
  for (let number = 0; number < 5; number += 1) await store(url, randomBytes(50_000));
  const id = await store(url, content, { 'X-Burn-After-Read': 'true' });
  child.kill('SIGCONT');
  await until('the paste is in the replica', () => holds(elsewhere(), marks));
  assert.ok(holds([databasePath, log], marks) && holds(beside(), marks));
  assert.deepEqual(Buffer.from(await (await fetch(`${url}/${id}/raw`)).arrayBuffer()), content);
  await until('it is gone from the database and its log', () => !holds([databasePath, log], marks));
  let isOver = false;
  t.after(() => (isOver = true));
  const others = (async () => {
    while (!isOver) await store(url, randomBytes(100)).then(() => pause(100));
  })();
  await until('it is gone from the copies beside the database', () => !holds(beside(), marks));
  await until('it is gone from the replica', () => !holds(elsewhere(), marks));
  isOver = true;
  await others;
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  // Nothing is renamed any more.
  for (const file of [...beside(), ...elsewhere()]) assert.equal(statSync(file).mode & 0o777, 0o600, file);
});

interface Acknowledged {
  readonly id: string;
  readonly content: string;
  readonly atMs: number;
}

const KILLS = 5;

test('litestream: kills of the service lose nothing, and the loss of the host the last moment at most', async (t) => {
  if (!hasLitestream(t)) return;
  const { folder, replica, makeDatabase, serve, restore, pasted } = deploy(t);
  await makeDatabase();
  const acknowledged: Acknowledged[] = [];
  let url: string | undefined;
  let isOver = false;
  t.after(() => (isOver = true));
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let number = 0; !isOver; number += 1) {
      const content = `${writer} ${number} ${randomBytes(200).toString('hex')}`;
      const id = url === undefined ? undefined : await store(url, content).catch(() => undefined);
      if (id === undefined) await pause(10);
      else acknowledged.push({ id, content, atMs: Date.now() });
    }
  });
  let replicatedMs = 0;
  for (let kill = 0; kill <= KILLS; kill += 1) {
    const { child, printed, ended } = serve();
    url = await urlIn(printed);
    const before = acknowledged.length;
    await until('some are acknowledged', () => acknowledged.length > before + 100);
    if (kill === KILLS) {
      replicatedMs = Date.now();
      // A file has the time of its end, so the first one may have been begun before.
      const isSince = (file: string): boolean => /\/0\/\w+-\w+\.ltx$/.test(file) && timeOf(file) > replicatedMs;
      await until('that is replicated', () => filesUnder(replica).filter(isSince).length >= 2);
      killGroup(child);
    } else {
      process.kill(serviceUnder(child.pid!)!, 'SIGKILL');
      // Restart=on-failure starts both again.
      assert.equal(await ended, 'SIGKILL');
    }
    url = undefined;
    await ended;
  }
  const lostMs = Date.now();
  isOver = true;
  await Promise.all(writers);

  const restored = join(folder, 'restored', 'pasted.db');
  assert.equal(restore(restored).status, 0);
  assert.equal(statSync(restored).mode & 0o777, 0o600);
  assert.equal(statSync(join(restored, '..')).mode & 0o777, 0o700);
  using db = new DatabaseSync(restored);
  const found = db.prepare('SELECT content FROM pastes WHERE id = :id');
  const missing = acknowledged.filter(({ id, content }) => {
    const row = found.get({ id });
    return row === undefined || Buffer.from(row['content'] as Uint8Array).toString() !== content;
  });
  const oldestMs = Math.max(0, ...missing.map(({ atMs }) => lostMs - atMs));
  t.diagnostic(`${missing.length} of ${acknowledged.length} acknowledged are missing, of the last ${oldestMs} ms`);
  assert.deepEqual(missing.filter(({ atMs }) => atMs < replicatedMs), []);

  const checked = pasted(['check'], restored);
  assert.match(checked.output, /^ok integrity: no damage /m);
  assert.match(checked.output, /^ok records: /m);
  assert.equal(checked.status, 0, checked.output);
  // On the second host, which has no database yet.
  const second = join(folder, 'second', 'pasted.db');
  mkdirSync(join(second, '..'), { mode: 0o700 });
  assert.equal(pasted(['restore', restored], second).status, 0);
  const { pastes } = db.prepare('SELECT count(*) AS pastes FROM pastes').get()!;
  assert.match(pasted(['stats'], second).output, new RegExp(`^pastes +${pastes}$`, 'm'));
});

test('litestream: what systemd hands over and sends reaches the service, which ends in order', async (t) => {
  if (!hasLitestream(t) || !isInstalled(t, 'systemd-socket-activate')) return;
  const { folder, makeDatabase, serveOn } = deploy(t);
  await makeDatabase();
  const socketPath = join(folder, 'http');
  const { child, printed, ended } = serveOn(socketPath);
  // systemd-socket-activate says so on standard error, and becomes Litestream when the first client comes.
  await printed(/Listening on/);
  const status = await new Promise((resolve, reject) => {
    const options = { socketPath, path: '/health', agent: false, signal: AbortSignal.timeout(PATIENCE_MS) };
    const sent = request(options, (res) => resolve(res.resume().statusCode));
    sent.on('error', reject).end();
  });
  assert.equal(status, 200);
  await printed(/ listening {2}url=unix:\(inherited\) /);
  const reload = /^ExecReload=\+\/bin\/sh -c '(.*)'$/m.exec(deployed('replica.conf'))![1]!.replaceAll('$$', '$');
  const reloaded = run('env', [`MAINPID=${child.pid}`, 'sh', '-c', reload], '/');
  assert.equal(reloaded.status, 0, reloaded.output);
  await printed(/ reloaded /);
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  await printed(/ stopped/);
});

test('litestream: a replica in a new place has all that was stored, before the start there and after it', async (t) => {
  if (!hasLitestream(t)) return;
  // The files of the first changes are merged, and gone, after a second or two.
  const change = (text: string) => text.replace('l0-retention: 1m', 'l0-retention: 1s').replace('interval: 30s', 'interval: 1s');
  const { folder, databasePath, makeDatabase, serve, restore, moveReplica, pasted } = deploy(t, change);
  await makeDatabase();
  const first = serve();
  const url = await urlIn(first.printed);
  const changes = join(databasePath, '..', '.pasted.db-litestream', 'ltx', '0');
  let stored = 0;
  const storing = async (from: string) => void (await store(from, `paste ${stored += 1}`));
  await until('the first change is kept no more', async () => {
    await storing(url);
    return stored > 3 && !readdirSync(changes).some((name) => name.startsWith('0000000000000001')) ? true : undefined;
  });
  first.child.kill('SIGTERM');
  assert.equal(await first.ended, 0);
  moveReplica('elsewhere');
  const second = serve();
  const moved = await urlIn(second.printed);
  for (const last = stored + 5; stored < last;) await storing(moved);
  await pause(2000);
  await storing(moved);
  second.child.kill('SIGTERM');
  assert.equal(await second.ended, 0);
  const copy = join(folder, 'copy.db');
  assert.equal(restore(copy).status, 0);
  assert.match(pasted(['stats'], copy).output, new RegExp(`^pastes +${stored}$`, 'm'));
});

test('litestream: after a kill a restore has all, also where a copy of the whole is ahead of the changes in the replica', async (t) => {
  if (!hasLitestream(t)) return;
  const { folder, replica, makeDatabase, serve, restore, pasted } = deploy(t);
  await makeDatabase();
  const configuration = join(folder, 'litestream.yml');
  const settings = readFileSync(configuration, 'utf8');
  /** The number of the last change in the complete files there. */
  const newest = (place: string): number => {
    const names = filesUnder(place).map((path) => /-(\w+)\.ltx$/.exec(path)?.[1] ?? '0');
    return Math.max(0, ...names.map((digits) => Number.parseInt(digits, 16)));
  };
  const changes = join(replica, 'pasted', 'ltx', '0');
  let stored = 0;
  const serveUntil = async (wanted: () => boolean) => {
    const service = serve();
    const url = await urlIn(service.printed);
    for (const least = stored + 5; stored < least || !wanted(); await pause(50)) await store(url, `paste ${stored += 1}`);
    return service;
  };
  const first = await serveUntil(() => existsSync(changes));
  first.child.kill('SIGTERM');
  await first.ended;
  // Changes are held up, as by a slow place, and copies of the whole are not.
  writeFileSync(configuration, settings.replace('sync-interval: 250ms', 'sync-interval: 1m')
    .replace('interval: 1h', 'interval: 1s').replace('monitor-interval: 250ms', 'monitor-interval: 50ms'));
  const second = await serveUntil(() => newest(join(replica, 'pasted', 'ltx', '9')) > newest(changes) + 20);
  killGroup(second.child);
  await second.ended;
  writeFileSync(configuration, settings);
  const last = newest(changes);
  const third = await serveUntil(() => newest(changes) > last);
  third.child.kill('SIGTERM');
  assert.equal(await third.ended, 0);
  const copy = join(folder, 'copy.db');
  assert.equal(restore(copy).status, 0);
  assert.equal(pasted(['check', '--full'], copy).status, 0);
  assert.match(pasted(['stats'], copy).output, new RegExp(`^pastes +${stored}$`, 'm'));
});

test('litestream: a replica that has stopped is a warning of `pasted check`', async (t) => {
  if (!hasLitestream(t)) return;
  const { databasePath, makeDatabase, serve, serveAlone, pasted } = deploy(t);
  await makeDatabase();
  const replicated = serve();
  await store(await urlIn(replicated.printed), 'replicated');
  await until('the change is beside the database', () => /^ok replica: /m.test(pasted(['check']).output));
  killGroup(replicated.child);
  await replicated.ended;
  const copies = filesUnder(join(databasePath, '..', '.pasted.db-litestream'));
  const tenMinutesAgo = Date.now() / 1000 - 600;
  for (const copy of copies) utimesSync(copy, tenMinutesAgo, tenMinutesAgo);
  await store(await urlIn(serveAlone().printed), 'alone');
  assert.match(pasted(['check']).output, /^warn replica: /m);
});

test('litestream: the drop-in says why of each line, and systemd has nothing to say against it', (t) => {
  const lines = deployed('replica.conf').split('\n');
  for (const [index, line] of lines.entries()) {
    if (!/^[A-Z]/.test(line)) continue;
    const above = lines[index - 1]!;
    assert.ok(above.startsWith('# ') || above.split('=')[0] === line.split('=')[0], line);
  }
  const [, mounted = ''] = /^RequiresMountsFor=(.*)$/m.exec(deployed('replica.conf')) ?? [];
  assert.ok(mounted !== '' && deployed('litestream.yml').includes(`\n      path: ${mounted}/`), mounted);
  const served = / pasted node \$\{network:\+"\$network"\} ([^]*) \/usr\/lib\/pasted\/main\.js serve &$/m
    .exec(deployed('serve-replicated').replaceAll(/ *\\\n */g, ' '))?.[1] ?? assert.fail('it starts no service');
  const options = served.replaceAll('"', '').replaceAll('$state', '%S/pasted')
    .replace('$CREDENTIALS_DIRECTORY', '%t/credentials/%n');
  assert.deepEqual(options.split(' '), execStartOf('pasted.service').options);
  if (!isInstalled(t, 'systemd-analyze')) return;
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'pasted.service.d'));
  for (const unit of ['pasted.service', 'pasted.socket']) {
    copyFileSync(join(UNITS_FOLDER, unit), join(folder, unit));
  }
  const dropIn = deployed('replica.conf').replace('/usr/bin/litestream', process.execPath);
  writeFileSync(join(folder, 'pasted.service.d', 'replica.conf'), dropIn);
  const verified = run('systemd-analyze', ['verify', '--man=no', join(folder, 'pasted.service')], folder);
  assert.deepEqual(verified, { status: 0, stdout: '', output: '' });
});
