// The key at rest: its form, and the one error for every way of not getting it back.

import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { before, test } from 'node:test';
import { integer, NULL, octetString, oid, seq } from '../../src/authority/der.ts';
import {
  AuthorityKeyError, decodePem, encryptPbes2, encryptPrivateKey, lockPrivateKey, privateKeyPem,
  unlockPrivateKey,
} from '../../src/authority/keys.ts';
import { components, readDer } from '../../src/crypto/presented.ts';
import { makeTestAuthority, type TestAuthority } from '../support/authority.ts';
import { createSeeded } from '../support/seeded.ts';

const PASSWORD = 'correct horse \u00e4 \u{1f600}';

function isGeneric(error: unknown): boolean {
  const message = 'the private key of the authority cannot be unlocked: wrong password, or damaged';
  return error instanceof AuthorityKeyError && error.message === message && error.cause === undefined;
}

/** Deterministic, and different at each call. */
function randomOf(seed: number): (size: number) => Uint8Array {
  const random = createSeeded(seed);
  return (size) => random.bytes(size);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

let authority: TestAuthority;
let locked: Uint8Array;

before(async () => {
  authority = await makeTestAuthority();
  locked = await lockPrivateKey(authority.privateKey, PASSWORD, randomOf(1));
});

test('lockPrivateKey, unlockPrivateKey: the same key comes back', async () => {
  const unlocked = await unlockPrivateKey(locked, PASSWORD, authority.certificate);
  assert.ok(unlocked.equals(authority.privateKey));
});

test('lockPrivateKey: PBES2 with PBKDF2-HMAC-SHA256, 600 000 iterations, AES-256-CBC', () => {
  const [algorithm, ciphertext] = components(readDer(locked), 0x30, 0x04);
  const random = randomOf(1);
  const [salt, iv] = [hex(random(16)), hex(random(16))];
  const expected = [
    '3060', // SEQUENCE
    '06092a864886f70d01050d', // pBES2
    '3053',
    '3032' + '06092a864886f70d01050c' + '3025', // pBKDF2
    `0410${salt}` + '0203' + '0927c0',
    '300c' + '06082a864886f70d0209' + '0500', // hmacWithSHA256, NULL
    '301d' + '060960864801650304012a' + `0410${iv}`, // aes256-CBC-PAD
  ];
  assert.equal(hex(algorithm.encoding), expected.join(''));
  assert.equal(ciphertext.content.length % 16, 0);
});

test('lockPrivateKey: what node itself reads, with the password in UTF-8', () => {
  const key = createPrivateKey({ key: Buffer.from(locked), format: 'der', type: 'pkcs8', passphrase: PASSWORD });
  assert.ok(key.equals(authority.privateKey));
});

test('lockPrivateKey: an empty password works too', async () => {
  const empty = await lockPrivateKey(authority.privateKey, '', randomOf(2));
  assert.ok((await unlockPrivateKey(empty, '', authority.certificate)).equals(authority.privateKey));
  await assert.rejects(unlockPrivateKey(empty, PASSWORD, authority.certificate), isGeneric);
});

test('unlockPrivateKey: one error for a wrong password, whatever the wrong bytes decrypt to', async () => {
  for (const wrong of ['', `${PASSWORD} `]) {
    await assert.rejects(unlockPrivateKey(locked, wrong, authority.certificate), isGeneric);
  }
});

test('unlockPrivateKey: the same error for the key of another certificate', async () => {
  const other = await makeTestAuthority();
  await assert.rejects(unlockPrivateKey(locked, PASSWORD, other.certificate), isGeneric);
  await assert.rejects(unlockPrivateKey(locked, PASSWORD, new Uint8Array()), isGeneric);
});

test('unlockPrivateKey: the same error for damage', async () => {
  const damaged = [new Uint8Array(), Uint8Array.of(0x05, 0x00), locked.subarray(1), locked.subarray(0, -1)];
  for (const at of [0, 2, 5, 20, 60, 80, 100, locked.length - 1]) {
    damaged.push(Uint8Array.from(locked, (octet, i) => (i === at ? octet ^ 0x01 : octet)));
  }
  for (const bytes of damaged) {
    await assert.rejects(unlockPrivateKey(bytes, PASSWORD, authority.certificate), isGeneric);
  }
});

/** The form that lockPrivateKey writes, with parts of it replaced. */
function variant(parts: { iterations?: number; prf?: Uint8Array; scheme?: string; iv?: Uint8Array }): Uint8Array {
  const { iterations = 1, scheme = '2.16.840.1.101.3.4.1.42', iv = new Uint8Array(16) } = parts;
  const prf = parts.prf ?? seq(oid('1.2.840.113549.2.9'), NULL);
  const kdf = seq(oid('1.2.840.113549.1.5.12'), seq(octetString(new Uint8Array(16)), integer(iterations), prf));
  const pbes2 = seq(oid('1.2.840.113549.1.5.13'), seq(kdf, seq(oid(scheme), octetString(iv))));
  return seq(pbes2, octetString(new Uint8Array(192)));
}

test('unlockPrivateKey: the same error, soon, for algorithms that are not ours', async () => {
  const before = process.cpuUsage();
  for (const bytes of [
    variant({}), // readable, and wrong under any password
    variant({ iterations: 0 }),
    variant({ iterations: 10_000_001 }),
    variant({ iterations: 2 ** 31 - 1 }), // minutes
    variant({ iterations: Number.MAX_SAFE_INTEGER }),
    variant({ prf: seq(oid('1.2.840.113549.2.7'), NULL) }), // hmacWithSHA1
    variant({ prf: seq(oid('1.2.840.113549.2.9')) }), // no NULL
    variant({ scheme: '2.16.840.1.101.3.4.1.2' }), // aes128-CBC
    variant({ iv: new Uint8Array(15) }),
  ]) {
    await assert.rejects(unlockPrivateKey(bytes, PASSWORD, authority.certificate), isGeneric);
  }
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 5_000_000, 'microseconds, of all threads');
});

test('unlockPrivateKey: reads another count of iterations, so that it can be raised one day', async () => {
  const encrypt = (plaintext: Uint8Array) => encryptPbes2(plaintext, PASSWORD, 1000, randomOf(3));
  const encrypted = await encryptPrivateKey(authority.privateKey, encrypt);
  const unlocked = await unlockPrivateKey(encrypted, PASSWORD, authority.certificate);
  assert.ok(unlocked.equals(authority.privateKey));
});

test('privateKeyPem: PKCS #8 in the clear', () => {
  const pem = privateKeyPem(authority.privateKey);
  assert.equal(pem, authority.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  assert.equal(hex(decodePem(pem, 'PRIVATE KEY') ?? new Uint8Array()), hex(authority.privateKey.export({ type: 'pkcs8', format: 'der' })));
});
