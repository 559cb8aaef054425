// Certification requests made here: right ones, ones that are wrong in one way each, and many mutated ones.

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { decodePem, encodePem, MAX_CSR_CHARACTERS, readCertificationRequest } from '../../src/authority/keys.ts';
import { bitString, explicit, integer, NULL, octetString, oid, seq } from '../../src/authority/der.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { makeRequest, makeRequestPem, NO_ATTRIBUTES, p384, someAttributes, spkiOf } from '../support/request.ts';
import { createSeeded, type Seeded } from '../support/seeded.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const pemOf = (der: Uint8Array): string => encodePem('CERTIFICATE REQUEST', der);

function isInvalid(error: unknown): error is Refusal {
  return error instanceof Refusal && error.refusal === 'csrInvalid';
}

function refuses(pem: string, message: RegExp, what?: string): void {
  assert.throws(() => readCertificationRequest(pem), (error) => isInvalid(error) && message.test(String(error.fields['hint'])), what);
}

test('readCertificationRequest: gives the public key of a request, signed with SHA-256, SHA-384 or SHA-512', () => {
  for (const digest of ['sha256', 'sha384', 'sha512']) {
    const keys = p384();
    assert.equal(hex(readCertificationRequest(makeRequestPem({ keys, digest }))), hex(spkiOf(keys.publicKey)));
  }
});

test('readCertificationRequest: attributes may be none, and are ignored', () => {
  const keys = p384();
  for (const attributes of [NO_ATTRIBUTES, explicit(0, ...someAttributes())]) {
    assert.equal(hex(readCertificationRequest(makeRequestPem({ keys, attributes }))), hex(spkiOf(keys.publicKey)));
  }
});

test('readCertificationRequest: takes the older PEM label too', () => {
  assert.equal(readCertificationRequest(encodePem('NEW CERTIFICATE REQUEST', makeRequest())).length, 120);
});

test('readCertificationRequest: what is no text is a mistake of the caller', () => {
  assert.throws(() => readCertificationRequest(undefined as unknown as string), TypeError);
});

test('readCertificationRequest: refuses what is no single PEM block, and one that is too long', () => {
  const pem = makeRequestPem();
  for (const text of ['', 'x', `${pem}x`, `text\n${pem}`, pem + pem, encodePem('CERTIFICATE', makeRequest())]) {
    refuses(text, /one PEM block CERTIFICATE REQUEST/);
  }
  const fill = (size: number): string => pem + ' '.repeat(size - pem.length);
  assert.equal(MAX_CSR_CHARACTERS, 8192);
  assert.equal(readCertificationRequest(fill(8191)).length, 120);
  assert.equal(readCertificationRequest(fill(8192)).length, 120);
  refuses(fill(8193), /at most 8192/);
});

test('readCertificationRequest: refuses other keys, and says which to make', () => {
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
  const wrong = /EC key on P-384 \(secp384r1\)/;
  for (const keys of [ec('prime256v1'), ec('secp521r1'), ec('secp256k1'), ec('brainpoolP384r1')]) {
    refuses(makeRequestPem({ keys, digest: 'sha256' }), wrong);
  }
  refuses(makeRequestPem({ keys: generateKeyPairSync('rsa', { modulusLength: 2048 }), digest: 'sha256' }), wrong);
  const spki = spkiOf(generateKeyPairSync('ed25519').publicKey);
  refuses(makeRequestPem({ spki }), wrong);
});

