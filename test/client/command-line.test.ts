// pastec's arguments, configuration, exit codes and manners towards terminals and servers that are not what they
// should be.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { binaryContent, startApp } from '../support/app.ts';
import { answerAlways } from '../support/answer-always.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf } from '../support/shells.ts';

/** No server listens there: port 9 is discard, which nobody runs. */
const NOBODY = 'http://127.0.0.1:9';

const COMMANDS = [
  'put', 'get', 'info', 'rm', 'decrypt', 'update', 'ls', 'register', 'renew', 'cert', 'status', 'completion', 'help',
];

test('pastec --version: is the service\'s', async (t) => {
  const { text, code } = await clientOf(t, NOBODY).run(['--version']);
  assert.deepEqual([text, code], [`pastec ${VERSION}\n`, 0]);
});

test('pastec help: names every command, and explains each', async (t) => {
  const { run } = clientOf(t, NOBODY);
  const general = (await run(['help'])).text;
  assert.equal((await run(['--help'])).text, general);
  for (const command of COMMANDS) {
    assert.match(general, new RegExp(`^  pastec ${command} `, 'm'));
    const { text, code } = await run(['help', command]);
    assert.equal(code, 0);
    assert.match(text, new RegExp(`^pastec ${command}\\b`));
  }
  assert.equal((await run(['get', 'x', '-h'])).text, (await run(['help', 'get'])).text);
  assert.equal((await run(['help', 'nothing'])).code, 2);
  const password = async (command: string): Promise<string | undefined> =>
    /-p, --password +(.*)/.exec((await run(['help', command])).text)?.[1];
  assert.equal(await password('get'), 'ask for the password of the paste');
  assert.equal(await password('cert'), 'ask for the password of the bundle');
  assert.match((await run(['help', 'ls'])).text, /--limit N +.*\b100\b.*\b1000$/m);
  assert.equal((await run(['ls', '-p'])).stderr, 'pastec: ls has no option --password\n  try: pastec help ls\n');
});

test('pastec: what can not be meant is a usage error that stores nothing', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'file'), 'content');
  writeFileSync(join(folder, 'lines'), 'one\ntwo\n');
  writeFileSync(join(folder, 'blank'), '  \n');
  const wrong = [
    ['--nothing'], ['-z', 'file'], ['--burn=yes', 'file'], ['-e'], ['-e', '', 'file'], ['-e', 'soon', 'file'],
    ['-e', '99999d', 'file'], ['-e', '-5', 'file'], ['-e', '0', 'file'], ['-e', '00m', 'file'],
    ['update', '-e', '0h', 'abcdef'], ['no-such-file'], ['get'], ['get', 'x y'], ['get', 'abc', 'def'],
    ['get', 'http://[/abcdef'], ['get', '-b', 'abcdef'], ['put', '--type', 'image/*', 'file'], ['info'], ['rm'],
    ['update', 'abcdef'], ['--server', 'ftp://x', 'file'], ['--server', 'http://a b', 'file'],
    ['--timeout', 'long', 'file'], ['--fingerprint', 'abc', 'file'], ['-p', '--password-file', 'file', 'file'],
    ['--password-file', 'lines', 'file'], ['--password-file', 'blank', 'file'], ['--password-file', '-', '-'],
    ['update', '-E', 'abcdef'], ['update', '--plain', 'abcdef'], ['update', '--plain', '-E', 'abcdef', 'file'],
    ['update', '--key-file', '-', 'abcdef', '-'], ['get', 'abcdef#'],
    ['get', '--no-key', `abcdef#${'A'.repeat(43)}`],
    ['ls', 'x'], ['ls', '--limit', 'x'], ['cert'], ['cert', 'show', 'x'], ['completion', 'tcsh'], ['put', '--server'],
  ];
  for (const args of wrong) {
    const { code, text, stderr } = await run(args);
    assert.deepEqual([args, code, text], [args, 2, '']);
    assert.match(stderr, /^pastec: .+\n/);
  }
  const noServer = await run(['file'], { environment: { PASTEC_SERVER: '' } });
  assert.equal(noServer.code, 2);
  assert.match(noServer.stderr, /which server\?/);
  assert.ok(app.logged.every((entry) => !JSON.stringify(entry).includes('"POST"')));
});

