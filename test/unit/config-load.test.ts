// config/load.ts: from an environment and files to a configuration, or to all of its problems.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, type Environment, loadConfig, type ReadFile, readSmallFile } from '../../src/config/load.ts';
import { type Setting, SETTING_KEYS, SETTINGS } from '../../src/config/settings.ts';
import { temporaryFolder } from '../support/programs.ts';

/** A file system with these files and no others. A file that is null may not be read. */
function files(contents: Readonly<Record<string, string | null>> = {}): ReadFile {
  return (path) => {
    const content = contents[path];
    if (typeof content === 'string') return content;
    const code = content === null ? 'EACCES' : 'ENOENT';
    throw Object.assign(new Error(`${code}: cannot open '${path}'`), { code });
  };
}

function problemsOf(environment: Environment, readFile: ReadFile = files()): readonly string[] {
  try {
    loadConfig(environment, readFile);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.message, error.problems.join('\n'));
    return error.problems;
  }
  return assert.fail('the settings were taken');
}

test('loadConfig: an empty environment gives every default, and reads no file', () => {
  const { config, sources, warnings } = loadConfig({}, () => assert.fail('a file was read'));
  for (const key of SETTING_KEYS) {
    assert.deepEqual(config[key], SETTINGS[key].fallback, key);
    assert.deepEqual(sources[key], { kind: 'default', name: '' }, key);
  }
  assert.deepEqual(warnings, []);
});

test('loadConfig: the configuration is frozen, its lists too', () => {
  for (const environment of [{}, { SERVICE_TRUSTED_PROXIES: '10.0.0.1' }]) {
    const { config } = loadConfig(environment, files());
    assert.ok(Object.isFrozen(config));
    assert.ok(Object.isFrozen(config.trustedProxies));
  }
});

test('loadConfig: every setting can be given by its variable', () => {
  const samples = { integer: '7', decimal: '0.5', flag: 'yes', text: '/x', secret: 'hush', networks: '10.0.0.0/8' };
  const values = { integer: 7, decimal: 0.5, flag: true, text: '/x', secret: 'hush', networks: ['10.0.0.0/8'] };
  const ofItsOwn = new Map<Setting, string>([
    [SETTINGS.host, 'word'],
    [SETTINGS.environment, 'word'],
    [SETTINGS.listenOn, 'unix:/x'],
    [SETTINGS.listenMode, '600'],
    [SETTINGS.createBy, 'trusted'],
    [SETTINGS.registerBy, 'invite'],
    [SETTINGS.powTrustedBits, '7'],
    [SETTINGS.identityHeader, 'client-cert'],
    [SETTINGS.contact, 'mailto:ops@paste.example'],
  ]);
  for (const key of SETTING_KEYS) {
    const setting: Setting = SETTINGS[key];
    const text = ofItsOwn.get(setting);
    // A certificate without a key is a problem, and so is a key without a certificate.
    const beside = { SERVICE_TLS_CERT: '/c', SERVICE_TLS_KEY: '/k' };
    const { config, sources } = loadConfig({ ...beside, [setting.name]: text ?? samples[setting.kind] }, files());
    assert.deepEqual(config[key], text ?? values[setting.kind], key);
    assert.deepEqual(sources[key], { kind: 'environment', name: setting.name }, key);
  }
});

test('loadConfig: an empty variable is one that is not set', () => {
  const names = Object.values<Setting>(SETTINGS).flatMap(({ name }) => [name, `${name}_FILE`]);
  const environment = Object.fromEntries(names.map((name) => [name, '']));
  const { config, sources, warnings } = loadConfig(
    { ...environment, HOST: '', PORT: '', STATE_DIRECTORY: '', CREDENTIALS_DIRECTORY: '', SERVICE_UNKNOWN: '' },
    files(),
  );
  for (const key of SETTING_KEYS) {
    assert.deepEqual([config[key], sources[key].kind], [SETTINGS[key].fallback, 'default'], key);
  }
  assert.deepEqual(warnings, []);
});

