// What everybody does with the client, under each shell that it is made for: this goes through the shell's own
// arithmetic, patterns, traps and redirections. What is the same everywhere is tested under sh, in the files beside
// this one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { mountFilled, mountObstacle, unmount } from '../campaign/mounts.ts';
import { answerAlways } from '../support/answer-always.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { partialPaste } from '../support/partial-paste.ts';
import { findProgram, isInstalled } from '../support/programs.ts';
import { clientOf, SCRIPT, SH, SHELLS, type Client, type Ended, type Shell } from '../support/shells.ts';

type UnderEachShell = (client: Client, app: RunningApp, t: TestContext, shell: Shell) => Promise<void>;

/** One server for all shells, one subtest a shell; a shell that is not installed is a visible skip. */
async function underEachShell(t: TestContext, app: RunningApp, check: UnderEachShell): Promise<void> {
  for (const shell of SHELLS) {
    await t.test(`under ${shell.name}`, async (shellTest) => {
      if (isInstalled(shellTest, shell.program)) await check(clientOf(shellTest, app.url, shell), app, shellTest, shell);
    });
  }
}

test('pastec put and get: what comes through a pipe comes back byte for byte', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run }, app) => {
    const content = Buffer.from(binaryContent(100_000));
    const stored = await run([], { input: content });
    assert.deepEqual([stored.code, stored.stderr], [0, '']);
    assert.match(stored.text, new RegExp(`^${app.url}/[a-z2-7]{26}\n$`));
    assert.deepEqual((await run(['get', stored.text.trim()])).stdout, content);
  });
});

test('pastec put: names with spaces, quotes, line breaks, patterns and leading dashes are names', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run, folder }) => {
    const names = ['-rf q"\'u`o$(id)te', '--', 'line\nbreak', '*\\ h\u00e9'];
    for (const name of names) writeFileSync(join(folder, name), `content of ${name}`);
    const { text, stderr, code } = await run(['put', '--', ...names]);
    assert.deepEqual([code, stderr], [0, '']);
    const stored = await Promise.all(text.trim().split('\n').map(async (url) => (await fetch(`${url}/raw`)).text()));
    assert.deepEqual(stored, names.map((name) => `content of ${name}`));
  });
});

test('pastec put and update: standard input that is a file is content by its name too', async (t) => {
  const owner = ['--fingerprint', '0123456789abcdef0123456789abcdef01234567'];
  await underEachShell(t, await startApp(t), async (_, app, shellTest, shell) => {
    const command = `exec ${[shell.program, ...shell.options].join(' ')} "$0" "$@" <file`;
    const { run, folder } = clientOf(shellTest, app.url, { ...shell, program: 'sh', options: ['-c', command] });
    for (const name of ['/dev/stdin', '/proc/self/fd/0', '-']) {
      writeFileSync(join(folder, 'file'), `content of ${name}`);
      const stored = await run(['put', name, ...owner]);
      assert.deepEqual([stored.code, stored.stderr], [0, ''], name);
      assert.equal((await run(['get', stored.text.trim()])).text, `content of ${name}`);
      writeFileSync(join(folder, 'file'), `other content of ${name}`);
      assert.equal((await run(['update', '-e', '99999m', stored.text.trim(), name, ...owner])).code, 0, name);
      assert.equal((await run(['get', stored.text.trim()])).text, `other content of ${name}`);
    }
  });
});

test('pastec get -o: a file of any name, with the modes that the user gives to files', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run, folder }, app) => {
    const name = '-out "1"\n';
    const { code, text, stderr } = await run(['get', '-o', name, await app.store('content')]);
    assert.deepEqual([code, text, stderr], [0, '', '']);
    assert.equal(readFileSync(join(folder, name), 'utf8'), 'content');
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o666 & ~process.umask());
  });
});

