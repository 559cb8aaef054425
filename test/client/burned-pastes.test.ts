// pastec get of pastes that burn and are encrypted, and pastec decrypt: content that can be had only once is not lost by
// a key that is missing, damaged or wrong.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { partialPaste } from '../support/partial-paste.ts';
import { isInstalled } from '../support/programs.ts';
import { seal } from '../support/sealed.ts';
import { clientOf, SCRIPT, SH, SHELLS, type Client, type Ended } from '../support/shells.ts';

const BURNS = { 'X-Burn-After-Read': 'true' };
const KEY = Buffer.alloc(32, 7);
const KEY_TEXT = KEY.toString('base64url');
const WRONG_KEY_TEXT = Buffer.alloc(32, 8).toString('base64url');
const PLAIN = 'said once\n';
const SEALED = seal(KEY, Buffer.from(PLAIN));

async function isThere(app: RunningApp, id: string, headers: Record<string, string> = {}): Promise<boolean> {
  return (await app.request(`/${id}`, { headers })).status === 200;
}

/** The file that the run says it kept, private and with the whole ciphertext. */
function keptFile({ stderr }: Ended): string {
  const [, kept = ''] = /only once: its content is kept in (\S+)/.exec(stderr) ?? assert.fail(stderr);
  assert.deepEqual(readFileSync(kept), SEALED);
  assert.equal(statSync(kept).mode & 0o777, 0o600);
  return kept;
}

async function clientWithApp(t: TestContext): Promise<Client & { app: RunningApp } | undefined> {
  if (!isInstalled(t, 'openssl')) return undefined;
  const app = await startApp(t);
  const client = clientOf(t, app.url);
  writeFileSync(join(client.folder, 'key'), `${KEY_TEXT}\n`);
  return { ...client, app };
}

test('pastec get: a burn paste that may be encrypted is not read without a key, unless --no-key says so', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, app, folder } = client;
  const id = await app.store(SEALED, BURNS);
  const refused = await run(['get', `${app.url}/${id}`]);
  assert.deepEqual([refused.code, refused.text], [2, '']);
  assert.match(refused.stderr, /may be encrypted[^]*--key-file[^]*--no-key/);
  assert.ok(await isThere(app, id));
  assert.equal((await run(['get', '--key-file', 'key', id])).text, PLAIN);

  const other = await app.store(SEALED, BURNS);
  assert.equal((await run(['get', '--no-key', '-o', 'sealed', other])).code, 0);
  assert.deepEqual(readFileSync(join(folder, 'sealed')), SEALED);
  assert.equal((await run(['decrypt', '--key-file', 'key', 'sealed'])).text, PLAIN);
});

test('pastec get: what can not be encrypted, or does not burn, is read without a question', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const image = { ...BURNS, 'Content-Type': 'image/png' };
  const contents: [string | Uint8Array, Record<string, string>][] = [
    ['text '.repeat(20), BURNS], [binaryContent(100), image], [binaryContent(100), {}],
  ];
  for (const [content, headers] of contents) {
    const { code, stdout } = await run(['get', await app.store(content, headers)]);
    assert.deepEqual([code, stdout], [0, Buffer.from(content as string)]);
  }
});

test('pastec get: a wrong key keeps the ciphertext of a burned paste, and decrypt makes of it what it was', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, app } = client;
  const url = `${app.url}/${await app.store(SEALED, BURNS)}`;
  const wrong = await run(['get', `${url}#${WRONG_KEY_TEXT}`]);
  assert.deepEqual([wrong.code, wrong.text], [1, '']);
  assert.match(wrong.stderr, /to decrypt it: pastec decrypt /);
  const kept = keptFile(wrong);
  for (const key of [KEY_TEXT, `${url}#${KEY_TEXT}`]) assert.equal((await run(['decrypt', kept, key])).text, PLAIN);
  assert.equal((await run(['decrypt', kept, WRONG_KEY_TEXT])).code, 1);
  assert.deepEqual(readFileSync(kept), SEALED);
});

test('pastec get: content that burned is kept elsewhere when this folder takes no file', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, app, folder, home } = client;
  const id = await app.store(SEALED, BURNS);
  mkdirSync(join(folder, `pastec-${id}`));
  const kept = keptFile(await run(['get', `${id}#${WRONG_KEY_TEXT}`]));
  assert.ok(kept.startsWith(join(home, '.local/share/pastec')));
});

