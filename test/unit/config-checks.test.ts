// config/load.ts: settings that contradict each other, and what is worth a warning in production.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crossCheck, isProduction, startWarnings } from '../../src/config/load.ts';
import type { Config } from '../../src/config/settings.ts';
import { testConfig } from '../support/test-config.ts';

const PKI = { pkiEnabled: true, pkiCaPassword: 'hush' };
const NONE: ReadonlySet<never> = new Set();

test('crossCheck: the smallest paste may be as large as the largest, not larger', () => {
  for (const minBytes of [0, 99, 100]) {
    assert.deepEqual(crossCheck(testConfig({ minBytes, maxAnonBytes: 100, maxAuthBytes: 100 }), NONE), []);
  }
  assert.deepEqual(crossCheck(testConfig({ minBytes: 101, maxAnonBytes: 100, maxAuthBytes: 200 }), NONE), [
    'SERVICE_MIN_SIZE: expected at most SERVICE_MAX_ANON (100), given 101',
  ]);
  assert.deepEqual(crossCheck(testConfig({ minBytes: 101, maxAnonBytes: 100, maxAuthBytes: 100 }), NONE), [
    'SERVICE_MIN_SIZE: expected at most SERVICE_MAX_ANON (100), given 101',
    'SERVICE_MIN_SIZE: expected at most SERVICE_MAX_AUTH (100), given 101',
  ]);
});

test('crossCheck: nor larger than what nodes take', () => {
  const given = { minBytes: 101, clusterMaxBytes: 100 };
  assert.deepEqual(crossCheck(testConfig(given), NONE), []);
  assert.deepEqual(crossCheck(testConfig({ ...given, databasePath: 'rqlite://127.0.0.1:4001' }), NONE), [
    'SERVICE_MIN_SIZE: expected at most SERVICE_CLUSTER_MAX_BYTES (100), given 101',
  ]);
});

test('crossCheck: looks at sound settings only', () => {
  const config = testConfig({ minBytes: 101, maxAnonBytes: 100 });
  assert.deepEqual(crossCheck(config, new Set(['maxAnonBytes'])), []);
  assert.deepEqual(crossCheck(config, new Set(['minBytes'])), []);
  assert.equal(crossCheck(config, new Set(['maxAuthBytes', 'port'])).length, 1);
});

test('crossCheck: a proxy secret that no header can carry', () => {
  for (const proxySecret of [' hush', 'hush ', ' hush ']) {
    const problems = crossCheck(testConfig({ proxySecret }), NONE);
    assert.equal(problems.length, 1);
    assert.ok(!problems[0]!.includes('hush'));
  }
  assert.deepEqual(crossCheck(testConfig({ proxySecret: 'hu sh' }), NONE), []);
});

test('isProduction: exactly the word production', () => {
  assert.equal(isProduction(testConfig({ environment: 'production' })), true);
  for (const environment of ['', 'development', 'Production', 'productions']) {
    assert.equal(isProduction(testConfig({ environment })), false);
  }
});

test('startWarnings: an empty proxy secret, and once more with the PKI enabled', () => {
  const production = { environment: 'production' };
  const [one, ...noMore] = startWarnings(testConfig(production), false);
  assert.match(one!, /^SERVICE_PROXY_SECRET is not set/);
  assert.deepEqual(noMore, []);
  const withPki = startWarnings(testConfig({ ...production, ...PKI }), false);
  assert.equal(withPki.length, 2);
  assert.equal(withPki[0], one);
  assert.match(withPki[1]!, /^SERVICE_PKI_ENABLED is on without SERVICE_PROXY_SECRET/);
});

test('startWarnings: none with a proxy secret, none outside production', () => {
  const safe = testConfig({ environment: 'production', ...PKI, proxySecret: 'hush' });
  assert.deepEqual(startWarnings(safe, false), []);
  assert.deepEqual(startWarnings(testConfig({ environment: '', pkiEnabled: true }), false), []);
});

test('startWarnings: trusted proxies that are everyone', () => {
  const warnings = (trustedProxies: readonly string[]) => (
    startWarnings(testConfig({ environment: 'production', proxySecret: 'hush', trustedProxies }), false)
  );
  const some = ['10.0.0.0/8', '::1', '127.0.0.1', '0.0.0.0/1', '::ffff:0:0/97', '::1/128', '::1/81', '64:ff9b::/96', 'fe80::/10'];
  assert.deepEqual(warnings(some), []);
  for (const everyone of ['0.0.0.0/0', '::/0', '::1/64', '::/80', '::ffff:0:0/96', '::ffff:10.0.0.1/96']) {
    const said = `SERVICE_TRUSTED_PROXIES has ${everyone}, which is everyone: limits by address hold for nobody; name the proxies alone`;
    assert.deepEqual(warnings(['::1', everyone]), [said]);
  }
});

