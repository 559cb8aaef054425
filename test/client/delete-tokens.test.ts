// What pastec keeps to delete what it stored without a certificate: where, for how long, and to whom it shows this.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { DEFECTS, notedPrograms, pathWith } from '../support/broken-programs.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf, type Client } from '../support/shells.ts';

const OWNER = ['--fingerprint', '0123456789abcdef0123456789abcdef01234567'];
const DAY_SECONDS = 86_400;

interface Keeping extends Client {
  readonly app: RunningApp;
  /** Where the tokens are. */
  readonly tokens: string;
  /** Stores something; gives its URL. */
  readonly stored: (...args: string[]) => Promise<string>;
  readonly lines: () => string[];
}

async function keeping(t: TestContext, overrides: Partial<Config> = {}): Promise<Keeping> {
  const app = await startApp(t, overrides);
  const client = clientOf(t, app.url);
  const tokens = join(client.home, '.local', 'state', 'pastec', 'delete-tokens');
  const stored = async (...args: string[]): Promise<string> => {
    const { code, text, stderr } = await client.run(args, { input: `x${Math.random()}` });
    assert.deepEqual([code, stderr], [0, '']);
    return text.trim();
  };
  const lines = (): string[] => filesIn(tokens)
    .flatMap((name) => readFileSync(join(tokens, name), 'utf8').split('\n')).filter((line) => line !== '');
  return { ...client, app, tokens, stored, lines };
}

function filesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

const today = (): number => Math.floor(Date.now() / 1000 / DAY_SECONDS);

async function isThere(url: string): Promise<boolean> {
  return (await fetch(url)).status === 200;
}

test('pastec rm: deletes what was stored here without an identity, by its id and by its URL', async (t) => {
  const { run, app, tokens, stored, lines } = await keeping(t);
  const urls = [await stored(), await stored('-e', '1h'), await stored('-b')];
  assert.equal(statSync(tokens).mode & 0o777, 0o700);
  for (const name of filesIn(tokens)) assert.equal(statSync(join(tokens, name)).mode & 0o777, 0o600);
  const kept = lines().map((line) => line.split(' ')[0]);
  assert.deepEqual(kept.sort(), urls.map((url) => createHash('sha256').update(`${url}\n`).digest('hex')).sort());
  for (const url of urls) assert.ok(await isThere(url));
  const [first = '', ...others] = urls;
  const { code, stdout, stderr } = await run(['rm', first.slice(app.url.length + 1), ...others]);
  assert.deepEqual([code, String(stdout), stderr], [0, '', '']);
  for (const url of urls) assert.ok(!(await isThere(url)));
});