test('pastec get: where nothing can be kept, a paste that burns is not asked for', async (t) => {
  const made = await clientWithApp(t);
  if (made === undefined) return;
  const { app, folder } = made;
  const limited = join(folder, 'limited');
  const { run } = clientOf(t, app.url, SHELLS[0], limited);
  const id = await app.store(SEALED, BURNS);
  const large = seal(KEY, Buffer.from(binaryContent(200_000)));
  for (const [blocks, target] of [
    [16, `${id}#${KEY_TEXT}`], [16, await app.store('small and readable', BURNS)],
    [256, `${await app.store(large, BURNS)}#${KEY_TEXT}`], [256, await app.store('large'.repeat(40_000), BURNS)],
  ] as const) {
    // Files of at most 8 KiB, and of 128 KiB; more is an error (signal 25 is SIGXFSZ), as on a full disk.
    writeFileSync(limited, `ulimit -f ${blocks}; trap '' 25; exec dash '${SCRIPT}' "$@"\n`);
    const { code, text, stderr } = await run(['get', target]);
    assert.deepEqual([code, text], [1, '']);
    assert.match(stderr, /^pastec: there is no room in \S+\n$/);
    assert.ok(await isThere(app, target.slice(0, id.length)));
  }
});

test('pastec get: of a burned paste that came in part, only a part is said to be kept', async (t) => {
  const { run, folder } = clientOf(t, await partialPaste(t, 'a part', 'breaks'));
  const { code, text, stderr } = await run(['get', '--no-key', 'a'.repeat(26)]);
  assert.deepEqual([code, text], [8, '']);
  assert.match(stderr, /only once: only a part of its content is kept in \S+\n$/);
  assert.equal(readFileSync(join(folder, `pastec-${'a'.repeat(26)}`), 'utf8'), 'a part');
});

test('pastec get: content that burned is kept when a signal ends its decryption', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { start, app, folder } = client;
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'openssl'),
    `#!/bin/sh\nPATH=$OTHERS\n[ "$1" = enc ] || exec openssl "$@"\n: >'${folder}/reached'\nexec sleep 30\n`);
  chmodSync(join(programs, 'openssl'), 0o755);
  const others = process.env['PATH'] ?? '';
  const environment = { PATH: `${programs}:${others}`, OTHERS: others };
  const { child, ended } = start(['get', `${await app.store(SEALED, BURNS)}#${KEY_TEXT}`], { environment, input: '' });
  while (!existsSync(join(folder, 'reached'))) await sleep(20);
  process.kill(-(child.pid ?? assert.fail()), 'SIGTERM');
  keptFile(await ended);
});

test('pastec get: a damaged key is refused before anything is asked of the server', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, app, folder } = client;
  const id = await app.store(SEALED, BURNS);
  const requests = app.logged.length;
  // The last character of 43 has two bits that are no part of the key.
  const damaged = ['', 'abc', `${KEY_TEXT}A`, KEY_TEXT.slice(1), `${KEY_TEXT.slice(0, -1)}d`, `${KEY_TEXT.slice(1)} `];
  for (const key of damaged) {
    assert.equal((await run(['get', `${id}#${key}`])).code, 2, key);
    writeFileSync(join(folder, 'damaged'), key);
    assert.equal((await run(['get', '--key-file', 'damaged', id])).code, 2, key);
  }
  assert.equal((await run(['get', '--key-file', 'key', `${id}#${KEY_TEXT}`])).code, 2);
  assert.equal((await run(['get', '--key-file', 'no-such-file', id])).code, 1);
  assert.equal(app.logged.length, requests);
  assert.ok(await isThere(app, id));
});

test('pastec get: a password comes before the question for a key, and a wrong one burns nothing', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, app, folder } = client;
  const id = await app.store(SEALED, { ...BURNS, 'X-Paste-Password': 'right' });
  writeFileSync(join(folder, 'right'), 'right');
  writeFileSync(join(folder, 'wrong'), 'wrong');
  const codes = [];
  for (const args of [[], ['--password-file', 'wrong'], ['--password-file', 'right']]) {
    codes.push((await run(['get', ...args, id])).code);
  }
  assert.deepEqual(codes, [4, 4, 2]);
  assert.ok(await isThere(app, id, { 'X-Paste-Password': 'right' }));
  assert.equal((await run(['get', '--password-file', 'right', '--key-file', 'key', id])).text, PLAIN);
});

test('pastec get: asks on a terminal for the key, without showing it; no answer burns nothing', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { onTerminal, app } = client;
  const id = await app.store(SEALED, BURNS);
  const answers = [['', 2, /--no-key/], [`${app.url}/${id}#${KEY_TEXT}`, 0, /said once/]] as const;
  for (const [answer, code, shown] of answers) {
    const { child, ended, says } = onTerminal(`get ${id}`);
    await says(/may be encrypted\. Its key, the part of the URL after #: /);
    child.stdin.write(`${answer}\n`);
    const finished = await ended;
    assert.equal(finished.code, code);
    assert.match(finished.text, shown);
    assert.ok(!finished.text.includes(KEY_TEXT));
  }
});