test('startWarnings: what leaves a limit without effect', () => {
  const warnings = (overrides: Partial<Config>) => (
    startWarnings(testConfig({ environment: 'production', proxySecret: 'hush', ...overrides }), false)
  );
  assert.deepEqual(warnings({ maxConnections: 51, maxConnectionsPerClient: 50 }), []);
  const taken = 'SERVICE_MAX_CONNECTIONS is not above SERVICE_MAX_CONNECTIONS_PER_CLIENT: one client can take all connections';
  assert.deepEqual(warnings({ maxConnections: 50, maxConnectionsPerClient: 50 }), [taken]);
  assert.deepEqual(warnings({ maxConnections: 50, maxConnectionsPerClient: 0 }), [], 'it was switched off');
  const unbound = { ...PKI, registerBy: 'open', registerPowDifficultyBits: 0, rateMax: 0 } as const;
  const said = 'SERVICE_RATE_MAX is 0, and certificates are to be had without work: nothing bounds registrations';
  // What a certificate's holder is issued needs no work, and POST /register is there without the rest of the PKI too.
  for (const also of [{}, { registerPowDifficultyBits: 24 }, { pkiEnabled: false }]) {
    assert.deepEqual(warnings({ ...unbound, ...also }), [said], JSON.stringify(also));
  }
  for (const bound of [
    { pkiEnabled: false, registerPowDifficultyBits: 1 }, { pkiEnabled: false, pkiCaPassword: '' }, { registerBy: 'invite' }, { rateMax: 1 },
  ] as const) {
    assert.deepEqual(warnings({ ...unbound, ...bound }), [], JSON.stringify(bound));
  }
});

test('startWarnings: none with TLS of our own, where a header makes nobody somebody', () => {
  const tls = { tlsCertPath: '/server.crt', tlsKeyPath: '/server.key' };
  assert.deepEqual(startWarnings(testConfig({ environment: 'production', ...PKI, ...tls }), false), []);
});

test('startWarnings: the same outside production where others can connect, and the PKI without a password', () => {
  const warnings = (overrides: Partial<Config>) => startWarnings(testConfig(overrides), true);
  assert.deepEqual(warnings({}), startWarnings(testConfig({ environment: 'production' }), false));
  assert.equal(warnings({}).length, 1);
  assert.deepEqual(warnings({ ...PKI, proxySecret: 'hush' }), []);
  const withoutPassword = ['SERVICE_PKI_ENABLED is on without SERVICE_PKI_CA_PASSWORD: nothing can be issued'];
  assert.deepEqual(warnings({ pkiEnabled: true, proxySecret: 'hush' }), withoutPassword);
  assert.deepEqual(warnings({ pkiEnabled: true, tlsCertPath: '/server.crt', tlsKeyPath: '/server.key' }), withoutPassword);
});

test('crossCheck: a certificate without its key, and the reverse', () => {
  const tls = { tlsCertPath: '/server.crt', tlsKeyPath: '/server.key' };
  assert.deepEqual(crossCheck(testConfig(tls), NONE), []);
  assert.deepEqual(crossCheck(testConfig({ ...tls, tlsKeyPath: '' }), NONE), [
    'SERVICE_TLS_KEY: expected the path of a PEM file beside SERVICE_TLS_CERT',
  ]);
  assert.deepEqual(crossCheck(testConfig({ ...tls, tlsCertPath: '' }), NONE), [
    'SERVICE_TLS_CERT: expected the path of a PEM file beside SERVICE_TLS_KEY',
  ]);
});

test('startWarnings: nodes of a cluster without TLS, unless they are on this host, production or not', () => {
  const about = (databasePath: string) => startWarnings(testConfig({ databasePath }), false);
  for (const places of ['127.0.0.1:4001,[::1]:4001', 'localhost:4001']) {
    assert.deepEqual(about(`rqlite://${places}`), [], places);
  }
  for (const place of ['192.0.2.1:4001', 'localhost.example:4001', '[2001:db8::1]:4001']) {
    const [one = '', ...noMore] = about(`rqlite://127.0.0.1:4001,${place}`);
    assert.ok(one.startsWith(`SERVICE_DB reaches ${place} without TLS: `), one);
    assert.deepEqual([about(`RQLITE://${place}`), noMore], [[one], []]);
    assert.deepEqual(about(`rqlites://${place}`), []);
  }
  assert.deepEqual(about('/srv/rqlite/pasted.db'), []);
});

test('startWarnings: a user for the nodes without a password, and a password without a user', () => {
  const about = (databasePath: string, clusterPassword = '') => {
    return startWarnings(testConfig({ databasePath, clusterPassword }), false);
  };
  assert.match(about('rqlites://pasted@db1:4001').join(), /^SERVICE_DB names a user without SERVICE_DB_PASSWORD: /);
  assert.match(about('rqlites://db1:4001', 'hunter2').join(), /^SERVICE_DB_PASSWORD is not used: SERVICE_DB names no user/);
  assert.ok(!about('rqlites://db1:4001', 'hunter2').join().includes('hunter2'));
  assert.deepEqual(about('rqlites://pasted@db1:4001', 'hunter2'), []);
});
