// The README's lines for users, run as printed but for the address: its tours with pastec and with curl, and what an
// admin does with admin.p12. Its lines for a server: interop/readme-server.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { RUNNING_CLOCK, startApp } from '../support/app.ts';
import { builtMain } from '../support/built.ts';
import { commandLines } from '../support/command-lines.ts';
import { isInstalled } from '../support/programs.ts';
import { blocksUnder, type Check, runAll } from '../support/readme.ts';

const LOCAL = 'http://127.0.0.1:8080';
/** The default limits: the tours must get along with them. */
const LIMITS = { rateMax: 10, duplicateMax: 3 } as const;

const nothing: Check = (output) => assert.equal(output, '');
const anything: Check = () => {};
const date: Check = (output) => assert.match(output, /^[^\n]* \d\d:\d\d:\d\d [^\n]*\n$/);
const random: Check = (output) => assert.match(output, /^[0-9a-f]{40}\n$/);

function matches(pattern: RegExp): Check {
  return (output) => assert.match(output, pattern);
}

function holds(members: Readonly<Record<string, unknown>>): Check {
  return (output) => {
    const json = JSON.parse(output) as Record<string, unknown>;
    for (const [name, value] of Object.entries(members)) assert.deepEqual(json[name], value, `${name} of ${output}`);
  };
}

test('README: every line of the tour with pastec does what it says', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...LIMITS, powDifficultyBits: 4 });
  const [lines = [], ...others] = blocksUnder('A tour with pastec', { [LOCAL]: app.url });
  assert.deepEqual(others, []);
  const url = `${app.url}/[a-z2-7]{26}`;
  const oneUrl = matches(new RegExp(`^${url}\n$`));
  const shell = commandLines(t);
  await runAll(shell, lines, [
    nothing,
    async (output) => {
      await oneUrl(output);
      const note = readFileSync(join(shell.folder, 'note.txt'), 'utf8');
      assert.equal(await (await app.request(`${new URL(output.trim()).pathname}/raw`)).text(), note);
    },
    nothing,
    date,
    matches(/^type: text\/plain\n[^]*^expires: /m),
    nothing,
    random,
    nothing,
    date,
    nothing,
    nothing,
    oneUrl,
    matches(new RegExp(`^version: ${VERSION}$[^]*^proof-of-work: 4 bits$[^]*^own tier: anonymous$`, 'm')),
  ]);
  const kept = await shell.run('find . -name "pastec*" -type f');
  assert.equal(kept, './pastec\n', 'nothing else is left in the folder');
});

test('README: every line of the tour with curl does what it says', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t, LIMITS);
  const [lines = [], ...others] = blocksUnder('The same with curl', { [LOCAL]: app.url });
  assert.deepEqual(others, []);
  const content = async (output: string): Promise<string> => {
    const { raw = '' } = JSON.parse(output) as Record<string, string>;
    return (await app.request(raw)).text();
  };
  const shell = commandLines(t);
  await runAll(shell, lines, [
    nothing,
    async (output) => {
      const { id, url, raw } = JSON.parse(output) as Record<string, string>;
      assert.deepEqual([url, raw], [`/${id}`, `/${id}/raw`]);
      await date(await content(output));
    },
    nothing,
    date,
    holds({ mime_type: 'text/plain' }),
    nothing,
    random,
    nothing,
    random,
    nothing,
    holds({ message: 'paste deleted' }),
    async (output) => assert.equal(await content(output), 'hello'),
    holds({ version: VERSION }),
  ], 'date > note.txt');
});

test('README: the admin\'s certificate works as printed in pastec and in curl', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const shell = commandLines(t);
  const pasted = `pasted() { '${process.execPath}' '${builtMain()}' "$@"; }`;
  await shell.run(`${pasted}; pasted tls self-signed --host 127.0.0.1`);
  const tlsCertPath = join(shell.folder, 'server.crt');
  const tlsKeyPath = join(shell.folder, 'server.key');
  const pkiCaPassword = 'of the authority';
  const app = await startApp(t, { tlsCertPath, tlsKeyPath, pkiCaPassword }, RUNNING_CLOCK);
  await shell.run(`echo 'of somebody else' | curl -fsS --cacert '${tlsCertPath}' -T - ${app.url}/`);
  await shell.run(`${pasted}; export SERVICE_DB='${app.config.databasePath}' SERVICE_PKI_CA_PASSWORD='${pkiCaPassword}'
    (umask 077; pasted admin create --out - > admin.p12)`);
  // The server looks once a second for an authority that another process has made.
  await shell.run(`for _ in $(seq 50); do
    if curl -fs --cacert '${tlsCertPath}' --cert-type P12 --cert admin.p12: ${app.url}/audit; then exit 0; fi
    sleep 0.1
  done; exit 1`);
  const [, , lines = []] = blocksUnder('On a server in five minutes', { 'https://paste.example': app.url });
  await runAll(shell, lines, [
    nothing,
    anything,
    matches(/^id\tsize\t[^\n]*\n[a-z2-7]{26}\t17\ttext\/plain\t/),
    (output) => {
      const { entries } = JSON.parse(output) as { entries: { event: string }[] };
      assert.ok(entries.some(({ event }) => event === 'cert_issued'), output);
    },
  ], `export CURL_CA_BUNDLE='${tlsCertPath}'`);
});
