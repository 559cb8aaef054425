// config/settings.ts: the grammar of every kind of setting, and the bounds of every setting of the table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Setting, SETTINGS } from '../../src/config/settings.ts';
import { isoSeconds } from '../../src/core/time.ts';

const ALL: readonly Setting[] = Object.values(SETTINGS);

/** What the problem would say, undefined when the text is taken. */
function refusalOf(setting: Setting, text: string): string | undefined {
  return setting.parse(text) === undefined ? setting.expected : undefined;
}

test('SETTINGS: integers are decimal digits and nothing else', () => {
  for (const [text, value] of [['0', 0], ['7', 7], ['007', 7], ['65535', 65535]] as const) {
    assert.equal(SETTINGS.port.parse(text), value);
  }
  for (const text of [
    '-1', '+1', '1e3', '1.0', '1.', '.1', '0x10', '0b1', '1_000', '1,000', ' 1', '1 ', '1\n', ' ', 'NaN',
    'Infinity', 'ten', '１', '1n',
  ]) {
    assert.equal(refusalOf(SETTINGS.port, text), 'a whole number from 0 to 65535', JSON.stringify(text));
  }
});

test('SETTINGS: every integer is taken at its bounds and refused one past them', () => {
  for (const setting of ALL) {
    if (setting.kind !== 'integer') continue;
    const { minimum, maximum, name } = setting;
    for (const taken of [minimum, minimum + 1, maximum - 1, maximum]) {
      assert.equal(setting.parse(String(taken)), taken, name);
    }
    for (const refused of [minimum - 1, maximum + 1]) {
      const expected: string | undefined = refusalOf(setting, String(refused))?.replace(/, or one with .*/, '');
      assert.equal(expected, `a whole number from ${minimum} to ${maximum}`, name);
    }
    assert.equal(setting.parse('9'.repeat(400)), undefined, name);
  }
});

test('SETTINGS: a time to live is a thousand years at most, so that every date has a year of four digits', () => {
  const names = ALL.filter(({ name }) => name.includes('EXPIRY')).map(({ name }) => name);
  assert.equal(names.length, 4);
  for (const setting of ALL) {
    if (setting.kind !== 'integer' || !names.includes(setting.name)) continue;
    assert.equal(setting.parse('365000d'), setting.maximum, setting.name);
    assert.equal(setting.parse('365001d'), undefined, setting.name);
    assert.match(isoSeconds(Date.parse('2999-12-31') / 1000 + setting.maximum), /^3\d{3}-/);
  }
});

