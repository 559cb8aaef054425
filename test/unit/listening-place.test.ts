// http/listening-place.ts: which place the settings mean, in which order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../../src/config/load.ts';
import { isExposed, metricsPlace, placeName, publicPlace } from '../../src/http/engine/listening.ts';
import { testConfig } from '../support/test-config.ts';

test('publicPlace: a socket from systemd, then SERVICE_LISTEN, then host and port', () => {
  const address = { host: '::1', port: 81 };
  assert.deepEqual(publicPlace(testConfig(address), 0), address);
  const withPath = testConfig({ ...address, listenOn: 'unix:/run/pasted/http', listenMode: '660' });
  assert.deepEqual(publicPlace(withPath, 0), { path: '/run/pasted/http', mode: 0o660 });
  assert.deepEqual(publicPlace(withPath, 1), { fd: 3 });
});

test('publicPlace: the mode is octal, with or without the 0 that says so', () => {
  for (const [listenMode, mode] of [['600', 0o600], ['0666', 0o666], ['000', 0], ['777', 0o777]] as const) {
    assert.deepEqual(publicPlace(testConfig({ listenOn: 'unix:/s', listenMode }), 0), { path: '/s', mode });
  }
});

test('publicPlace: more than one socket from systemd is a problem of the settings', () => {
  assert.throws(() => publicPlace(testConfig(), 2), (error) => {
    return error instanceof ConfigError && /^LISTEN_FDS: .* given 2; .*ListenStream=/.test(error.message);
  });
});

test('isExposed: any address but loopback; neither a unix socket nor one from systemd', () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', '128.0.0.1', 'paste.example', '127.example', '2001:db8::1']) {
    assert.equal(isExposed({ host, port: 1 }), true, host);
  }
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost', 'LOCALHOST']) {
    assert.equal(isExposed({ host, port: 1 }), false, host);
  }
  assert.equal(isExposed({ path: '/s', mode: 0o666 }), false);
  assert.equal(isExposed({ fd: 3 }), false);
});

test('metricsPlace: a path is a socket for user and group, anything else an address', () => {
  assert.deepEqual(metricsPlace('/run/m'), { path: '/run/m', mode: 0o660 });
  assert.deepEqual(metricsPlace('127.0.0.1:9464'), { host: '127.0.0.1', port: 9464 });
  assert.deepEqual(metricsPlace('[::1]:9464'), { host: '::1', port: 9464 });
  for (const host of ['localhost', 'a-b.example', '::FFFF:10.0.0.1']) {
    const text = host.includes(':') ? `[${host}]` : host;
    assert.deepEqual(metricsPlace(`${text}:65530`), { host, port: 65530 });
  }
});

test('placeName: says each kind of place as an operator knows it', () => {
  assert.equal(placeName({ fd: 3 }), 'descriptor 3 from systemd');
  assert.equal(placeName({ path: '/s', mode: 0 }), 'unix:/s');
  assert.equal(placeName({ host: '::1', port: 81 }), '::1 port 81');
});