test('pastec: a folder whose name has a line break is refused, and burns nothing', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run, folder, home }, app) => {
    const url = await app.store('once', { 'X-Burn-After-Read': '1' });
    const temporary = join(folder, 'line\nbreak');
    mkdirSync(temporary);
    const refused = await run(['get', '--no-key', url], { environment: { TMPDIR: temporary } });
    assert.deepEqual([refused.code, refused.text], [1, '']);
    assert.match(refused.stderr, /^pastec: can't use a path with a line break: \S+line\?break\S+\n$/);
    assert.deepEqual([readdirSync(folder), readdirSync(temporary), readdirSync(home)], [['line\nbreak'], [], []]);
    assert.equal((await run(['get', url])).text, 'once');
  });
});

test('pastec cert import, status and put: what is good for a hundred years is not said to be over', async (t) => {
  if (!isInstalled(t, 'openssl') || !isInstalled(t, 'script')) return;
  const app = await startApp(t, { expiryAnonSeconds: 3_153_600_000 });
  const ec = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out certificate';
  await underEachShell(t, app, async ({ run, folder, onTerminal }) => {
    execFileSync('openssl', `req -x509 ${ec} -days 36500 -subj /CN=long`.split(' '), { cwd: folder, stdio: 'ignore' });
    writeFileSync(join(folder, 'both'), ['certificate', 'key'].map((name) => readFileSync(join(folder, name), 'utf8')).join(''));
    assert.match((await run(['cert', 'import', 'both'])).text, /^expires: 2\S+Z \((36500|36499) days left\)$/m);
    const { text, stderr } = await run(['status']);
    assert.match(text, /^certificate: (36500|36499) days left$/m);
    assert.doesNotMatch(stderr, /has run out/);
    assert.match((await onTerminal('both').ended).text, /^expires in 36500 days, at 2\S+Z\r$/m);
  });
});

test('pastec status: what is no paste service is called so, and nothing more is said', async (t) => {
  const url = await answerAlways(t, 500, '<!doctype html>');
  for (const shell of SHELLS) {
    await t.test(`under ${shell.name}`, async (shellTest) => {
      if (!isInstalled(shellTest, shell.program)) return;
      const { code, text, stderr } = await clientOf(shellTest, url, shell).run(['status']);
      const said = 'pastec: the answer (500) is not one of a paste service\n';
      assert.deepEqual([code, text, stderr], [9, '', `${said}  asked: GET ${url}/challenge\n`]);
    });
  }
});

test('pastec: options that its shell was started with change nothing', async (t) => {
  await underEachShell(t, await startApp(t), async (_, app, shellTest, shell) => {
    // A bash that is called sh takes such options from SHELLOPTS besides.
    const { run } = clientOf(shellTest, app.url, { ...shell, options: [...shell.options, '-eabC'] });
    const stored = await run(['-E'], { input: 'content' });
    assert.deepEqual([stored.code, stored.stderr], [0, '']);
    const read = await run(['get', stored.text.trim()]);
    assert.deepEqual([read.code, read.text, read.stderr], [0, 'content', '']);
    const refused = await run(['rm', 'a'.repeat(26)]);
    assert.deepEqual([refused.code, refused.text], [4, '']);
    assert.match(refused.stderr, /^pastec: authentication required\n/);
  });
});

test('pastec --password-file, -b and -e: a password of any characters, one reading, an expiry', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run, folder }, app) => {
    const password = 'p\u00e4ss "w\\o\\\\rd" $HOME `id` %s \' #;';
    writeFileSync(join(folder, 'password'), `${password}\n\n`);
    const stored = await run(['--json', '-be', '0120m', '--password-file=password', '-'], { input: 'once' });
    assert.deepEqual([stored.code, stored.stderr], [0, '']);
    const { id, created_at, expires_at, burn_after_read } = JSON.parse(stored.text) as Record<string, unknown>;
    assert.equal(Number(expires_at) - Number(created_at), 7200);
    assert.equal(burn_after_read, true);
    const headers = { 'X-Paste-Password': Buffer.from(password).toString('latin1') };
    const read = await app.request(`/${id}/raw`, { headers });
    assert.equal(await read.text(), 'once');
  });
});

