import assert from 'node:assert/strict';
import test from 'node:test';
import { clientKey } from '../../src/core/callers.ts';
import { plainAddress } from '../../src/http/engine/head.ts';

/** Asks as the service does, which puts every address into its plain form first. */
const keyOf = (address: string): string => clientKey(plainAddress(address) ?? assert.fail(address));

test('clientKey: IPv4 is its own key', () => {
  for (const address of ['192.0.2.1', '0.0.0.0', '255.255.255.255']) assert.equal(keyOf(address), address);
});

test('clientKey: IPv4-mapped IPv6 is that IPv4, in every notation', () => {
  const notations = [
    '::ffff:192.0.2.1', '::FFFF:192.0.2.1', '::ffff:c000:201', '::ffff:C000:0201', '0:0:0:0:0:ffff:192.0.2.1',
    '0000:0000:0000:0000:0000:ffff:c000:0201', '0::ffff:192.0.2.1', '::ffff:192.0.2.1%eth0',
  ];
  for (const address of notations) assert.equal(keyOf(address), '192.0.2.1', address);
  for (const address of ['0.0.0.0', '9.90.99.100', '100.99.9.90', '199.200.249.250', '255.255.255.255']) {
    assert.equal(keyOf(`::ffff:${address}`), address);
  }
});

test('clientKey: IPv6 is its /64, in every notation', () => {
  const network = '20010db800000001/64';
  const notations = [
    '2001:db8:0:1::', '2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:DB8:0000:0001:0:0:0:2',
    '2001:db8::1:2:3:4:5', '2001:db8:0:1::192.0.2.1', '2001:db8:0:1:2::%eth0',
  ];
  for (const address of notations) assert.equal(keyOf(address), network, address);
});

test('clientKey: the networks beside it have keys of their own', () => {
  assert.equal(keyOf('2001:db8::ffff:ffff:ffff:ffff'), '20010db800000000/64');
  assert.equal(keyOf('2001:db8:0:2::'), '20010db800000002/64');
  assert.equal(keyOf('2001:db9:0:1::'), '20010db900000001/64');
});

test('clientKey: addresses that only look like IPv4-mapped are IPv6', () => {
  for (const address of ['::', '::1', '::192.0.2.1', '::ffff:0:c000:201', '::fffe:192.0.2.1', '::1:ffff:192.0.2.1']) {
    const key = keyOf(address);
    assert.equal(key, '0000000000000000/64', address);
  }
  assert.equal(keyOf('1::ffff:192.0.2.1'), '0001000000000000/64');
  assert.equal(keyOf('64:ff9b::192.0.2.1'), '0064ff9b00000000/64');
});

test('clientKey: text that is no address is its own key', () => {
  const others = [
    '', 'unix', 'example.org', ':', ':::', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1::2::3', ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:', '1:2:3:4:5:6:7::8', '12345::', 'g::', '::ffff:256.0.2.1', '::ffff:1.256.2.1',
    '::ffff:1.0.256.1', '::ffff:1.0.2.256', '::ffff:1.0001.2.3', '::ffff:192.0.2', '::ffff:192.0.2.1.5',
    '192.0.2.1::', '::192.0.2.1:5', '::ffff:1920.0.2.1', '1:2:3:4:5:6:7:192.0.2.1', '::-1', '::+1', ':: 1',
  ];
  for (const text of others) assert.equal(clientKey(text), text, text);
});

test('clientKey: `::` may stand for a single group', () => {
  assert.equal(clientKey('1:2:3::5:6:7:8'), clientKey('1:2:3:0::'));
});
