// What pastec shows to people at a terminal: content without control sequences, lists and limits in words, when a paste
// expires, and how far a transfer is. The terminal is a pseudo-terminal of util-linux's script(1).

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { answerAlways } from '../support/answer-always.ts';
import { binaryContent, RUNNING_CLOCK, startApp } from '../support/app.ts';
import { findProgram, isInstalled } from '../support/programs.ts';
import { clientOf, SHELLS, type Client } from '../support/shells.ts';

const OWNER = '0123456789abcdef0123456789abcdef01234567';
const MIB = 1024 * 1024;

/** Every control character, every character that turns the direction of writing, and their neighbours. */
const HOSTILE = [
  ...Array.from({ length: 0xa2 }, (_, code) => code),
  ...Array.from({ length: 10 }, (_, index) => 0x2028 + index),
  ...Array.from({ length: 8 }, (_, index) => 0x2064 + index),
  0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x1f600, 0x10ffff,
].map((code) => String.fromCodePoint(code)).join('');

/** The rule once more, in other words. */
function shown(text: string): string {
  return text.replace(/[^\t\n\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20 || code === 0x7f) return `^${String.fromCharCode(code ^ 0x40)}`;
    const isHidden = code < 0xa0 || /[\u202a-\u202e\u2066-\u2069]/.test(character);
    return isHidden ? `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>` : character;
  });
}

/** What a terminal makes of line feeds. */
function onScreen(text: string): string {
  return text.replaceAll('\n', '\r\n');
}

test('pastec -p: Ctrl-Z does not put it aside, which would turn on the echo that it turned off; nor what it reads from', async (t) => {
  if (!isInstalled(t, 'script') || !isInstalled(t, 'bash')) return;
  const app = await startApp(t);
  for (const [before, words] of [['', '-p file'], ['cat file | ', '-p']] as const) {
    // Only a shell with job control puts aside what it started; without `exit`, bash would become its last command.
    const options = ['--norc', '--noprofile', '-ic', `'${before}sh "$0" "$@"; exit $?'`];
    const { onTerminal, folder } = clientOf(t, app.url, { name: 'bash -i', program: 'bash', options });
    // More than a pipe takes, so that cat is still running.
    writeFileSync(join(folder, 'file'), 'content\n'.repeat(100_000));
    const { child, ended, says } = onTerminal(words);
    await says(/Password: /);
    child.stdin.write('\x1atyped secret\n');
    await says(/The same again: /);
    child.stdin.write('typed secret\n');
    const { code, text } = await ended;
    assert.equal(code, 0, text);
    assert.doesNotMatch(text, /Stopped|typed/);
  }
});

test('pastec get: on a terminal, control sequences are shown and not obeyed; --raw leaves them', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t);
  const { onTerminal, run } = clientOf(t, app.url);
  const content = `${HOSTILE}\x1b[2Jdone`;
  const id = await app.store(content);
  const visible = (await onTerminal(`get ${id}`).ended).text;
  assert.equal(visible, onScreen(shown(content)));
  assert.doesNotMatch(visible, /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/);
  assert.equal((await onTerminal(`get -o - ${id}`).ended).text, visible);
  assert.equal((await onTerminal(`get --raw ${id}`).ended).text, onScreen(content));
  assert.equal((await run(['get', id])).text, content, 'a pipe gets every byte');
});

test('pastec get: the tools of busybox show the same as those of the host', async (t) => {
  if (!isInstalled(t, 'script') || !isInstalled(t, 'busybox')) return;
  const app = await startApp(t);
  const client = clientOf(t, app.url);
  const programs = join(client.folder, 'programs');
  mkdirSync(programs);
  const busybox = (process.env.PATH ?? '').split(':').map((place) => join(place, 'busybox')).find(existsSync) ?? '';
  for (const name of ['awk', 'dd', 'grep', 'od', 'sed', 'tr', 'wc']) symlinkSync(busybox, join(programs, name));
  const environment = { PATH: `${programs}:${process.env.PATH ?? ''}` };
  const { text } = await client.onTerminal(`get ${await app.store(HOSTILE)}`, { environment }).ended;
  assert.equal(text, onScreen(shown(HOSTILE)));
  const listed = await client.onTerminal('status', { environment }).ended;
  assert.match(listed.text, /^anonymous  3 MiB   1 day     90 days\r$/m);
});

