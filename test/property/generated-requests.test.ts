// Generated requests against the whole service, a short run of the same seeds each time. The long run is row 13 of the
// campaign.

import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import type { Known } from '../support/generated-requests.ts';
import { storm } from '../support/request-storm.ts';

const OTHER = 'b'.repeat(40);
const STRANGERS = ['1', '2', '3'].map((digit) => digit.repeat(40));
const PASTES = 8;

/** The service with others' pastes in it, and what the strangers know. */
async function besieged(t: TestContext): Promise<{ app: RunningApp; known: Known; unharmed: () => Promise<void> }> {
  const app = await startApp(t, {
    pkiEnabled: true,
    pkiCaPassword: 'the password of the CA',
    registerPowDifficultyBits: 0,
    proxySecret: '',
    maxConnectionsPerClient: 0,
  });
  const contents = Array.from({ length: PASTES }, (_, index) => `paste ${index} of someone else`);
  const othersIds = await Promise.all(contents.map((content) => app.store(content, { 'X-SSL-Client-SHA1': OTHER })));
  const ids = [await app.store('of the strangers', { 'X-SSL-Client-SHA1': STRANGERS[0]! })];
  const known: Known = {
    ids,
    othersIds,
    fingerprints: STRANGERS,
    serials: ['4'.repeat(32)],
    powKey: Buffer.from('guessed'),
    nowSeconds: app.clock.unixMs() / 1000,
  };
  const unharmed = async (): Promise<void> => {
    for (const [index, id] of othersIds.entries()) {
      assert.equal(await (await app.request(`/${id}/raw`)).text(), contents[index]);
    }
    assert.equal((await app.request('/health')).status, 200);
  };
  return { app, known, unharmed };
}

test('generated requests: answers are well-formed and named, others\' pastes unharmed', async (t) => {
  const { app, known, unharmed } = await besieged(t);
  const options = { port: app.port, known, firstSeed: 1, connections: 1700, atATime: 40 };
  const { requests, statuses, findings } = await storm(options);
  assert.deepEqual(findings, []);
  await unharmed();
  assert.deepEqual(app.logged.filter(({ level }) => level === 'error'), []);
  // The requests must reach each of these answers, or they would try nothing.
  for (const status of [200, 201, 204, 400, 401, 403, 404, 405, 413, 415, 417, 431, 501]) {
    assert.ok((statuses[status] ?? 0) > 0, `no ${status} among ${JSON.stringify(statuses)}`);
  }
  assert.ok(requests > 3000);
});
