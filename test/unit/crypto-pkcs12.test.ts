// The structure of bundles, taken apart with our own strict reader and node's ciphers. Other programs are in
// test/interop.

import assert from 'node:assert/strict';
import { createDecipheriv, createHmac, createPrivateKey, pbkdf2Sync } from 'node:crypto';
import { before, test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { type BundleProfile, isBundlePassword, makeBundle, pkcs12Kdf } from '../../src/authority/pkcs12.ts';
import type { RandomBytes } from '../../src/core/time.ts';
import { type DerElement, readDer } from '../../src/crypto/presented.ts';
import { makeTestAuthority, makeTestClient, type TestAuthority, type TestClient } from '../support/authority.ts';
import { createSeeded } from '../support/seeded.ts';

const SEEDED = createSeeded(7);
const DATA = '06092a864886f70d010701';
const ENCRYPTED_DATA = '06092a864886f70d010706';

let authority: TestAuthority;
let client: TestClient;

before(async () => {
  authority = await makeTestAuthority();
  client = await makeTestClient(authority);
});

async function bundle(
  profile: BundleProfile, password: string, random: RandomBytes = (size) => SEEDED.bytes(size),
): Promise<Uint8Array> {
  const { certificate, keyPair } = client;
  const content = { certificate, privateKey: keyPair.privateKey, authority: authority.certificate };
  return makeBundle({ profile, password, commonName: 'alice', ...content }, random);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The element at a path of positions. */
function at(element: DerElement, ...path: readonly number[]): DerElement {
  return path.reduce((inner, position) => {
    const child = inner.children[position];
    assert.ok(child !== undefined, `no element at ${path}`);
    return child;
  }, element);
}

interface Parts {
  readonly safe: Uint8Array;
  readonly certificatesAlgorithm: DerElement;
  readonly certificatesCiphertext: Uint8Array;
  readonly keyBag: DerElement;
  readonly mac: DerElement;
}

/** Asserts everything that both profiles have in common. */
function takeApart(encoding: Uint8Array): Parts {
  const pfx = readDer(encoding);
  assert.equal(pfx.children.length, 3);
  assert.equal(hex(at(pfx, 0).encoding), '020103');
  assert.equal(hex(at(pfx, 1, 0).encoding), DATA);
  const safe = at(pfx, 1, 1, 0).content;
  const authenticatedSafe = readDer(safe);
  assert.equal(authenticatedSafe.children.length, 2);
  assert.equal(hex(at(authenticatedSafe, 0, 0).encoding), ENCRYPTED_DATA);
  const encryptedData = at(authenticatedSafe, 0, 1, 0);
  assert.equal(hex(at(encryptedData, 0).encoding), '020100');
  assert.equal(hex(at(encryptedData, 1, 0).encoding), DATA);
  assert.equal(at(encryptedData, 1, 2).tag, 0x80, 'primitive [0]');
  assert.equal(hex(at(authenticatedSafe, 1, 0).encoding), DATA);
  const keyContents = readDer(at(authenticatedSafe, 1, 1, 0).content);
  assert.equal(keyContents.children.length, 1);
  const keyBag = at(keyContents, 0);
  assert.equal(hex(at(keyBag, 0).encoding), '060b2a864886f70d010c0a0102', 'pkcs8ShroudedKeyBag');
  assert.equal(hex(at(keyBag, 2).encoding), attributes());
  return {
    safe,
    certificatesAlgorithm: at(encryptedData, 1, 1),
    certificatesCiphertext: at(encryptedData, 1, 2).content,
    keyBag,
    mac: at(pfx, 2),
  };
}

/** friendlyName alice and the localKeyID, the shorter one first. */
function attributes(): string {
  const friendlyName = '3019' + '06092a864886f70d010914' + '310c' + '1e0a' + '0061006c006900630065';
  const localKeyId = '3023' + '06092a864886f70d010915' + '3116' + '0414' + client.fingerprint;
  return `3140${friendlyName}${localKeyId}`;
}

/** The plaintext of the first content: the leaf with its attributes, then the authority without any. */
function certificateBags(): string {
  const certBag = (certificate: Uint8Array, rest: string): string => {
    const size = certificate.length;
    const long = (bytes: number): string => `82${bytes.toString(16).padStart(4, '0')}`;
    const octets = `04${long(size)}${hex(certificate)}`;
    const value = `30${long(size + 20)}060a2a864886f70d01091601a0${long(size + 4)}${octets}`;
    const bag = `060b2a864886f70d010c0a0103a0${long(size + 24)}${value}${rest}`;
    return `30${long(bag.length / 2)}${bag}`;
  };
  const bags = certBag(client.certificate, attributes()) + certBag(authority.certificate, '');
  return `3082${(bags.length / 2).toString(16).padStart(4, '0')}${bags}`;
}

const iterationsHex = (iterations: number): string => (iterations === 2048 ? '02020800' : '02030493e0');

for (const [password, iterations] of [['', 2048], ['pass \u{1f600}', 300_000]] as const) {
  const kind = password === '' ? 'an empty password' : 'a password';
  const macPassword = Buffer.from(`${password}\0`, 'utf16le').swap16();

  test(`makeBundle: modern with ${kind} is PBES2 and HMAC-SHA-256`, async () => {
    const encoding = await bundle('modern', password);
    const { safe, certificatesAlgorithm, certificatesCiphertext, keyBag, mac } = takeApart(encoding);
    const decrypt = (algorithm: DerElement, ciphertext: Uint8Array): Buffer => {
      const salt = at(algorithm, 1, 0, 1, 0).content;
      const iv = at(algorithm, 1, 1, 1).content;
      assert.deepEqual([salt.length, iv.length], [16, 16]);
      const written = certificatesAlgorithm.encoding.length - 2;
      assert.equal(hex(algorithm.encoding), [
        `30${written.toString(16)}06092a864886f70d01050d30${(written - 13).toString(16)}`,
        `30${(iterations === 2048 ? 0x31 : 0x32).toString(16)}06092a864886f70d01050c`,
        `30${(iterations === 2048 ? 0x24 : 0x25).toString(16)}0410${hex(salt)}${iterationsHex(iterations)}`,
        '300c06082a864886f70d02090500',
        `301d060960864801650304012a0410${hex(iv)}`,
      ].join(''));
      const decipher = createDecipheriv('aes-256-cbc', pbkdf2Sync(password, salt, iterations, 32, 'sha256'), iv);
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
    };
    assert.equal(hex(decrypt(certificatesAlgorithm, certificatesCiphertext)), certificateBags());
    const pkcs8 = decrypt(at(keyBag, 1, 0, 0), at(keyBag, 1, 0, 1).content);
    assert.ok(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).equals(client.keyPair.privateKey));
    const salt = at(mac, 1).content;
    const request = { digest: 'sha256', id: 3, password: macPassword, salt, iterations, size: 32 } as const;
    const expectedMac = createHmac('sha256', pkcs12Kdf(request)).update(safe).digest('hex');
    const digestInfo = `3031300d060960864801650304020105000420${expectedMac}`;
    const macSize = iterations === 2048 ? '49' : '4a';
    assert.equal(hex(mac.encoding), `30${macSize}${digestInfo}0410${hex(salt)}${iterationsHex(iterations)}`);
  });
}

/** Asserts the algorithm of both contents, and returns its salt. */
function assertCompat(algorithm: DerElement, iterations: number): Uint8Array {
  const salt = at(algorithm, 1, 0).content;
  assert.equal(salt.length, 8);
  const [outer, inner] = iterations === 2048 ? ['1c', '0e'] : ['1d', '0f'];
  const written = `30${outer}060a2a864886f70d010c010330${inner}0408${hex(salt)}${iterationsHex(iterations)}`;
  assert.equal(hex(algorithm.encoding), written);
  return salt;
}

test('makeBundle: compat with an empty password is 3DES and HMAC-SHA-1', async () => {
  const encoding = await bundle('compat', '');
  const { safe, certificatesAlgorithm, certificatesCiphertext, keyBag, mac } = takeApart(encoding);
  const kdf = (id: 1 | 2 | 3, salt: Uint8Array, size: number): Uint8Array =>
    pkcs12Kdf({ digest: 'sha1', id, password: Buffer.alloc(2), salt, iterations: 2048, size });
  const decrypt = (algorithm: DerElement, ciphertext: Uint8Array): Buffer => {
    const salt = assertCompat(algorithm, 2048);
    const decipher = createDecipheriv('des-ede3-cbc', kdf(1, salt, 24), kdf(2, salt, 8));
    return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
  };
  assert.equal(hex(decrypt(certificatesAlgorithm, certificatesCiphertext)), certificateBags());
  const pkcs8 = decrypt(at(keyBag, 1, 0, 0), at(keyBag, 1, 0, 1).content);
  assert.ok(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).equals(client.keyPair.privateKey));
  const salt = at(mac, 1).content;
  const expectedMac = createHmac('sha1', kdf(3, salt, 20)).update(safe).digest('hex');
  assert.equal(hex(mac.encoding), `30313021300906052b0e03021a05000414${expectedMac}0408${hex(salt)}${iterationsHex(2048)}`);
});

