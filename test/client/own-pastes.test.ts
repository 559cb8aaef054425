// pastec ls, update, rm and info with an identity, which is claimed here by its fingerprint as on a trusted network.
// Certificates are in certificates.test.ts.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { answerAlways } from '../support/answer-always.ts';
import { binaryContent, startApp } from '../support/app.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf, type Ended } from '../support/shells.ts';

const OWNER = '0123456789abcdef0123456789abcdef01234567';
const STRANGER = 'f'.repeat(40);

test('pastec ls: lines of the server with a header, filtered as asked', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const own = { 'X-SSL-Client-SHA1': OWNER };
  const text = await app.store('text', own);
  const image = await app.store(Buffer.from([0xff]), { ...own, 'Content-Type': 'image/png' });
  await app.store('of a stranger', { 'X-SSL-Client-SHA1': STRANGER });
  const ids = async (...args: string[]): Promise<string[]> => {
    const { text: listed, stderr } = await run(['ls', '--fingerprint', OWNER, ...args]);
    assert.equal(stderr, '');
    const [header, ...lines] = listed.trimEnd().split('\n');
    assert.equal(header, 'id\tsize\tmime_type\tcreated_at\texpires_at\tburn_after_read\tpassword_protected\towner');
    return lines.map((line) => line.split('\t')[0] ?? '').sort();
  };
  assert.deepEqual(await ids(), [text, image].sort());
  assert.deepEqual(await ids('--type', 'image/*'), [image]);
  assert.equal((await ids('--limit', '1')).length, 1);
  assert.equal((await ids('--offset', '1')).length, 1);
  assert.deepEqual(await ids('--after', '4000000000'), []);
  assert.deepEqual(await ids('--before', '4000000000'), [text, image].sort());
  const json = JSON.parse((await run(['ls', '--json', '--fingerprint', OWNER])).text) as { total: number };
  assert.equal(json.total, 2);
  assert.equal((await run(['ls'])).code, 4);
  assert.equal((await run(['ls', '--all', '--fingerprint', OWNER])).code, 4);
});

test('pastec ls: says that there are more than it shows, and how to see them', async (t) => {
  const app = await startApp(t, { rateMax: 0 });
  const { run } = clientOf(t, app.url);
  const own = { 'X-SSL-Client-SHA1': OWNER };
  for (let count = 0; count < 101; count += 1) {
    const type = count === 0 ? { 'Content-Type': 'image/png' } : {};
    await app.store(Buffer.from([0xff, count]), { ...own, ...type });
  }
  const list = async (...args: string[]): Promise<[number, string]> => {
    const { code, text, stderr } = await run(['ls', '--fingerprint', OWNER, ...args]);
    assert.equal(code, 0);
    return [text.split('\n').length - 2, stderr];
  };
  const more = (offset: number): string => `pastec: there are more: --offset ${offset} shows what follows\n`;
  assert.deepEqual(await list(), [100, more(100)]);
  assert.deepEqual(await list('-q'), [100, '']);
  assert.deepEqual(await list('--offset', '01'), [100, '']);
  assert.deepEqual(await list('--type', 'application/*'), [100, ''], 'there is no other of that type');
  assert.deepEqual(await list('--limit', '50'), [50, ''], 'as was asked for');
  assert.deepEqual(await list('--limit', '200'), [101, '']);
  const json = await run(['ls', '--json', '--fingerprint', OWNER]);
  assert.deepEqual([json.stderr, JSON.parse(json.text).total], ['', 101], 'JSON says so by itself');
  const full = clientOf(t, await answerAlways(t, 200, `id\tsize\n${'x\t1\n'.repeat(1000).trimEnd()}`));
  assert.equal((await full.run(['ls', '--limit', '5000'])).stderr, more(1000), 'no server gives more at once');
});

