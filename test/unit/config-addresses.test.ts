// core/callers.ts: which texts are addresses and networks, and which bytes they mean.

import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { isNetwork, parseAddress } from '../../src/core/callers.ts';
import { forSeeds, type Seeded } from '../support/seeded.ts';

const hex = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString('hex');

const ADDRESSES: readonly [string, string][] = [
  ['0.0.0.0', '00000000'],
  ['255.255.255.255', 'ffffffff'],
  ['192.168.1.9', 'c0a80109'],
  ['::', '0'.repeat(32)],
  ['::1', `${'0'.repeat(31)}1`],
  ['1::', `0001${'0'.repeat(28)}`],
  ['2001:db8::1', `20010db8${'0'.repeat(23)}1`],
  ['2001:DB8:0:0:8:800:200C:417A', '20010db80000000000080800200c417a'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ['1:2:3:4:5:6:7::', '00010002000300040005000600070000'],
  ['::2:3:4:5:6:7:8', '00000002000300040005000600070008'],
  ['1:2:3::6:7:8', '00010002000300000000000600070008'],
  ['::ffff:10.0.0.1', `${'0'.repeat(20)}ffff0a000001`],
  ['64:ff9b::192.0.2.33', `0064ff9b${'0'.repeat(16)}c0000221`],
  ['1:2:3:4:5:6:7.8.9.10', '0001000200030004000500060708090a'],
  ['ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255', 'f'.repeat(32)],
];

const NO_ADDRESSES = [
  '', ' ', 'localhost', '1', '1.2.3', '1.2.3.4.5', '1.2.3.', '.1.2.3', '256.0.0.1', '1.2.3.999', '01.2.3.4', '1.2.3.04',
  '0x1.2.3.4', '1e1.2.3.4', '1.2.3.4 ', ' 1.2.3.4', '+1.2.3.4', '-1.2.3.4', '１.2.3.4', '1.2.3.4:80',
  ':', ':::', '1', '1:', ':1', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4::5:6:7:8', '1::2::3', '12345::', 'g::',
  '::1%eth0', '[::1]', '::1 ', '::1.2.3', '::256.1.1.1', '1.2.3.4::', '::1.2.3.4:5', '1:2:3:4:5:6:7:8.9.10.11', '::-1',
  '::+1', '::0x1', '::\t1', '::1]#', '::1]/?[', '::1]:80/[',
  `${'0'.repeat(60)}::1`,
];

test('parseAddress: every form of RFC 4291 section 2.2 and dotted decimal', () => {
  for (const [text, expected] of ADDRESSES) assert.equal(hex(parseAddress(text)), expected, text);
});

test('parseAddress: anything else is no address', () => {
  for (const text of NO_ADDRESSES) assert.equal(parseAddress(text), undefined, JSON.stringify(text));
});

test('parseAddress: agrees with the system on texts made of the characters of addresses', () => {
  const pieces = ['0', '1', '7f', 'ffff', '12345', ':', '::', ':', ':', '.', '.', '255', '256', '01', 'g'];
  const compose = (random: Seeded): string =>
    Array.from({ length: random.between(1, 17) }, () => random.pick(pieces)).join('');
  let accepted = 0;
  forSeeds(200, (random) => {
    for (let round = 0; round < 200; round += 1) {
      const text = compose(random);
      const bytes = parseAddress(text);
      if (bytes !== undefined) accepted += 1;
      assert.equal(bytes === undefined ? 0 : bytes.length === 4 ? 4 : 6, isIP(text), text);
    }
  });
  assert.ok(accepted > 50, `only ${accepted} texts were addresses`);
});

test('isNetwork: an address alone is a block of one', () => {
  for (const text of ['10.1.2.3', '::1']) assert.equal(isNetwork(text), true, text);
});

test('isNetwork: prefixes up to the width of the address', () => {
  for (const bits of [0, 1, 31, 32]) assert.equal(isNetwork(`10.1.2.3/${bits}`), true, String(bits));
  for (const bits of [0, 1, 127, 128]) assert.equal(isNetwork(`::1/${bits}`), true, String(bits));
  for (const text of [
    '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/+1', '10.0.0.0/08', '10.0.0.0/1e1', '10.0.0.0/8/8',
    '/8', '10.0.0.0 /8', '10.0.0.0/ 8', '10.0.0.0/8 ', '10.0.0/8', '10.0.0.0/255.0.0.0', 'localhost/8', '::/1000',
  ]) {
    assert.equal(isNetwork(text), false, text);
  }
});
