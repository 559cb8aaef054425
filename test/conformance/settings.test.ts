// The table of settings against the contract, and the help against the table. The manual page: release.test.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import { type Setting, SETTINGS } from '../../src/config/settings.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';

const ALL: readonly Setting[] = Object.values(SETTINGS);

/** What the contract and the decisions give: promises to operators, so they are written out here. */
const PROMISED: Readonly<Record<string, Setting['fallback']>> = {
  SERVICE_HOST: '127.0.0.1',
  SERVICE_PORT: 8080,
  NODE_ENV: '',
  URL_PREFIX: '',
  SERVICE_TRUSTED_PROXIES: ['127.0.0.0/8', '::1'],
  SERVICE_PROXY_SECRET: '',
  SERVICE_SHUTDOWN_GRACE: 10,
  SERVICE_MAX_ANON: 3_145_728,
  SERVICE_MAX_AUTH: 52_428_800,
  SERVICE_MIN_SIZE: 0,
  SERVICE_RATE_MAX: 10,
  SERVICE_RATE_WINDOW: 60,
  SERVICE_RATE_AUTH_MULT: 5,
  RATE_LIMIT_MAX_ENTRIES: 10_000,
  RATE_LIMIT_CLEANUP_THRESHOLD: 0.8,
  SERVICE_LOOKUP_RATE_MAX: 60,
  SERVICE_LOOKUP_RATE_WINDOW: 60,
  LOOKUP_RATE_LIMIT_MAX_ENTRIES: 10_000,
  SERVICE_DEDUP_WINDOW: 3600,
  SERVICE_DEDUP_MAX: 3,
  SERVICE_MIN_ENTROPY: 0,
  SERVICE_MIN_ENTROPY_SIZE: 256,
  SERVICE_REQUIRE_BINARY: false,
  SERVICE_POW_DIFFICULTY: 20,
  SERVICE_POW_TTL: 300,
  SERVICE_POW_SECRET: '',
  SERVICE_REGISTER_POW: 24,
  ANTIFLOOD_THRESHOLD: 30,
  ANTIFLOOD_WINDOW: 60,
  ANTIFLOOD_STEP: 2,
  ANTIFLOOD_MAX: 28,
  ANTIFLOOD_DECAY: 30,
  ANTIFLOOD_MAX_ENTRIES: 10_000,
  SERVICE_EXPIRY_ANON: 86_400,
  SERVICE_EXPIRY_UNTRUSTED: 604_800,
  SERVICE_EXPIRY_TRUSTED: 2_592_000,
  SERVICE_MAX_EXPIRY: 7_776_000,
  SERVICE_PKI_CERT_DAYS: 365,
  SERVICE_PKI_CA_DAYS: 3650,
  SERVICE_PKI_ENABLED: false,
  SERVICE_PKI_CA_PASSWORD: '',
  SERVICE_AUDIT_RETENTION: 7_776_000,
};

test('SETTINGS: the names and defaults that were promised', () => {
  const fallbacks = new Map(ALL.map(({ name, fallback }) => [name, fallback]));
  for (const [name, fallback] of Object.entries(PROMISED)) assert.deepEqual(fallbacks.get(name), fallback, name);
  assert.ok(fallbacks.has('SERVICE_DB'));
});

test('SETTINGS: no name stands for two things', () => {
  const names = ALL.flatMap((setting) => {
    const file = setting.kind === 'secret' ? [`${setting.name}_FILE`] : [];
    const standIn = setting.standIn === undefined ? [] : [setting.standIn];
    return [setting.name, ...file, ...standIn];
  });
  assert.deepEqual(names.filter((name, index) => names.indexOf(name) !== index), []);
});

test('SETTINGS: every number\'s default is within its own bounds', () => {
  for (const setting of ALL) {
    if (setting.kind !== 'integer' && setting.kind !== 'decimal') continue;
    assert.ok(setting.minimum <= setting.fallback && setting.fallback <= setting.maximum, setting.name);
  }
});

test('SETTINGS: meanings are one phrase that fits a table and a terminal', () => {
  for (const { name, meaning } of ALL) {
    assert.match(meaning, /^[^|\n]*[^|\n.]$/, name);
    assert.ok(meaning.length <= 110, `${name}: ${meaning.length} characters`);
  }
});

test('help: lists every setting with its meaning, in the order of the table', async () => {
  const fake = fakeTerminal(['help']);
  assert.equal(await runCommandLine(fake.terminal), 0);
  const listed = [...fake.stdout().matchAll(/^ {2}([A-Z][A-Z_]+) {2}.*\n {6}(.*)$/gm)];
  assert.deepEqual(listed.map(([, name]) => name), ALL.map(({ name }) => name));
  for (const [index, { name, meaning }] of ALL.entries()) {
    assert.ok(listed[index]![2]!.startsWith(meaning.replaceAll('`', '')), name);
  }
});