test('loadConfig: HOST and PORT stand in where ours are not set, and are named in problems', () => {
  const stoodIn = loadConfig({ HOST: '::', PORT: '3000' }, files());
  assert.deepEqual([stoodIn.config.host, stoodIn.config.port], ['::', 3000]);
  assert.deepEqual(stoodIn.sources.port, { kind: 'environment', name: 'PORT' });
  const both = loadConfig({ HOST: '::', PORT: '3000', SERVICE_HOST: '0.0.0.0', SERVICE_PORT: '9000' }, files());
  assert.deepEqual([both.config.host, both.config.port], ['0.0.0.0', 9000]);
  const empty = loadConfig({ SERVICE_PORT: '', PORT: '3000' }, files());
  assert.equal(empty.config.port, 3000);
  assert.deepEqual(problemsOf({ PORT: 'auto' }), ['PORT: expected a whole number from 0 to 65535, given "auto"']);
});

test('loadConfig: under systemd the database is in the first state directory, unless it is set', () => {
  const path = (environment: Environment): string => loadConfig(environment, files()).config.databasePath;
  assert.equal(path({ STATE_DIRECTORY: '/var/lib/pasted' }), '/var/lib/pasted/pasted.db');
  assert.equal(path({ STATE_DIRECTORY: '/var/lib/a:/var/lib/b' }), '/var/lib/a/pasted.db');
  assert.equal(path({ STATE_DIRECTORY: ':/var/lib/b' }), SETTINGS.databasePath.fallback);
  assert.equal(path({ STATE_DIRECTORY: '/var/lib/pasted', SERVICE_DB: '/srv/x.db' }), '/srv/x.db');
  const { sources } = loadConfig({ STATE_DIRECTORY: '/var/lib/pasted' }, files());
  assert.deepEqual(sources.databasePath, { kind: 'environment', name: 'STATE_DIRECTORY' });
});

const SECRETS = SETTING_KEYS.filter((key) => SETTINGS[key].kind === 'secret');

test('loadConfig: every secret can be in a file, without one newline at its end', () => {
  assert.equal(SECRETS.length, 4);
  for (const key of SECRETS) {
    const { name } = SETTINGS[key];
    for (const content of ['hush', 'hush\n', 'hush\r\n']) {
      const { config, sources, warnings } = loadConfig({ [`${name}_FILE`]: '/run/s' }, files({ '/run/s': content }));
      assert.equal(config[key], 'hush');
      assert.deepEqual(sources[key], { kind: 'file', name: `${name}_FILE` });
      assert.deepEqual(warnings, []);
    }
    assert.equal(loadConfig({ [`${name}_FILE`]: '/run/s' }, files({ '/run/s': 'x y\n' })).config[key], 'x y');
  }
});

test('loadConfig: a secret of several lines is refused and not shown', () => {
  const problems = problemsOf({ SERVICE_POW_SECRET_FILE: '/run/s' }, files({ '/run/s': 'hush\n\n' }));
  assert.deepEqual(problems, ['SERVICE_POW_SECRET_FILE: expected one line of UTF-8 text without control characters']);
});

test('loadConfig: a secret\'s file must be readable and not empty, and its path is not repeated', () => {
  const readFile = files({ '/run/empty': '', '/run/newline': '\n', '/run/locked': null });
  const of = (path: string): string => problemsOf({ SERVICE_PROXY_SECRET_FILE: path }, readFile).join();
  const expected = 'SERVICE_PROXY_SECRET_FILE: expected the path of a file that';
  assert.equal(of('hunter2'), `${expected} can be read (ENOENT)`);
  assert.equal(of('/run/locked'), `${expected} can be read (EACCES)`);
  assert.equal(of('/run/empty'), `${expected} is not empty`);
  assert.equal(of('/run/newline'), `${expected} is not empty`);
});