test('pastec status and put: the awk of macOS and the BSDs, which Debian has as original-awk, finds the same words', async (t) => {
  if (!isInstalled(t, 'script') || !isInstalled(t, 'original-awk')) return;
  const app = await startApp(t, {}, RUNNING_CLOCK);
  const { folder, onTerminal } = clientOf(t, app.url);
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  symlinkSync(findProgram('original-awk')!, join(programs, 'awk'));
  const environment = { PATH: `${programs}:${process.env.PATH ?? ''}` };
  const { text } = await onTerminal('status', { environment }).ended;
  assert.match(text, /^anonymous  3 MiB   1 day     90 days\r$/m);
  writeFileSync(join(folder, 'file'), 'content');
  assert.match((await onTerminal('file', { environment }).ended).text, /^http:\/\/\S+\r\nexpires in 1 day, at \S+Z\r\n$/);
  const lessTold = clientOf(t, await answerAlways(t, 200, 'id\tsize\nabcdef\t1434'));
  assert.match((await lessTold.onTerminal('ls', { environment }).ended).text, /^http:\/\/\S+\/abcdef  1\.4 KiB\r\n$/m);
});

test('pastec get: binary content never reaches a terminal, and a burned one is kept in a file', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t);
  const { onTerminal, folder } = clientOf(t, app.url);
  const forms = ['ff', '80', 'c080', 'c341', 'e09fbf', 'eda080', 'f08fbfbf', 'f4908080', 'f09f98'];
  for (const hex of forms) {
    const id = await app.store(Buffer.concat([Buffer.from('begin '), Buffer.from(hex, 'hex')]));
    for (const line of hex === 'ff' ? [`get ${id}`, `get -o - ${id}`, `get --raw ${id}`] : [`get ${id}`]) {
      const { code, text } = await onTerminal(line, { environment: { NO_COLOR: '1' } }).ended;
      assert.equal(code, 1, hex);
      assert.match(text, /^pastec: this is binary content.*\r\n {2}name a file with -o FILE, or .* a pipe\r\n$/, hex);
    }
  }
  assert.deepEqual(readdirSync(folder), []);

  const content = Buffer.from(binaryContent(100));
  const id = await app.store(content, { 'X-Burn-After-Read': 'true' });
  const { code, text } = await onTerminal(`get -q --no-key ${id}`).ended;
  assert.equal(code, 0);
  assert.match(text, new RegExp(`it is in the file ${id}; -o FILE names another, and a pipe takes it too\r\n$`));
  assert.deepEqual(readFileSync(join(folder, id)), content);
});

test('pastec get -E: what was encrypted is judged by what it is when decrypted', async (t) => {
  if (!isInstalled(t, 'script') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { onTerminal, run } = clientOf(t, app.url);
  const text = (await run(['-E'], { input: 'one\x1b[2J\n' })).text.trim();
  assert.equal((await onTerminal(`get '${text}'`).ended).text, 'one^[[2J\r\n');
  const binary = (await run(['-E'], { input: binaryContent(50) })).text.trim();
  assert.match((await onTerminal(`get '${binary}'`).ended).text, /this is binary content/);
});

test('pastec: what a server says moves no cursor, in errors, lists and JSON', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const words = '\u009b2J\u202egone\u009d0;title\u0007';
  const refusing = clientOf(t, await answerAlways(t, 404, `{"error":"${words}"}`));
  const said = (await refusing.run(['get', 'abcdef'])).stderr;
  assert.equal(said, 'pastec: <U+009B>2J<U+202E>gone<U+009D>0;title?\n');
  const answering = clientOf(t, await answerAlways(t, 200, `id\tsize\n${words}\t1\x1b[2J\u0085`));
  assert.equal((await answering.run(['ls'])).text, 'id\tsize\n<U+009B>2J<U+202E>gone<U+009D>0;title\t1[2J<U+0085>\n');
  const message = `{"message":"${words}\x1b[2J","mime_type":"x/y"}`;
  const speaking = clientOf(t, await answerAlways(t, 200, message, { 'X-Request-ID': 'one' }));
  for (const [client, line] of [
    [answering, 'ls'], [speaking, 'info --json abcdef'], [speaking, 'rm --json abcdef'],
  ] as const) {
    const { text } = await client.onTerminal(line).ended;
    assert.match(text, /<U\+009B>2J<U\+202E>gone/);
    assert.doesNotMatch(text, /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/, line);
  }
});