test('SETTINGS: sizes and times take a unit beside plain numbers, and no other number does', () => {
  const units = {
    bytes: { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
    'bytes per second': { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
    seconds: { s: 1, m: 60, h: 3600, d: 86_400 },
  } as const;
  let taken = 0;
  for (const setting of ALL) {
    if (setting.kind !== 'integer') continue;
    const own: Readonly<Record<string, number>> = Object.hasOwn(units, setting.unit) ? units[setting.unit as 'bytes'] : {};
    for (const suffix of ['KiB', 'MiB', 'GiB', 's', 'm', 'h', 'd']) {
      const value = 1 * (own[suffix] ?? NaN);
      const isTaken: boolean = value >= setting.minimum && value <= setting.maximum;
      assert.equal(setting.parse(`1${suffix}`), isTaken ? value : undefined, `${setting.name}=1${suffix}`);
      if (isTaken) taken += 1;
    }
  }
  assert.ok(taken > 50);
  assert.deepEqual([SETTINGS.maxAnonBytes.parse('3MiB'), SETTINGS.expiryAnonSeconds.parse('1d')], [3_145_728, 86_400]);
  assert.equal(SETTINGS.expiryAnonSeconds.parse('90m'), 5400);
  for (const text of ['3MB', '3M', '3mib', '3 MiB', 'MiB', '1.5MiB', '3MiBx', '3MiB3', '-1MiB', '1e3KiB', '3constructor']) {
    const expected = 'a whole number from 1 to 1099511627776, or one with KiB, MiB, GiB';
    assert.equal(refusalOf(SETTINGS.maxAnonBytes, text), expected, text);
  }
  for (const text of ['1D', '1w', '1day', '1 d', '1h30m', 'd', '0d']) {
    const expected = 'a whole number from 1 to 31536000000, or one with s, m, h, d';
    assert.equal(refusalOf(SETTINGS.expiryAnonSeconds, text), expected, text);
  }
  assert.equal(SETTINGS.maxAnonBytes.parse('1025GiB'), undefined);
});

test('SETTINGS: decimals have digits on both sides of the point, if there is one', () => {
  for (const [text, value] of [['0', 0], ['8', 8], ['7.5', 7.5], ['0.25', 0.25], ['8.000', 8]] as const) {
    assert.equal(SETTINGS.minEntropyBits.parse(text), value);
  }
  for (const text of ['.5', '5.', '1e0', '-0', '+1', '1,5', '1.2.3', ' 1', '1 ', 'NaN', 'Infinity', '0x1']) {
    assert.equal(refusalOf(SETTINGS.minEntropyBits, text), 'a decimal number from 0 to 8', JSON.stringify(text));
  }
});

test('SETTINGS: every decimal is taken at its bounds and refused just past them', () => {
  for (const setting of ALL) {
    if (setting.kind !== 'decimal') continue;
    assert.equal(setting.parse(String(setting.minimum)), setting.minimum);
    assert.equal(setting.parse(String(setting.maximum)), setting.maximum);
    assert.equal(setting.parse(`${setting.maximum}.001`), undefined);
  }
});

test('SETTINGS: flags take four words for each value, in any case', () => {
  const setting = SETTINGS.pkiEnabled;
  for (const word of ['1', 'true', 'yes', 'on', 'TRUE', 'Yes', 'oN']) assert.equal(setting.parse(word), true, word);
  for (const word of ['0', 'false', 'no', 'off', 'FALSE', 'No', 'OFF']) {
    assert.equal(setting.parse(word), false, word);
  }
  for (const word of ['2', 'y', 'n', 't', 'f', 'enabled', ' 1', '1 ', '01', 'tru', 'null']) {
    assert.equal(refusalOf(setting, word), 'one of 1, true, yes, on, 0, false, no, off', JSON.stringify(word));
  }
});

test('SETTINGS: a host is an address or a name, without brackets and port', () => {
  for (const host of ['0.0.0.0', '::', '::1', 'localhost', 'paste.example.org', 'my_host-1']) {
    assert.equal(SETTINGS.host.parse(host), host);
  }
  for (const host of ['[::1]', 'a b', 'http://a', 'a/b', 'a\n', 'ä']) {
    assert.equal(refusalOf(SETTINGS.host, host), 'an address or host name', JSON.stringify(host));
  }
});

test('SETTINGS: a prefix is a path without a slash at its end', () => {
  for (const prefix of ['/paste', '/a/b', '/a.b_c~d-e']) assert.equal(SETTINGS.urlPrefix.parse(prefix), prefix);
  for (const prefix of ['/', 'paste', '/paste/', '//paste', '/a b', '/a?b', '/a#b', '/%20', "/'", '/a\n']) {
    assert.notEqual(refusalOf(SETTINGS.urlPrefix, prefix), undefined, JSON.stringify(prefix));
  }
});

/** How node gives a variable in another encoding. A database of that name would be another one. */
const NOT_UTF8 = Buffer.from('/srv/b\xfccher.db', 'latin1').toString();

test('SETTINGS: the database is a file, never one in memory, or nodes with their ports', () => {
  // URL schemes have no case (RFC 3986 section 3.1).
  const nodes = ['rqlite://a:4001', 'rqlites://me@a.example:4001,b:4001,[::1]:4001', 'RQLITE://a:4001'];
  for (const path of ['pasted.db', '/var/lib/pasted/x y.db', './:memory:', './file:x.db', ...nodes]) {
    assert.equal(SETTINGS.databasePath.parse(path), path);
  }
  const expected = 'the path of a file, or the nodes of a cluster, such as rqlite://db1:4001,db2:4001,db3:4001';
  const noNodes = [
    'rqlite://', 'rqlite://a', 'rqlite://a:1,', 'rqlite://u:p@a:1', 'rqlite:a:1', 'rqlite://a:1?level=none',
    'http://a:4001', 'HTTPS://a:4001,b:4001', 'postgres://a/b',
  ];
  // SQLite reads these as URIs (https://sqlite.org/uri.html): of another file, or of one in memory.
  const uris = ['file:x.db', 'file:/x.db?vfs=memdb', 'file:x.db?mode=memory'];
  // Values as a program gives them that reads the file of an EnvironmentFile= and leaves the quotes on.
  const quoted = ['"/srv/p.db"', '\'/srv/p.db\'', ' /srv/p.db', '"rqlite://a:4001"'];
  for (const path of [':memory:', 'a\0b', NOT_UTF8, ...uris, ...noNodes, ...quoted, 'RQLITE://u:p@a:1', 'Rqlites://a']) {
    assert.equal(refusalOf(SETTINGS.databasePath, path), expected, path);
  }
});

test('SETTINGS: metrics have a host and a port, or a socket', () => {
  const places = [
    '127.0.0.1:9464', 'localhost:0', 'a-b.example:65535', '[::1]:7000', '[::FFFF:10.0.0.1]:65530', 'x:64999',
    '/run/pasted/metrics', '/run/m:99999', '/'.padEnd(107, 'm'),
  ];
  for (const place of places) assert.equal(SETTINGS.metricsListen.parse(place), place);
  const expected = 'an address and port such as 127.0.0.1:9464, or a unix socket at /PATH, of up to 107 bytes';
  const tooHigh = ['65536', '65540', '65600', '66000', '70000', '99999', '100000'].map((port) => `127.0.0.1:${port}`);
  const others = ['9464', 'localhost', ':9464', 'x:', '-x:1', '::1:9464', '[::1]', '[g]:1', 'x:1/', 'x:y', 'run/m', '/'.padEnd(108, 'm')];
  for (const place of [...others, ...tooHigh]) {
    assert.equal(refusalOf(SETTINGS.metricsListen, place), expected, place);
  }
});

test('SETTINGS: the path of a socket is as long as sun_path of unix(7), and what is longer is told so', () => {
  for (const path of ['/p', '/'.padEnd(106, 'p'), '/'.padEnd(107, 'p')]) {
    assert.equal(SETTINGS.listenOn.parse(`unix:${path}`), `unix:${path}`);
  }
  const expected = 'unix: and an absolute path of up to 107 bytes';
  for (const path of ['/', 'p', '/'.padEnd(108, 'p')]) {
    assert.equal(refusalOf(SETTINGS.listenOn, `unix:${path}`), expected, path);
  }
});

test('SETTINGS: networks are separated by commas, with spaces or without', () => {
  assert.deepEqual(SETTINGS.trustedProxies.parse('10.0.0.0/8,::1'), ['10.0.0.0/8', '::1']);
  assert.deepEqual(SETTINGS.trustedProxies.parse(' 10.0.0.0/8 , ::1 '), ['10.0.0.0/8', '::1']);
  for (const text of [',', '10.0.0.0/8,', ',::1', '10.0.0.0/33', 'localhost', '::1;::2', '10.0.0.1 10.0.0.2', ' ']) {
    assert.match(refusalOf(SETTINGS.trustedProxies, text) ?? '', /^addresses and CIDR blocks/, JSON.stringify(text));
  }
});

test('SETTINGS: no text ends with white space, as a line that was written on another system does', () => {
  for (const setting of ALL.filter(({ kind, name }) => kind === 'text' && !name.includes('PROXIES'))) {
    const good = setting.name === 'SERVICE_DB' ? '/srv/pasted.db' : String(setting.fallback || '/srv/file');
    for (const end of ['\r', ' ', '\n', '\t', '\u00a0']) {
      assert.notEqual(refusalOf(setting, `${good}${end}`), undefined, `${setting.name} ${JSON.stringify(end)}`);
    }
  }
});

test('SETTINGS: a secret is one line of text that decoding has not damaged', () => {
  for (const secret of ['x', ' spaces stay ', 'ünïcode', '0', "quo'te\"s"]) {
    assert.equal(SETTINGS.powSecret.parse(secret), secret);
  }
  for (const secret of ['two\nlines', 'line\r', 'tab\t', 'nul\0', 'del\u007f', 'bytes\ufffd']) {
    assert.equal(refusalOf(SETTINGS.powSecret, secret), 'one line of UTF-8 text without control characters');
  }
});

test('SETTINGS: the help says every word that a setting takes', () => {
  for (const { name, fallback, meaning, expected } of ALL) {
    const [, words = ''] = /^one of ((?:[a-z0-9-]+(?:, )?)+)$/.exec(expected) ?? [];
    if (typeof fallback !== 'string') continue;
    const unsaid = words.split(', ').filter((word) => word !== fallback && !meaning.includes(word));
    assert.deepEqual(unsaid, [], name);
  }
});
