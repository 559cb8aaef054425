// `pasted help` and `pasted config`: what is printed about commands and settings, and that no secret is.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { explainCommands } from '../../scripts/describe/help.ts';
import { type Setting, SETTINGS } from '../../src/config/settings.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { type Command, COMMANDS, type Part } from '../../src/operator/commands.ts';
import { EXIT } from '../../src/operator/failures.ts';
import { alignColumns } from '../../src/operator/terminal.ts';
import { type FakeParts, fakeTerminal } from '../support/fake-terminal.ts';

const ALL: readonly Setting[] = Object.values(SETTINGS);

async function print(words: readonly string[], parts: FakeParts = {}): Promise<string> {
  const fake = fakeTerminal(words, parts);
  assert.equal(await runCommandLine(fake.terminal), 0, fake.stderr());
  return fake.stdout();
}

/** What help.txt says of each command, taken apart as for the completions and the manual page. */
const EXPLAINED = explainCommands(COMMANDS, readFileSync(new URL('../../src/operator/help.txt', import.meta.url), 'utf8'));

/** A usage that is longer is not shown whole. */
const MAX_USAGE_CHARACTERS = 110;

function usage({ name, operands, options }: Command): string {
  const shown = ({ form, isRequired }: Part) => (isRequired ? form : `[${form}]`);
  const whole = ['pasted', name, ...[...operands, ...options].map(shown)].join(' ');
  const needed = [...operands.map(shown), ...options.filter(({ isRequired }) => isRequired).map(shown)];
  return whole.length <= MAX_USAGE_CHARACTERS ? whole : ['pasted', name, ...needed, '[OPTIONS]'].join(' ');
}

test('help: names every command with its summary, and every exit code', async () => {
  const text = await print(['help']);
  const lines = text.split('\n').map((line) => line.trim().split(/ {2,}/).join(': '));
  for (const { name, summary } of EXPLAINED) assert.ok(lines.includes(`${name}: ${summary}`), name);
  const codes = /^Exit codes:\n((?: {2}.*\n)+)/m.exec(text)?.[1]?.matchAll(/^ {2}(\d+) +\S/gm) ?? [];
  assert.deepEqual(Array.from(codes, ([, code]) => Number(code)), Object.values(EXIT));
});

test('help COMMAND and COMMAND --help: the same text, with usage, options, what they take, and examples', async () => {
  for (const command of EXPLAINED) {
    const text = await print(['help', command.name]);
    assert.equal(await print([command.name, '--help']), text);
    const [title, used, description, options, examples, ...others] = text.split('\n\n');
    assert.equal(title, `pasted ${command.name} - ${command.summary}`);
    assert.equal(used, `Usage: ${usage(command)}`);
    assert.match(description!, /^[A-Z].*\.$/s);
    const rows = alignColumns([
      ...command.options.flatMap((option) => {
        const { form, choices, meaning } = option;
        assert.match(meaning, /\S/, `${command.name} ${form}`);
        const taken = choices === undefined ? [] : `one of: ${choices.join(', ')}`.match(/.{1,90}(?:,|$)/g)!;
        return [[form, meaning], ...taken.map((line) => ['', line.trim()])];
      }),
      ['-h, --help', 'print this help'],
    ]);
    assert.equal(options, `Options:\n${rows.trimEnd().replaceAll(/^/gm, '  ')}`);
    assert.equal(examples, `Examples:\n${command.examples.map((example) => `  ${example}\n`).join('')}`);
    assert.deepEqual(others, []);
  }
});

test('help.txt: explains the commands of the table, in its order, and nothing else', () => {
  const help = readFileSync(new URL('../../src/operator/help.txt', import.meta.url), 'utf8');
  assert.deepEqual(Array.from(help.matchAll(/^pasted (.+?) - /gm), ([, name]) => name), COMMANDS.map(({ name }) => name));
});

test('help GROUP and GROUP --help: the same text, with the commands of the group', async () => {
  const text = await print(['help', 'pki']);
  assert.equal(await print(['pki', '--help']), text);
  assert.deepEqual([...text.matchAll(/^  (pki \w+(?: \w+)?) {2,}\S/gm)].map(([, name]) => name), [
    'pki issue', 'pki list', 'pki revoke', 'pki crl', 'pki ca', 'pki ca renew', 'pki ca passphrase',
  ]);
});

