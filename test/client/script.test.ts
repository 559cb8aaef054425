// The client as a file: what half of it does, what the server changes in it, what a linter says, what other users of
// the host see while it runs, and what it writes for shells that complete its words.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startApp } from '../support/app.ts';
import { notedPrograms } from '../support/broken-programs.ts';
import { isInstalled, run as runProgram } from '../support/programs.ts';
import { clientOf, SCRIPT, SH, SHELLS } from '../support/shells.ts';

const NOBODY = 'http://127.0.0.1:9';
const source = readFileSync(SCRIPT, 'utf8');

test('pastec: the place for the server\'s address is there once, and an address in it is used', async (t) => {
  assert.equal(source.split('server_default=\'\'').length, 2);
  const app = await startApp(t);
  const { folder } = clientOf(t, NOBODY);
  const filled = join(folder, 'pastec');
  writeFileSync(filled, source.replace('server_default=\'\'', `server_default='${app.url}'`));
  const { text } = await clientOf(t, NOBODY, SH, filled).run([], { input: 'x', environment: { PASTEC_SERVER: '' } });
  assert.ok(text.startsWith(`${app.url}/`));
});

test('pastec: a download that broke off anywhere runs nothing', async (t) => {
  const app = await startApp(t);
  const whole = source.trimEnd().length;
  const lengths = [
    ...Array.from({ length: 24 }, (_, index) => Math.floor((index * whole) / 24)),
    ...Array.from({ length: 24 }, (_, index) => whole - 1 - index),
    ...Array.from({ length: 24 }, (_, index) => whole - 25 - 9 * index),
  ];
  const shells = SHELLS.filter((shell) => ['dash', 'bash --posix'].includes(shell.name));
  for (const [index, length] of lengths.entries()) {
    const shell = shells[index % shells.length] ?? SH;
    const { run, folder } = clientOf(t, app.url, shell, join('half'));
    writeFileSync(join(folder, 'half'), source.slice(0, length));
    const { text } = await run(['--version'], { input: 'must not be stored' });
    assert.equal(text, '', `${length} characters under ${shell.name}`);
  }
  assert.deepEqual(app.logged.filter((entry) => entry.event === 'request'), []);
});

test('pastec: shellcheck has nothing to say', (t) => {
  if (!isInstalled(t, 'shellcheck')) return;
  const { status, output } = runProgram('shellcheck', ['-s', 'sh', SCRIPT], dirname(SCRIPT));
  assert.equal(output, '');
  assert.equal(status, 0);
});

