// `pasted backup`, `restore`, `check` and `prune` as processes of their own beside a running server, and after it. What
// each prints and refuses: unit/commands-backup.test.ts and its neighbours.

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync, fchmodSync, openSync, readFileSync, readdirSync, statSync, watch, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { binaryContent } from '../support/app.ts';
import { builtMain } from '../support/built.ts';
import { fill } from '../support/databases.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { selectValue, strayChunks } from '../support/store.ts';

const UNLIMITED = {
  SERVICE_POW_DIFFICULTY: '0', SERVICE_RATE_MAX: '0', SERVICE_LOOKUP_RATE_MAX: '0', SERVICE_DEDUP_MAX: '0',
};

interface Ended {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

function openService(t: TestContext) {
  const folder = temporaryFolder(t);
  const databasePath = join(folder, 'pasted.db');
  const environment = { ...UNLIMITED, SERVICE_DB: databasePath };

  async function pasted(words: readonly string[], changes: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const main = startMain(t, words, { environment: { ...environment, ...changes } });
    const code = await main.ended;
    return { code, stdout: main.stdout(), stderr: main.stderr() };
  }

  const serve = (changes: Readonly<Record<string, string>> = {}) =>
    startServing(t, { environment: { ...environment, ...changes } });
  return { folder, databasePath, environment, pasted, serve };
}

async function store(url: string, content: Uint8Array): Promise<string> {
  const response = await fetch(`${url}/`, { method: 'POST', body: content as unknown as string });
  assert.equal(response.status, 201);
  return ((await response.json()) as { id: string }).id;
}

/** Stores pastes of several sizes, each with content of its own, for as long as `goesOn` says. */
async function storeWhile(
  url: string,
  seed: number,
  goesOn: () => boolean,
  stored: Map<string, Uint8Array>,
): Promise<void> {
  for (let count = 0; goesOn(); count += 1) {
    const content = binaryContent([700, 40_000, 300_000][count % 3]! + count, seed + count);
    stored.set(await store(url, content), content);
  }
}

async function contentOf(url: string, id: string): Promise<Buffer | undefined> {
  const response = await fetch(`${url}/${id}/raw`);
  const bytes = Buffer.from(await response.arrayBuffer());
  return response.status === 200 ? bytes : undefined;
}

test('backup -: warns of a file that others may read, and of nothing else', async (t) => {
  const { folder, databasePath, environment } = openService(t);
  await fill(databasePath, 1);
  for (const [mode, isWarned] of [[0o600, false], [0o640, true], [0o604, true]] as const) {
    const path = join(folder, `copy-${mode}.db`);
    const stdout = openSync(path, 'w');
    fchmodSync(stdout, mode);
    const main = startMain(t, ['backup', '-'], { environment, stdout });
    closeSync(stdout);
    assert.equal(await main.ended, 0);
    const warning = /^pasted: warning: others may read the file that standard output is: [^\n]*umask 077[^\n]*\n$/;
    assert.match(main.stderr(), isWarned ? warning : /^$/, mode.toString(8));
    assert.equal(selectValue(path, 'SELECT count(*) FROM pastes'), 4);
  }
  const piped = startMain(t, ['backup', '-'], { environment });
  assert.deepEqual([await piped.ended, piped.stderr()], [0, '']);
});

test('restore -: from a pipe and from a file, checked like any other, and nothing else stays', async (t) => {
  const { folder, databasePath, environment, pasted } = openService(t);
  const copy = join(temporaryFolder(t), 'copy.db');
  await fill(databasePath, 1);
  assert.equal((await pasted(['backup', copy])).code, 0);
  const whole = readFileSync(copy);
  const names = readdirSync(folder);
  const restore = async (bytes: Uint8Array): Promise<Ended> => {
    const main = startMain(t, ['restore', '-'], { environment, stdin: 'pipe' });
    main.child.stdin!.on('error', () => {}).end(bytes);
    return { code: await main.ended, stdout: main.stdout(), stderr: main.stderr() };
  };
  for (const [bytes, reason] of [
    [whole.subarray(0, whole.length - 8192), /^pasted: the backup from standard input is damaged/],
    [whole.subarray(0, 5000), /^pasted: the backup from standard input is damaged/],
    [Buffer.from('Dear diary'), /^pasted: the backup from standard input is damaged, or no database, or a disk fails\n$/],
    [Buffer.alloc(0), /^pasted: the backup from standard input is empty\n$/],
  ] as const) {
    const { code, stdout, stderr } = await restore(bytes);
    assert.deepEqual([code, stdout], [78, ''], stderr);
    assert.match(stderr, reason);
    assert.deepEqual(readdirSync(folder), names);
  }
  const piped = await restore(whole);
  assert.deepEqual([piped.code, piped.stderr], [0, '']);
  assert.ok(piped.stdout.startsWith(`Restored ${databasePath} from standard input: 4 pastes with 750.5 KiB`));
  assert.equal(readdirSync(folder).filter((name) => !names.includes(name)).length, 1, 'the database before');
  assert.equal(statSync(databasePath).mode & 0o777, 0o600);

  const stdin = openSync(copy, 'r');
  const read = startMain(t, ['restore', '-', '--json'], { environment, stdin });
  closeSync(stdin);
  assert.equal(await read.ended, 0);
  assert.equal((JSON.parse(read.stdout()) as { from: string }).from, 'standard input');
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 4);
});

