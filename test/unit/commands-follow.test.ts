// `pasted audit --follow`: entries as they are written, through restarts, pruning and a restore, until it is stopped.

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runCommandLine } from '../../src/operator/arguments.ts';
import type { AuditEvent } from '../../src/store/store.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { builtMain } from '../support/built.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { openStore } from '../support/imitated-store.ts';
import { startMain } from '../support/main-process.ts';
import { CREATED_AT, openTestStore } from '../support/store.ts';

const ALICE = 'a'.repeat(40);

function eventOf(reason: string, changes: Partial<AuditEvent> = {}): AuditEvent {
  return {
    time: CREATED_AT, event: 'auth_failure', outcome: 'failure', clientId: ALICE, clientIp: '192.0.2.1', details: { reason }, ...changes,
  };
}

interface Following {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves once this many lines have come. */
  lines(count: number): Promise<readonly string[]>;
  stop(signal: 'SIGTERM' | 'SIGINT'): Promise<number | string>;
}

/** Resolves once the command has looked. Its headings show that; with --json it prints none, so this does not wait. */
async function follow(t: TestContext, path: string, ...words: string[]): Promise<Following> {
  const main = startMain(t, ['audit', '--follow', ...words], { environment: { SERVICE_DB: path } });
  const arrived = (pattern: RegExp, output: () => string): Promise<void> => new Promise((resolve, reject) => {
    const look = (): void => {
      if (pattern.test(output())) resolve();
    };
    main.child.stdout?.on('data', look);
    main.child.stderr?.on('data', look);
    void main.ended.then((code) => reject(new Error(`ended with ${code}: ${main.stdout()}${main.stderr()}`)));
    look();
  });
  if (!words.includes('--json')) await arrived(/^TIME .*\n/, main.stdout);
  return {
    child: main.child,
    stdout: main.stdout,
    stderr: main.stderr,
    lines: async (count) => {
      await arrived(new RegExp(`^(?:.*\n){${count}}`), main.stdout);
      return main.stdout().split('\n').slice(0, -1);
    },
    stop: (signal) => {
      main.child.kill(signal);
      return main.ended;
    },
  };
}

const reasonsOf = (lines: readonly string[]): string[] => lines.flatMap((line) => /reason"?[=:]"?(\w+)/.exec(line)?.[1] ?? []);

test('audit --follow: what is written from now on, oldest first, until SIGTERM', async (t) => {
  const { store, path } = await openTestStore(t);
  await store.run('recordAudit', eventOf('before'));
  const following = await follow(t, path);
  await store.run('recordAudit', eventOf('one'));
  await following.lines(2);
  await Promise.all(['two', 'three'].map((reason) => store.run('recordAudit', eventOf(reason, { clientId: null, clientIp: null }))));
  const lines = await following.lines(4);
  assert.deepEqual(reasonsOf(lines), ['one', 'two', 'three']);
  assert.deepEqual(lines[1]!.split(/ {2,}/), [
    '2026-01-31T12:00:00Z', 'auth_failure', 'failure', ALICE, '192.0.2.1', 'reason=one',
  ]);
  assert.equal(lines[1]!.indexOf('reason='), lines[2]!.indexOf('reason='), 'in columns though they came apart');
  assert.deepEqual([await following.stop('SIGTERM'), following.stderr()], [0, '']);
});

test('audit --follow --json: an object a line, as GET /audit has it, from --after on and with filters', async (t) => {
  const { store, path } = await openTestStore(t);
  const old = eventOf('old', { time: CREATED_AT - 7200 });
  for (const event of [old, eventOf('past'), eventOf('other', { event: 'cert_issued' })]) await store.run('recordAudit', event);
  const following = await follow(t, path, '--json', '--after', String(CREATED_AT - 3600), '--event', 'auth_failure');
  await following.lines(1);
  for (const event of [eventOf('other', { event: 'cert_issued' }), eventOf('now')]) await store.run('recordAudit', event);
  const entries = (await following.lines(2)).map((line) => JSON.parse(line));
  assert.deepEqual(entries[0], {
    id: 2, time: '2026-01-31T12:00:00Z', event: 'auth_failure', outcome: 'failure', client_id: ALICE, client_ip: '192.0.2.1',
    details: { reason: 'past' },
  });
  assert.deepEqual(entries.map(({ id }) => id), [2, 5]);
  assert.equal(await following.stop('SIGINT'), 0);
});

test('audit --follow: nothing is lost or told twice by a restart of the service, by pruning, or by thousands at once', async (t) => {
  const opened = await openTestStore(t);
  const following = await follow(t, opened.path);
  const expected: string[] = [];
  const write = async (reason: string): Promise<void> => {
    expected.push(reason);
    await opened.store.run('recordAudit', eventOf(reason));
  };
  await write('first');
  await opened.reopen();
  await write('second');
  await following.lines(3);
  assert.equal(await opened.store.run('removeOldAudit', { untilSeconds: CREATED_AT, limit: 100 }), 2, 'all that there was');
  await write('third');
  await opened.reopen();
  await Promise.all(Array.from({ length: 2500 }, (_, index) => write(`many${index}`)));
  assert.deepEqual(reasonsOf(await following.lines(1 + expected.length)), expected);
  assert.deepEqual([await following.stop('SIGTERM'), following.stderr()], [0, '']);
});