test('pastec: lines are at most 120 columns, and no word is one that POSIX does not know', () => {
  const lines = source.split('\n');
  assert.deepEqual(lines.filter((line) => line.length > 120), []);
  const posix = source.replace(/(?:bash|zsh)_completion\(\) \{[^]*?\n\}\n/g, '');
  // awk defines functions by `function` too, and has their arguments between the parentheses.
  const unknown = /^\s*(local|declare|typeset|echo|source)\s|^\s*function \w+\s*(\(\))?\s*\{$|\[\[ /m;
  assert.doesNotMatch(posix, unknown);
  assert.doesNotMatch(posix, /\bprint [^(;}\n]*(?:[=!<>]=|[<~])/, 'the awk of macOS and the BSDs takes no such expression after print');
});

for (const shell of SHELLS.filter(({ name }) => ['dash', 'mksh'].includes(name))) {
  test(`pastec under ${shell.name}: neither password, key nor id is an argument of a program`, async (t) => {
    if (!isInstalled(t, shell.program) || !isInstalled(t, 'openssl')) return;
    const app = await startApp(t, { powDifficultyBits: 4 });
    const { run, folder, home } = clientOf(t, app.url, shell);
    const { path, seen } = notedPrograms(home);
    writeFileSync(join(folder, 'password'), 'the-password\n');
    const environment = { PATH: path, PASTEC_SOLVER: 'node' };
    const stored = await run(['-E', '--password-file', 'password', '-'], { input: 'the-content', environment });
    assert.equal(stored.stderr, '');
    const [, id = '', key = ''] = /\/([a-z2-7]{26})#(\S+)\n$/.exec(stored.text) ?? assert.fail(stored.text);
    const read = await run(['get', '--password-file', 'password', '-'], { input: stored.text, environment });
    assert.equal(read.text, 'the-content', read.stderr);
    const [tokens = ''] = readdirSync(join(home, '.local', 'state', 'pastec', 'delete-tokens'));
    const kept = readFileSync(join(home, '.local', 'state', 'pastec', 'delete-tokens', tokens), 'utf8');
    const [, token = ''] = / ([\w-]{43})\n$/.exec(kept) ?? assert.fail(kept);

    assert.equal((await run(['rm', stored.text.trim()], { environment })).stderr, '');

    if (existsSync('/dev/full')) {
      const script = join(folder, 'redirected');
      writeFileSync(script, `exec ${shell.program} '${SCRIPT}' "$@" >/dev/full\n`);
      const lost = await clientOf(t, app.url, SH, script).run(['-E'], { input: 'another', environment });
      const [, lostKey = ''] = /#(\S+)\n$/.exec(lost.stderr) ?? assert.fail(lost.stderr);
      assert.ok(!seen().includes(lostKey), 'the key in what is said of an output that takes nothing');
    }

    for (const program of ['curl', 'grep', 'openssl']) assert.match(seen(), new RegExp(`^${program}$`, 'm'));
    for (const secret of ['the-password', 'the-content', id, key, token, Buffer.from(key, 'base64url').toString('hex')]) {
      assert.ok(!seen().includes(secret), secret);
    }
  });
}

test('pastec: names that the caller exported carry no key and no password to programs', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder, home } = clientOf(t, app.url);
  writeFileSync(join(folder, 'password'), 'the-password\n');
  const noting = join(home, 'noting');
  mkdirSync(noting);
  for (const program of ['curl', 'cat', 'openssl', 'tr', 'wc', 'rm']) {
    const real = `PATH='${process.env['PATH'] ?? ''}'`;
    writeFileSync(join(noting, program), `#!/bin/sh\nenv >>'${home}/seen'\n${real} exec ${program} "$@"\n`, { mode: 0o755 });
  }
  // Every variable that the script sets, by whatever means, but not those that it needs from its caller.
  const names = source.matchAll(/\b([a-z_]+)=|\bread -r ([a-z_]+)|\bfor ([a-z_]+) in|~([a-z_]+)~/g);
  const exported = Object.fromEntries([...names].map(([, ...found]) => [found.find(Boolean)!, 'from-the-caller']));
  const environment = { ...exported, PATH: `${noting}:${process.env['PATH'] ?? ''}` };
  const stored = await run(['-E', '--password-file', 'password', '-'], { input: 'content', environment });
  const [, key = ''] = /#(\S+)\n$/.exec(stored.text) ?? assert.fail(stored.stderr);
  for (const [operand, input] of [['-', stored.text], [stored.text.trim(), '']] as const) {
    const read = await run(['get', '--password-file', 'password', operand], { input, environment });
    assert.equal(read.text, 'content', read.stderr);
    await run(['info', '--password-file', 'password', operand], { input, environment });
  }
  const seen = readFileSync(join(home, 'seen'), 'utf8');
  assert.match(seen, /from-the-caller/);
  const telling = seen.split('\n').filter((line) => [key, 'the-password'].some((secret) => line.includes(secret)));
  assert.deepEqual([...new Set(telling.map((line) => line.split('=')[0]))], []);
});

test('pastec completion bash: completes commands, their options and their words', async (t) => {
  if (!isInstalled(t, 'bash')) return;
  const { run, folder } = clientOf(t, NOBODY);
  writeFileSync(join(folder, 'completion'), (await run(['completion', 'bash'])).text);
  const complete = (...words: string[]): string[] => {
    const last = words.length - 1;
    const probe = `. ./completion; COMP_WORDS=("$@") COMP_CWORD=${last}; _pastec; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return runProgram('bash', ['-c', probe, 'bash', ...words], folder).stdout.trim().split('\n').sort();
  };
  assert.deepEqual(complete('pastec', 'c'), ['cert', 'completion']);
  assert.deepEqual(complete('pastec', 'cert', 'ex'), ['export']);
  assert.deepEqual(complete('pastec', 'get', '--p'), ['--password', '--password-file']);
  assert.deepEqual(complete('pastec', 'ls', '--t'), ['--timeout', '--type']);
  assert.deepEqual(complete('pastec', 'put', '--exp'), ['--expire']);
  // Where the completion has no word of its own, it leaves the word to bash, which offers files.
  for (const words of [['put', ''], ['get', '--output', '']]) assert.deepEqual(complete('pastec', ...words), ['']);
});

test('pastec completion zsh: the same, read or loaded at the first completion', async (t) => {
  if (!isInstalled(t, 'zsh')) return;
  const { run, folder } = clientOf(t, NOBODY);
  writeFileSync(join(folder, '_pastec'), (await run(['completion', 'zsh'])).text);
  // Stand-ins for the functions of zsh's completion system; they print what it would be told.
  const told = 'compdef() { : }; _default() { print FILES }; compadd() { shift; print -rl -- ${(M)@:#$words[CURRENT]*} | grep . }';
  const complete = (load: string, ...words: string[]): string[] => {
    const probe = `${told}; ${load}; words=("$@"); CURRENT=$#words; _pastec`;
    return runProgram('zsh', ['-f', '-c', probe, 'zsh', ...words], folder).output.trim().split('\n').sort();
  };
  for (const load of ['. ./_pastec', 'fpath=(. $fpath); autoload -Uz _pastec']) {
    assert.deepEqual(complete(load, 'pastec', 'c'), ['cert', 'completion'], load);
    assert.deepEqual(complete(load, 'pastec', 'cert', 'ex'), ['export']);
    assert.deepEqual(complete(load, 'pastec', 'get', '--p'), ['--password', '--password-file']);
    for (const words of [['put', 'note'], ['put', '']]) assert.deepEqual(complete(load, 'pastec', ...words), ['FILES']);
  }
});

for (const [program, check] of [['zsh', '-n'], ['fish', '--no-execute']] as const) {
  test(`pastec completion ${program}: is a script that ${program} can read`, async (t) => {
    if (!isInstalled(t, program)) return;
    const { run, folder } = clientOf(t, NOBODY);
    writeFileSync(join(folder, 'completion'), (await run(['completion', program])).text);
    assert.equal(runProgram(program, [check, 'completion'], folder).output, '');
  });
}