test('pastec put and rm: without a standard output a token is kept and found, under dash too', async (t) => {
  if (!isInstalled(t, 'dash')) return;
  const app = await startApp(t);
  const { run } = clientOf(t, app.url, { name: 'dash', program: 'sh', options: ['-c', 'exec dash "$0" "$@" >&-'] });
  const stored = await run([], { input: 'content' });
  const [, url = ''] = /^pastec: can't print the URL of what was stored: (http\S+)\n$/.exec(stored.stderr)
    ?? assert.fail(stored.stderr);
  const { code, stderr } = await run(['rm', url]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.ok(!(await isThere(url)));
});

test('pastec rm: finds its token whatever GREP_OPTIONS says, which the grep of macOS and the BSDs obeys', async (t) => {
  const { run, folder, stored } = await keeping(t);
  writeFileSync(join(folder, 'grep'), '#!/bin/sh\nPATH=${PATH#*:}\nexec grep ${GREP_OPTIONS-} "$@"\n', { mode: 0o755 });
  const environment = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}`, GREP_OPTIONS: '--color=always' };
  const { code, stderr } = await run(['rm', await stored()], { environment });
  assert.deepEqual([code, stderr], [0, '']);
});

test('pastec rm: a token is shown to the server alone that gave it, also beside an identity', async (t) => {
  const { run, stored, app } = await keeping(t);
  const url = await stored();
  const id = url.slice(app.url.length + 1);
  const other = await startApp(t);
  assert.equal((await run(['rm', `${other.url}/${id}`])).code, 4, 'a token would make it 404');
  const elsewhere = await run(['rm', url], { environment: { XDG_STATE_HOME: '/nonexistent' } });
  assert.equal(elsewhere.code, 4);
  assert.ok(await isThere(url));
  assert.equal((await run(['rm', ...OWNER, url])).code, 0);
});

test('pastec rm: where no token is kept it says so, and not of the next paste, of which one is', async (t) => {
  const { run, stored, app } = await keeping(t);
  const [kept, theirs] = [await stored(), await app.store('of somebody', { 'X-SSL-Client-SHA1': 'f'.repeat(40) })];
  const refused = await run(['rm', ...OWNER, kept, theirs]);
  assert.equal(refused.code, 4);
  assert.match(refused.stderr, /^pastec: .*\n {2}no delete token for it is kept on this machine: it takes the certificate/);
  assert.ok(!(await isThere(kept)));
  const other = await run(['info', `${app.url}/${theirs}`, `${app.url}/${'a'.repeat(26)}`]);
  assert.doesNotMatch(other.stderr, /token/);
});

test('pastec put --no-token, and put with an identity: keep nothing', async (t) => {
  const { run, stored, lines } = await keeping(t);
  const url = await stored('--no-token');
  await stored(...OWNER);
  assert.deepEqual(lines(), []);
  assert.equal((await run(['rm', url])).code, 4);
  const read = await run(['get', '--no-token', url]);
  assert.equal(read.code, 2, 'it is for storing alone');
});

test('pastec put: 16 at once, while a day is forgotten, lose no token', async (t) => {
  const { run, stored, lines, tokens } = await keeping(t);
  mkdirSync(tokens, { recursive: true });
  for (const day of [today() - 1, today() - 400]) writeFileSync(join(tokens, String(day)), `${'0'.repeat(64)} token\n`);
  const urls = await Promise.all(Array.from({ length: 16 }, () => stored()));
  assert.equal(lines().length, 16);
  assert.equal((await run(['rm', ...urls])).code, 0);
  for (const url of urls) assert.ok(!(await isThere(url)));
});

test('pastec put: forgets the days that are over, and beyond a megabyte the one that ends first', async (t) => {
  const { stored, tokens } = await keeping(t);
  mkdirSync(tokens, { recursive: true });
  const [soon, later] = [String(today() + 1), String(today() + 900)];
  for (const day of [String(today() - 1), String(today()), soon, later]) writeFileSync(join(tokens, day), 'x'.repeat(300_000));
  writeFileSync(join(tokens, 'notes'), 'of somebody else');
  await stored('-e', '3d');
  const stays = String(Math.floor((Date.now() / 1000 + 3 * DAY_SECONDS) / DAY_SECONDS) + 1);
  assert.deepEqual(filesIn(tokens), [soon, stays, later, 'notes'].sort(), 'five of 300 KB were too many: two went');
  await stored('-e', '3d');
  assert.deepEqual(filesIn(tokens), [soon, stays, later, 'notes'].sort());
});

test('pastec put: a token is kept for as long as the paste also after work for it', async (t) => {
  const { stored, tokens } = await keeping(t, { powDifficultyBits: 4, expiryAnonSeconds: 3 * DAY_SECONDS });
  await stored();
  const days = filesIn(tokens).map(Number);
  assert.equal(days.length, 1);
  assert.ok(days[0]! - today() <= 4, `it is kept for ${days[0]! - today()} days`);
});

test('pastec put: a token after a line that a full disk cut off is a line of its own', async (t) => {
  const { run, stored, tokens } = await keeping(t);
  await stored();
  const [name = ''] = filesIn(tokens);
  writeFileSync(join(tokens, name), `${'0'.repeat(64)} tok`);
  assert.equal((await run(['rm', await stored()])).code, 0);
});

test('pastec put: where no token can be kept, what was stored is said all the same, and a warning why', async (t) => {
  const { run, home, lines } = await keeping(t);
  mkdirSync(join(home, '.local', 'state'), { recursive: true });
  writeFileSync(join(home, '.local', 'state', 'pastec'), 'in the way');
  const { code, text, stderr } = await run([], { input: 'x' });
  assert.equal(code, 0);
  assert.ok(await isThere(text.trim()));
  assert.match(stderr, /can't keep a token in .*delete-tokens: without a certificate, that paste can not be deleted\n$/);
  assert.deepEqual(lines(), []);
});

for (const defect of DEFECTS) {
  test(`pastec rm: when a program ${defect}, only what is gone is said to be, and no other token is lost`, async (t) => {
    const { run, home, folder } = await keeping(t);
    for (const name of ['one', 'two']) writeFileSync(join(folder, name), name);
    const temporary = join(folder, 'temporary');
    mkdirSync(temporary);
    const storedTwo = async (environment: Record<string, string> = {}): Promise<string[]> =>
      (await run(['one', 'two'], { environment })).text.trim().split('\n');
    const { path, started } = notedPrograms(home);
    assert.equal((await run(['rm', ...await storedTwo({ PATH: path })], { environment: { PATH: path } })).code, 0);
    for (const program of started()) {
      const [first = '', second = ''] = await storedTwo();
      const environment = { PATH: pathWith(home, defect, program), TMPDIR: temporary };
      await run([], { input: 'another', environment });
      const { code } = await run(['rm', first], { environment });
      if (code === 0) assert.ok(!(await isThere(first)), `${program} ${defect}`);
      assert.equal((await run(['rm', second])).code, 0, `${program} ${defect}: another token is lost`);
    }
  });
}
