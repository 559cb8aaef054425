// A server's own certificate with its key, as `pasted tls self-signed` makes them, valid now by the host's clock.

import { makeSerial, makeServerCertificate, validityFrom } from '../../src/authority/certificates.ts';
import { parseServerName } from '../../src/authority/der.ts';
import { encodePem, generateKeyPair, privateKeyPem } from '../../src/authority/keys.ts';
import { randomBytes } from '../../src/crypto/digest.ts';

export interface TestServerCertificate {
  readonly certificate: Uint8Array;
  /** Both in PEM. */
  readonly cert: string;
  readonly key: string;
}

export async function serverCertificate(...names: string[]): Promise<TestServerCertificate> {
  const keyPair = await generateKeyPair('prime256v1');
  const certificate = await makeServerCertificate({
    names: names.map((name) => parseServerName(name)!),
    serial: makeSerial(randomBytes),
    validity: validityFrom(Math.floor(Date.now() / 1000), 30),
    ...keyPair,
  });
  return { certificate, cert: encodePem('CERTIFICATE', certificate), key: privateKeyPem(keyPair.privateKey) };
}