test('readCertificationRequest: refuses other encodings of the same key', () => {
  const keys = p384();
  const point = Buffer.from(spkiOf(keys.publicKey).subarray(-97));
  const p384Algorithm = seq(oid('1.2.840.10045.2.1'), oid('1.3.132.0.34'));
  const compressed = Buffer.concat([Uint8Array.of(2 + ((point[96] ?? 0) & 1)), point.subarray(1, 49)]);
  const hybrid = Buffer.concat([Uint8Array.of(6 + ((point[96] ?? 0) & 1)), point.subarray(1)]);
  const wrong = /P-384 \(secp384r1\), its curve named and its point uncompressed/;
  for (const octets of [compressed, hybrid, Uint8Array.of(0), new Uint8Array(), point.subarray(0, 96)]) {
    refuses(makeRequestPem({ keys, spki: seq(p384Algorithm, bitString(octets)) }), wrong);
  }
  const wrongAlgorithm = seq(oid('1.2.840.10045.2.1'), oid('1.3.132.0.34'), NULL);
  refuses(makeRequestPem({ keys, spki: seq(wrongAlgorithm, bitString(point)) }), wrong);
  const offCurve = Uint8Array.from(point, (octet, i) => (i === 96 ? octet ^ 1 : octet));
  refuses(makeRequestPem({ keys, spki: seq(p384Algorithm, bitString(offCurve)) }), /a point of P-384/);
  const zero = Uint8Array.from(point, (octet, i) => (i === 0 ? octet : 0));
  refuses(makeRequestPem({ keys, spki: seq(p384Algorithm, bitString(zero)) }), /a point of P-384/);
  const trailing = seq(p384Algorithm, bitString(point), NULL);
  refuses(makeRequestPem({ keys, spki: trailing }), /canonical DER/);
});

test('readCertificationRequest: refuses other signatures', () => {
  const keys = p384();
  const algorithms = /ECDSA and SHA-256, SHA-384 or SHA-512/;
  refuses(makeRequestPem({ keys, digest: 'sha1' }), algorithms);
  refuses(makeRequestPem({ keys, digest: 'sha224' }), algorithms);
  refuses(makeRequestPem({ keys, algorithm: seq(oid('1.2.840.10045.4.3.3'), NULL) }), algorithms);
  const mismatch = /signature does not match its public key/;
  refuses(makeRequestPem({ keys: { publicKey: keys.publicKey, privateKey: p384().privateKey } }), mismatch);
  refuses(makeRequestPem({ keys, digest: 'sha256', algorithm: seq(oid('1.2.840.10045.4.3.3')) }), mismatch);
  const zero = seq(integer(0), integer(0));
  const one = seq(integer(1), integer(1));
  for (const signature of [new Uint8Array(), zero, one, new Uint8Array(96)]) {
    refuses(makeRequestPem({ keys, signature }), mismatch);
  }
});

test('readCertificationRequest: every bit of a request counts', () => {
  const der = makeRequest();
  for (let bit = 0; bit < der.length * 8; bit += 7) {
    const flipped = Uint8Array.from(der, (octet, i) => (i === bit >> 3 ? octet ^ (0x80 >> (bit & 7)) : octet));
    refuses(pemOf(flipped), /^csr /, `bit ${bit}`);
  }
});

test('readCertificationRequest: refuses other structures, though signed', () => {
  const canonical = /PKCS #10 request, version 0, in canonical DER/;
  const [first, second] = someAttributes();
  assert.ok(first !== undefined && second !== undefined);
  for (const parts of [
    { version: integer(1) },
    { version: Uint8Array.of(0x02, 0x02, 0x00, 0x00) },
    { attributes: undefined },
    { attributes: explicit(1) },
    { attributes: explicit(0, second, first) },
    { attributes: explicit(0, NULL) },
    { attributes: explicit(0, seq(oid('1.2.840.113549.1.9.7'), NULL)) },
    { attributes: Uint8Array.of(0x80, 0x00) },
    { attributes: Uint8Array.of(0xa0, 0x80, 0x00, 0x00) },
    { trailing: NULL },
  ]) {
    refuses(makeRequestPem(parts), canonical);
  }
});

