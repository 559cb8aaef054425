// Ids from bytes, and what counts as an id.

import assert from 'node:assert/strict';
import test from 'node:test';
import { isWellFormedId } from '../../src/http/servers.ts';
import { newId } from '../../src/pastes/intake.ts';

test('newId: is RFC 4648 base32 in lower case, unpadded', () => {
  // RFC 4648 section 10 has vectors of up to six bytes; coreutils' base32 made these from sixteen.
  const vectors = [
    ['00000000000000000000000000000000', 'aaaaaaaaaaaaaaaaaaaaaaaaaa'],
    ['ffffffffffffffffffffffffffffffff', '77777777777777777777777774'],
    ['000102030405060708090a0b0c0d0e0f', 'aaaqeayeaudaocajbifqydiob4'],
    ['666f6f626172666f6f62617266666f6f', 'mzxw6ytbojtg633cmfzgmztpn4'],
  ] as const;
  for (const [hex, id] of vectors) {
    const idOf = newId((size) => {
      assert.equal(size, 16);
      return Buffer.from(hex, 'hex');
    });
    assert.equal(idOf, id);
  }
});

test('isWellFormedId: 6 to 64 letters and digits', () => {
  for (const length of [6, 7, 63, 64]) assert.equal(isWellFormedId('a'.repeat(length)), true, `${length}`);
  for (const length of [0, 5, 65]) assert.equal(isWellFormedId('a'.repeat(length)), false, `${length}`);
  assert.equal(isWellFormedId('AZaz09'), true);
  for (const other of ['abc-ef', 'abc_ef', 'abcdé6', 'abcdef\n', ' abcdef', 'abc.ef', 'abc/ef', 'abc%41']) {
    assert.equal(isWellFormedId(other), false, other);
  }
});
