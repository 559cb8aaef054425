// The key derivation of bundles against known vectors, and against the same derivation in whole numbers.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { KDF_IDS, type KdfRequest, pkcs12Kdf } from '../../src/authority/pkcs12.ts';

const { key, iv, mac } = KDF_IDS;

interface Vector {
  readonly digest: KdfRequest['digest'];
  readonly id: KdfRequest['id'];
  readonly iterations: number;
  readonly password: string;
  readonly salt: string;
  readonly derived: string;
}

const derive = ({ digest, id, iterations, password, salt, derived }: Vector): string =>
  Buffer.from(
    pkcs12Kdf({
      digest,
      id,
      iterations,
      password: Buffer.from(password, 'hex'),
      salt: Buffer.from(salt, 'hex'),
      size: derived.length / 2,
    }),
  ).toString('hex');

const MANY = { iterations: 2048, salt: '0102030405060708' } as const;

/** Computed with several independent implementations; the tests of some of them have the last one, of `smeg`. */
const VECTORS: readonly Vector[] = [
  {
    ...MANY, digest: 'sha256', id: mac, password: '0000',
    derived: '878f85ff6db5c92f2da873fdb0ecae4bdc9dcc3cb5faf9226d10ee23af02546a',
  },
  {
    ...MANY, digest: 'sha256', id: mac, password: '',
    derived: '4a3d64fdf1e86c5bc5c37f2eb377b6ecd82e4aa4726e2e186521e06f42e24194',
  },
  { ...MANY, digest: 'sha1', id: key, password: '0000', derived: 'd9e86745c0eb8303bfc880579a1c7a45f2073495a0e9cd6e' },
  { ...MANY, digest: 'sha1', id: iv, password: '0000', derived: 'd9886193244d410d' },
  { ...MANY, digest: 'sha1', id: mac, password: '0000', derived: '422271a0229a8e68e59672d9278fe548eb74b013' },
  {
    digest: 'sha1', id: key, iterations: 1, password: '0073006d006500670000', salt: '0a58cf64530d823f',
    derived: '8aaae6297b6cb04642ab5b077851284eb7128f1a2a7fbca3',
  },
];

for (const vector of VECTORS) {
  const { digest, id, iterations, password } = vector;
  test(`pkcs12Kdf: ${digest}, id ${id}, ${iterations} iterations, password "${password}"`, () => {
    assert.equal(derive(vector), vector.derived);
  });
}

/** RFC 7292 appendix B.2 again, in whole numbers instead of octets: a second opinion for the carry between blocks. */
function reference({ digest, id, password, salt, iterations, size }: KdfRequest): string {
  const fill = (bytes: Uint8Array): Buffer =>
    Buffer.alloc(Math.ceil(bytes.length / 64) * 64, bytes.length === 0 ? 0 : Buffer.from(bytes));
  let blocks: string[] = Buffer.concat([fill(salt), fill(password)]).toString('hex').match(/.{128}/g) ?? [];
  let derived = '';
  while (derived.length < size * 2) {
    let digested = Buffer.concat([Buffer.alloc(64, id), Buffer.from(blocks.join(''), 'hex')]);
    for (let i = 0; i < iterations; i += 1) digested = createHash(digest).update(digested).digest();
    derived += digested.toString('hex');
    const added = BigInt(`0x${Buffer.alloc(64, digested).toString('hex')}`) + 1n;
    blocks = blocks.map((block) => ((BigInt(`0x${block}`) + added) % 2n ** 512n).toString(16).padStart(128, '0'));
  }
  return derived.slice(0, size * 2);
}

test('pkcs12Kdf: many blocks, and lengths around a block, as whole numbers give them', () => {
  const lengths = [0, 1, 2, 63, 64, 65, 127, 128, 129];
  for (const digest of ['sha1', 'sha256'] as const) {
    for (const [i, length] of lengths.entries()) {
      const password = new Uint8Array(length).fill(0xff);
      const salt = new Uint8Array(lengths.at(-1 - i) ?? 0).fill(0xfe);
      for (const size of [0, 1, 19, 20, 21, 31, 32, 33, 64, 200]) {
        const request = { digest, id: iv, password, salt, iterations: 2, size };
        const derived = Buffer.from(pkcs12Kdf(request)).toString('hex');
        assert.equal(derived, reference(request), `${digest} ${length} ${size}`);
      }
    }
  }
});

test('pkcs12Kdf: refuses iteration counts that are none', () => {
  const request = { digest: 'sha1', id: key, password: new Uint8Array(2), salt: new Uint8Array(8), size: 20 } as const;
  for (const iterations of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => pkcs12Kdf({ ...request, iterations }), RangeError);
  }
});
