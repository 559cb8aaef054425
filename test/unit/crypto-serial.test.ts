// Serials: their shape, and that their encoding never needs a sign octet or loses a digit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certificateSerialNumber, makeSerial } from '../../src/authority/certificates.ts';
import { createSeeded } from '../support/seeded.ts';

test('makeSerial: 16 bytes as 32 lowercase hex digits, the first octet from 40 to 7f', () => {
  const firstOctets = new Set<string>();
  for (let first = 0; first < 256; first += 1) {
    const serial = makeSerial((size) => new Uint8Array(size).fill(0xab).fill(first, 0, 1));
    assert.match(serial, /^[4-7][0-9a-f](?:ab){15}$/);
    assert.equal(Number.parseInt(serial.slice(0, 2), 16), (first & 0x3f) | 0x40);
    firstOctets.add(serial.slice(0, 2));
  }
  assert.equal(firstOctets.size, 64);
});

test('makeSerial: leaves the random bytes that it was given alone', () => {
  const bytes = new Uint8Array(16).fill(0xff);
  makeSerial(() => bytes);
  assert.ok(bytes.every((byte) => byte === 0xff));
});

test('certificateSerialNumber: 18 bytes for every serial, with no sign octet', () => {
  const random = createSeeded(2);
  for (let round = 0; round < 2000; round += 1) {
    const serial = makeSerial((size) => random.bytes(size));
    assert.equal(Buffer.from(certificateSerialNumber(serial)).toString('hex'), `0210${serial}`);
  }
});

test('certificateSerialNumber: refuses what makeSerial does not make', () => {
  const digits = 'a'.repeat(31);
  const short = `4${digits.slice(1)}`;
  for (const serial of ['', short, `4a${digits}`, `3${digits}`, `8${digits}`, `4${digits.toUpperCase()}`]) {
    assert.throws(() => certificateSerialNumber(serial), RangeError, serial);
  }
});
