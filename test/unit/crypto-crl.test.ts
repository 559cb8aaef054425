// Revocation lists: the bytes that are signed, and the times. Other programs are in test/interop.

import assert from 'node:assert/strict';
import { verify } from 'node:crypto';
import { before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { readIssuer, REVOCATION_REASONS } from '../../src/authority/certificates.ts';
import { CRL_TTL_SECONDS, makeCrl } from '../../src/authority/revocation-list.ts';
import { bitStringOctets, components, readDer } from '../../src/crypto/presented.ts';
import { ISSUED_AT, makeTestAuthority, type TestAuthority } from '../support/authority.ts';

const SERIAL = '4123456789abcdef0123456789abcdef';
const OTHER_SERIAL = '7fffffffffffffffffffffffffffffff';
const ECDSA_SHA384 = '300a06082a8648ce3d040303';
const THIS_UPDATE = Buffer.from('260131120000Z').toString('hex');
const NEXT_UPDATE = Buffer.from('260207120000Z').toString('hex');

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const tbsOf = (crl: Uint8Array): string => hex(readDer(crl).children[0]?.encoding ?? new Uint8Array());

let authority: TestAuthority;
let name: string;
let identifier: string;

before(async () => {
  authority = await makeTestAuthority();
  const issuer = readIssuer(authority.certificate);
  name = hex(issuer.name);
  identifier = hex(issuer.keyIdentifier);
});

test('makeCrl: exactly these bytes are signed when none is revoked', async () => {
  const crl = await makeCrl({ number: 1, thisUpdate: ISSUED_AT, revoked: [] }, authority);
  const extensions = `a02f302d301f0603551d23041830168014${identifier}300a0603551d140403020101`;
  const expected = `307b020101${ECDSA_SHA384}${name}170d${THIS_UPDATE}170d${NEXT_UPDATE}${extensions}`;
  assert.equal(tbsOf(crl), expected);
});

test('makeCrl: an entry has a reason only when one was given', async () => {
  const revoked = [
    { serial: SERIAL, revokedAt: ISSUED_AT },
    { serial: OTHER_SERIAL, revokedAt: ISSUED_AT, revocationReason: 'keyCompromise' },
  ] as const;
  const crl = await makeCrl({ number: 300, thisUpdate: ISSUED_AT, revoked }, authority);
  const plain = `30210210${SERIAL}170d${THIS_UPDATE}`;
  const reasoned = `302f0210${OTHER_SERIAL}170d${THIS_UPDATE}300c300a0603551d1504030a0101`;
  const extensions = `a030302e301f0603551d23041830168014${identifier}300b0603551d1404040202012c`;
  const start = `3081d2020101${ECDSA_SHA384}${name}170d${THIS_UPDATE}170d${NEXT_UPDATE}`;
  assert.equal(tbsOf(crl), `${start}3054${plain}${reasoned}${extensions}`);
});

test('makeCrl: each reason by its number of RFC 5280 section 5.3.1, and none that is not one of them', async () => {
  const numbers = {
    keyCompromise: 1, affiliationChanged: 3, superseded: 4, cessationOfOperation: 5, privilegeWithdrawn: 9,
  };
  assert.deepEqual({ ...REVOCATION_REASONS }, numbers);
  for (const [reason, number] of Object.entries(numbers)) {
    const revoked = [{ serial: SERIAL, revokedAt: ISSUED_AT, revocationReason: reason }];
    const crl = tbsOf(await makeCrl({ number: 1, thisUpdate: ISSUED_AT, revoked }, authority));
    assert.ok(crl.includes(`170d${THIS_UPDATE}300c300a0603551d1504030a010${number}`), reason);
  }
  for (const reason of ['unspecified', 'toString', null]) {
    const revoked = [{ serial: SERIAL, revokedAt: ISSUED_AT, revocationReason: reason }];
    assert.doesNotMatch(tbsOf(await makeCrl({ number: 1, thisUpdate: ISSUED_AT, revoked }, authority)), /0603551d15/);
  }
});

test('makeCrl: signed by the authority', async () => {
  const crl = await makeCrl({ number: 1, thisUpdate: ISSUED_AT, revoked: [] }, authority);
  const [tbs, algorithm, signature] = components(readDer(crl), 0x30, 0x30, 0x03);
  assert.equal(hex(algorithm.encoding), ECDSA_SHA384);
  assert.ok(verify('sha384', tbs.encoding, authority.keyPair.publicKey, bitStringOctets(signature)));
});

test('makeCrl: each time in the form of its year', async () => {
  assert.equal(CRL_TTL_SECONDS, 604_800);
  const border = Date.parse('2050-01-01T00:00:00Z') / 1000;
  for (const [thisUpdate, tags] of [
    [border - CRL_TTL_SECONDS - 1, [0x17, 0x17]],
    [border - CRL_TTL_SECONDS, [0x17, 0x18]],
    [border, [0x18, 0x18]],
  ] as const) {
    const crl = await makeCrl({ number: 1, thisUpdate, revoked: [] }, authority);
    const tbs = readDer(crl).children[0];
    assert.deepEqual(tbs?.children.slice(3, 5).map(({ tag }) => tag), tags);
  }
});

test('makeCrl: refuses serials, numbers and times that it can\u2019t encode', async () => {
  const entry = { serial: SERIAL, revokedAt: ISSUED_AT };
  for (const request of [
    { number: -1, thisUpdate: ISSUED_AT, revoked: [] },
    { number: 0.5, thisUpdate: ISSUED_AT, revoked: [] },
    { number: 1, thisUpdate: ISSUED_AT + 0.5, revoked: [] },
    { number: 1, thisUpdate: ISSUED_AT, revoked: [{ ...entry, serial: 'ff' }] },
    { number: 1, thisUpdate: ISSUED_AT, revoked: [{ ...entry, revokedAt: -1e10 }] },
  ]) {
    await assert.rejects(makeCrl(request, authority), RangeError);
  }
});

test('makeCrl: a long list lets the event loop turn meanwhile', async () => {
  const revoked = Array.from({ length: 20_000 }, (_, i) => ({
    serial: `4${i.toString(16).padStart(31, '0')}`,
    revokedAt: ISSUED_AT,
  }));
  let turns = 0;
  let done = false;
  const made = makeCrl({ number: 1, thisUpdate: ISSUED_AT, revoked }, authority).finally(() => {
    done = true;
  });
  while (!done) {
    turns += 1;
    await setImmediate();
  }
  const [tbs] = components(readDer(await made), 0x30, 0x30, 0x03);
  assert.equal(tbs.children[5]?.children.length, 20_000);
  assert.ok(turns >= 100, `${turns} turns of the event loop`);
});