test('pastec URL: suggests get, without repeating the key', async (t) => {
  const { run, folder } = clientOf(t, NOBODY);
  const id = 'abcdefghijklmnopqrstuvwxyz';
  for (const args of [
    [`https://paste.example/${id}#a-key`], [`http://paste.example/abcdef/raw`], [`paste.example/${id}#a-key`], [id],
    ['put', `https://paste.example/${id}#a-key`], ['file', `paste.example:8080/${id}/raw`],
  ]) {
    writeFileSync(join(folder, 'file'), 'x');
    const { text, stderr } = await run(args);
    assert.equal(text, '');
    assert.match(stderr, /\n {2}to read a paste: pastec get URL\n$/, args.join(' '));
    assert.doesNotMatch(stderr, /a-key/);
  }
  for (const name of ['notes.txt', 'folder/notes#1.txt', 'abcdef']) {
    assert.equal((await run([name])).stderr, `pastec: no such command or file: ${name}\n  try: pastec help\n`);
  }
});

test('pastec: exit codes say what a server refused, with its words and its hint', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000, rateMax: 1, requireBinary: true });
  const { run } = clientOf(t, app.url);
  const text = await run([], { input: 'text where binary is wanted' });
  assert.equal(text.code, 1);
  assert.match(text.stderr, /^pastec: .+\n  .+\n$/);
  assert.equal((await run([], { input: binaryContent(1001) })).code, 5);
  const limited = await run([], { input: binaryContent(10) });
  assert.equal(limited.code, 6);
  assert.match(limited.stderr, /\(try again in \d+ s\)/);
  assert.equal((await run(['get', 'abcdef'])).code, 3);
  assert.equal((await run(['get', `${NOBODY}/abcdef`])).code, 8);
});

test('pastec: content that can not be read, or is empty, is an error before any request', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'empty'), '');
  for (const args of [['put', 'sub'], ['put', 'empty'], ['put', 'missing'], ['put', '-'], []]) {
    const { code, text } = await run(args, { input: '' });
    assert.deepEqual([args, code, text], [args, 1, '']);
  }
  assert.equal(app.logged.filter((entry) => JSON.stringify(entry).includes('"POST"')).length, 0);
});

test('pastec put, info and rm: of several, the one that is refused is named, without its key', async (t) => {
  const app = await startApp(t, { minBytes: 5 });
  const { run, folder } = clientOf(t, app.url);
  for (const [name, content] of [['first', 'enough'], ['little', 'x'], ['empty', '']] as const) {
    writeFileSync(join(folder, name), content);
  }
  assert.equal((await run(['first', 'empty'])).stderr, 'pastec: there is no content in empty\n');
  const little = await run(['first', 'little']);
  assert.match(little.text, /^http\S+\n$/);
  assert.ok(little.stderr.endsWith(`  asked: POST ${app.url}/ with little\n`), little.stderr);
  assert.doesNotMatch((await run(['little'])).stderr, /asked/);
  const urls = [`${await app.store('enough')}#${'A'.repeat(43)}`, `${app.url}/${'b'.repeat(26)}#${'A'.repeat(43)}`];
  for (const [args, said] of [
    [['info', ...urls], `  asked: GET ${app.url}/${'b'.repeat(26)}\n`],
    [['rm', ...urls.toReversed()], `; asked: DELETE ${app.url}/${'b'.repeat(26)}\n`],
  ] as const) {
    const { stderr } = await run(args);
    assert.ok(stderr.endsWith(said) && !stderr.includes('AAA'), stderr);
  }
});

test('pastec put and update: a file of no size that has content, as in /proc, is content', async (t) => {
  if (!existsSync('/proc/version')) return t.skip('there is no /proc');
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const identity = ['--fingerprint', '0123456789abcdef0123456789abcdef01234567'];
  const stored = await run(['put', ...identity, '/proc/version']);
  assert.deepEqual([stored.code, stored.stderr], [0, '']);
  assert.equal(await (await fetch(`${stored.text.trim()}/raw`)).text(), readFileSync('/proc/version', 'utf8'));
  const updated = await run(['update', ...identity, stored.text.trim(), '/proc/cmdline']);
  assert.deepEqual([updated.code, updated.stderr], [0, '']);
  assert.equal(await (await fetch(`${stored.text.trim()}/raw`)).text(), readFileSync('/proc/cmdline', 'utf8'));
});