test('restore -: stopped while it waits, nothing of what came stays', async (t) => {
  const { folder, databasePath, environment } = openService(t);
  await fill(databasePath, 1);
  const before = readFileSync(databasePath);
  const names = readdirSync(folder);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const main = startMain(t, ['restore', '-'], { environment, stdin: 'pipe' });
    main.child.stdin!.on('error', () => {}).write(before.subarray(0, 20_000));
    const draft = `${databasePath}-restore-draft`;
    while ((statSync(draft, { throwIfNoEntry: false })?.size ?? 0) === 0) await setTimeout(10);
    assert.equal(statSync(draft).mode & 0o777, 0o600);
    main.child.kill(signal);
    assert.equal(await main.ended, 1);
    assert.equal(main.stderr(), `pasted: stopped by ${signal} before the backup was there: nothing was changed\n`);
    assert.deepEqual(readdirSync(folder), names);
  }
  assert.deepEqual(readFileSync(databasePath), before);
});

test('backup: under load, whatever was acknowledged before it began is in it, and nothing half', async (t) => {
  const { folder, pasted, serve } = openService(t);
  const server = await serve();
  const before = new Map<string, Uint8Array>();
  await Promise.all([1, 2, 3].map((seed) => {
    let left = 6;
    return storeWhile(server.url, seed * 1000, () => (left -= 1) >= 0, before);
  }));

  const meanwhile = new Map<string, Uint8Array>();
  let isMade = false;
  const writers = [4, 5, 6].map((seed) => storeWhile(server.url, seed * 1000, () => !isMade, meanwhile));
  const file = join(folder, 'copy.db');
  const made = await pasted(['backup', file]).finally(() => {
    isMade = true;
  });
  await Promise.all(writers);
  assert.equal(made.code, 0, made.stderr);
  assert.ok(meanwhile.size > 0, 'the server was busy meanwhile');
  assert.equal((await fetch(`${server.url}/health`)).status, 200);

  const words = [['check'], ['restore', file], ['prune']];
  const [checked, ...refused] = await Promise.all(words.map((each) => pasted(each)));
  for (const { code, stdout } of refused) assert.deepEqual([code, stdout], [75, '']);
  assert.equal(checked?.code, 0, checked?.stdout);

  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
  const restored = await pasted(['restore', file]);
  assert.equal(restored.code, 0, restored.stderr);
  const again = await serve();
  // All at once, since the answer for each missing paste takes as long as a password check.
  await Promise.all([...before, ...meanwhile].map(async ([id, content]) => {
    const found = await contentOf(again.url, id);
    assert.ok(found === undefined ? !before.has(id) : found.equals(content), `${id} is as stored`);
  }));
  t.diagnostic(`${before.size} pastes before, ${meanwhile.size} while the backup was made`);
});

