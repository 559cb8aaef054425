// serve.ts: the life of the service around an app that the test controls. The real one is in
// test/api/main.test.ts.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, type Environment } from '../../src/config/load.ts';
import { VERSION } from '../../src/config/settings.ts';
import type { Log } from '../../src/core/events.ts';
import { ListeningError, type ListeningPlace } from '../../src/http/engine/listening.ts';
import { type CreateApp, serve } from '../../src/serve.ts';
import { DatabaseInUseError, DatabaseRefusedError, StoreError } from '../../src/store/store.ts';
import { fakeTerminal, toldOf } from '../support/fake-terminal.ts';
import { temporaryFolder } from '../support/programs.ts';

const URL = 'http://127.0.0.1:4321';

interface Behaviour {
  readonly environment?: Environment;
  readonly createFails?: Error;
  readonly listenFails?: ((place: ListeningPlace) => Error) | undefined;
  readonly inheritedSockets?: number;
  readonly writesToJournal?: boolean;
  readonly ended?: Promise<void>;
  /** What closing waits for. */
  readonly closing?: Promise<void>;
}

/** Begins serving. `steps` are the calls that the app has seen; `listening` resolves when it listens. */
function begin(behaviour: Behaviour = {}) {
  const { environment = {}, inheritedSockets = 0, writesToJournal = false } = behaviour;
  const fake = fakeTerminal([], { environment, inheritedSockets, writesToJournal });
  const steps: string[] = [];
  let log: Log | undefined;
  const { promise: listening, resolve: nowListening } = Promise.withResolvers<void>();
  const createApp: CreateApp = async (config, parts) => {
    steps.push(`create ${config.port} ${parts.cores}`);
    assert.ok(fake.isRestricted(), 'files are made before they are restricted');
    assert.equal(parts.random(16).length, 16);
    assert.equal(parts.clock, fake.terminal.clock);
    log = parts.log;
    if (behaviour.createFails !== undefined) throw behaviour.createFails;
    return {
      listen: async (place = assert.fail('no place')) => {
        steps.push('listen');
        if (behaviour.listenFails !== undefined) throw behaviour.listenFails(place);
        setImmediate(nowListening);
        return { host: '127.0.0.1', port: 4321, url: URL };
      },
      reload: async () => [],
      ended: behaviour.ended ?? new Promise(() => {}),
      close: async () => {
        steps.push('close');
        await behaviour.closing;
      },
    };
  };
  const exitCode = serve(fake.terminal, createApp);
  return { fake, steps, listening, exitCode, log: (): Log => log ?? assert.fail('no app was made') };
}

/** Logger and event of each line of a text log. */
function eventsOf(text: string): string[] {
  return text.trimEnd().split('\n').map((line) => line.split('  ').slice(1, 3).join(' '));
}

test('serve: makes the app, listens, and stops with 0 at the first signal', async () => {
  for (const signal of ['SIGTERM', 'SIGINT']) {
    const { fake, steps, listening, exitCode } = begin({ environment: { SERVICE_PORT: '4321' } });
    await listening;
    assert.deepEqual(steps, ['create 4321 2', 'listen']);
    fake.signal(signal);
    assert.equal(await exitCode, 0);
    assert.deepEqual(steps, ['create 4321 2', 'listen', 'close']);
    assert.deepEqual(eventsOf(fake.stdout()), ['main listening', 'main stopping', 'main stopped']);
    assert.match(fake.stdout(), new RegExp(`  main  listening  url=${URL} version=${VERSION}\n`));
    assert.match(fake.stdout(), new RegExp(`  main  stopping  signal=${signal}\n`));
    assert.deepEqual([fake.stderr(), fake.exits], ['', []]);
  }
});

