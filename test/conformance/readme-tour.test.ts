// Every command line of the README's shell blocks is run as printed, but for address and paths, and its result looked
// at; and the README's count of the source's lines. The other tables are readme.test.ts and settings.test.ts.

import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { VERSION } from '../../src/version.ts';
import { binaryContent, RUNNING_CLOCK, startApp } from '../support/app.ts';
import { builtMain } from '../support/built.ts';
import { commandLines, type CommandLines } from '../support/command-lines.ts';
import { fill } from '../support/databases.ts';
import { isInstalled } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const FILES = { 'notes.txt': 'some notes\n', 'key.pub': 'a key\n', 'plan.txt': 'a plan\n' } as const;
const PHOTO = binaryContent(2000);

/** Looks at what a line has written. */
type Check = (output: string) => void | Promise<void>;

function section(heading: string): string {
  return README.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? assert.fail(`no section ${heading}`);
}

/** The lines of the only shell block of a section, with something else in place of some of their text. */
function blockUnder(heading: string, replacements: Readonly<Record<string, string>>): string[] {
  const blocks = [...section(heading).matchAll(/^```sh\n([^]*?)^```$/gm)];
  assert.equal(blocks.length, 1, heading);
  let block = blocks[0]![1]!;
  for (const [text, replacement] of Object.entries(replacements)) {
    assert.ok(block.includes(text), text);
    block = block.replaceAll(text, replacement);
  }
  return block.trimEnd().split('\n');
}

function writeTourFiles({ folder }: CommandLines): void {
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  writeFileSync(join(folder, 'photo.png'), PHOTO);
}

/** Runs the lines in one shell, after others, and checks what each of them has written. */
async function runAll(
  shell: CommandLines,
  lines: readonly string[],
  checks: readonly Check[],
  ...before: string[]
): Promise<void> {
  assert.equal(lines.length, checks.length, lines.join('\n'));
  const separated = lines.flatMap((line) => [line, "printf '\\036'"]);
  const output = await shell.run([...before, 'set -e', ...separated].join('\n'));
  for (const [index, written] of output.split('\x1e').slice(0, -1).entries()) await checks[index]!(written);
}

function nothing(output: string): void {
  assert.equal(output, '');
}

function is(expected: string): Check {
  return (output) => assert.equal(output, expected);
}

function matches(pattern: RegExp): Check {
  return (output) => assert.match(output, pattern);
}

function holds(members: Readonly<Record<string, unknown>>): Check {
  return (output) => {
    const json = JSON.parse(output) as Record<string, unknown>;
    for (const [name, value] of Object.entries(members)) assert.deepEqual(json[name], value, `${name} of ${output}`);
  };
}

test('README: every line of the tour with curl does what it says', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const app = await startApp(t);
  const shell = commandLines(t);
  writeTourFiles(shell);
  await runAll(shell, blockUnder('A tour with curl', { 'http://127.0.0.1:8080': app.url }), [
    nothing,
    async (output) => {
      const { id, url, raw } = JSON.parse(output) as Record<string, string>;
      assert.deepEqual([url, raw], [`/${id}`, `/${id}/raw`]);
      assert.equal(await (await app.request(raw!)).text(), 'hello\n');
    },
    async (output) => {
      const { raw, mime_type: type } = JSON.parse(output) as Record<string, string>;
      assert.equal(type, 'image/png');
      assert.deepEqual(Buffer.from(await (await app.request(raw!)).arrayBuffer()), Buffer.from(PHOTO));
    },
    nothing,
    holds({ size: FILES['notes.txt'].length, mime_type: 'text/plain' }),
    is(FILES['notes.txt']),
    is(FILES['notes.txt'].slice(0, 5)),
    nothing,
    is(FILES['key.pub']),
    holds({ error: 'paste not found' }),
    nothing,
    is(FILES['plan.txt']),
    holds({ mime_type: 'text/plain' }),
    holds({ version: VERSION }),
  ]);
});

test('README: every line about pastec does what it says', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { powDifficultyBits: 4 });
  const shell = commandLines(t);
  writeTourFiles(shell);
  const url = `${app.url}/[a-z2-7]{26}`;
  await runAll(shell, blockUnder('pastec', { 'http://127.0.0.1:8080': app.url }), [
    nothing,
    matches(new RegExp(`^${url}\n$`)),
    matches(new RegExp(`^${url}\n${url}\n$`)),
    async (output) => {
      const raw = `${new URL(output.trim()).pathname}/raw`;
      assert.equal(await (await app.request(raw)).text(), FILES['plan.txt']);
      assert.equal((await app.request(raw)).status, 404);
    },
    nothing,
    is(FILES['plan.txt']),
    matches(/^version: 1\.5\.\d+$[^]*^proof-of-work: 4 bits$[^]*^own tier: anonymous$/m),
    matches(/register/),
  ]);
});

