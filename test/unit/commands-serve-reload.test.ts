// serve.ts on SIGHUP, around an app that the test controls. What a reload changes is tls-reload.test.ts and
// reload.test.ts of test/api.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { type CreateApp, serve } from '../../src/serve.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';

interface Reload {
  readonly next: Config | undefined;
  /** Ends the reload with the names of what has changed. */
  readonly end: (changed: readonly string[]) => void;
  readonly fail: (error: Error) => void;
}

/** Begins serving, with a secret in a file. `reloads` are the calls that the app has seen. */
function begin(secret: () => string = () => 'hush') {
  const fake = fakeTerminal([], { environment: { SERVICE_PROXY_SECRET_FILE: '/secret' }, readFile: secret });
  const reloads: Reload[] = [];
  const created = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<void>();
  const createApp: CreateApp = async () => {
    await created.promise;
    return {
      listen: async () => {
        setImmediate(listening.resolve);
        return { host: '127.0.0.1', port: 4321, url: 'http://127.0.0.1:4321' };
      },
      reload: (next) => new Promise((resolve, reject) => reloads.push({ next, end: resolve, fail: reject })),
      ended: new Promise(() => {}),
      close: async () => {},
    };
  };
  const exitCode = serve(fake.terminal, createApp);
  const lines = (): string[] => fake.stdout().trimEnd().split('\n').map((line) => line.split('  ').slice(1).join(' '));
  return { fake, reloads, created: created.resolve, listening: listening.promise, exitCode, lines };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('serve: SIGHUP reads the settings again, and says what changed', async () => {
  let secret = 'hush';
  const { fake, reloads, created, listening, exitCode, lines } = begin(() => secret);
  created();
  await listening;
  secret = 'canary';
  fake.reload();
  await turn();
  assert.equal(reloads[0]?.next?.proxySecret, 'canary');
  reloads[0]?.end(['SERVICE_TLS_CERT', 'SERVICE_PROXY_SECRET']);
  await turn();
  fake.reload();
  await turn();
  reloads[1]?.end([]);
  await turn();
  fake.signal('SIGTERM');
  assert.equal(await exitCode, 0);
  assert.deepEqual(lines().slice(1, 3), [
    'main reloaded changed="SERVICE_TLS_CERT SERVICE_PROXY_SECRET"', 'main reloaded changed=nothing',
  ]);
  assert.ok(!fake.stdout().includes('canary') && !fake.stdout().includes('hush'));
});

test('serve: several signals during a reload are one more', async () => {
  const { fake, reloads, created, listening, exitCode } = begin();
  created();
  await listening;
  fake.reload();
  await turn();
  for (let count = 0; count < 4; count += 1) fake.reload();
  await turn();
  assert.equal(reloads.length, 1);
  reloads[0]?.end([]);
  await turn();
  assert.equal(reloads.length, 2);
  reloads[1]?.end([]);
  await turn();
  assert.equal(reloads.length, 2);
  fake.signal('SIGTERM');
  await exitCode;
});

test('serve: SIGHUP before it listens is carried out then; while it stops it is ignored', async () => {
  const { fake, reloads, created, listening, exitCode, lines } = begin();
  fake.reload();
  fake.reload();
  assert.equal(reloads.length, 0);
  created();
  await listening;
  assert.equal(reloads.length, 1);
  reloads[0]?.end([]);
  await turn();
  fake.signal('SIGTERM');
  await turn();
  fake.reload();
  assert.equal(await exitCode, 0);
  assert.equal(reloads.length, 1);
  assert.deepEqual(lines().at(-1), 'main stopped');
});

test('serve: settings that cannot be read again are named, the certificate is renewed all the same', async () => {
  let isGone = false;
  const { fake, reloads, created, listening, exitCode, lines } = begin(() => {
    if (isGone) throw Object.assign(new Error('ENOENT: canary'), { code: 'ENOENT' });
    return 'hush';
  });
  created();
  await listening;
  isGone = true;
  fake.reload();
  await turn();
  assert.equal(reloads[0]?.next, undefined);
  reloads[0]?.end(['SERVICE_TLS_CERT']);
  await turn();
  isGone = false;
  fake.reload();
  await turn();
  reloads[1]?.fail(new Error('the storage is closed'));
  await turn();
  // Whatever else goes wrong while settings are read does not end the service either.
  Object.defineProperty(fake.terminal.environment, 'SERVICE_PORT', {
    get: () => {
      throw new RangeError('a bug');
    },
  });
  fake.reload();
  await turn();
  assert.equal(reloads.length, 2);
  fake.signal('SIGTERM');
  assert.equal(await exitCode, 0);
  const [, unread = ''] = lines();
  assert.match(unread, /^main reloading failed .* reason="SERVICE_PROXY_SECRET_FILE: expected .*\(ENOENT\)"$/);
  assert.equal(lines()[2], 'main reloaded changed=SERVICE_TLS_CERT');
  assert.equal(lines()[3], 'main reloading failed outcome=failure reason="the storage is closed"');
  assert.equal(lines()[4], 'main reloading failed outcome=failure reason="a bug"');
  assert.ok(!fake.stdout().includes('canary'));
});
