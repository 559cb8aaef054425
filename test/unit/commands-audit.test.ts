// `pasted audit`: the filters, the table and the JSON, and readers that do not wait for the end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { runCommandLine } from '../../src/operator/arguments.ts';
import type { AuditEvent } from '../../src/store/store.ts';
import { startApp } from '../support/app.ts';
import { builtMain } from '../support/built.ts';
import { insertCertificate, presenting } from '../support/certificates.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { CREATED_AT, openTestStore } from '../support/store.ts';

const ALICE = 'a'.repeat(40);

const EVENTS: readonly AuditEvent[] = [
  { time: CREATED_AT - 7200, event: 'cert_issued', outcome: 'success', clientId: null, clientIp: null, details: {} },
  {
    time: CREATED_AT - 3600,
    event: 'auth_failure',
    outcome: 'failure',
    clientId: ALICE,
    clientIp: '2001:db8::1',
    details: { reason: 'certificate is revoked', serial: '4f', count: 3 },
  },
  { time: CREATED_AT - 60, event: 'cert_issued', outcome: 'success', clientId: ALICE, clientIp: '192.0.2.1', details: { via: 'x=y' } },
];

async function openLog(t: TestContext) {
  const { store, path } = await openTestStore(t);
  for (const event of EVENTS) await store.run('recordAudit', event);
  async function audit(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const fake = fakeTerminal(['audit', ...words], { environment: { SERVICE_DB: path } });
    const code = await runCommandLine(fake.terminal);
    return { code, stdout: fake.stdout(), stderr: fake.stderr() };
  }
  return { store, path, audit };
}

test('audit: newest first, one to a line, beside a running server', async (t) => {
  const { audit } = await openLog(t);
  const { code, stdout } = await audit();
  assert.equal(code, 0);
  assert.deepEqual(stdout.split('\n').map((line) => line.split(/ {2,}/)), [
    ['TIME', 'EVENT', 'OUTCOME', 'CLIENT ID', 'CLIENT IP', 'DETAILS'],
    ['2026-01-31T11:59:00Z', 'cert_issued', 'success', ALICE, '192.0.2.1', 'via="x=y"'],
    ['2026-01-31T11:00:00Z', 'auth_failure', 'failure', ALICE, '2001:db8::1', 'reason="certificate is revoked" serial=4f count=3'],
    ['2026-01-31T10:00:00Z', 'cert_issued', 'success', '-', '-', '-'],
    [''],
  ]);
});

test('audit --json: exactly the answer of GET /audit', async (t) => {
  const { config, request } = await startApp(t);
  const { fingerprint } = insertCertificate(config.databasePath, { isAdmin: true });
  const { fingerprint: expired } = insertCertificate(config.databasePath, { expiresAt: CREATED_AT - 1 });
  for (let turn = 0; turn < 3; turn += 1) await (await request('/pastes', { headers: presenting(expired) })).arrayBuffer();
  for (const [query, words] of [
    ['', []],
    ['?limit=2&offset=1', ['--limit', '2', '--offset', '1']],
    [`?event=auth_failure&outcome=failure&client_id=${expired}&limit=1`, [
      '--event', 'auth_failure', '--outcome=failure', '--client-id', expired, '--limit=1',
    ]],
    [`?after=${CREATED_AT - 1}&before=${CREATED_AT + 1}`, ['--after', '2026-01-31T11:59:59', '--before', String(CREATED_AT + 1)]],
  ] as const) {
    const answer = await request(`/audit${query}`, { headers: presenting(fingerprint) });
    const fake = fakeTerminal(['audit', '--json', ...words], { environment: { SERVICE_DB: config.databasePath } });
    assert.equal(await runCommandLine(fake.terminal), 0, fake.stderr());
    assert.equal(fake.stdout(), await answer.text());
  }
});

test('audit: a holder as tools print the fingerprint, moments as people say them', async (t) => {
  const { audit } = await openLog(t);
  const shown = async (...words: string[]) => (await audit(...words)).stdout.split('\n').slice(1, -1).map((line) => line.slice(11, 16));
  assert.deepEqual(await shown('--client-id', 'AA:'.repeat(20).slice(0, -1)), ['11:59', '11:00']);
  assert.deepEqual(await shown('--after', '1h'), ['11:59']);
  assert.deepEqual(await shown('--after', '3601s'), ['11:59', '11:00']);
  assert.deepEqual(await shown('--before', '2026-01-31T11:00:00Z'), ['10:00']);
});

test('audit: refuses values that it cannot take, before it opens anything', async () => {
  for (const words of [
    ['--event', 'login'], ['--outcome', 'ok'], ['--client-id', 'a'.repeat(39)], ['--client-id', 'g'.repeat(40)], ['--after', 'noon'],
    ['--before', '2026-02-30'], ['--limit', '0'], ['--limit', '100001'], ['--offset', 'x'],
  ]) {
    const fake = fakeTerminal(['audit', ...words], { environment: { SERVICE_DB: '/missing/pasted.db' } });
    assert.equal(await runCommandLine(fake.terminal), 2, words.join(' '));
    assert.ok(fake.stderr().startsWith(`pasted: ${words[0]} takes `), fake.stderr());
  }
});

test('audit: a reader that goes away in the middle is no failure', async (t) => {
  const { store, path } = await openLog(t);
  // More than a pipe holds.
  const details = { reason: 'x'.repeat(1000) };
  await Promise.all(Array.from({ length: 300 }, () => store.run('recordAudit', { ...EVENTS[0]!, details })));
  const child = spawn(process.execPath, [builtMain(), 'audit', '--limit', '300'], {
    env: { SERVICE_DB: path }, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (bytes: Buffer) => {
    stderr += bytes.toString();
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = await once(child, 'close');
  assert.deepEqual([code, stderr], [0, '']);
});
