// operator/commands.ts: what holds for every entry, whoever adds one. What each command does is tested beside it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { explainCommands } from '../../scripts/describe/help.ts';
import { REVOCATION_REASONS } from '../../src/authority/certificates.ts';
import { parseArguments } from '../../src/operator/arguments.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import { alignColumns } from '../../src/operator/terminal.ts';

/** These print no data: a script, a certificate, a list for a proxy, a text for people; openapi prints JSON anyway. */
const WITHOUT_JSON = new Set(['serve', 'pki crl', 'pki ca', 'client', 'openapi', 'completion', 'help']);

const choicesOf = (command: string, option: string) =>
  COMMANDS.find(({ name }) => name === command)?.options.find(({ name }) => name === option)?.choices;

test('help.txt: every command has an example, and every example is a command line that can be carried out', () => {
  const help = readFileSync(new URL('../../src/operator/help.txt', import.meta.url), 'utf8');
  for (const { name, examples } of explainCommands(COMMANDS, help)) {
    assert.ok(examples.length > 0, name);
    for (const example of examples) {
      // The command without a umask or variables before it, or a redirection or a pipe behind it. It has no quotes.
      const [, line = ''] = /^(?:\(umask 077; )?(?:[A-Z_]+=\S+ )*(?:.* \| )?pasted\b ?([^>|<)]*)/.exec(example) ?? assert.fail(example);
      const { command } = parseArguments(line.trim().split(/ +/).filter((word) => word !== ''));
      assert.equal(command.name, name, example);
    }
  }
});

test('COMMANDS: what prints data prints it as JSON too', () => {
  for (const { name, options } of COMMANDS) {
    assert.equal(options.some((option) => option.name === '--json'), !WITHOUT_JSON.has(name), name);
  }
});

test('COMMANDS: names, options and their values can be completed by any shell', () => {
  for (const { name, options, operands } of COMMANDS) {
    assert.match(name, /^[a-z]+(?: [a-z-]+){0,2}$/);
    for (const option of options) assert.match(option.name, /^--[a-z][a-z0-9-]+$/);
    for (const { choices = [] } of [...options, ...operands]) {
      for (const choice of choices) assert.match(choice, /^[A-Za-z0-9_-]+$/);
    }
  }
});

test('COMMANDS: the reasons for a revocation are those of the table that they stand for', () => {
  assert.deepEqual(choicesOf('pki revoke', '--reason'), Object.keys(REVOCATION_REASONS));
});

test('alignColumns: more rows than a call takes arguments, such as the certificates of years', () => {
  const rows = Array.from({ length: 300_000 }, (_, index) => [String(index), 'alice']);
  const lines = alignColumns([['SERIAL', 'NAME'], ...rows]).split('\n');
  assert.deepEqual([lines[0], lines[1], lines.at(-2)], ['SERIAL  NAME', '0       alice', '299999  alice']);
});