// Node's own PKCS #12 reader opens the bundle: it checks the MAC, and that the key belongs to the certificate. Deriving
// the keys for our own reader would take seconds, and what is in the bundle does not depend on the password.
test('makeBundle: compat with a password is the same of 600 000 iterations, and opens with it alone', async () => {
  const password = 'pass \u{1f600}';
  const encoding = await bundle('compat', password);
  const { certificatesAlgorithm, keyBag, mac } = takeApart(encoding);
  for (const algorithm of [certificatesAlgorithm, at(keyBag, 1, 0, 0)]) assertCompat(algorithm, 600_000);
  const [digest, salt] = [at(mac, 0, 1).content, at(mac, 1).content];
  assert.equal(digest.length, 20);
  assert.equal(
    hex(mac.encoding),
    `30323021300906052b0e03021a05000414${hex(digest)}0408${hex(salt)}${iterationsHex(600_000)}`,
  );
  createSecureContext({ pfx: Buffer.from(encoding), passphrase: password });
  assert.throws(() => createSecureContext({ pfx: Buffer.from(encoding), passphrase: 'pass' }), /mac verify failure/);
});

test('makeBundle: every salt and iv is its own', async () => {
  for (const profile of ['modern', 'compat'] as const) {
    const sizes: number[] = [];
    const given: string[] = [];
    const encoding = await bundle(profile, '', (size) => {
      const bytes = SEEDED.bytes(size);
      sizes.push(size);
      given.push(hex(bytes));
      return bytes;
    });
    assert.deepEqual(sizes, profile === 'modern' ? [16, 16, 16, 16, 16] : [8, 8, 8]);
    for (const bytes of given) assert.ok(hex(encoding).includes(bytes));
  }
});

test('makeBundle: refuses half a character, and isBundlePassword all that has no PKCS #12 form', async () => {
  for (const profile of ['modern', 'compat'] as const) await assert.rejects(bundle(profile, '\ud800'), RangeError);
  for (const password of ['a\0b', '\0', '\ud800', '', 'a'.repeat(1025)]) assert.equal(isBundlePassword(password), false);
  for (const password of ['a', '\u{1f600}'.repeat(1024)]) assert.equal(isBundlePassword(password), true);
});
