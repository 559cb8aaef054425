// createApp: what it leaves behind when it can't make the app, and how the app closes. What it does is in the files of
// its routes.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { ConfigError } from '../../src/config/load.ts';
import type { Config } from '../../src/config/settings.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { createApp } from '../../src/serve.ts';
import { lockDatabase } from '../../src/store/database.ts';
import { DatabaseInUseError } from '../../src/store/store.ts';
import { startApp } from '../support/app.ts';
import { movableClock } from '../support/clock.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { temporaryFolder } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const PARTS = { clock: movableClock(), random: randomBytes, newUuid, log: () => {}, cores: 2 };

const create = (config: Config) => createApp(config, PARTS);

test('createApp: when what stands on the store can\'t be made, the store is closed', async (t) => {
  const databasePath = join(temporaryFolder(t), 'pasted.db');
  await assert.rejects(create(testConfig({ databasePath, trustedProxies: ['nowhere'] })), { code: 'ERR_INVALID_ADDRESS' });
  // A store that is closed has moved its log into the database and has let go of the lock.
  assert.equal(existsSync(`${databasePath}-wal`), false);
  lockDatabase(databasePath, 0).release();
});

test('createApp: a TLS certificate that is refused opens nothing', async (t) => {
  const folder = temporaryFolder(t);
  const databasePath = join(folder, 'pasted.db');
  const missing = join(folder, 'missing.pem');
  await assert.rejects(create(testConfig({ databasePath, tlsCertPath: missing, tlsKeyPath: missing })), ConfigError);
  assert.equal(existsSync(`${databasePath}-lock`), false);
});

test('createApp: a database that is in use stays in use', async (t) => {
  const databasePath = join(temporaryFolder(t), 'pasted.db');
  const app = await create(testConfig({ databasePath }));
  try {
    await assert.rejects(create(testConfig({ databasePath })), DatabaseInUseError);
    assert.throws(() => lockDatabase(databasePath, 0), DatabaseInUseError);
  } finally {
    await app.close();
  }
});

test('close: GET /health is 503 while requests in flight are finished, which are answered', async (t) => {
  const app = await startApp(t);
  const [uploading, asking] = [await openRaw(t, app.port), await openRaw(t, app.port)];
  uploading.send(head('POST / HTTP/1.1', 'Content-Length: 4'));
  asking.send(head('GET /health HTTP/1.1'));
  assert.equal((await asking.next()).status, 200);
  const closed = app.app.close();
  asking.send(head('GET /health HTTP/1.1'));
  const answer = await asking.next();
  const unhealthy = { error: 'health check failed', status: 'unhealthy', database: 'error' };
  assert.deepEqual([answer.status, answer.json(), answer.header('connection')], [503, unhealthy, 'close']);
  uploading.send('last');
  assert.equal((await uploading.next()).status, 201);
  await closed;
});
