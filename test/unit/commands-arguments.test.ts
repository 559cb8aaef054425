// operator/arguments.ts: how a command line is read, and what is said of one that cannot be carried out.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { parseArguments, runCommandLine } from '../../src/operator/arguments.ts';
import { type Command, COMMANDS } from '../../src/operator/commands.ts';
import { UsageError } from '../../src/operator/failures.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';

/** The command's name, its options, its operands. */
function read(...words: string[]): string {
  const { command, given } = parseArguments(words);
  const options = [...given.options].map(([name, value]) => (value === '' ? name : `${name}=${value}`));
  return [command.name, ...options, ...given.operands].join(' ');
}

/** The least that the command must be given. */
function leastOf({ operands, options }: Command): string[] {
  const required = options.filter(({ isRequired }) => isRequired).map(({ name, choices }) => `${name}=${choices?.[0] ?? 'x'}`);
  return [...required, ...operands.filter(({ isRequired }) => isRequired).map(({ choices }) => choices?.[0] ?? 'y')];
}

test('parseArguments: without a command it is serve', () => {
  assert.equal(read(), 'serve');
  assert.equal(read('--help'), 'help');
  assert.equal(read('-h', 'config'), 'help config');
});

test('parseArguments: every command by its name, its help by --help and -h', () => {
  for (const command of COMMANDS) {
    const words = command.name.split(' ');
    const least = leastOf(command);
    assert.equal(read(...words, ...least), [command.name, ...least].join(' '));
    assert.equal(read(...words, '--help'), `help ${command.name}`);
    assert.equal(read(...words, '-h'), `help ${command.name}`);
  }
  assert.equal(read('config', '--help', '--json'), 'help config');
});

test('parseArguments: --version and -V in the place of a command', () => {
  assert.equal(read('--version'), 'version');
  assert.equal(read('-V'), 'version');
});

test('parseArguments: options and operands, and -- which ends the options', () => {
  assert.equal(read('config', '--json'), 'config --json');
  assert.equal(read('config', '--json', '--json'), 'config --json');
  assert.equal(read('help', 'serve'), 'help serve');
  assert.equal(read('help', '--', '--json'), 'help --json');
  assert.equal(read('config', '--'), 'config');
});

test('parseArguments: the first word of a group alone is help about it, or is refused', () => {
  assert.equal(read('admin', '--help'), 'help admin');
  assert.equal(read('pki', '-h'), 'help pki');
  assert.equal(read('help', 'admin'), 'help admin');
  assert.equal(read('help', 'admin', 'create'), 'help admin create');
  assert.equal(read('-h', 'pki', 'list'), 'help pki list');
  assert.equal(read('help', 'pki', 'ca'), 'help pki ca');
  assert.equal(read('help', 'pki', 'ca', 'renew'), 'help pki ca renew');
  for (const words of [['admin'], ['admin', 'craete'], ['admin', '--json']]) {
    assert.throws(() => parseArguments(words), new UsageError('admin is followed by one of: create, grant'));
  }
});

test('parseArguments: the value of an option is in its word after =, or the next word', () => {
  const create = ['admin', 'create'];
  assert.equal(read(...create, '--out', 'a.p12'), 'admin create --out=a.p12');
  assert.equal(read(...create, '--out=a.p12', '--json'), 'admin create --out=a.p12 --json');
  assert.equal(read(...create, '--out=--json'), 'admin create --out=--json');
  assert.equal(read(...create, '--out=a=b', '--name', 'x y'), 'admin create --out=a=b --name=x y');
  assert.equal(read('pki', 'crl', '--out', '-'), 'pki crl --out=-');
  assert.equal(read('pki', 'revoke', '--reason', 'superseded', 'ab'), 'pki revoke --reason=superseded ab');
});

/** Node's own words, on one line. */
const AMBIGUOUS = "Option '--out' argument is ambiguous. Did you forget to specify the option argument for '--out'? " +
  "To specify an option argument starting with a dash use '--out=-XYZ'.";

test('parseArguments: refuses an option without its value or given twice, and what is missing', () => {
  const cases: readonly [string[], string][] = [
    [['admin', 'create', '--out'], "Option '--out <value>' argument missing"],
    [['admin', 'create', '--out='], '--out needs a value: --out FILE'],
    [['admin', 'create', '--out', ''], '--out needs a value: --out FILE'],
    [['admin', 'create', '--out', '--json'], AMBIGUOUS],
    [['admin', 'create', '--out', '--', 'a.p12'], AMBIGUOUS],
    [['admin', 'create', '--out=a', '--out', 'b'], '--out is given more than once'],
    [['admin', 'create'], 'admin create needs --out FILE'],
    [['admin', 'create', '--oot=a'], 'unknown option "--oot"; did you mean --out?'],
    [['admin', 'create', '--out=a', '--json=1'], "Option '--json' does not take an argument"],
    [['admin', 'create', '--out=a', 'b'], 'unexpected argument "b"'],
    [['admin', 'grant'], 'admin grant needs SERIAL'],
    [['backup', ''], 'backup needs FILE'],
  ];
  for (const [words, message] of cases) {
    assert.throws(() => parseArguments(words), new UsageError(message), words.join(' '));
  }
});