test('serve: stops with 1 once nothing can be stored any more, at its start too, and with 0 where a signal came before', async () => {
  for (const when of ['before', 'listening', 'after the signal'] as const) {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    if (when === 'before') end();
    const { fake, listening, exitCode } = begin({ ended });
    await listening;
    if (when === 'after the signal') fake.signal('SIGTERM');
    end();
    assert.equal(await exitCode, when === 'after the signal' ? 0 : 1, when);
    const cause = when === 'after the signal' ? 'signal=SIGTERM' : 'reason="writer thread ended"';
    assert.match(fake.stdout(), new RegExp(`  main  stopping  ${cause}\n`));
  }
});

test('serve: in production the log is JSON lines', async () => {
  const environment = { NODE_ENV: 'production', SERVICE_PROXY_SECRET: 'hush' };
  const { fake, listening, exitCode } = begin({ environment });
  await listening;
  fake.signal('SIGTERM');
  await exitCode;
  const lines = fake.stdout().trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(lines.map(({ event }) => event), ['listening', 'stopping', 'stopped']);
  assert.deepEqual(lines[0]!['details'], { url: URL, version: VERSION });
  assert.ok(!fake.stdout().includes('hush'));
});

test('serve: unknown names and unsafe production settings are logged before anything is opened', async () => {
  const environment = { NODE_ENV: 'production', SERVICE_PKI_ENABLED: '1', SERVICE_PROT: '1' };
  const { fake, exitCode } = begin({ environment, createFails: new DatabaseRefusedError('refused') });
  await assert.rejects(exitCode, DatabaseRefusedError);
  const lines = fake.stdout().trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  const kinds = lines.map(({ level, logger, event }) => `${level} ${logger} ${event}`);
  assert.deepEqual(kinds, Array(4).fill('warning config setting doubtful'));
  const messages = lines.map(({ details }) => (details as { message: string }).message);
  assert.match(messages[0]!, /^"SERVICE_PROT" is not a setting; did you mean SERVICE_PORT\?$/);
  assert.match(messages[1]!, /^SERVICE_PROXY_SECRET is not set/);
  assert.match(messages[2]!, /^SERVICE_PKI_ENABLED is on without/);
});

test('serve: settings that cannot be used open nothing', async () => {
  const { steps, exitCode } = begin({ environment: { SERVICE_PORT: 'x' } });
  await assert.rejects(exitCode, ConfigError);
  assert.deepEqual(steps, []);
});

test('serve: a signal that comes before it listens stops it all the same', async () => {
  const { fake, steps, exitCode } = begin();
  fake.signal('SIGTERM');
  assert.equal(await exitCode, 0);
  assert.equal(steps.at(-1), 'close');
});

test('serve: told to stop while the nodes of a cluster hold up its start, it ends at once; of a file, it opens it first', async () => {
  for (const [SERVICE_DB, isWaited] of [['rqlite://127.0.0.1:4001', false], ['pasted.db', true]] as const) {
    const fake = fakeTerminal([], { environment: { SERVICE_DB } });
    const creating = Promise.withResolvers<Awaited<ReturnType<CreateApp>>>();
    let isOver = false;
    const exitCode = serve(fake.terminal, () => creating.promise).finally(() => (isOver = true)).catch(String);
    fake.signal('SIGTERM');
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isOver, !isWaited, SERVICE_DB);
    creating.reject(new Error('the nodes answer late'));
    assert.equal(await exitCode, isWaited ? 'Error: the nodes answer late' : 0);
    assert.equal(/ main {2}stopped\n$/.test(fake.stdout()), !isWaited);
  }
});

test('serve: a second signal ends at once with 1, with the log written', async () => {
  const { promise: closing, resolve: closed } = Promise.withResolvers<void>();
  const { fake, listening, exitCode } = begin({ closing });
  await listening;
  fake.signal('SIGTERM');
  assert.deepEqual(fake.exits, []);
  fake.advance(249);
  fake.signal('SIGTERM');
  assert.deepEqual(fake.exits, [], 'a copy of the first');
  fake.advance(1);
  fake.signal('SIGINT');
  assert.deepEqual(fake.exits, [1]);
  assert.match(fake.stdout(), / warning {2}main {2}stopped at once {2}signal=SIGINT\n$/);
  closed();
  await exitCode;
});

