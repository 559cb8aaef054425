// The form of random UUIDs (RFC 9562 section 5.4).

import assert from 'node:assert/strict';
import test from 'node:test';
import { uuidFromHex } from '../../src/authority/certificates.ts';

test('uuidFromHex: every digit in its place, version 4, the variant from the 17th', () => {
  assert.equal(uuidFromHex('01234567' + '89ab' + 'fcde' + '0123' + '456789abcdef'), '01234567-89ab-4cde-8123-456789abcdef');
  const variants = [...'0123456789abcdef'].map((digit) => uuidFromHex(`${'0'.repeat(16)}${digit}${'0'.repeat(15)}`)[19]);
  assert.equal(variants.join(''), '89ab'.repeat(4));
  // The digit after the 17th has no part in the variant.
  assert.equal(uuidFromHex(`${'0'.repeat(16)}0${'3'.repeat(15)}`), '00000000-0000-4000-8333-333333333333');
});
