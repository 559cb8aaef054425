// createApp: what it leaves behind when it can't make the app. What the app does is in the files of its routes.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { ConfigError } from '../../src/config/load.ts';
import type { Config } from '../../src/config/settings.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { createApp } from '../../src/serve.ts';
import { lockDatabase } from '../../src/store/database.ts';
import { DatabaseInUseError } from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const PARTS = { clock: movableClock(), random: randomBytes, log: () => {}, cores: 2 };

const create = (config: Config) => createApp(config, PARTS);

test('createApp: when what stands on the store can\'t be made, the store is closed', async (t) => {
  const databasePath = join(temporaryFolder(t), 'pasted.db');
  await assert.rejects(create(testConfig({ databasePath, metricsListen: 'nowhere' })), RangeError);
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
