// `pasted tls self-signed`: a certificate and key for a listener of one's own. Uses neither the database nor the
// settings; what a listener does with the files is http/tls.ts.

import { resolve } from 'node:path';
import {
  makeSerial, makeServerCertificate, shownFingerprint, type Validity, validityFrom,
} from '../authority/certificates.ts';
import { parseServerName, type ServerName } from '../authority/der.ts';
import { encodePem, generateServerKeyPair, privateKeyPem } from '../authority/keys.ts';
import { SETTINGS } from '../config/settings.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { hostOf } from '../http/engine/host.ts';
import { wholeNumber } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT, UsageError } from './failures.ts';
import { createNewFile, type NewFile } from './files.ts';

/** As many as public authorities take. */
const MAX_NAMES = 100;

/** Apple's systems refuse a server certificate that is valid for more than 825 days, from five minutes ago on. */
const DAYS = { minimum: 1, maximum: 824, fallback: 365 };

interface Wanted {
  readonly names: readonly ServerName[];
  readonly days: number;
  /** Absolute, so that they can be copied into settings. */
  readonly certificatePath: string;
  readonly keyPath: string;
}

interface Made extends Wanted {
  readonly serial: string;
  readonly certificate: Uint8Array;
  readonly issuedAt: number;
  readonly validity: Validity;
}

export const selfSigned: Run = async (terminal, given) => {
  const wanted: Wanted = {
    names: readNames(given.values.get('--host')!),
    days: wholeNumber(given, '--days', DAYS),
    certificatePath: resolve(given.values.get('--out-cert') ?? 'server.crt'),
    keyPath: resolve(given.values.get('--out-key') ?? 'server.key'),
  };
  const made = await intoNewFiles(wanted, (files) => make(wanted, unixSeconds(terminal.clock), files));
  terminal.stdout.write(given.options.has('--json') ? `${JSON.stringify(jsonOf(made))}\n` : textOf(made));
  return EXIT.success;
};

/** Each once, in the order given. */
function readNames(text: string): ServerName[] {
  const names = new Map<string, ServerName>();
  for (const item of text.split(',').map((part) => part.trim())) {
    const name = parseServerName(item);
    if (name === undefined) {
      const expected = 'host names and addresses, such as paste.example,192.0.2.1';
      throw new UsageError(`--host takes ${expected}: not ${JSON.stringify(item)}`);
    }
    names.set(name.name, name);
  }
  if (names.size > MAX_NAMES) throw new UsageError(`--host takes at most ${MAX_NAMES} names`);
  return [...names.values()];
}

interface NewFiles {
  readonly certificate: NewFile;
  readonly key: NewFile;
}

/** Both, or none. */
async function intoNewFiles(wanted: Wanted, work: (files: NewFiles) => Promise<Made>): Promise<Made> {
  const made: NewFile[] = [];
  try {
    const certificate = createNewFile(wanted.certificatePath, 'readable by all');
    made.push(certificate);
    const key = createNewFile(wanted.keyPath);
    made.push(key);
    const result = await work({ certificate, key });
    for (const file of made) file.keep();
    return result;
  } catch (error) {
    for (const file of made) file.discard();
    throw error;
  }
}

async function make(wanted: Wanted, issuedAt: number, files: NewFiles): Promise<Made> {
  const serial = makeSerial(randomBytes);
  const validity = validityFrom(issuedAt, wanted.days);
  const keyPair = await generateServerKeyPair();
  const certificate = await makeServerCertificate({ names: wanted.names, serial, validity, keyPair });
  files.certificate.write(Buffer.from(encodePem('CERTIFICATE', certificate)));
  files.key.write(Buffer.from(privateKeyPem(keyPair.privateKey)));
  return { ...wanted, serial, certificate, issuedAt, validity };
}

function textOf({ names, certificate, validity, certificatePath, keyPath }: Made): string {
  const lines = [
    `Wrote ${certificatePath} and ${keyPath}.`,
    `names        ${names.map(({ name }) => name).join(', ')}`,
    `fingerprint  ${shownFingerprint(certificate)}`,
    `valid        ${isoSeconds(validity.notBefore)} to ${isoSeconds(validity.notAfter)}`,
    '',
    'The service uses them with these settings:',
    `  ${SETTINGS.tlsCertPath.name}=${certificatePath}`,
    `  ${SETTINGS.tlsKeyPath.name}=${keyPath}`,
    'Clients need the certificate to trust it:',
    `  curl --cacert ${certificatePath} https://${hostOf(exampleHost(names), SETTINGS.port.fallback)}/`,
  ];
  return `${lines.join('\n')}\n`;
}

/** One that a client can really ask for. */
function exampleHost(names: readonly ServerName[]): string {
  const { name } = names.find((candidate) => !candidate.name.startsWith('*')) ?? names[0]!;
  return name.replace('*', 'paste');
}

function jsonOf({ names, serial, certificate, issuedAt, validity, certificatePath, keyPath }: Made): object {
  return {
    certificate_file: certificatePath,
    key_file: keyPath,
    names: names.map(({ name }) => name),
    serial,
    fingerprint_sha256: shownFingerprint(certificate).replaceAll(':', '').toLowerCase(),
    created_at: issuedAt,
    expires_at: validity.notAfter,
  };
}