test('serve: a second SIGHUP, as the shell and the kernel send them of one terminal, ends nothing at once', async () => {
  const { promise: closing, resolve: closed } = Promise.withResolvers<void>();
  const { fake, listening, exitCode } = begin({ closing });
  await listening;
  fake.signal('SIGHUP');
  fake.advance(5000);
  fake.signal('SIGHUP');
  assert.deepEqual(fake.exits, []);
  closed();
  assert.equal(await exitCode, 0);
});

test('serve: what the app logged last is written when serving ends', async () => {
  const { fake, listening, exitCode, log } = begin();
  await listening;
  log()({ level: 'info', logger: 'store', event: 'closing soon' });
  fake.signal('SIGTERM');
  await exitCode;
  assert.ok(eventsOf(fake.stdout()).includes('store closing soon'));
});

test('serve: an error that nothing caught is in the log at once', async () => {
  const { fake, listening, exitCode } = begin();
  await listening;
  fake.fatalError(new TypeError('out of cheese'));
  assert.match(fake.stdout(), / error {2}main {2}uncaught error {2}outcome=failure reason="out of cheese"\n$/);
  fake.fatalError('a string');
  assert.match(fake.stdout(), /reason="a string"\n$/);
  fake.signal('SIGTERM');
  await exitCode;
});

/** Makes listening fail with `code`, at the place that serve chose or at another one. */
function failing(code: string, elsewhere?: ListeningPlace): Behaviour['listenFails'] {
  const cause = Object.assign(new Error(`listen ${code}`), { code });
  return (place) => new ListeningError(elsewhere ?? place, code, cause);
}

const PERMISSION = 'or give this user the right to use it';
const RUNTIME = 'under systemd in a RuntimeDirectory=';

test('serve: when it cannot listen, it closes and says in one line which setting to change', async () => {
  const unix = { SERVICE_LISTEN: 'unix:/run/p' };
  const metrics = { host: '::1', port: 1 };
  const inUse = 'the port is in use (root can see by which process: ss -ltnp)';
  const metricsSocket = { path: '/run/m', mode: 0o660 };
  const ofOneLink = 'an address of one link needs its zone, which cannot be given here';
  const cases: readonly [string, string, Environment?, ListeningPlace?][] = [
    // Nobody listens on port 1; otherwise the message would say who does.
    ['EADDRINUSE', `127.0.0.1 port 1: ${inUse}; choose another SERVICE_PORT`, { SERVICE_PORT: '1' }],
    ['EACCES', `127.0.0.1 port 8080: not permitted below port 1024; choose another SERVICE_PORT, ${PERMISSION}`],
    ['EADDRNOTAVAIL', '127.0.0.1 port 8080: this host has no such address; choose another SERVICE_HOST'],
    // The codes for `::` on a host without IPv6, and for a link-local address such as fe80::1.
    ['EAFNOSUPPORT', '127.0.0.1 port 8080: this host has no such address; choose another SERVICE_HOST'],
    ['EINVAL', `127.0.0.1 port 8080: ${ofOneLink}; choose another SERVICE_HOST`],
    ['ENOTFOUND', '127.0.0.1 port 8080: there is no host of that name; choose another SERVICE_HOST'],
    ['EAI_AGAIN', '127.0.0.1 port 8080: the name could not be resolved; choose an address as SERVICE_HOST'],
    ['EADDRINUSE', 'unix:/run/p: another process listens there, or it is a file; choose another SERVICE_LISTEN', unix],
    ['ENOENT', 'unix:/run/p: there is no such folder; make it, or choose another SERVICE_LISTEN', unix],
    ['ENOTDIR', 'unix:/run/p: there is no such folder; make it, or choose another SERVICE_LISTEN', unix],
    ['EACCES', 'unix:/run/p: this user may not make a socket there; choose another SERVICE_LISTEN', unix],
    ['ELOOP', 'unix:/run/p: there is no such folder; make it, or choose another SERVICE_LISTEN', unix],
    ['EROFS', `unix:/run/p: no socket can be made there; choose another SERVICE_LISTEN, ${RUNTIME}`, unix],
    ['EPERM', `unix:/run/p: no socket can be made there; choose another SERVICE_LISTEN, ${RUNTIME}`, unix],
    ['ENOTSUP', `unix:/run/p: no socket can be made there; choose another SERVICE_LISTEN, ${RUNTIME}`, unix],
    ['ENOSPC', `unix:/run/p: no socket can be made there; choose another SERVICE_LISTEN, ${RUNTIME}`, unix],
    ['EINVAL', 'unix:/run/p: the path is too long for a socket; choose another SERVICE_LISTEN', unix],
    ['EADDRINUSE', `::1 port 1: ${inUse}; choose another SERVICE_METRICS_LISTEN`, unix, metrics],
    ['EACCES', 'unix:/run/m: this user may not make a socket there; choose another SERVICE_METRICS_LISTEN', {},
      metricsSocket],
  ];
  for (const [code, reason, environment = {}, elsewhere] of cases) {
    const { steps, exitCode } = begin({ environment, listenFails: failing(code, elsewhere) });
    const error = await exitCode.then(() => assert.fail('it listened'), (thrown: unknown) => thrown);
    assert.deepEqual(toldOf(error), { exitCode: 1, text: `pasted: cannot listen on ${reason}\n` });
    assert.deepEqual(steps, [`create ${environment.SERVICE_PORT ?? 8080} 2`, 'listen', 'close']);
  }
});