test('README: becoming the admin works as printed', async (t) => {
  const shell = commandLines(t);
  writeFileSync(join(shell.folder, 'ca-password'), 'the password of the CA\n', { mode: 0o600 });
  const lines = blockUnder('Tiers and certificates', { '/etc/pasted/ca-password': 'ca-password' });
  const pasted = `pasted() { '${process.execPath}' '${builtMain()}' "$@"; }`;
  await runAll(shell, lines, [nothing, matches(/admin\.p12/)], pasted);
  assert.equal(statSync(join(shell.folder, 'admin.p12')).mode & 0o777, 0o600);
});

test('README: HTTPS without a proxy works as printed, up to a certificate that is known', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const shell = commandLines(t);
  const pasted = `pasted() { '${process.execPath}' '${builtMain()}' "$@"; }`;
  const [make = '', start = '', ...use] = section('HTTPS').match(/^```sh\n([^]*?)\n```$/m)![1]!.split('\n');
  await runAll(shell, [make], [matches(/SERVICE_TLS_CERT=.*server\.crt\n.*SERVICE_TLS_KEY=.*server\.key\n/)], pasted);
  assert.match(start, /^SERVICE_TLS_CERT=server\.crt SERVICE_TLS_KEY=server\.key SERVICE_PKI_CA_PASSWORD_FILE=\S+ pasted &$/);
  const tlsFiles = { tlsCertPath: join(shell.folder, 'server.crt'), tlsKeyPath: join(shell.folder, 'server.key') };
  const app = await startApp(t, { ...tlsFiles, pkiCaPassword: 'the password of the CA', registerPowDifficultyBits: 4 }, RUNNING_CLOCK);
  assert.match(app.url, /^https:/);
  const client = await shell.run(`${pasted}\npasted client --server ${app.url}`);
  writeFileSync(join(shell.folder, 'pastec'), client);
  const lines = use.map((line) => line.replace('https://127.0.0.1:8080', app.url));
  await runAll(shell, lines, [matches(/[0-9a-f]{40}/), matches(/^id\tsize\t/)]);
});

test('README: the lines about checking, backing up and restoring do what they say', async (t) => {
  const app = await startApp(t, {}, RUNNING_CLOCK);
  const id = await app.store('content', { 'X-Burn-After-Read': 'true' });
  const large = await app.store(PHOTO);
  const shell = commandLines(t);
  const { databasePath } = app.config;
  const pasted = `export SERVICE_DB='${databasePath}'; pasted() { '${process.execPath}' '${builtMain()}' "$@"; }`;
  const lines = blockUnder('Check, backup, restore', { '/srv/backup/': `${shell.folder}/` });
  await runAll(shell, lines.slice(0, 3), [matches(/^ok integrity: .* 2 pastes/m), matches(/2 pastes/), nothing], pasted);
  assert.equal(statSync(join(shell.folder, 'pasted.db')).mode & 0o777, 0o600);
  assert.equal((await app.request(`/${id}/raw`)).status, 200);
  await app.app.close();
  assert.equal(statSync(join(shell.folder, 'pasted.db.gz')).mode & 0o777, 0o600);
  const restored = matches(/before-restore/);
  await runAll(shell, lines.slice(3), [restored, restored, matches(/0 /)], pasted);
  const after = await startApp(t, { databasePath }, RUNNING_CLOCK);
  assert.equal(await (await after.request(`/${id}/raw`)).text(), 'content');
  assert.equal((await after.request(`/${large}/raw`)).status, 200);
  const unpacked = gunzipSync(readFileSync(join(shell.folder, 'pasted.db.gz')));
  assert.equal(unpacked.toString('latin1', 0, 15), 'SQLite format 3');
});

test('README: what root gives by pastedctl works as printed, and opens nothing of the service', async (t) => {
  const shell = commandLines(t);
  const databasePath = join(shell.folder, 'service', 'pasted.db');
  await fill(databasePath, 1);
  const blocks = section('Under systemd').matchAll(/^```sh\n([^]*?)\n```$/gm);
  const lines = [...blocks].flatMap(([, block = '']) => block.split('\n'));
  const given = lines.filter((line) => line.includes('pastedctl'));
  assert.equal(given.length, 3);
  for (const line of lines) assert.ok(!line.includes('/var/lib'), line);
  // Like the script, but for whose process it is: its descriptors are root's, its files the service's.
  const pastedctl = `umask 022; pastedctl() {
    SERVICE_PKI_CA_PASSWORD=x SERVICE_DB='${databasePath}' '${process.execPath}' '${builtMain()}' "$@"
  }`;
  await runAll(shell, given, [nothing, nothing, matches(/^Restored .* from standard input: 4 pastes/)], pastedctl);
  for (const name of ['pasted-backup.db', 'admin.p12']) {
    assert.equal(statSync(join(shell.folder, name)).mode & 0o777, 0o600, name);
  }
});