test('backup: a server that stops while it is made stops at once, and its log is not lost', async (t) => {
  const { folder, databasePath, pasted, serve } = openService(t);
  const server = await serve();
  const stored = new Map<string, Uint8Array>();
  let left = 8;
  await storeWhile(server.url, 1, () => (left -= 1) >= 0, stored);
  const backup = pasted(['backup', join(folder, 'copy.db')]);
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
  assert.equal((await backup).code, 0);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), stored.size);
  assert.equal(strayChunks(databasePath), 0);
});

interface Piped {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
}

/** Backs up into a pipe that nobody reads so far; resolves when there is something in the pipe. */
async function backupIntoPipe(t: TestContext, environment: Record<string, string>): Promise<Piped> {
  const options = { env: environment, stdio: ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore'] };
  const child = spawn(process.execPath, [builtMain(), 'backup', '-'], options);
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await once(child.stdout, 'readable');
  return { child, ended };
}

const leftOf = (folder: string): string[] => readdirSync(folder).filter((name) => /partial|-backup-note$/.test(name));

test('backup -: a reader that takes its time gets every byte', async (t) => {
  const { folder, databasePath, environment } = openService(t);
  for (const seed of [1, 2, 3, 4]) await fill(databasePath, seed);
  const { child, ended } = await backupIntoPipe(t, environment);
  assert.deepEqual(leftOf(folder), [], 'nothing lies about while it waits');
  const pieces: Buffer[] = [];
  for await (const piece of child.stdout!) {
    pieces.push(piece as Buffer);
    await new Promise(setImmediate);
  }
  assert.deepEqual(await ended, [0, null]);
  const file = join(folder, 'copy.db');
  writeFileSync(file, Buffer.concat(pieces));
  assert.equal(selectValue(file, 'PRAGMA integrity_check'), 'ok');
  assert.equal(selectValue(file, 'SELECT count(*) FROM pastes'), 16);
});

test('backup -: SIGTERM while nobody reads ends it by that signal, and a reader that goes away with 1', async (t) => {
  const { folder, databasePath, environment } = openService(t);
  for (const seed of [1, 2]) await fill(databasePath, seed);
  const stopped = await backupIntoPipe(t, environment);
  stopped.child.kill('SIGTERM');
  assert.deepEqual(await stopped.ended, [null, 'SIGTERM']);
  const left = await backupIntoPipe(t, environment);
  left.child.stdout!.destroy();
  assert.deepEqual(await left.ended, [1, null]);
  assert.deepEqual(leftOf(folder), []);
});

/** Starts a backup and sends the signal as soon as there is a draft of it; gives how the backup ended. */
async function signalledBackup(
  t: TestContext,
  target: string,
  environment: Record<string, string>,
  signal: NodeJS.Signals,
): Promise<number | string> {
  const main = startMain(t, ['backup', target], { environment });
  const watcher = watch(join(target, '..'), (_event, name) => {
    if (name?.endsWith('.partial') === true) main.child.kill(signal);
  });
  const code = await main.ended;
  watcher.close();
  return code;
}

test('backup: stopped in the middle it leaves nothing; killed, the next one removes what is left', async (t) => {
  const { folder, databasePath, environment, pasted } = openService(t);
  await fill(databasePath, 1);
  const target = join(temporaryFolder(t), 'stopped.db');
  // The watcher may be too late for a small database: then the backup is whole.
  const stopped = await signalledBackup(t, target, environment, 'SIGTERM');
  assert.ok(stopped === 'SIGTERM' || stopped === 0, String(stopped));
  assert.deepEqual(readdirSync(join(target, '..')), stopped === 0 ? ['stopped.db'] : []);
  const killed = await signalledBackup(t, `${target}-2`, environment, 'SIGKILL');
  assert.ok(killed === 'SIGKILL' || killed === 0, String(killed));
  assert.equal((await pasted(['backup', join(folder, 'copy.db')])).code, 0);
  assert.deepEqual(leftOf(join(target, '..')), []);
  assert.equal(selectValue(join(folder, 'copy.db'), 'SELECT count(*) FROM pastes'), 4);
});