test('pastec -E: encrypts, decrypts, and refuses what was changed before it writes anything', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  await underEachShell(t, await startApp(t), async ({ run, folder }, app) => {
    const content = Buffer.from(binaryContent(70_000));
    const stored = await run(['-E'], { input: content });
    const [, id = '', key = ''] = /\/([a-z2-7]{26})#([\w-]{43})\n$/.exec(stored.text) ?? assert.fail(stored.stderr);
    assert.deepEqual((await run(['get', stored.text.trim()])).stdout, content);

    const sealed = Buffer.from(await (await app.request(`/${id}/raw`)).arrayBuffer());
    sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
    const changed = await run(['get', '-o', 'out', `${await app.store(sealed)}#${key}`]);
    assert.deepEqual([changed.code, changed.text], [1, '']);
    assert.match(changed.stderr, /nothing was decrypted/);
    assert.throws(() => statSync(join(folder, 'out')), { code: 'ENOENT' });
  });
});

test('pastec -bE: a missing key burns nothing, and a wrong one loses nothing', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  await underEachShell(t, await startApp(t), async ({ run }) => {
    const url = (await run(['-bE'], { input: 'content' })).text.trim();
    const [bare = ''] = url.split('#');
    const withoutKey = await run(['get', bare]);
    assert.equal(withoutKey.code, 2);
    assert.match(withoutKey.stderr, /--no-key/);
    const wrong = await run(['get', `${bare}#${'A'.repeat(43)}`]);
    assert.deepEqual([wrong.code, wrong.text], [1, '']);
    const [, file = ''] = /content is kept in (\S+)/.exec(wrong.stderr) ?? assert.fail(wrong.stderr);
    assert.equal((await run(['decrypt', '--key-file', '-', file], { input: `${url}\n` })).text, 'content');
  });
});

test('pastec update: replaces encrypted content by encrypted content', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const fingerprint = ['--fingerprint', 'f'.repeat(40)];
  await underEachShell(t, await startApp(t), async ({ run }) => {
    const url = (await run(['-E', ...fingerprint], { input: 'content' })).text.trim();
    const exposing = await run(['update', ...fingerprint, url.split('#')[0] ?? '', '-'], { input: 'new' });
    assert.match(exposing.stderr, /is encrypted, and the new content would not be/);
    assert.equal((await run(['update', ...fingerprint, url, '-'], { input: 'new' })).text, `${url}\n`);
    assert.equal((await run(['get', url])).text, 'new');
  });
});

test('pastec info: with hardly any room for temporary files it prints all of it, or fails', async (t) => {
  const obstacle = mountObstacle();
  if (obstacle !== undefined) return t.skip(obstacle);
  await underEachShell(t, await startApp(t), async ({ run, folder }, app) => {
    const id = await app.store('content', { 'X-Expiry': '7776000' });
    const room = join(folder, 'room');
    mkdirSync(room);
    const { text: whole } = await run(['info', id]);
    for (let pages = 0; pages < 10; pages += 1) {
      mountFilled(room, { pages });
      const { code, text } = await run(['info', id], { environment: { TMPDIR: room } });
      unmount(room);
      assert.ok(code === 0 ? text === whole : text === '', `${pages} pages, ${code}: ${text}`);
    }
  });
});

test('pastec rm: deletes by its token what it stored without an identity', async (t) => {
  await underEachShell(t, await startApp(t), async ({ run }) => {
    const stored = [await run([], { input: 'one' }), await run([], { input: 'two' })];
    assert.deepEqual(stored.map(({ code, stderr }) => [code, stderr]), [[0, ''], [0, '']]);
    const urls = stored.map(({ text }) => text.trim());
    const { code, text, stderr } = await run(['rm', ...urls]);
    assert.deepEqual([code, text, stderr], [0, '', '']);
    for (const url of urls) assert.equal((await fetch(url)).status, 404);
  });
});

test('pastec: how curl ended is known however soon it does', async (t) => {
  await underEachShell(t, await startApp(t), async ({ folder, run }) => {
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    symlinkSync(findProgram('true') ?? assert.fail(), join(programs, 'curl'));
    const environment = { PATH: `${programs}${delimiter}${process.env.PATH}` };
    const runs = Array.from({ length: 40 }, () => run(['status'], { environment }));
    for (const { code, stderr } of await Promise.all(runs)) {
      assert.deepEqual([code, stderr], [8, 'pastec: curl did not say what was answered\n']);
    }
  });
});