test('help: has no line that is wider than a wide terminal, and none with spaces at its end', async () => {
  for (const words of [['help'], ...COMMANDS.map(({ name }) => ['help', name])]) {
    for (const line of (await print(words)).split('\n')) {
      assert.ok(line.length <= 120, line);
      assert.equal(line, line.trimEnd());
    }
  }
});

test('config: every setting on one line, with value, unit and where it comes from', async () => {
  const environment = {
    PORT: '3000', SERVICE_PKI_ENABLED: 'yes', SERVICE_TRUSTED_PROXIES: '10.0.0.1, ::1', STATE_DIRECTORY: '/var/lib/p',
  };
  const lines = (await print(['config'], { environment })).trimEnd().split('\n');
  assert.equal(lines.length, 1 + ALL.length);
  const cells = lines.map((line) => line.split(/ {2,}/));
  assert.deepEqual(cells[0], ['SETTING', 'VALUE', 'UNIT', 'FROM']);
  assert.deepEqual(cells.slice(1).map(([name]) => name), ALL.map(({ name }) => name));
  for (const row of [
    ['SERVICE_PORT', '3000', 'port', 'environment PORT'],
    ['SERVICE_PKI_ENABLED', '1', 'flag', 'environment'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.1,::1', 'networks', 'environment'],
    ['SERVICE_DB', '/var/lib/p/pasted.db', 'text', 'environment STATE_DIRECTORY'],
    ['URL_PREFIX', '(not set)', 'text', 'default'],
    ['SERVICE_REQUIRE_BINARY', '0', 'flag', 'default'],
    ['SERVICE_MAX_ANON', '3145728', 'bytes', 'default'],
  ]) {
    assert.deepEqual(cells.find(([name]) => name === row[0]), row);
  }
});

const CANARY = 'canary-2718281828';
const WITH_SECRETS = {
  environment: {
    SERVICE_PROXY_SECRET: `${CANARY}-1`,
    SERVICE_POW_SECRET_FILE: '/run/pow',
    CREDENTIALS_DIRECTORY: '/run/credentials',
    SERVICE_PROXY_SECRT: `${CANARY}-2`,
  },
  readFile: () => `${CANARY}-3\n`,
};

test('config: of a secret only whether it is set, and which way it came', async () => {
  const text = await print(['config'], WITH_SECRETS);
  assert.ok(!text.includes(CANARY));
  assert.match(text, /^SERVICE_PROXY_SECRET +\(set\) +secret +environment$/m);
  assert.match(text, /^SERVICE_POW_SECRET +\(set\) +secret +file SERVICE_POW_SECRET_FILE$/m);
  assert.match(text, /^SERVICE_PKI_CA_PASSWORD +\(set\) +secret +credential$/m);
  assert.match(await print(['config']), /^SERVICE_PROXY_SECRET +\(not set\) +secret +default$/m);
});

test('config: names that are no settings are said on standard error, without their values', async () => {
  const fake = fakeTerminal(['config'], WITH_SECRETS);
  assert.equal(await runCommandLine(fake.terminal), 0);
  assert.equal(fake.stderr(), 'pasted: "SERVICE_PROXY_SECRT" is not a setting; did you mean SERVICE_PROXY_SECRET?\n');
});

test('config --json: the same as one object on one line, values with their types', async () => {
  const fake = fakeTerminal(['config', '--json'], WITH_SECRETS);
  assert.equal(await runCommandLine(fake.terminal), 0);
  assert.equal(fake.stderr(), '');
  const text = fake.stdout();
  assert.ok(!text.includes(CANARY));
  assert.equal(text.indexOf('\n'), text.length - 1);
  const { settings, warnings } = JSON.parse(text) as { settings: Record<string, unknown>[]; warnings: string[] };
  assert.deepEqual(settings.map(({ name }) => name), ALL.map(({ name }) => name));
  const byDefault = { source: 'default', source_name: null };
  for (const entry of [
    { name: 'SERVICE_PORT', value: 8080, unit: 'port', ...byDefault },
    { name: 'SERVICE_PKI_ENABLED', value: false, unit: 'flag', ...byDefault },
    { name: 'SERVICE_TRUSTED_PROXIES', value: ['127.0.0.0/8', '::1'], unit: 'networks', ...byDefault },
    {
      name: 'SERVICE_POW_SECRET',
      value: '(set)',
      unit: 'secret',
      source: 'file',
      source_name: 'SERVICE_POW_SECRET_FILE',
    },
  ]) {
    assert.deepEqual(settings.find(({ name }) => name === entry.name), entry);
  }
  assert.equal(warnings.length, 1);
});
