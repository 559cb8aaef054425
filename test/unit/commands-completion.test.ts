// `pasted completion`: what the shells themselves offer with the scripts, for every command that there is.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';

const PKI_WORDS = COMMANDS.map(({ name }) => name.split(' ')).filter(([first, , third]) => first === 'pki' && third === undefined)
  .map(([, second]) => second!);
const FIRST_WORDS = [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0]!))];

/** A folder with the script for that shell, and files to complete. */
async function scriptIn(t: TestContext, shell: string): Promise<string> {
  const folder = temporaryFolder(t);
  const fake = fakeTerminal(['completion', shell]);
  assert.equal(await runCommandLine(fake.terminal), 0);
  writeFileSync(join(folder, 'script'), fake.stdout());
  mkdirSync(join(folder, 'files'));
  for (const name of ['one two.p12', 'one*.p12', 'other']) writeFileSync(join(folder, 'files', name), '');
  return folder;
}

/** Each question is a command line without its first word; the last word is the one to complete. */
type Offered = (questions: readonly (readonly string[])[]) => string[][];

/** Asks bash itself what readline would show. One shell answers all questions. */
async function askBash(t: TestContext): Promise<Offered> {
  const folder = await scriptIn(t, 'bash');
  return (questions) => {
    const asked = questions.map((words) => {
      const line = ['pasted', ...words].map((word) => `'${word}'`).join(' ');
      return `COMP_WORDS=(${line}) COMP_CWORD=${words.length}; _pasted; printf '%s\\n' "\${COMPREPLY[@]}" ---`;
    });
    return answersIn(run('bash', ['-c', ['. ../script', ...asked].join('\n')], join(folder, 'files')).output);
  };
}

/** Asks zsh, which prints here what its completion system would be told. */
async function askZsh(t: TestContext): Promise<Offered> {
  const folder = await scriptIn(t, 'zsh');
  const told = `
    compdef() { : }
    compset() { : }
    _files() { print -rl -- FILES }
    _describe() { print -rl -- "\${(@)\${(P@)@[-1]}%%:*}" }`;
  return (questions) => {
    const asked = questions.map((words) => {
      const line = ['pasted', ...words].map((word) => `'${word}'`).join(' ');
      return `words=(${line}); CURRENT=$#words; _pasted; print -- ---`;
    });
    return answersIn(run('zsh', ['-f', '-c', [told, '. ../script', ...asked].join('\n')], join(folder, 'files')).output);
  };
}

function answersIn(output: string): string[][] {
  return output.split('---\n').slice(0, -1).map((answer) => answer.split('\n').filter((line) => line !== ''));
}

function optionsOf(name: string): string[] {
  return [...COMMANDS.find((command) => command.name === name)!.options.map((option) => option.name), '--help'];
}

test('completion bash: every command, every member of a group, every option', async (t) => {
  if (!isInstalled(t, 'bash')) return;
  const offered = await askBash(t);
  const [first, group] = offered([[''], ['pki', '']]);
  assert.deepEqual(first, FIRST_WORDS);
  assert.deepEqual(group, PKI_WORDS);
  const options = offered(COMMANDS.map(({ name }) => [...name.split(' '), '--']));
  assert.deepEqual(options, COMMANDS.map(({ name }) => optionsOf(name)));
});

test('completion bash: values of closed sets, files where a file is named, nothing where nobody can know', async (t) => {
  if (!isInstalled(t, 'bash')) return;
  const answers = (await askBash(t))([
    ['pki', 'revoke', '--reason', 'k'],
    ['pki', 'revoke', '--reason', '=', 's'],
    ['audit', '--outcome', '='],
    ['audit', '--limit', ''],
    ['completion', ''],
    ['admin', 'create', '--out', 'one'],
    ['admin', 'create', '--out', '=', 'ot'],
    ['admin', 'create', '--p12-profile', ''],
    ['help', 'adm'],
    ['help', 'admin', 'gra'],
    ['help', ''],
    ['help', 'pki', ''],
    ['help', 'pki', 'ca', ''],
    ['help', 'stats', ''],
    ['pki', 'ca', ''],
    ['pki', 'ca', 'pass'],
    ['pki', 'ca', 'passphrase', ''],
    ['pki', 'ca', 'passphrase', '--new-password-file', 'ot'],
    ['nonsense', ''],
  ]);
  assert.deepEqual(answers.map((answer) => answer.sort()), [
    ['keyCompromise'],
    ['superseded'],
    ['failure', 'success'],
    [],
    ['--help', 'bash', 'fish', 'zsh'],
    ['one two.p12', 'one*.p12'],
    ['other'],
    ['compat', 'modern'],
    ['admin'],
    ['grant'],
    ['--help', ...FIRST_WORDS].sort(),
    PKI_WORDS.toSorted(),
    ['passphrase', 'renew'],
    [],
    ['--help', 'passphrase', 'renew'],
    ['passphrase'],
    ['--help', '--json', '--new-password-file'],
    ['other'],
    [],
  ]);
});