test('loadConfig: an error without a code is a problem too', () => {
  const problems = problemsOf({ SERVICE_PROXY_SECRET_FILE: '/run/s' }, () => {
    throw new Error('/run/s is a riddle');
  });
  assert.deepEqual(problems, [
    'SERVICE_PROXY_SECRET_FILE: expected the path of a file that can be read (unknown error)',
  ]);
});

test('loadConfig: a secret given by variable and by file is a problem', () => {
  const environment = { SERVICE_POW_SECRET: 'hush', SERVICE_POW_SECRET_FILE: '/run/s' };
  const problems = problemsOf(environment, files({ '/run/s': 'hush' }));
  assert.deepEqual(problems, ['SERVICE_POW_SECRET: expected once, given also as SERVICE_POW_SECRET_FILE']);
});

test('loadConfig: a credential counts when neither variable nor file is given', () => {
  const environment = { CREDENTIALS_DIRECTORY: '/run/credentials/pasted.service' };
  const readFile = files({
    '/run/credentials/pasted.service/SERVICE_POW_SECRET': 'from credential\n',
    '/run/s': 'from file\n',
  });
  const credential = loadConfig(environment, readFile);
  assert.equal(credential.config.powSecret, 'from credential');
  assert.deepEqual(credential.sources.powSecret, { kind: 'credential', name: 'SERVICE_POW_SECRET' });
  assert.deepEqual(credential.sources.proxySecret, { kind: 'default', name: '' });
  const variable = loadConfig({ ...environment, SERVICE_POW_SECRET: 'from variable' }, readFile);
  assert.equal(variable.config.powSecret, 'from variable');
  const file = loadConfig({ ...environment, SERVICE_POW_SECRET_FILE: '/run/s' }, readFile);
  assert.equal(file.config.powSecret, 'from file');
});

test('loadConfig: a credential of a folder has the id of our units before its name, and comes second', () => {
  const environment = { CREDENTIALS_DIRECTORY: '/c' };
  const ofFolder = { '/c/pasted': 'none', '/c/pasted_SERVICE_POW_SECRET': 'of the folder\n' };
  const { config, sources } = loadConfig(environment, files(ofFolder));
  assert.equal(config.powSecret, 'of the folder');
  assert.deepEqual(sources.powSecret, { kind: 'credential', name: 'pasted_SERVICE_POW_SECRET' });
  assert.deepEqual(sources.proxySecret, { kind: 'default', name: '' });
  const both = loadConfig(environment, files({ ...ofFolder, '/c/SERVICE_POW_SECRET': 'its own' }));
  assert.equal(both.config.powSecret, 'its own');
  assert.deepEqual(problemsOf(environment, files({ '/c/pasted_SERVICE_POW_SECRET': '' })), [
    'credential pasted_SERVICE_POW_SECRET: expected a file that is not empty',
  ]);
});

test('loadConfig: a credential that is there must be readable and not empty', () => {
  const of = (content: string | null): readonly string[] =>
    problemsOf({ CREDENTIALS_DIRECTORY: '/c' }, files({ '/c/SERVICE_POW_SECRET': content }));
  assert.deepEqual(of(null), ['credential SERVICE_POW_SECRET: expected a file that can be read (EACCES)']);
  assert.deepEqual(of('\n'), ['credential SERVICE_POW_SECRET: expected a file that is not empty']);
});

test('loadConfig: a bug in reading is not taken for a problem of the settings', () => {
  const environment = new Proxy({}, {
    get: () => {
      throw new TypeError('bug');
    },
  });
  assert.throws(() => loadConfig(environment, files()), new TypeError('bug'));
});