test('audit --follow: does not keep a restore out, says that there was one, and goes on with the new database', async (t) => {
  const { store, path, folder } = await openTestStore(t);
  await store.run('recordAudit', eventOf('backed'));
  const run = async (...words: string[]): Promise<void> => {
    const fake = fakeTerminal(words, { environment: { SERVICE_DB: path } });
    assert.equal(await runCommandLine(fake.terminal), 0, fake.stderr());
  };
  await run('backup', `${folder}/backup`);
  await store.run('recordAudit', eventOf('undone'));
  const following = await follow(t, path);
  await store.close();
  for (let turn = 0; turn < 3; turn += 1) await run('restore', `${folder}/backup`);
  while (!following.stderr().includes('replaced')) await once(following.child.stderr!, 'data');
  await run('paste', 'ban', '0'.repeat(64));
  const [, entry = ''] = await following.lines(2);
  assert.match(entry, /content_banned +success +operator /);
  assert.match(following.stderr(), /^(?:pasted: the database (?:was replaced: following|cannot be read at the moment: trying).*\n)+$/);
  assert.equal(await following.stop('SIGTERM'), 0);
});

test('audit --follow: waits for a database that is away for a while, and says so once', async (t) => {
  const { store, path } = await openTestStore(t);
  await store.close();
  const following = await follow(t, path);
  renameSync(path, `${path}.away`);
  while (!following.stderr().includes('\n')) await once(following.child.stderr!, 'data');
  copyFileSync(`${path}.away`, `${path}.new`);
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true });
  renameSync(`${path}.new`, path);
  while (!following.stderr().includes('replaced')) await once(following.child.stderr!, 'data');
  assert.deepEqual(following.stderr().split('\n').map((line) => line.slice(8, 35)), [
    'the database cannot be read', 'the database was replaced: ', '',
  ]);
  assert.equal(await following.stop('SIGTERM'), 0);
});

test('audit --follow: a link to the database that leads to another file later is followed', async (t) => {
  const [first, second] = [await openTestStore(t), await openTestStore(t)];
  const link = `${first.folder}/link.db`;
  symlinkSync(first.path, link);
  const following = await follow(t, link);
  symlinkSync(second.path, `${link}.new`);
  renameSync(`${link}.new`, link);
  while (!following.stderr().includes('replaced')) await once(following.child.stderr!, 'data');
  await second.store.run('recordAudit', eventOf('there'));
  assert.deepEqual(reasonsOf(await following.lines(2)), ['there']);
  assert.equal(await following.stop('SIGTERM'), 0);
});

test('audit --follow: takes each setting once, since one may come through a pipe', async (t) => {
  const { path } = await openTestStore(t);
  const environment = { SERVICE_DB: path, SERVICE_PKI_CA_PASSWORD_FILE: '/dev/fd/3' };
  const pipe = ['0123456789abcdef'];
  const fake = fakeTerminal(['audit', '--follow'], { environment, readFile: () => pipe.shift() ?? '' });
  const onStopSignal = (listener: (signal: string) => void): void => listener('SIGTERM');
  assert.equal(await runCommandLine({ ...fake.terminal, onStopSignal }), 0, fake.stderr());
});

test('audit --follow: leaves nothing in memory at a look, since it may go on for months', async (t) => {
  const { store, path } = await openTestStore(t);
  const fake = fakeTerminal(['audit', '--follow'], { environment: { SERVICE_DB: path } });
  // Each race leaves something at the promises that lose it.
  const races = t.mock.method(Promise, 'race');
  const ended = runCommandLine(fake.terminal);
  for (let looks = 1; looks <= 5; looks += 1) {
    while (fake.stdout().split('\n').length <= looks) await pause(10);
    assert.equal(races.mock.callCount(), 1, `after ${looks} looks`);
    await store.run('recordAudit', eventOf('told'));
  }
  fake.signal('SIGTERM');
  assert.equal(await ended, 0);
});

test('audit --follow: ends at once when it is told to while the nodes of a cluster do not answer', async (t) => {
  const { config, behind } = await openStore(t);
  const environment = { SERVICE_DB: config.databasePath };
  const fake = fakeTerminal(['audit', '--follow'], { environment, clock: RUNNING_CLOCK });
  const ended = runCommandLine(fake.terminal);
  while (!fake.stdout().startsWith('TIME')) await pause(10);
  const asked = Promise.withResolvers<void>();
  behind.choose = () => {
    asked.resolve();
    return { kind: 'silent', isCarriedOut: false };
  };
  await asked.promise;
  const startMs = performance.now();
  fake.signal('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(performance.now() - startMs < 2000, 'a look may take ten seconds');
});

test('audit --follow: ends when nobody reads, and at a signal while somebody does not read', async (t) => {
  const { store, path } = await openTestStore(t);
  const environment = { SERVICE_DB: path };
  const child = spawn(process.execPath, [builtMain(), 'audit', '--follow'], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  child.stdout.destroy();
  await store.run('recordAudit', eventOf('unread'));
  assert.deepEqual((await ended)[0], 0);

  // These entries are more than the pipe and the process take.
  await Promise.all(Array.from({ length: 1000 }, () => store.run('recordAudit', eventOf('x'.repeat(1000)))));
  const stuck = spawn(process.execPath, [builtMain(), 'audit', '--follow', '--after', '0'], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => stuck.kill('SIGKILL'));
  await once(stuck.stdout, 'readable');
  stuck.kill('SIGTERM');
  const [code] = await once(stuck, 'exit');
  assert.equal(code, 0);
});

test('audit --follow: refuses what has no meaning with it, and a database that is not there', async (t) => {
  const { path } = await openTestStore(t);
  for (const words of [['--before', '7d'], ['--limit', '1'], ['--offset', '1']]) {
    const fake = fakeTerminal(['audit', '--follow', ...words], { environment: { SERVICE_DB: path } });
    assert.equal(await runCommandLine(fake.terminal), 2);
    assert.match(fake.stderr(), new RegExp(`${words[0]} has no meaning`));
  }
  const fake = fakeTerminal(['audit', '--follow'], { environment: { SERVICE_DB: `${path}.missing` } });
  assert.equal(await runCommandLine(fake.terminal), 78);
});
