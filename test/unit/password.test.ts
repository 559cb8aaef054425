import assert from 'node:assert/strict';
import { pbkdf2Sync } from 'node:crypto';
import test from 'node:test';
import { randomBytes } from '../../src/crypto/digest.ts';
import { decoyHash, hashPassword, pbkdf2Sha256, verifyPassword } from '../../src/crypto/passwords.ts';
import { createSeeded } from '../support/seeded.ts';

const FORM = /^pbkdf2-sha256\$600000\$[A-Za-z0-9_-]{43}\$[A-Za-z0-9_-]{43}$/;
const SALT = Buffer.alloc(32, 1).toString('base64url');
const KEY = Buffer.alloc(32, 2).toString('base64url');

test('hashPassword and verifyPassword: the password matches, and nothing else does', async () => {
  const password = 'p\u00e4ss \u{1f511}$"';
  const stored = await hashPassword(password, randomBytes);
  assert.match(stored, FORM);
  const [right, wrong, composed, empty] = await Promise.all([
    verifyPassword(password, stored),
    verifyPassword(`${password} `, stored),
    verifyPassword(password.normalize('NFD'), stored),
    verifyPassword('', stored),
  ]);
  assert.deepEqual({ right, wrong, composed, empty }, { right: true, wrong: false, composed: false, empty: false });
});

test('hashPassword: PBKDF2-HMAC-SHA256 with 600 000 iterations over the 32 bytes of salt', async () => {
  const salt = createSeeded(7).bytes(32);
  const key = pbkdf2Sync('secret', salt, 600_000, 32, 'sha256');
  const stored = await hashPassword('secret', createSeeded(7).bytes);
  assert.equal(stored, `pbkdf2-sha256$600000$${Buffer.from(salt).toString('base64url')}$${key.toString('base64url')}`);
});

test('verifyPassword: takes the iterations from the stored text, should they be raised one day', async () => {
  const key = Buffer.from(await pbkdf2Sha256('secret', Buffer.alloc(32, 1), 1_000_000, 32)).toString('base64url');
  assert.equal(await verifyPassword('secret', `pbkdf2-sha256$1000000$${SALT}$${key}`), true);
  assert.equal(await verifyPassword('secret', `pbkdf2-sha256$1000001$${SALT}$${key}`), false);
});

test('pbkdf2Sha256: the test vectors of RFC 7914 section 11', async () => {
  const bytes = Buffer.from;
  assert.equal(
    bytes(await pbkdf2Sha256('passwd', bytes('salt'), 1, 64)).toString('hex'),
    '55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc' +
      '49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783',
  );
  assert.equal(
    bytes(await pbkdf2Sha256(bytes('Password'), bytes('NaCl'), 80_000, 64)).toString('hex'),
    '4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56' +
      'a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d',
  );
});

test('pbkdf2Sha256: what cannot be derived rejects, whether that is seen before the work or in it', async () => {
  const salt = Buffer.from('salt');
  // The thread pool refuses a key of no bytes; the call itself refuses 0 iterations.
  await assert.rejects(pbkdf2Sha256('secret', salt, 1, 0), / failed$/);
  await assert.rejects(pbkdf2Sha256('secret', salt, 0, 32), { code: 'ERR_OUT_OF_RANGE' });
});

test('decoyHash: has the form of a real one, is new each time, and matches no password', async () => {
  const decoys = [decoyHash(randomBytes), decoyHash(randomBytes)];
  for (const decoy of decoys) assert.match(decoy, FORM);
  assert.notEqual(decoys[0], decoys[1]);
  assert.equal(await verifyPassword('', decoys[0]!), false);
});

test('verifyPassword: rejects a stored text that is malformed, without showing it', async () => {
  const malformed = [
    '',
    `pbkdf2-sha1$600000$${SALT}$${KEY}`,
    `pbkdf2-sha256$599999$${SALT}$${KEY}`,
    `pbkdf2-sha256$10000001$${SALT}$${KEY}`,
    `pbkdf2-sha256$0600000$${SALT}$${KEY}`,
    `pbkdf2-sha256$6e5$${SALT}$${KEY}`,
    `pbkdf2-sha256$600000$${SALT.slice(1)}$${KEY}`,
    `pbkdf2-sha256$600000$${SALT}$${KEY}A`,
    `pbkdf2-sha256$600000$${SALT}$${KEY}=`,
    `pbkdf2-sha256$600000$${SALT}`,
    `pbkdf2-sha256$600000$${SALT}$${KEY}\n`,
    ` pbkdf2-sha256$600000$${SALT}$${KEY}`,
  ];
  for (const stored of malformed) {
    await assert.rejects(verifyPassword('secret', stored), { message: 'stored password hash is malformed' }, stored);
  }
});

test('verifyPassword: runs off the main thread', async () => {
  let turns = 0;
  let checking = true;
  const checked = verifyPassword('secret', `pbkdf2-sha256$600000$${SALT}$${KEY}`).finally(() => {
    checking = false;
  });
  while (checking) {
    turns += 1;
    await new Promise(setImmediate);
  }
  assert.equal(await checked, false);
  assert.ok(turns > 10, `the event loop turned only ${turns} times`);
});