test('pastec put and update: a URL that standard output does not take is on standard error', async (t) => {
  const app = await startApp(t);
  const owner = ['--fingerprint', 'f'.repeat(40)];
  const places = [
    ['no room', '>/dev/full', ''], ['it is closed', '>&-', ''], ['nobody reads it', '', ''],
    ['nobody reads it, and no signal says so', '', 'trap "" PIPE; '],
  ] as const;
  for (const [what, redirection, before] of places.filter(([, place]) => place !== '>/dev/full' || existsSync('/dev/full'))) {
    await t.test(what, (placeTest) => underEachShell(placeTest, app, async ({ folder }, _, shellTest, shell) => {
      const script = join(folder, 'redirected');
      const program = [shell.program, ...shell.options].join(' ');
      writeFileSync(script, `${before}exec ${program} '${SCRIPT}' "$@" ${redirection}\n`);
      const { start } = clientOf(shellTest, app.url, SH, script);
      const ended = async (args: readonly string[], input: string): Promise<Ended> => {
        const running = start(args);
        if (redirection === '') await once(running.child.stdout.destroy(), 'close');
        running.child.stdin.end(input);
        return running.ended;
      };
      const stored = await ended(['put', '-', ...owner], 'content');
      const [, url = ''] = /^pastec: can't print the URL of what was stored: (http\S+)$/m.exec(stored.stderr)
        ?? assert.fail(stored.stderr);
      assert.equal(stored.code, 1);
      const updated = await ended(['update', '--json', ...owner, url, '-'], 'another');
      assert.deepEqual([updated.code, updated.stderr.includes(`stored: ${url}\n`)], [1, true]);
      assert.equal(await (await fetch(`${url}/raw`)).text(), 'another');
    }));
  }
});

test('pastec info, status, rm, help and completion: what standard output does not take is a failure, and said', async (t) => {
  const app = await startApp(t);
  for (const redirection of ['>/dev/full', '>&-'].filter((place) => place !== '>/dev/full' || existsSync('/dev/full'))) {
    await t.test(redirection, (placeTest) => underEachShell(placeTest, app, async ({ folder }, _, shellTest, shell) => {
      const script = join(folder, 'redirected');
      writeFileSync(script, `exec ${[shell.program, ...shell.options].join(' ')} '${SCRIPT}' "$@" ${redirection}\n`);
      const { run } = clientOf(shellTest, app.url, SH, script);
      const owner = ['--fingerprint', 'f'.repeat(40)];
      const url = await app.store('content', { 'X-SSL-Client-SHA1': 'f'.repeat(40) });
      const asked = [
        ['info', url], ['info', '--json', url], ['status'], ['rm', '--json', ...owner, url], ['--version'], ['help'],
        ['help', 'put'], ['completion', 'bash'], ['completion', 'zsh'], ['completion', 'fish'],
      ];
      for (const args of asked) {
        const { code, stderr } = await run(args);
        assert.deepEqual([code, stderr.includes("pastec: can't print the result\n")], [1, true], args.join(' '));
      }
    }));
  }
});

test('pastec put: a signal in the middle of the search ends it, and nothing is left behind', async (t) => {
  await underEachShell(t, await startApp(t, { powDifficultyBits: 32 }), async ({ start }) => {
    const codes = await Promise.all((['SIGINT', 'SIGHUP'] as const).map(async (signal) => {
      const { child, ended, says } = start(['-v'], { input: 'never stored', environment: { PASTEC_SOLVER: 'batches' } });
      // The slowest solver: 32 bits are not found by luck meanwhile.
      await says(/proof-of-work of 32 bits: batches/);
      child.kill(signal);
      const { code, text } = await ended;
      assert.equal(text, '');
      return code;
    }));
    assert.deepEqual(codes, ['SIGINT', 129]);
  });
});

