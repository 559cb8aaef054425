// Key pairs, of the authority and of its clients on secp384r1 and of servers on P-256, and signatures with them. Keys
// as bytes, and encrypted, are private-key.ts.

import { generateKeyPair as nodeGenerateKeyPair, sign as nodeSign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

export type PublicKey = KeyObject;
export type PrivateKey = KeyObject;

export interface KeyPair {
  readonly publicKey: PublicKey;
  readonly privateKey: PrivateKey;
}

const generate = promisify(nodeGenerateKeyPair);

/** A new key pair on secp384r1, made on the thread pool. */
export async function generateKeyPair(): Promise<KeyPair> {
  return generate('ec', { namedCurve: 'secp384r1' });
}

/** The same on P-256, for servers: what every TLS client knows (RFC 8446 section 9.1). */
export async function generateServerKeyPair(): Promise<KeyPair> {
  return generate('ec', { namedCurve: 'prime256v1' });
}

/** The SubjectPublicKeyInfo (RFC 5480 section 2): the curve by name, the point uncompressed. 120 bytes of DER. */
export function subjectPublicKeyInfo(publicKey: PublicKey): Uint8Array {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** ECDSA with SHA-384, an ECDSA-Sig-Value in DER (RFC 3279 section 2.2.3), made on the thread pool. */
export function signSha384(privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return sign('sha384', privateKey, bytes);
}

/** The same with SHA-256, the digest that goes with P-256. */
export function signSha256(privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return sign('sha256', privateKey, bytes);
}

/** The digest must be named: with none, OpenSSL silently takes SHA-256, whatever the curve. */
function sign(digest: string, privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    nodeSign(digest, bytes, { key: privateKey, dsaEncoding: 'der' }, (error, signature) => {
      if (error === null) resolve(signature);
      else reject(error);
    });
  });
}