test('pastec: a server that is no paste service is called so, and its words are no control codes', async (t) => {
  const url = await answerAlways(t, 200, '<!doctype html>');
  const { run, folder } = clientOf(t, url);
  for (const args of [['get', 'abcdef', '-o', 'out'], ['get', 'abcdef'], ['status'], ['put', '-']]) {
    const { code, text } = await run(args, { input: 'x' });
    assert.deepEqual([args, code, text, existsSync(join(folder, 'out'))], [args, 9, '', false]);
  }
  const changing = [['rm', 'abcdef'], ['rm', '--json', 'abcdef'], ['update', '-e', '1h', 'abcdef'], ['update', 'abcdef', '-'],
    ['info', 'abcdef'], ['info', '--json', 'abcdef'], ['ls'], ['ls', '--json']];
  for (const page of ['<!doctype html>', '<p>"message":1 "expires_at":2', '{"welcome":"id\tsize"}', '']) {
    const portal = clientOf(t, await answerAlways(t, 200, page));
    for (const args of changing) {
      const { code, text, stderr } = await portal.run([...args, '--fingerprint', 'f'.repeat(40)], { input: 'x' });
      assert.deepEqual([args, page, code, text], [args, page, 9, '']);
      assert.match(stderr, /^pastec: the answer \(200\) is not one of a paste service\n {2}asked: /);
    }
  }
  const moved = createHttpServer((_, response) => response.writeHead(301, { Location: 'https://new.example/x' }).end());
  await once(moved.listen(0, '127.0.0.1'), 'listening');
  t.after(() => moved.close());
  const elsewhere = await clientOf(t, `http://127.0.0.1:${(moved.address() as AddressInfo).port}`).run(['info', 'abcdef']);
  assert.equal(elsewhere.code, 9);
  assert.match(elsewhere.stderr, /\/abcdef, sent on to https:\/\/new\.example\/x\n$/);
  const hostile = await answerAlways(t, 404, '{"error":"\u001b[2J\u0007gone \\"now\\"","hint":"\u009b31m"}');
  const { stderr, code } = await clientOf(t, hostile).run(['get', 'abcdef']);
  assert.equal(code, 3);
  assert.equal(stderr.split('\n')[0], 'pastec: ?[2J?gone "now"');
});

test('pastec: the configuration is read and never run, and the command line wins', async (t) => {
  const app = await startApp(t);
  const { run, home, folder } = clientOf(t, NOBODY);
  mkdirSync(join(home, '.config', 'pastec'), { recursive: true });
  const canary = join(folder, 'canary');
  writeFileSync(join(home, '.config', 'pastec', 'config'),
    `# comment\nserver=${app.url}/\nexpire=1m\nhistory=yes\ntimeout=$(touch ${canary})5\n`);
  const environment = { PASTEC_SERVER: '' };
  assert.equal((await run(['-'], { input: 'x', environment })).code, 2);
  assert.equal((await run(['--timeout', '5', '-'], { input: 'x', environment: { PASTEC_SERVER: NOBODY } })).code, 8);
  const { text, stderr } = await run(['--timeout', '5', '-'], { input: 'x', environment });
  assert.equal(stderr, '');
  assert.ok(!existsSync(canary));
  const metadata = await (await fetch(text.trim())).json() as { created_at: number; expires_at: number };
  assert.equal(metadata.expires_at - metadata.created_at, 60);
  const history = join(home, '.local', 'state', 'pastec', 'history');
  assert.match(readFileSync(history, 'utf8'), new RegExp(`^\\d{4}-\\S+Z ${text}$`));
  assert.equal(statSync(history).mode & 0o777, 0o600);
});

test('pastec: without history in the configuration nothing in the home says what was stored', async (t) => {
  const app = await startApp(t);
  const { run, home } = clientOf(t, app.url);
  assert.equal((await run(['--no-token'], { input: 'x' })).code, 0);
  assert.ok(!existsSync(join(home, '.local')));
  const url = (await run([], { input: 'x' })).text.trim();
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.equal(files.length, 1, 'the token that deletes it');
  for (const { parentPath, name } of files) {
    const text = readFileSync(join(parentPath, name), 'utf8');
    for (const part of [app.url, url.slice(app.url.length + 1)]) assert.ok(!text.includes(part));
  }
});

test('pastec netrc=yes: the password of ~/.netrc goes nowhere over http', async (t) => {
  const seen: unknown[] = [];
  const server = createHttpServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { run, home } = clientOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  writeFileSync(join(home, '.netrc'), 'machine 127.0.0.1 login family password of-the-family\n', { mode: 0o600 });
  mkdirSync(join(home, '.config', 'pastec'), { recursive: true });
  writeFileSync(join(home, '.config', 'pastec', 'config'), 'netrc=yes\n');
  await run(['info', 'a'.repeat(26)]);
  assert.deepEqual(seen, [undefined]);
});

test('pastec --timeout: ends the wait for a server that never answers', async (t) => {
  const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  const { code, stderr } = await clientOf(t, `http://127.0.0.1:${port}`).run(['--timeout', '1', 'get', 'abcdef']);
  assert.equal(code, 8);
  assert.match(stderr, /timed out/);
});