test('pastec ls: columns and words on a terminal, tabs and values in a pipe', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t, {}, RUNNING_CLOCK);
  const { onTerminal, run } = clientOf(t, app.url);
  const own = { 'X-SSL-Client-SHA1': OWNER };
  assert.match((await onTerminal(`ls --fingerprint ${OWNER}`).ended).text, /^no pastes\r\n$/);
  const small = await app.store('x', { ...own, 'X-Burn-After-Read': '1', 'X-Paste-Password': 'x', 'X-Expiry': '9000' });
  const image = await app.store(binaryContent(1434), { ...own, 'Content-Type': 'image/png', 'X-Expiry': '259200' });
  const [header = '', ...rows] = (await onTerminal(`ls --fingerprint ${OWNER}`).ended).text.trimEnd().split('\r\n');
  assert.deepEqual(header.split(/ +/), ['URL', 'SIZE', 'CREATED', 'EXPIRES', 'TYPE', 'NOTES']);
  const row = (id: string): string => rows.find((line) => line.startsWith(`${app.url}/${id} `)) ?? assert.fail(header);
  assert.match(row(small), /  1 B +(in )?\d+ seconds?( ago)? +in (2|3) hours +text\/plain +burns when read, password$/);
  assert.match(row(image), /  1\.4 KiB +(in )?\d+ seconds?( ago)? +in 3 days +image\/png$/);
  for (const word of ['SIZE', 'CREATED', 'EXPIRES', 'TYPE']) {
    const column = header.indexOf(word);
    for (const line of rows) assert.match(line.slice(column - 2), /^  \S/, `${word} in ${line}`);
  }
  assert.match((await run(['ls', '--fingerprint', OWNER])).text, /^id\tsize\t.*\n[^\t]+\t\d+\t\w+\/\w+\t\d{4}-/);
  assert.ok('total' in JSON.parse((await onTerminal(`ls --json --fingerprint ${OWNER}`).ended).text));
});

test('pastec status: columns and words on a terminal', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t, { powDifficultyBits: 7, maxAnonBytes: 1434, expiryAnonSeconds: 5400 });
  const { text } = await clientOf(t, app.url).onTerminal(`status --fingerprint ${OWNER}`).ended;
  const lines = text.trimEnd().split('\r\n');
  assert.equal(lines[0], `server         ${app.url}`);
  assert.deepEqual(lines.slice(2), [
    'proof-of-work  7 bits',
    'storing        anyone',
    'registering    not possible',
    'own tier       untrusted',
    '',
    'TIER       UP TO    KEPT FOR    AT MOST',
    'anonymous  1.4 KiB  90 minutes  90 days',
    'untrusted  1.4 KiB  7 days      90 days',
    'trusted    50 MiB   30 days     90 days',
  ]);
});

test('pastec put: says on a terminal when the paste expires, also when the server chose the moment', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t, {}, RUNNING_CLOCK);
  const { onTerminal, run, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'file'), 'content');
  writeFileSync(join(folder, 'password'), 'secret');
  for (const [options, words] of [['', '1 day'], ['-e 3d', '3 days'], ['-b --password-file password', '1 day']]) {
    const { text } = await onTerminal(`${options} file`).ended;
    assert.match(text, new RegExp(`^http://\\S+\r\nexpires in ${words}, at \\d{4}-\\d\\d-\\d\\dT[\\d:]{8}Z\r\n$`));
  }
  assert.doesNotMatch((await onTerminal('-q file').ended).text, /expires/);
  assert.equal((await run(['-e', '3d', 'file'])).stderr, '');
});