test('pastec: Ctrl-\\ ends it as cleanly as Ctrl-C, and a second signal does not end the cleaning', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 32 });
  await underEachShell(t, app, async ({ start, folder }) => {
    // This rm notes that it runs, since then the first signal has come, and goes on once the second was sent.
    const rm = join(folder, 'rm');
    const script = '#!/bin/sh\n: >>"$0.called"\nuntil [ -e "$0.go" ]; do sleep 0.1; done\nPATH=/bin:/usr/bin exec rm "$@"\n';
    writeFileSync(rm, script, { mode: 0o755 });
    const environment = { PATH: `${folder}${delimiter}${process.env.PATH ?? ''}`, PASTEC_SOLVER: 'batches' };
    for (const [signal, code] of [['SIGQUIT', 131], ['SIGINT', 'SIGINT']] as const) {
      writeFileSync(`${rm}.go`, '');
      const { child, ended, says } = start(['-v', '--no-token'], { input: 'never stored', environment });
      await says(/proof-of-work of 32 bits: batches/);
      for (const name of ['called', 'go']) rmSync(`${rm}.${name}`, { force: true });
      process.kill(-child.pid!, signal);
      for (let tries = 0; tries < 3000 && !existsSync(`${rm}.called`); tries++) await setTimeout(10);
      process.kill(-child.pid!, signal);
      writeFileSync(`${rm}.go`, '');
      assert.equal((await ended).code, code);
    }
  });
});

test('pastec put: numbers that a server begins with zeros are not octal', async (t) => {
  const server = createServer(({ method, url }, response) => {
    if (method === 'POST') response.writeHead(201).end('{"id":"01234567","created_at":08,"expires_at":0999}\n');
    else if (url === '/challenge') response.end(`${'0'.repeat(32)} 04 0800000000 token\n`);
    else response.writeHead(404).end('{"error":"not found"}\n');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await underEachShell(t, { url } as RunningApp, async ({ run }) => {
    const { code, text, stderr } = await run(['-e', '1h'], { input: 'content' });
    assert.deepEqual([code, text, stderr], [0, `${url}/01234567\n`, '']);
  });
});

test('pastec put: the folder for temporary files may be named from here, and a folder is no password', async (t) => {
  await underEachShell(t, await startApp(t, { powDifficultyBits: 4 }), async ({ run, folder }) => {
    mkdirSync(join(folder, 'temporary'));
    const environment = { TMPDIR: 'temporary', PASTEC_SOLVER: 'batches' };
    const stored = await run([], { input: 'content', environment });
    assert.deepEqual([stored.code, stored.stderr], [0, '']);
    const refused = await run(['--password-file', 'temporary', '-'], { input: 'content', environment });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /pastec: the password is empty\n$/);
    assert.deepEqual(readdirSync(join(folder, 'temporary')), []);
  });
});

test('pastec get: what had come of a burned paste when a signal ends it is kept, and nothing else is left', async (t) => {
  const id = 'a'.repeat(26);
  const url = await partialPaste(t, 'a part', 'stays');
  await underEachShell(t, { url } as RunningApp, async ({ start, folder, home }) => {
    const temporary = join(home, 'temporary');
    mkdirSync(temporary);
    const hasCome = (): boolean => {
      const files = readdirSync(temporary).map((run) => join(temporary, run, 'body')).filter((file) => existsSync(file));
      return files.some((file) => readFileSync(file, 'utf8') === 'a part');
    };
    // Ctrl-C goes to each process of the group; what a supervisor sends goes to one alone.
    for (const [signal, isForAll] of [['SIGINT', true], ['SIGTERM', false]] as const) {
      const { child, ended } = start(['get', '--no-key', id], { input: '', environment: { TMPDIR: temporary } });
      for (let tries = 0; tries < 3000 && !hasCome(); tries++) await setTimeout(10);
      process.kill(isForAll ? -child.pid! : child.pid!, signal);
      const inTime = await Promise.race([ended, setTimeout(10_000, undefined, { ref: false })]);
      const { code, stderr } = inTime ?? assert.fail(`${signal} is not heard`);
      const kept = join(folder, `pastec-${id}`);
      const said = `pastec: the server gives that only once: only a part of its content is kept in ${kept}\n`;
      assert.deepEqual([code, stderr], [signal, said]);
      assert.equal(readFileSync(kept, 'utf8'), 'a part');
      assert.deepEqual(readdirSync(temporary), []);
      rmSync(kept);
    }
  });
});

test('pastec get: where nothing else takes what burned, it alone stays in the temporary folder', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const id = 'a'.repeat(26);
  const url = await partialPaste(t, 'a part', 'breaks');
  await underEachShell(t, { url } as RunningApp, async ({ run, folder, home }) => {
    const temporary = join(home, 'temporary');
    for (const path of [temporary, join(folder, `pastec-${id}`)]) mkdirSync(path);
    writeFileSync(join(home, 'file'), '');
    writeFileSync(join(folder, 'password'), 'secret');
    const environment = { TMPDIR: temporary, XDG_DATA_HOME: join(home, 'file') };
    const key = Buffer.alloc(32, 7).toString('base64url');
    const { code, stderr } = await run(['get', '--password-file', 'password', `${id}#${key}`], { environment });
    const [, kept = ''] = /only once: only a part of its content is kept in (\S+)\n$/.exec(stderr) ?? assert.fail(stderr);
    assert.deepEqual([code, readFileSync(kept, 'utf8')], [8, 'a part']);
    assert.deepEqual(readdirSync(temporary, { recursive: true }).length, 2, 'a folder with one file');
  });
});