test('pastec decrypt: from a file or a pipe, with a key that is no argument', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, folder } = client;
  writeFileSync(join(folder, 'sealed'), SEALED);
  writeFileSync(join(folder, 'text'), PLAIN);
  assert.equal((await run(['decrypt', '--key-file', 'key', '-'], { input: SEALED })).text, PLAIN);
  for (const input of [`${KEY_TEXT}\n`, `${KEY_TEXT} \r\n`]) {
    assert.equal((await run(['decrypt', '--key-file', '-', 'sealed'], { input })).text, PLAIN);
  }
  assert.equal((await run(['decrypt', 'sealed', KEY_TEXT, '-o', 'out'])).code, 0);
  assert.equal(readFileSync(join(folder, 'out'), 'utf8'), PLAIN);
  const wrong: [number, string[]][] = [
    [2, ['sealed']], [2, ['sealed', 'abc']], [2, ['sealed', KEY_TEXT, 'x']], [2, []], [2, ['--key-file', '-', '-']],
    [2, ['--key-file', 'key', 'sealed', KEY_TEXT]], [1, ['missing', KEY_TEXT]], [1, ['.', KEY_TEXT]],
    [1, ['text', KEY_TEXT]], [1, ['sealed', WRONG_KEY_TEXT, '-o', 'never']],
  ];
  for (const [code, args] of wrong) {
    const ended = await run(['decrypt', ...args]);
    assert.deepEqual([args, ended.code, ended.text], [args, code, '']);
  }
  assert.ok(!existsSync(join(folder, 'never')));
});

test('pastec decrypt: what can be read only once, by any name, and a file in its own place', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { folder, app } = client;
  const script = join(folder, 'piped');
  const { run } = clientOf(t, app.url, SH, script);
  writeFileSync(join(folder, 'sealed'), SEALED);
  // With `timeout`, since a second reading would wait for ever.
  const decrypt = `timeout 20 sh '${SCRIPT}' decrypt --key-file '${folder}/key'`;
  for (const line of [
    `cat '${folder}/sealed' | ${decrypt} /dev/stdin`,
    `mkfifo fifo; cat '${folder}/sealed' >fifo & ${decrypt} fifo; code=$?; kill $! 2>/dev/null; exit $code`,
    `cp '${folder}/sealed' same && ${decrypt} -o same same && cat same`,
  ]) {
    writeFileSync(script, `${line}\n`);
    const { code, text, stderr } = await run([]);
    assert.deepEqual([code, text, stderr], [0, PLAIN, ''], line);
  }
});

test('pastec decrypt: what is not encrypted is called so, and no key is asked for', async (t) => {
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { run, folder } = client;
  writeFileSync(join(folder, 'text'), PLAIN);
  for (const [args, input] of [[['text'], ''], [['-'], PLAIN], [['text', KEY_TEXT], '']] as const) {
    const { code, text, stderr } = await run(['decrypt', ...args], { input });
    assert.deepEqual([code, text, stderr], [1, '', `pastec: that is not encrypted: ${args[0]}\n`]);
  }
});

test('pastec decrypt: asks on a terminal for the key', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const client = await clientWithApp(t);
  if (client === undefined) return;
  const { onTerminal, folder } = client;
  writeFileSync(join(folder, 'sealed'), SEALED);
  const { child, ended, says } = onTerminal('decrypt sealed');
  await says(/Its key, the part of the URL after #: /);
  child.stdin.write(`${KEY_TEXT}\n`);
  assert.match((await ended).text, /said once/);
});

test('pastec get -o /dev/stdout: into a file it ends, and what is in the file stays where it is appended to', async (t) => {
  const app = await startApp(t);
  // Each name means the output of the program that opens it: wc would have waited for its own.
  const appending = { name: 'sh', program: 'timeout', options: ['20', 'sh', '-c', 'exec sh "$0" "$@" >>out'] };
  const { run, folder } = clientOf(t, app.url, appending);
  writeFileSync(join(folder, 'out'), 'before\n');
  for (const name of ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1']) {
    const { code, stderr } = await run(['get', '-o', name, await app.store(PLAIN, BURNS)]);
    assert.deepEqual([code, stderr], [0, ''], name);
  }
  assert.equal(readFileSync(join(folder, 'out'), 'utf8'), `before\n${PLAIN.repeat(3)}`);
});