test('pastec: colours its complaints on a terminal, unless NO_COLOR is set', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const { onTerminal } = clientOf(t, NOBODY);
  assert.match((await onTerminal('get x').ended).text, /\x1b\[31mpastec:\x1b\[0m no paste URL or id: x/);
  assert.ok((await onTerminal('get x', { environment: { NO_COLOR: '1' } }).ended).text.startsWith('pastec: no paste'));
});

test('pastec put: 50 MiB through a pipe, and back', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 50 * 2 ** 20 });
  const { run, folder } = clientOf(t, app.url);
  const content = Buffer.from(binaryContent(2 ** 20)).subarray(0, 2 ** 20);
  const large = Buffer.concat(Array.from({ length: 50 }, () => content));
  const { text, stderr } = await run([], { input: large });
  assert.equal(stderr, '');
  await run(['get', '-o', 'copy', text.trim()]);
  assert.ok(readFileSync(join(folder, 'copy')).equals(large));
});

test('pastec put: named binary files keep the media types that the service takes', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const names = {
    'a.png': 'image/png', 'b.JPG': 'image/jpeg', 'c.tgz': 'application/gzip', 'd.json': 'application/octet-stream',
    'jpg': 'application/octet-stream', 'e.WebP': 'image/webp',
  };
  for (const name of Object.keys(names)) writeFileSync(join(folder, name), binaryContent(10));
  const { text } = await run(['put', ...Object.keys(names)]);
  const answers = await Promise.all(text.trim().split('\n').map((url) => fetch(`${url}/raw`)));
  const types = answers.map((answer) => answer.headers.get('content-type'));
  assert.deepEqual(types, Object.values(names));
});

test('pastec --json: prints what the server answered, with the whole link', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const created = JSON.parse((await run(['--json'], { input: 'x' })).text) as Record<string, unknown>;
  assert.equal(created['link'], `${app.url}${created['url']}`);
  const info = JSON.parse((await run(['info', '--json', String(created['id'])])).text) as Record<string, unknown>;
  assert.equal(info['size'], 1);
});

test('pastec: a link to a line of the page is a link to the paste', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const [id, url] = [await app.store('content'), (await run([], { input: 'other' })).text.trim()];
  assert.equal((await run(['get', `${app.url}/${id}#L12`])).text, 'content');
  assert.match((await run(['info', `${id}#L20000`])).text, new RegExp(`^id: ${id}$`, 'm'));
  assert.equal((await run(['rm', `${url}#L1`])).code, 0);
  for (const damaged of ['L', 'L1a', 'l1', `L${'1'.repeat(41)}`]) {
    assert.match((await run(['get', `${id}#${damaged}`])).stderr, /the key is damaged/);
  }
});

test('pastec get and info: read the URL from standard input, so that it is no argument', async (t) => {
  const app = await startApp(t);
  const [id, other] = [await app.store('content'), await app.store('other')];
  const { run } = clientOf(t, app.url);
  for (const end of ['\n', ' \r\n']) {
    assert.equal((await run(['get', '-'], { input: `${app.url}/${id}/raw${end}` })).text, 'content');
  }
  const { text } = await run(['info', '-', other, '-'], { input: `${app.url}/${id}#${'A'.repeat(43)}\n${other}` });
  assert.deepEqual(text.match(/(?<=^id: ).*/gm), [id, other, other]);
});

test('pastec get -o: what can not be written to is noticed before a paste burns, or its content is kept', async (t) => {
  if (!existsSync('/dev/full')) return t.skip('there is no /dev/full');
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const burning = (content: string): Promise<string> => app.store(content, { 'X-Burn-After-Read': 'true' });
  const early = await burning('still there');
  for (const place of ['.', 'no/such/folder']) assert.equal((await run(['get', early, '-o', place])).code, 1);
  assert.equal((await app.request(`/${early}`)).status, 200);

  const id = await burning('only once');
  const { code, stderr } = await run(['get', id, '-o', '/dev/full'], { environment: { TMPDIR: folder } });
  assert.equal(code, 1);
  const [, kept = ''] = /its content is kept in (\S+)/.exec(stderr) ?? assert.fail(stderr);
  assert.equal(readFileSync(kept, 'utf8'), 'only once');
});

test('pastec put -c: the URL goes to the clipboard too', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'wl-copy'), `#!/bin/sh\ncat >'${folder}/clipboard'\n`);
  chmodSync(join(programs, 'wl-copy'), 0o755);
  const environment = { PATH: `${programs}:${process.env.PATH ?? ''}`, WAYLAND_DISPLAY: 'wayland-0' };
  const { text } = await run(['-c'], { input: 'x', environment });
  assert.equal(readFileSync(join(folder, 'clipboard'), 'utf8'), text);
});