test('pastec update: new content, expiry and password for the owner alone', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const identity = ['--fingerprint', OWNER.toUpperCase().replace(/(..)(?=.)/g, '$1:')];
  const url = (await run([...identity, '-'], { input: 'first' })).text.trim();
  const content = async (): Promise<string> => (await run(['get', url])).text;

  const updated = await run([...identity, 'update', url, '-'], { input: 'second' });
  assert.deepEqual([updated.text, await content()], [`${url}\n`, 'second']);
  writeFileSync(join(folder, 'password'), 'secret');
  assert.equal((await run([...identity, 'update', '--password-file', 'password', url])).code, 0);
  assert.equal((await run(['get', url])).code, 4);
  assert.equal((await run([...identity, 'update', '--no-password', '-e', '1h', url])).code, 0);
  assert.equal(await content(), 'second');
  const { created_at, expires_at } = await (await fetch(url)).json() as { created_at: number; expires_at: number };
  assert.equal(expires_at - created_at, 3600);

  assert.equal((await run([...identity, 'update', url])).code, 2);
  assert.equal((await run([...identity, 'update', '--no-password', '--password-file', 'password', url])).code, 2);
  assert.equal((await run(['update', url, '-'], { input: 'third' })).code, 4);
  assert.equal((await run(['--fingerprint', STRANGER, 'update', url, '-'], { input: 'third' })).code, 4);
  assert.equal(await content(), 'second');
});

test('pastec update: a URL with a key keeps it, and the new content is encrypted under it', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const url = (await run(['-E', '--fingerprint', OWNER], { input: 'first secret' })).text.trim();
  const updated = await run(['update', '--fingerprint', OWNER, url, '-'], { input: 'second secret' });
  assert.deepEqual([updated.text, updated.stderr], [`${url}\n`, '']);
  assert.equal((await run(['get', url])).text, 'second secret');
  const raw = await (await fetch(`${url.split('#')[0]}/raw`)).text();
  assert.ok(!raw.includes('secret'));
});

test('pastec update: encrypted content is replaced by readable content only on purpose', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const identity = ['--fingerprint', OWNER];
  const update = (...args: string[]): Promise<Ended> => run(['update', ...identity, ...args], { input: 'readable' });
  writeFileSync(join(folder, 'password'), 'secret');
  writeFileSync(join(folder, 'other'), 'another');
  const url = (await run(['-E', ...identity], { input: 'a secret' })).text.trim();
  const [bare = ''] = url.split('#');

  const refused = await update(bare, '-');
  assert.deepEqual([refused.code, refused.text], [1, '']);
  assert.match(refused.stderr, /is encrypted, and the new content would not be\n.*--encrypt.*--plain/);
  assert.equal((await update(bare, '-', '--password-file', 'password')).code, 1);
  assert.equal((await update(bare, '-e', '1h')).code, 0);
  assert.equal((await update(bare, '--password-file', 'password')).code, 0);
  assert.equal((await update(bare, '-')).code, 4);
  assert.equal((await update(bare, '--no-password', '-')).code, 4);
  assert.equal((await update(bare, '--password-file', 'other', '-')).code, 4);
  assert.equal((await update(bare, '--password-file', 'password', '-')).code, 1);
  assert.equal((await run(['get', '--password-file', 'password', url])).text, 'a secret');

  const replaced = await update('--plain', '--no-password', url, '-');
  assert.deepEqual([replaced.text, (await run(['get', bare])).text], [`${bare}\n`, 'readable']);
  assert.equal((await update(bare, '-')).code, 0);
  const binary = await app.store(binaryContent(100), { 'X-SSL-Client-SHA1': OWNER, 'X-Paste-Password': 'secret' });
  assert.equal((await update(binary, '-', '--password-file', 'password')).code, 0);
});

test('pastec update: what somebody has stored since it was looked at is not replaced', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const identity = ['--fingerprint', OWNER];
  const bare = (await run(identity, { input: 'draft' })).text.trim();
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const slow = run(['update', ...identity, bare, 'pipe']).finally(() => closeSync(openSync(pipe, 'r+')));
  // Opens when pastec opens the other end, after it has looked at the paste; or, if it never does, when it has ended.
  const input = await open(pipe, 'w');
  const sealed = (await run(['update', '-E', ...identity, bare, '-'], { input: 'a secret' })).text.trim();
  await input.writeFile('readable');
  await input.close();
  const { code, text, stderr } = await slow;
  assert.deepEqual([code, text], [1, '']);
  assert.match(stderr, /^pastec: the paste was changed meanwhile\n/);
  assert.equal((await run(['get', sealed])).text, 'a secret');
});