test('completion zsh: the same, to be narrowed by zsh itself', async (t) => {
  if (!isInstalled(t, 'zsh')) return;
  const offered = await askZsh(t);
  assert.deepEqual(offered([['']]), [FIRST_WORDS]);
  const withoutOperands = COMMANDS.filter(({ name, operands }) => operands.length === 0 && name !== 'pki ca').map(({ name }) => name);
  assert.deepEqual(offered(withoutOperands.map((name) => [...name.split(' '), ''])), withoutOperands.map(optionsOf));
  assert.deepEqual(offered([
    ['pki', ''],
    ['pki', 'ca', ''],
    ['pki', 'ca', 'passphrase', '--new-password-file', ''],
    ['audit', '--outcome', ''],
    ['audit', '--outcome=s'],
    ['audit', '--limit', ''],
    ['admin', 'create', '--out', ''],
    ['admin', 'create', '--out=o'],
    ['completion', ''],
    ['help', ''],
    ['help', 'pki', ''],
    ['help', 'pki', 'ca', ''],
    ['help', 'stats', ''],
    ['nonsense', ''],
  ]), [
    PKI_WORDS,
    ['renew', 'passphrase', '--help'],
    ['FILES'],
    ['success', 'failure'],
    ['success', 'failure'],
    [],
    ['FILES'],
    ['FILES'],
    ['bash', 'zsh', 'fish', '--help'],
    [...FIRST_WORDS, '--help'],
    PKI_WORDS,
    ['renew', 'passphrase'],
    [],
    [],
  ]);
});

test('completion: is for pastedctl as well, which has the same commands', async (t) => {
  const scripts = await Promise.all(['bash', 'zsh', 'fish'].map((shell) => scriptIn(t, shell)));
  const [bash = '', zsh = '', fish = ''] = scripts;
  if (isInstalled(t, 'bash')) {
    assert.match(run('bash', ['-c', '. ./script; complete -p pasted pastedctl'], bash).output,
      /^complete -F _pasted pasted\ncomplete -F _pasted pastedctl\n$/);
  }
  if (isInstalled(t, 'zsh')) {
    assert.equal(run('zsh', ['-f', '-c', 'compdef() { print -r -- $@ }; . ./script'], zsh).output, '_pasted pasted pastedctl\n');
    assert.match(readFileSync(join(zsh, 'script'), 'utf8'), /^#compdef pasted pastedctl\n/);
  }
  assert.match(readFileSync(join(fish, 'script'), 'utf8'), /^complete -c pastedctl -w pasted$/m);
});

for (const [shell, check] of [['bash', '-n'], ['zsh', '-n'], ['fish', '--no-execute']] as const) {
  test(`completion ${shell}: is a script that ${shell} can read`, async (t) => {
    if (!isInstalled(t, shell)) return;
    const { status, output } = run(shell, [check, 'script'], await scriptIn(t, shell));
    assert.deepEqual([status, output], [0, '']);
  });
}

test('completion fish: a line for every command, every option and every value', async () => {
  const fake = fakeTerminal(['completion', 'fish']);
  await runCommandLine(fake.terminal);
  const script = fake.stdout();
  for (const word of FIRST_WORDS) assert.ok(script.includes(`-n '__fish_use_subcommand' -a '${word}' -d '`), word);
  for (const { name, options } of COMMANDS) {
    const seen = name.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    for (const option of options) {
      const line = script.split('\n').find((each) => each.startsWith(`complete -c pasted -n '${seen}' -l ${option.name.slice(2)} `));
      assert.ok(line?.includes(option.choices === undefined ? ' -d ' : ` -a '${option.choices.join(' ')}' `), `${name} ${option.name}`);
    }
  }
});