test('loadConfig: all problems are reported together, each by its name, in the order of the table', () => {
  assert.deepEqual(
    problemsOf({
      SERVICE_PKI_ENABLED: 'maybe',
      SERVICE_PORT: '1e3',
      SERVICE_MIN_ENTROPY: '8.1',
      SERVICE_TRUSTED_PROXIES: 'proxy.local',
      URL_PREFIX: 'paste/',
      SERVICE_POW_SECRET: 'hush\u0007',
      SERVICE_MIN_SIZE: '4000000',
    }),
    [
      'SERVICE_PORT: expected a whole number from 0 to 65535, given "1e3"',
      'URL_PREFIX: expected a path such as /paste, without a slash at its end, given "paste/"',
      'SERVICE_TRUSTED_PROXIES: expected addresses and CIDR blocks such as 10.0.0.0/8 or ::1, separated by commas, ' +
        'given "proxy.local"',
      'SERVICE_MIN_ENTROPY: expected a decimal number from 0 to 8, given "8.1"',
      'SERVICE_POW_SECRET: expected one line of UTF-8 text without control characters',
      'SERVICE_PKI_ENABLED: expected one of 1, true, yes, on, 0, false, no, off, given "maybe"',
      'SERVICE_MIN_SIZE: expected at most SERVICE_MAX_ANON (3145728), given 4000000',
    ],
  );
});

test('loadConfig: settings that are wrong by themselves are not compared with others', () => {
  assert.deepEqual(problemsOf({ SERVICE_MIN_SIZE: '4000000', SERVICE_MAX_ANON: 'lots' }), [
    'SERVICE_MAX_ANON: expected a whole number from 1 to 1099511627776, or one with KiB, MiB, GiB, given "lots"',
  ]);
});

test('loadConfig: a long or strange value is repeated in part and on one line', () => {
  const [problem = ''] = problemsOf({ SERVICE_PORT: `8080\n${'9'.repeat(500)}` });
  assert.equal(problem, `SERVICE_PORT: expected a whole number from 0 to 65535, given "8080\\n${'9'.repeat(75)}..."`);
  const [whole = ''] = problemsOf({ SERVICE_PORT: '9'.repeat(80) });
  assert.ok(whole.endsWith(`given "${'9'.repeat(80)}"`));
});

test('loadConfig: a password in the address of nodes is not repeated, whatever is in it', () => {
  for (const password of ['hunter2', 'hunter@2', 'hunter:2/', 'hunter\n2']) {
    // A password in a mistyped address is still a password.
    for (const before of ['rqlite://', 'RQLITES://', 'rqlite:/', 'rqlites:', 'http://']) {
      const [problem = ''] = problemsOf({ SERVICE_DB: `${before}me:${password}@db1:4001,db2:4001` });
      assert.ok(problem.endsWith(`, given "${before}me:...@db1:4001,db2:4001"`), problem);
    }
  }
  for (const user of ['me@db.example', 'm/e']) {
    const problem = problemsOf({ SERVICE_DB: `rqlite://${user}:hunter2@db1:4001` }).join();
    assert.ok(problem.endsWith(`, given "rqlite://${user}:...@db1:4001"`), problem);
  }
  assert.match(problemsOf({ SERVICE_DB: 'rqlite://me@db1' }).join(), /given "rqlite:\/\/me@db1"$/);
});

test('loadConfig: a key in the place of its path is refused and not repeated', () => {
  const key = '-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----';
  for (const SERVICE_TLS_KEY of [key, `${key}\n`]) {
    assert.deepEqual(problemsOf({ SERVICE_TLS_KEY }), ['SERVICE_TLS_KEY: expected the path of a file']);
  }
});

test('loadConfig: no problem says the value of a secret', () => {
  for (const key of SECRETS) {
    const { name } = SETTINGS[key];
    const canary = 'canary-2718281828';
    const all = [
      ...problemsOf({ [name]: `${canary}\u0001`, SERVICE_PORT: 'x' }),
      ...problemsOf({ [name]: canary, [`${name}_FILE`]: canary }),
      ...problemsOf({ [`${name}_FILE`]: canary }),
      ...problemsOf({ [`${name}_FILE`]: '/s' }, files({ '/s': `${canary}\n\n` })),
      ...problemsOf({ CREDENTIALS_DIRECTORY: '/c' }, files({ [`/c/${name}`]: `${canary}\n\n` })),
    ];
    assert.ok(all.length >= 5);
    assert.ok(!all.join('\n').includes(canary), name);
  }
  assert.deepEqual(problemsOf({ SERVICE_PROXY_SECRET: 'canary-2718281828 ' }), [
    'SERVICE_PROXY_SECRET: expected a secret without spaces around it, since no header can carry them',
  ]);
});