test('serve: what systemd handed over and cannot be listened on is a matter of the socket unit', async () => {
  // ENOTSOCK is what the system says of a pipe (ListenFIFO=).
  for (const code of ['EINVAL', 'ENOTSOCK']) {
    const { exitCode } = begin({ inheritedSockets: 1, listenFails: failing(code) });
    const error = await exitCode.then(() => assert.fail('it listened'), (thrown: unknown) => thrown);
    assert.match(toldOf(error).text, /^pasted: cannot listen on descriptor 3 from systemd: [^\n]*Accept=no\n$/);
  }
});

test('serve: several sockets from systemd are refused before anything is opened', async () => {
  const { steps, exitCode } = begin({ inheritedSockets: 2 });
  await assert.rejects(exitCode, (error: Error) => {
    assert.match(toldOf(error).text, /\n {2}LISTEN_FDS: expected one socket from systemd, given 2; /);
    return toldOf(error).exitCode === 78;
  });
  assert.deepEqual(steps, []);
});

test('serve: for the journal, lines have priorities', async () => {
  const { fake, listening, exitCode } = begin({ writesToJournal: true, environment: { SERVICE_PROT: '1' } });
  await listening;
  fake.signal('SIGTERM');
  await exitCode;
  const starts = fake.stdout().trimEnd().split('\n').map((line) => line.split('  ', 3).join(' '));
  assert.deepEqual(starts, [
    '<4>warning config setting doubtful', '<6>info main listening', '<6>info main stopping', '<6>info main stopped',
  ]);
});

test('serve: another error of listening is a bug, and passed on as it is', async () => {
  for (const listenFails of [() => new TypeError('bug'), failing('EODD')]) {
    const { steps, exitCode } = begin({ listenFails });
    const error = await exitCode.then(() => assert.fail('it listened'), (thrown: unknown) => thrown);
    assert.match(String(error), /bug|EODD/);
    assert.equal(steps.at(-1), 'close');
    assert.throws(() => toldOf(error), (thrown) => thrown === error);
  }
});