test('readCertificationRequest: refuses non-canonical forms of a request that is otherwise right', () => {
  const canonical = /canonical DER/;
  const der = makeRequest({ attributes: NO_ATTRIBUTES });
  refuses(pemOf(Buffer.concat([der, Uint8Array.of(0)])), canonical);
  refuses(pemOf(Buffer.concat([der, NULL])), canonical);
  refuses(pemOf(der.subarray(0, -1)), canonical);
  // A SEQUENCE of indefinite length, and one with a length octet too many.
  assert.equal(hex(der.subarray(0, 2)), '3082');
  refuses(pemOf(Buffer.concat([Uint8Array.of(0x30, 0x80), der.subarray(4), new Uint8Array(2)])), canonical);
  refuses(pemOf(Buffer.concat([Uint8Array.of(0x30, 0x83, 0), der.subarray(2)])), canonical);
  refuses(pemOf(octetString(der)), canonical);
  refuses(pemOf(NULL), canonical);
});

/** One to three small changes of the kinds that break parsers. */
function mutate(bytes: Uint8Array, random: Seeded): Uint8Array {
  let mutated = Buffer.from(bytes);
  for (let changes = random.between(1, 3); changes > 0; changes -= 1) {
    const at = random.below(mutated.length);
    const until = Math.min(mutated.length, at + random.between(1, 8));
    const interesting = random.pick([0x00, 0x01, 0x02, 0x03, 0x30, 0x31, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xa0, 0xff]);
    switch (random.below(7)) {
      case 0:
        mutated[at] = (mutated[at] ?? 0) ^ (1 << random.below(8));
        break;
      case 1:
        mutated[at] = interesting;
        break;
      case 2:
        mutated[at] = ((mutated[at] ?? 0) + random.pick([1, 255])) & 0xff;
        break;
      case 3:
        mutated = Buffer.concat([mutated.subarray(0, at), random.bytes(random.between(1, 4)), mutated.subarray(at)]);
        break;
      case 4:
        mutated = Buffer.concat([mutated.subarray(0, at), mutated.subarray(until)]);
        break;
      case 5:
        mutated = Buffer.concat([mutated.subarray(0, until), mutated.subarray(at)]);
        break;
      default:
        mutated = Buffer.from(mutated.subarray(0, at));
    }
    if (mutated.length === 0) return mutated;
  }
  return mutated;
}

test('readCertificationRequest: a mistake of the program is not told as one of the request', (t) => {
  const request = makeRequestPem();
  const mocked = t.mock.method(Uint8Array, 'from', () => {
    throw new RangeError('a bug');
  });
  try {
    assert.throws(() => readCertificationRequest(request), new RangeError('a bug'));
  } finally {
    mocked.mock.restore();
  }
});

test('readCertificationRequest: 100 000 mutated requests meet only the clean refusal', (t) => {
  const { stackTraceLimit } = Error;
  t.after(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  Error.stackTraceLimit = 0;
  const random = createSeeded(20_260_131);
  const right = [makeRequest(), makeRequest({ attributes: NO_ATTRIBUTES, digest: 'sha256' })];
  // Most start from requests without a signature, since verifying signatures would take most of the time.
  const signature = new Uint8Array();
  const unsigned = [makeRequest({ signature }), makeRequest({ signature, digest: 'sha512' })];
  let refused = 0;
  for (let round = 0; round < 100_000; round += 1) {
    const original = random.pick(random.oneIn(10) ? right : unsigned);
    // One in ten is changed in its text, the others in the bytes that the text encodes.
    const inText = random.oneIn(10);
    const mutated = mutate(inText ? Buffer.from(pemOf(original), 'latin1') : original, random);
    const pem = inText ? Buffer.from(mutated).toString('latin1') : pemOf(mutated);
    try {
      readCertificationRequest(pem);
    } catch (error) {
      if (!isInvalid(error)) throw new Error(`round ${round}`, { cause: error });
      refused += 1;
      continue;
    }
    // Some changes change nothing: those of space after the block, and one that undoes another.
    const der = decodePem(pem, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST');
    assert.equal(hex(der ?? new Uint8Array()), hex(original), `round ${round} was accepted`);
  }
  assert.ok(refused > 99_000, `${refused} refused`);
});
