// An authority and clients of it for tests: made by the same code as the service's, with real randomness and a fixed
// time.

import {
  makeAuthorityCertificate, makeClientCertificate, makeSerial, readIssuer, type Validity, validityFrom,
} from '../../src/authority/certificates.ts';
import { bitString, distinguishedName, integer, OIDS, seq } from '../../src/authority/der.ts';
import { type Authority, generateKeyPair, signed } from '../../src/authority/keys.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { bitStringOctets, fingerprintSha1, readDer } from '../../src/crypto/presented.ts';

/** 2026-01-31T12:00:00Z, Unix seconds. */
export const ISSUED_AT = 1_769_860_800;

export type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

export interface TestAuthority extends Authority {
  readonly keyPair: KeyPair;
}

export interface TestClient {
  readonly certificate: Uint8Array;
  readonly keyPair: KeyPair;
  readonly serial: string;
  readonly fingerprint: string;
}

export async function makeTestAuthority(commonName = 'Paste Service CA', issuedAt = ISSUED_AT): Promise<TestAuthority> {
  const keyPair = await generateKeyPair();
  const serial = makeSerial(randomBytes);
  const validity = validityFrom(issuedAt, 36_500);
  const certificate = await makeAuthorityCertificate({ serial, validity, ...keyPair }, distinguishedName(commonName));
  return { certificate, privateKey: keyPair.privateKey, keyPair };
}

/** A client's certificate, by default on a key of its own and for a year. */
export async function makeTestClient(
  authority: Authority,
  given: { commonName?: string; validity?: Validity; keyPair?: KeyPair; serial?: string } = {},
): Promise<TestClient> {
  const { commonName = 'alice', validity = validityFrom(ISSUED_AT, 365), serial = makeSerial(randomBytes) } = given;
  const keyPair = given.keyPair ?? (await generateKeyPair());
  const certificate = await makeClientCertificate({ commonName, serial, validity, ...keyPair }, authority);
  return { certificate, keyPair, serial, fingerprint: fingerprintSha1(certificate) };
}

/**
 * The client's certificate with the key identifier of `authority` as its issuer's, signed again with the key of `own`.
 * When both authorities have the same name, every field says that `authority` issued it.
 */
export async function forged(client: TestClient, own: Authority, authority: Uint8Array): Promise<TestClient> {
  const [tbsCertificate] = readDer(client.certificate).children;
  const bytes = Buffer.from(tbsCertificate!.encoding);
  bytes.set(readIssuer(authority).keyIdentifier, bytes.indexOf(readIssuer(own.certificate).keyIdentifier));
  const certificate = await signed(bytes, own.privateKey, 'sha384');
  return { ...client, certificate, fingerprint: fingerprintSha1(certificate) };
}

/** The client's certificate as one for servers, which this service's own authority never issues. */
export async function forServers(client: TestClient, authority: Authority): Promise<TestClient> {
  const tbs = Buffer.from(readDer(client.certificate).children[0]!.encoding);
  tbs.set(OIDS.serverAuth, tbs.indexOf(OIDS.clientAuth));
  return { ...client, certificate: await signed(tbs, authority.privateKey, 'sha384') };
}

/** The order of the group of P-384 (SEC 2, section 2.5.1). */
const ORDER = BigInt(
  '0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973',
);

/**
 * The same certificate with its other signature, which anyone can make from the first one without a key: ECDSA accepts
 * (r, n - s) wherever it accepts (r, s).
 */
export function withOtherSignature(certificate: Uint8Array): Uint8Array {
  const [tbsCertificate, algorithm, signature] = readDer(certificate).children;
  const [r, s] = readDer(bitStringOctets(signature!)).children.map(({ content }) => (
    BigInt(`0x${Buffer.from(content).toString('hex')}`)
  ));
  return seq(tbsCertificate!.encoding, algorithm!.encoding, bitString(seq(integer(r!), integer(ORDER - s!))));
}