test('loadConfig: names that look like settings and are none give warnings with the nearest name', () => {
  const { warnings } = loadConfig(
    {
      SERVICE_PROT: '1',
      ANTIFLOOD_TRESHOLD: '1',
      RATE_LIMIT_MAX_ENTRY: '1',
      LOOKUP_RATE_LIMIT_ENTRIES: '1',
      SERVICE_POW_SECRETFILE: 'hush',
      SERVICE_COLOUR_OF_THE_LOGO: 'green',
      MY_SERVICE_PORT: '1',
      SERVICES: '1',
      service_port: '1',
      PATH: '/bin',
    },
    files(),
  );
  assert.deepEqual(warnings, [
    '"SERVICE_PROT" is not a setting; did you mean SERVICE_PORT?',
    '"ANTIFLOOD_TRESHOLD" is not a setting; did you mean ANTIFLOOD_THRESHOLD?',
    '"RATE_LIMIT_MAX_ENTRY" is not a setting; did you mean RATE_LIMIT_MAX_ENTRIES?',
    '"LOOKUP_RATE_LIMIT_ENTRIES" is not a setting; did you mean LOOKUP_RATE_LIMIT_MAX_ENTRIES?',
    '"SERVICE_POW_SECRETFILE" is not a setting; did you mean SERVICE_POW_SECRET_FILE?',
    '"SERVICE_COLOUR_OF_THE_LOGO" is not a setting',
  ]);
});

test('loadConfig: only secrets have a file', () => {
  const { warnings } = loadConfig({ SERVICE_PORT_FILE: '/run/port' }, files());
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^"SERVICE_PORT_FILE" is not a setting/);
});

test('readSmallFile: a file of up to 1 MiB; of a larger one or an endless device the problem names setting and limit', (t) => {
  const path = join(temporaryFolder(t), 'file');
  const secret = 'é'.repeat(512 * 1024);
  writeFileSync(path, secret);
  assert.equal(readSmallFile(path), secret);
  writeFileSync(path, `${secret}x`);
  for (const large of [path, '/dev/zero']) {
    assert.deepEqual(problemsOf({ SERVICE_POW_SECRET_FILE: large }, readSmallFile), [
      'SERVICE_POW_SECRET_FILE: expected the path of a file that can be read (larger than 1 MiB)',
    ]);
  }
  const credential = { CREDENTIALS_DIRECTORY: join(path, '..') };
  writeFileSync(join(path, '..', 'SERVICE_POW_SECRET'), `${secret}x`);
  assert.deepEqual(problemsOf(credential, readSmallFile), [
    'credential SERVICE_POW_SECRET: expected a file that can be read (larger than 1 MiB)',
  ]);
});

test('readSmallFile: a folder is refused; a pipe is read while somebody writes to it, and holds nobody up otherwise', (t) => {
  const folder = temporaryFolder(t);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const problemWith = (path: string): string => problemsOf({ SERVICE_PROXY_SECRET_FILE: path }, readSmallFile).join();
  const problem = 'SERVICE_PROXY_SECRET_FILE: expected the path of a file that';
  assert.equal(problemWith(folder), `${problem} can be read (EISDIR)`);
  assert.equal(problemWith(join(folder, 'none')), `${problem} can be read (ENOENT)`);
  assert.equal(problemWith(pipe), `${problem} is not empty`);
  // This process writes half a second after it has opened the pipe.
  const writer = spawn('sh', ['-c', 'exec > "$0"; sleep 0.5; echo hush', pipe]);
  t.after(() => writer.kill());
  let text = '';
  while (text === '') text = readSmallFile(pipe);
  assert.equal(text, 'hush\n');
});