test('exitCodeOf: what the store refuses, in one line and with its exit code', () => {
  assert.deepEqual(toldOf(new DatabaseRefusedError('the database x is of a newer version')), {
    exitCode: 78, text: 'pasted: the database x is of a newer version\n',
  });
  assert.deepEqual(toldOf(new DatabaseInUseError('the database x is in use')), {
    exitCode: 75, text: 'pasted: the database x is in use\n',
  });
  const cause = new Error("EACCES: permission denied, open 'x'");
  assert.deepEqual(toldOf(new StoreError('unavailable', 'the database x cannot be read', { cause })), {
    exitCode: 1, text: "pasted: the database x cannot be read: EACCES: permission denied, open 'x' (SERVICE_DB)\n",
  });
  const beyond = { cause: Object.assign(new Error("Unknown system error -122, open 'x'"), { errno: -122, syscall: 'open' }) };
  assert.deepEqual(toldOf(new StoreError('unavailable', 'the file x cannot be used', beyond)), {
    exitCode: 1, text: 'pasted: the file x cannot be used: EDQUOT (SERVICE_DB)\n',
  });
  assert.deepEqual(toldOf(new StoreError('full', 'storage full')), {
    exitCode: 1, text: 'pasted: storage full (SERVICE_DB)\n',
  });
  // The lock file has gone meanwhile.
  assert.deepEqual(toldOf(new DatabaseInUseError('the database x is in use', '/none/x-lock')), {
    exitCode: 75, text: 'pasted: the database x is in use; root can see which: fuser /none/x-lock\n',
  });
});

test('exitCodeOf: what node --permission refuses is 78, with the file where node names it and what to change', () => {
  const refused = (more: object) => Object.assign(new Error('Access to this API has been restricted'), {
    code: 'ERR_ACCESS_DENIED', ...more,
  });
  const [reading, writing] = ['FileSystemRead', 'FileSystemWrite'];
  const toAllow = (kind: string) => `ERR_ACCESS_DENIED: node --permission needs --allow-fs-${kind} for it`;
  for (const [more, said] of [
    [{ permission: reading, resource: '/srv/x-wal' }, `/srv/x-wal cannot be used (${toAllow('read')})`],
    [{ permission: writing, resource: '/srv/x-lock' }, `/srv/x-lock cannot be used (${toAllow('write')})`],
    [{ permission: writing, resource: '' }, `a file cannot be used (${toAllow('write')})`],
    [{}, 'a file cannot be used (ERR_ACCESS_DENIED: node --permission forbids fsync, so run this without it)'],
  ] as const) {
    assert.deepEqual(toldOf(refused(more)), { exitCode: 78, text: `pasted: ${said}\n` });
  }
});

test('exitCodeOf: who has a lock is looked for among 50 000 descriptors at most, so that the answer comes soon', (t) => {
  const lock = join(temporaryFolder(t), 'x-lock');
  writeFileSync(lock, '');
  // Larger than any process id that Linux gives.
  const pid = '4194305';
  let [descriptors, looks] = [0, 0];
  t.mock.method(fs, 'readdirSync', (path: string) => (
    path === '/proc' ? [pid] : Array.from({ length: descriptors }, (_, number) => String(number))
  ));
  t.mock.method(fs, 'readlinkSync', (path: string) => {
    if (path === '/proc/self') return '1';
    looks += 1;
    return path === `/proc/${pid}/fd/${descriptors - 1}` ? lock : '/dev/null';
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  for (const [count, who] of [
    [50_000, `it is process ${pid} ()`], [50_001, `root can see which: fuser ${lock}`],
  ] as const) {
    [descriptors, looks] = [count, 0];
    const { text } = toldOf(new DatabaseInUseError('the database x is in use', lock));
    assert.equal(text, `pasted: the database x is in use; ${who}\n`);
    assert.equal(looks, 50_000);
  }
});
