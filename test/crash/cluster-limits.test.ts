// A serving process over nodes that are away or refuse it: it says what to change, and ends when it is told to.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startFaultyNodes } from '../support/faulty-nodes.ts';
import { temporaryFolder, startMain, startServing } from '../support/main-process.ts';
import { openssl } from '../support/pki.ts';
import { rqliteMissing, startNodes } from '../support/rqlite.ts';

const missing = rqliteMissing();

test('cluster: a start that cannot succeed says which setting to change', { skip: missing }, async (t) => {
  const user = { username: 'pasted', password: 'right' };
  const [open, closed] = await Promise.all([startNodes(t, { count: 1 }), startNodes(t, { count: 1, user, tls: true })]);
  const folder = temporaryFolder(t);
  const [right, wrong] = [join(folder, 'right.pem'), join(folder, 'wrong.pem')];
  writeFileSync(right, closed.certificate!);
  const own = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key', '-out', 'wrong.pem', '-subj', '/CN=a'];
  openssl(folder, 'req', ...own);
  const [inClear, secure] = [open.nodes[0]!.address, closed.nodes[0]!.address];
  const elsewhere = `localhost:${secure.split(':')[1]}`;
  const known = { SERVICE_DB_PASSWORD: 'right', SERVICE_DB_CA: right };
  const starts: readonly (readonly [string, Record<string, string>, RegExp])[] = [
    ['rqlite://127.0.0.1:1', {}, /127\.0\.0\.1:1: connect ECONNREFUSED/],
    [`rqlites://pasted@${secure}`, { ...known, SERVICE_DB_PASSWORD: 'wrong' },
      /401 Unauthorized.*set the user in SERVICE_DB and SERVICE_DB_PASSWORD/],
    [`rqlites://other@${secure}`, known, /401 Unauthorized.*set the user in SERVICE_DB and SERVICE_DB_PASSWORD/],
    [`rqlites://pasted@${secure}`, { ...known, SERVICE_DB_CA: wrong }, /self-signed certificate.*set SERVICE_DB_CA/],
    [`rqlites://pasted@${elsewhere}`, known, /does not match certificate's altnames/],
    [`rqlite://pasted@${secure}`, known, /write rqlites:\/\//],
    [`rqlites://${inClear}`, known, /they speak HTTP: write rqlite:\/\//],
  ];
  await Promise.all(starts.map(async ([nodes, environment, message]) => {
    const main = startMain(t, [], { environment: { SERVICE_PORT: '0', SERVICE_DB: nodes, ...environment } });
    assert.equal(await main.ended, 1, nodes);
    assert.match(main.stderr(), message);
    assert.match(main.stderr(), /^pasted: storage unavailable: [^\n]+ \(SERVICE_DB\)\n$/, nodes);
    assert.doesNotMatch(main.stderr() + main.stdout(), /right\b(?!\.pem)|wrong\b(?!\.pem| version)/);
  }));
});

test('cluster: a service ends in time when it is told to while the nodes are away', { skip: missing }, async (t) => {
  const { nodes: [node] } = await startNodes(t, { count: 1 });
  const id = 'a'.repeat(26);
  const asked = Promise.withResolvers<void>();
  let areAway = false;
  const { addresses } = await startFaultyNodes(t, [node!.address], ({ body }) => {
    if (body.includes(id)) {
      areAway = true;
      asked.resolve();
    }
    return areAway ? { kind: 'silent', isCarriedOut: false } : undefined;
  });
  const environment = { SERVICE_DB: `rqlite://${addresses.join()}`, SERVICE_SHUTDOWN_GRACE: '1' };
  const { url, child, ended } = await startServing(t, { environment });
  const answering = fetch(`${url}/${id}/raw`).then(({ status }) => status, () => 'cut off');
  await asked.promise;
  const startMs = performance.now();
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  const seconds = (performance.now() - startMs) / 1000;
  t.diagnostic(`${seconds.toFixed(1)} s`);
  assert.equal(await answering, 'cut off');
  assert.ok(seconds < 18, 'ten for what was asked of the nodes, and five for closing; pasted.service gives it 30 s');
});