/** A service with one paste and no work; the test's handlers decide what it does with content. */
async function slowService(t: TestContext, handlers: {
  onGet?: (response: ServerResponse) => void;
  onPost?: (request: IncomingMessage, response: ServerResponse) => void;
}): Promise<string> {
  const server = createServer((request, response) => {
    response.setHeader('X-Request-ID', 'one');
    if (request.method === 'POST') handlers.onPost?.(request, response);
    else if (request.url === '/abcdef/raw' && request.method === 'GET') handlers.onGet?.(response);
    else response.end(request.url === '/challenge' ? '- 0 - -\n' : '{}\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A MiB of text: a hundredth of it each 100 ms until `hurry` is called, then the rest. */
function trickle(response: ServerResponse): { hurry: () => void } {
  const line = `${'x'.repeat(1023)}\n`;
  response.writeHead(200, { 'Content-Length': MIB, 'Content-Type': 'text/plain' });
  let sent = 0;
  const send = (lines: number): void => {
    response.write(line.repeat(lines));
    sent += lines;
  };
  const timer = setInterval(() => (sent < 1000 ? send(10) : clearInterval(timer)), 100);
  response.on('close', () => clearInterval(timer));
  return {
    hurry: () => {
      clearInterval(timer);
      send(1024 - sent);
      response.end();
    },
  };
}

/** All shells at once, since what is tested takes seconds and little work; one that is missing is a visible skip. */
async function downloadUnderEachShell(t: TestContext, check: (client: Client, hurry: () => void) => Promise<void>) {
  if (!isInstalled(t, 'script')) return;
  await Promise.all(SHELLS.map((shell) => t.test(`under ${shell.name}`, async (shellTest) => {
    if (!isInstalled(shellTest, shell.program)) return;
    const slow: (() => void)[] = [];
    const url = await slowService(shellTest, { onGet: (response) => slow.push(trickle(response).hurry) });
    await check(clientOf(shellTest, url, shell), () => slow.forEach((hurry) => hurry()));
  })));
}

const ALL_AT_ONCE = { concurrency: SHELLS.length };
const DOWNLOAD_LINE = /\r\x1b\[Kdownload: \d\d? % of 1 MiB, \d+ (seconds?|minutes) left/;

test('pastec get: a download that takes long has a line that says how far it is', ALL_AT_ONCE, async (t) => {
  await downloadUnderEachShell(t, async ({ onTerminal, folder }, hurry) => {
    const { ended, says } = onTerminal('get -o out abcdef');
    await says(DOWNLOAD_LINE);
    hurry();
    const { code, text } = await ended;
    assert.equal(code, 0, text);
    assert.ok(text.endsWith('\r\x1b[K'), 'the line is taken away');
    assert.equal(readFileSync(join(folder, 'out')).length, MIB);
  });
});

test('pastec: a terminal that knows no control sequences gets none, and is told when a paste expires', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const slow: (() => void)[] = [];
  const { onTerminal, folder } = clientOf(t, await slowService(t, {
    onGet: (response) => slow.push(trickle(response).hurry),
    onPost: (_, response) => response.writeHead(201).end('{"id":"abcdef","created_at":1,"expires_at":2}\n'),
  }));
  const environment = { TERM: 'dumb' };
  const [dumb, other] = [onTerminal('get -o out abcdef', { environment }), onTerminal('get -o other abcdef')];
  await other.says(DOWNLOAD_LINE);
  for (const hurry of slow) hurry();
  const [{ code, text }] = await Promise.all([dumb.ended, other.ended]);
  assert.deepEqual([slow.length, code, text], [2, 0, '']);
  writeFileSync(join(folder, 'file'), 'content');
  assert.match((await onTerminal('file', { environment }).ended).text, /^http\S+\r\nexpires in 1 second, at \S+Z\r\n$/);
});

test('pastec get: Ctrl-C ends a download and takes its line away', ALL_AT_ONCE, async (t) => {
  await downloadUnderEachShell(t, async ({ onTerminal, folder }) => {
    const { child, ended, says } = onTerminal('get -o out abcdef');
    await says(DOWNLOAD_LINE);
    child.stdin.write('\x03');
    const { code, text } = await ended;
    assert.equal(code, 128 + constants.signals.SIGINT);
    assert.ok(text.endsWith('\r\x1b[K'), text);
    assert.ok(!existsSync(join(folder, 'out')));
  });
});

test('pastec put: an upload that takes long has a line too, and errors of curl are still found', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const answer = '{"id":"abcdef","created_at":1,"expires_at":2}\n';
  let hurries = false;
  const url = await slowService(t, {
    onPost: (request, response) => {
      request.on('end', () => response.writeHead(201).end(answer)).on('data', () => {
        if (hurries) return;
        request.pause();
        setTimeout(() => request.resume(), 50);
      });
    },
  });
  const { onTerminal, folder } = clientOf(t, url);
  writeFileSync(join(folder, 'file'), Buffer.alloc(20 * MIB, 'x'));
  const { ended, says } = onTerminal('file');
  await says(/\r\x1b\[Kupload: \d\d? % of 20 MiB, \d+ (seconds?|minutes) left/);
  hurries = true;
  const { code, text } = await ended;
  assert.equal(code, 0);
  assert.match(text, /\r\x1b\[Khttp:\S+\/abcdef\r\n/);
  const failed = await onTerminal('--server http://127.0.0.1:9 file', { environment: { NO_COLOR: '1' } }).ended;
  assert.equal(failed.code, 8);
  assert.match(failed.text, /^pastec: curl: \(7\) .*\r\n$/);
});