test('pastec: bytes that are not of the locale are taken as they are, or refused, and end no shell', async (t) => {
  const odd = Buffer.from('caf\u00e9', 'latin1');
  await underEachShell(t, await startApp(t), async (_, app, shellTest, shell) => {
    const { run, folder, home } = clientOf(shellTest, app.url, {
      ...shell, program: 'timeout', options: ['10', shell.program, ...shell.options],
    });
    // Only yash gives no more than what is before such a byte. Half a password would be one that others can guess.
    const isYash = shell.name === 'yash';
    writeFileSync(join(folder, 'password'), odd);
    const stored = await run(['--password-file', 'password', '-'], { input: 'content' });
    assert.equal(stored.text, '');
    assert.match(stored.stderr, isYash ? /bytes that are not of this locale\n$/ : /^pastec: malformed request\n/);

    mkdirSync(join(home, '.config', 'pastec'), { recursive: true });
    writeFileSync(join(home, '.config', 'pastec', 'config'), Buffer.concat([Buffer.from('# '), odd, Buffer.from('\nexpire=60\n')]));
    const configured = await run(['--json', '-'], { input: 'content' });
    assert.equal(configured.code, isYash ? 2 : 0);
    assert.match(isYash ? configured.stderr : configured.text, isYash ? /of this locale\n$/ : /"expires_at"/);
    rmSync(join(home, '.config'), { recursive: true });

    const server = createServer((_request, response) => {
      response.writeHead(200, { 'X-Request-ID': 'one', 'X-Name': odd.toString('latin1'), 'X-More': 'x' }).end('content');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    shellTest.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${'a'.repeat(26)}`;
    const read = await run(['get', url]);
    assert.deepEqual([read.code, read.text], [0, 'content'], read.stderr);
  });
});

test('pastec get: Ctrl-Z and fg in the middle of a transfer change nothing', async (t) => {
  await underEachShell(t, { url: '' } as RunningApp, async (_client, _app, shellTest, shell) => {
    const waiting: ServerResponse[] = [];
    const server = createServer(({ method }, response) => {
      response.writeHead(200, { 'X-Request-ID': 'one', 'Content-Length': 8 });
      if (method === 'HEAD') response.end();
      else response.write('half', () => waiting.push(response));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    shellTest.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { child, ended } = clientOf(shellTest, url, shell).start(['get', 'a'.repeat(26)], { input: '' });
    for (let tries = 0; tries < 3000 && waiting.length === 0; tries++) await setTimeout(10);
    // Several times, since a shell does not always see its child stop before it is stopped itself.
    for (let time = 0; time < 5; time++) {
      process.kill(-child.pid!, 'SIGSTOP');
      await setTimeout(50);
      process.kill(-child.pid!, 'SIGCONT');
      await setTimeout(50);
    }
    waiting[0]!.end(' all');
    const { code, text, stderr } = await ended;
    assert.deepEqual([code, text, stderr], [0, 'half all', '']);
  });
});