test('pastec update --encrypt: keeps the key of the URL, and makes a new one where there is none', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const update = (...args: string[]): Promise<Ended> =>
    run(['update', '-E', '--fingerprint', OWNER, ...args], { input: 'new' });
  const url = (await run(['-E', '--fingerprint', OWNER], { input: 'old' })).text.trim();
  const [bare = '', key = ''] = url.split('#');
  assert.equal((await update(url, '-')).text, `${url}\n`);
  assert.equal((await run(['get', url])).text, 'new');
  writeFileSync(join(folder, 'key'), key);
  assert.equal((await update('--key-file', 'key', bare, '-')).text, `${url}\n`);

  const renewed = (await update(bare, '-')).text.trim();
  assert.match(renewed, new RegExp(`^${bare}#[\\w-]{43}$`));
  assert.notEqual(renewed, url);
  assert.equal((await run(['get', renewed])).text, 'new');
  assert.equal((await run(['get', url])).code, 1);
  const { link } = JSON.parse((await update('--json', bare, '-')).text) as { link: string };
  assert.equal((await run(['get', link])).text, 'new');
});

test('pastec update: finding out whether a paste is encrypted does not burn it', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const id = await app.store(binaryContent(100), { 'X-SSL-Client-SHA1': OWNER, 'X-Burn-After-Read': 'true' });
  const { code, stderr } = await run(['update', '--fingerprint', OWNER, id, '-'], { input: 'new' });
  assert.equal(code, 1);
  assert.match(stderr, /burn/);
  assert.equal((await app.request(`/${id}`)).status, 200);
});

test('pastec rm: deletes own pastes, as many as are named', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const own = { 'X-SSL-Client-SHA1': OWNER };
  const [first, second] = [await app.store('1', own), await app.store('2', own)];
  assert.equal((await run(['rm', first])).code, 4);
  assert.equal((await run(['rm', '--fingerprint', STRANGER, first])).code, 4);
  const removed = await run(['rm', '--fingerprint', OWNER, first, `${app.url}/${second}`]);
  assert.deepEqual([removed.code, removed.text, removed.stderr], [0, '', '']);
  for (const id of [first, second]) assert.equal((await app.request(`/${id}`)).status, 404);
});

test('pastec: a fingerprint from the configuration is shown to the configured server only', async (t) => {
  const [app, other] = [await startApp(t), await startApp(t)];
  const { run, home } = clientOf(t, app.url);
  mkdirSync(join(home, '.config', 'pastec'), { recursive: true });
  writeFileSync(join(home, '.config', 'pastec', 'config'), `server=${app.url}\nfingerprint=${OWNER}\n`);
  assert.equal((await run(['ls'])).code, 0);
  assert.equal((await run(['ls', '--server', other.url])).code, 4);
  assert.equal((await run(['rm', `${other.url}/${await other.store('x', { 'X-SSL-Client-SHA1': OWNER })}`])).code, 4);
});

test('pastec status: version, limits, difficulty and the own tier', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 7, maxAnonBytes: 1234, expiryAnonSeconds: 60 });
  const { run } = clientOf(t, app.url);
  const anonymous = (await run(['status'])).text;
  assert.match(anonymous, /^version: 1\.\d+\.\d+\nproof-of-work: 7 bits$/m);
  assert.match(anonymous, /^anonymous: up to 1234 bytes, kept for 60 s, when asked for \d+ s at most$/m);
  assert.match(anonymous, /^own tier: anonymous$/m);
  assert.match((await run(['status', '--fingerprint', OWNER])).text, /^own tier: untrusted$/m);
  assert.ok('version' in JSON.parse((await run(['status', '--json'])).text));
});