test('parseArguments: refuses what is no member of a closed set, and names the members', () => {
  const cases: readonly [string[], string][] = [
    [['audit', '--outcome', 'ok'], '--outcome takes one of: success, failure'],
    [['completion', 'tcsh'], 'SHELL takes one of: bash, zsh, fish'],
  ];
  for (const [words, message] of cases) {
    assert.throws(() => parseArguments(words), new UsageError(message), words.join(' '));
  }
  assert.equal(read('audit', '--outcome', 'failure'), 'audit --outcome=failure');
  assert.equal(read('completion', 'fish'), 'completion fish');
});

test('parseArguments: refuses what the table does not have, with the nearest name', () => {
  const cases: readonly [string[], string][] = [
    [['confg'], 'unknown command "confg"; did you mean config?'],
    [['sevre'], 'unknown command "sevre"; did you mean serve?'],
    [['Serve'], 'unknown command "Serve"; did you mean serve?'],
    [['install'], 'unknown command "install"'],
    [[''], 'unknown command ""'],
    [['toString'], 'unknown command "toString"'],
    [['config', '--jsno'], 'unknown option "--jsno"; did you mean --json?'],
    [['config', '--json=1'], "Option '--json' does not take an argument"],
    [['config', '-hx'], 'unknown option "-h"'],
    [['--hepl'], 'unknown option "--hepl"; did you mean --help?'],
    [['serve', '--json'], 'unknown option "--json"'],
    [['config', '-'], 'unexpected argument "-"'],
    [['serve', 'now'], 'unexpected argument "now"'],
    [['help', 'serve', 'config'], 'unexpected argument "config"'],
    [['config', '--', '--json'], 'unexpected argument "--json"'],
    // What node makes of bytes that are no UTF-8.
    [['backup', 'caf\ufffd.db'], 'not in UTF-8: "caf\ufffd.db"'],
    [['pki', 'crl', '--out=caf\ufffd.crl'], 'not in UTF-8: "--out=caf\ufffd.crl"'],
  ];
  for (const [words, message] of cases) {
    assert.throws(() => parseArguments(words), new UsageError(message), words.join(' '));
  }
});

test('runCommandLine: a wrong command line is 2, on standard error, and points to the help', async () => {
  for (const [words, message] of [
    [['confg'], 'pasted: unknown command "confg"; did you mean config?\nTry: pasted help\n'],
    [['help', 'sevre'], 'pasted: unknown command "sevre"; did you mean serve?\nTry: pasted help\n'],
    [['openapi', '--json'], 'pasted: unknown option "--json"\nTry: pasted help\n'],
  ] as const) {
    const fake = fakeTerminal(words);
    assert.equal(await runCommandLine(fake.terminal), 2);
    assert.equal(fake.stderr(), message);
    assert.equal(fake.stdout(), '');
  }
});

test('runCommandLine: version', async () => {
  for (const word of ['version', '--version', '-V']) {
    const fake = fakeTerminal([word]);
    assert.equal(await runCommandLine(fake.terminal), 0);
    assert.equal(fake.stdout(), `pasted ${VERSION}\n`);
  }
});

test('runCommandLine: version --json also says what it runs on', async () => {
  const fake = fakeTerminal(['version', '--json']);
  assert.equal(await runCommandLine(fake.terminal), 0);
  assert.equal(fake.stdout().indexOf('\n'), fake.stdout().length - 1);
  const runtime = { node: '24.0.0', sqlite: '3.50.0', openssl: '3.5.0', platform: 'linux-x64' };
  assert.deepEqual(JSON.parse(fake.stdout()), { version: VERSION, schema_version: MIGRATIONS.length, ...runtime });
});

test('runCommandLine: settings that cannot be used are 78, all on standard error', async () => {
  for (const word of ['serve', 'config']) {
    const fake = fakeTerminal([word], { environment: { SERVICE_PORT: '-1', SERVICE_RATE_MAX: 'x' } });
    assert.equal(await runCommandLine(fake.terminal), 78);
    assert.equal(fake.stdout(), '');
    assert.deepEqual(fake.stderr().trimEnd().split('\n'), [
      'pasted: the settings cannot be used',
      '  SERVICE_PORT: expected a whole number from 0 to 65535, given "-1"',
      '  SERVICE_RATE_MAX: expected a whole number from 0 to 1099511627776, given "x"',
    ]);
  }
});

test('runCommandLine: a bug is not explained away', async () => {
  const fake = fakeTerminal(['config'], {
    environment: new Proxy({}, {
      get: () => {
        throw new TypeError('bug');
      },
    }),
  });
  await assert.rejects(runCommandLine(fake.terminal), new TypeError('bug'));
  assert.equal(fake.stderr(), '');
});
