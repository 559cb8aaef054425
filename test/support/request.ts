// Certification requests (RFC 2986) for tests, right by default, with any part replaced by a wrong one.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import {
  bitString, contextTag, explicit, integer, octetString, oid, seq, setOf, utf8String,
} from '../../src/authority/der.ts';
import { encodePem } from '../../src/authority/keys.ts';

export interface RequestParts {
  /** P-384 by default. */
  readonly keys?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly version?: Uint8Array;
  readonly spki?: Uint8Array;
  /** The whole [0], tag included; undefined leaves it out. */
  readonly attributes?: Uint8Array | undefined;
  readonly digest?: string;
  readonly algorithm?: Uint8Array;
  readonly signature?: Uint8Array;
  readonly trailing?: Uint8Array;
}

/** OBJECT IDENTIFIERs of ECDSA with each digest. */
const ECDSA_OIDS: Readonly<Record<string, string>> = {
  sha1: '1.2.840.10045.4.1',
  sha224: '1.2.840.10045.4.3.1',
  sha256: '1.2.840.10045.4.3.2',
  sha384: '1.2.840.10045.4.3.3',
  sha512: '1.2.840.10045.4.3.4',
};

export function p384(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
}

export function spkiOf(publicKey: KeyObject): Uint8Array {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** A challengePassword and an extensionRequest, in their canonical order. */
export function someAttributes(): readonly Uint8Array[] {
  const extensions = seq(seq(oid('2.5.29.17'), octetString(seq(octetString(new Uint8Array(4))))));
  return [
    seq(oid('1.2.840.113549.1.9.7'), setOf(utf8String('secret'))),
    seq(oid('1.2.840.113549.1.9.14'), setOf(extensions)),
  ];
}

/** The request in DER. */
export function makeRequest(parts: RequestParts = {}): Uint8Array {
  const { keys = p384(), digest = 'sha384', version = integer(0), trailing = new Uint8Array() } = parts;
  const subject = seq(setOf(seq(oid('2.5.4.3'), utf8String('x'))));
  const attributes = 'attributes' in parts ? parts.attributes : explicit(0, ...someAttributes());
  const spki = parts.spki ?? spkiOf(keys.publicKey);
  const info = seq(version, subject, spki, ...(attributes === undefined ? [] : [attributes]), trailing);
  const algorithm = parts.algorithm ?? seq(oid(ECDSA_OIDS[digest] ?? ''));
  const signature = parts.signature ?? sign(digest, info, keys.privateKey);
  return seq(info, algorithm, bitString(signature));
}

export function makeRequestPem(parts: RequestParts = {}): string {
  return encodePem('CERTIFICATE REQUEST', makeRequest(parts));
}

export const NO_ATTRIBUTES = Uint8Array.of(contextTag(0), 0);