test('pastec put -p: asks on the terminal twice, without showing what is typed', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t);
  const { onTerminal, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'file'), 'content');
  const { child, ended, says } = onTerminal('-p file');
  await says(/Password: /);
  child.stdin.write('typed secret\n');
  await says(/The same again: /);
  child.stdin.write('typed secret\n');
  const { text } = await ended;
  assert.ok(!text.includes('typed'));
  const [, id = ''] = /\/([a-z2-7]{26})\r?\n/.exec(text) ?? assert.fail(text);
  assert.equal((await app.request(`/${id}`)).status, 401);
  assert.equal((await app.request(`/${id}`, { headers: { 'X-Paste-Password': 'typed secret' } })).status, 200);
});

test('pastec -p: a new password that is typed differently the second time is none', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t);
  const { onTerminal, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'file'), 'content');
  const id = await app.store('the only request that writes');
  for (const line of ['-p file', `update -p ${id}`]) {
    const { child, ended, says } = onTerminal(line);
    await says(/Password: /);
    child.stdin.write('typed secret\n');
    await says(/The same again: /);
    child.stdin.write('typed sceret\n');
    const { code, text } = await ended;
    assert.equal(code, 2);
    assert.match(text, /the two passwords differ/);
    assert.doesNotMatch(text, /typed/);
  }
  assert.equal(app.logged.filter((entry) => /"(POST|PUT)"/.test(JSON.stringify(entry))).length, 1);
});

test('pastec: a new password neither begins nor ends with a blank, which HTTP would leave out', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const id = await app.store('content', { 'X-Paste-Password': 'of two words' });
  const update = ['update', '--fingerprint', 'f'.repeat(40), id];
  for (const password of [' of two words', 'of two words ', '  of two words  ']) {
    writeFileSync(join(folder, 'file'), 'x');
    for (const args of [['file'], update]) {
      const { code, text, stderr } = await run([...args, '--password-file', '-'], { input: `${password}\n` });
      assert.deepEqual([code, text, stderr], [2, '', 'pastec: a password neither begins nor ends with a blank\n']);
    }
    const read = await run(['get', '--password-file', '-', id], { input: password });
    assert.equal(read.text, 'content', 'none that was stored begins with one');
  }
});

test('pastec get --password-file: takes the right password only, and reads it from standard input too', async (t) => {
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const id = await app.store('content', { 'X-Paste-Password': 'secret' });
  writeFileSync(join(folder, 'wrong'), 'public\n');
  assert.equal((await run(['get', id])).code, 4);
  assert.equal((await run(['get', '--password-file', 'wrong', id])).code, 4);
  assert.equal((await run(['get', '--password-file', '-', id], { input: 'secret\n' })).text, 'content');
  const info = await run(['info', '--password-file', '-', id], { input: 'secret' });
  assert.equal(info.text, `id: ${id}\ntype: text/plain\nsize: 7 bytes\n`
    + 'created: 2026-01-31T12:00:00Z\nexpires: 2026-02-01T12:00:00Z\npassword: needed\n');
});

test('pastec get: asks for a password that is needed, and keeps binary content off the terminal', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t);
  const { onTerminal, folder } = clientOf(t, app.url);
  const content = binaryContent(100);
  const id = await app.store(content, { 'X-Paste-Password': 'secret', 'X-Burn-After-Read': 'true' });
  const { child, ended, says } = onTerminal(`get --no-key ${id}`);
  await says(/Password: /);
  child.stdin.write('secret\n');
  const { text, code } = await ended;
  assert.equal(code, 0);
  assert.match(text, new RegExp(`binary content, .* it is in the file ${id}`));
  assert.deepEqual(readFileSync(join(folder, id)), Buffer.from(content));
});

test('pastec info: a password that was asked for goes to its own paste alone', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const [app, other] = [await startApp(t), await startApp(t)];
  const { onTerminal } = clientOf(t, app.url);
  const first = await app.store('content', { 'X-Paste-Password': 'of the first' });
  const second = await other.store('content', { 'X-Paste-Password': 'of the second' });
  const { child, ended, says } = onTerminal(`info ${first} ${other.url}/${second}`);
  await says(/Password: /);
  child.stdin.write('of the first\n');
  await says(/password: needed\r\nPassword: /);
  child.stdin.write('of the second\n');
  const { code, text } = await ended;
  assert.equal(code, 0, text);
});
