// The certificate and key that the listener shows, from their files: read, judged, and problems put so that the
// operator can mend them. What is done with them is tls.ts.

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '../config/load.ts';
import { SETTINGS, type Config } from '../config/settings.ts';
import { readServerPair, type ServerPairFault } from '../crypto/tls.ts';

export interface ServerCertificate {
  /** PEM, with the certificates between it and its root. */
  readonly certificate: string;
  /** PEM. */
  readonly privateKey: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

const CERT = SETTINGS.tlsCertPath.name;
const KEY = SETTINGS.tlsKeyPath.name;

const FAULTS: Readonly<Record<ServerPairFault, string>> = {
  certificateForm: `${CERT}: expected a PEM file that begins with the server's certificate`,
  keyForm: `${KEY}: expected a PEM file with a private key`,
  keyEncrypted: `${KEY}: expected a key without a password; \`openssl pkey -in KEY -out NEW\` takes it off`,
  keyOfAnother: `${KEY}: expected the key of the first certificate in ${CERT}`,
};

/** Of the files that both settings name. Throws ConfigError; what a file holds is in no message. */
export function readServerCertificate({ tlsCertPath, tlsKeyPath }: Config): ServerCertificate {
  const certificate = read(tlsCertPath, CERT);
  const privateKey = read(tlsKeyPath, KEY);
  const pair = readServerPair(certificate, privateKey);
  if ('fault' in pair) throw new ConfigError([FAULTS[pair.fault]]);
  try {
    createSecureContext({ cert: certificate, key: privateKey });
  } catch (error) {
    // Such as a key that is too short (ERR_SSL_EE_KEY_TOO_SMALL), or a broken block further down in the chain.
    throw new ConfigError([`${CERT}: expected a certificate that TLS can use (${codeOf(error)})`]);
  }
  return { certificate, privateKey, expiresAt: pair.expiresAt };
}

function read(path: string, name: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError([`${name}: expected the path of a file that can be read (${codeOf(error)})`]);
  }
}

/** Never the message: OpenSSL's may repeat what it could not read. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
