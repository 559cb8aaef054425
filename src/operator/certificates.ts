// `pasted admin`: who the admins are. Whose certificate is the first and so the admin's is decided in the store.

import { resolve } from 'node:path';
import {
  makeSerial, makeServerCertificate, type RevocationReason, shownFingerprint, type Validity, validityFrom,
} from '../authority/certificates.ts';
import { presentCertificate, presentCertificates } from '../authority/handlers.ts';
import { normaliseCommonName, parseServerName, type ServerName } from '../authority/der.ts';
import {
  type CertificateRecord, issueCertificate, type IssuedCertificate, newKey, NotFirstError, revokeCertificate,
} from '../authority/issuing.ts';
import { encodePem, generateServerKeyPair, privateKeyPem } from '../authority/keys.ts';
import { type BundleProfile, deriveKeys, makeBundle } from '../authority/pkcs12.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { hostOf } from '../http/engine/host.ts';
import { statusOf } from '../pastes/identity.ts';
import { wholeNumber } from './arguments.ts';
import type { Given, Run } from './commands.ts';
import { createNewFile, type NewFile, replaceFile, warnOfReaders } from './files.ts';
import { findCertificate, OPERATOR, type OperatorSession, withSession } from './session.ts';
import { alignColumns, CommandError, EXIT, type Terminal, UsageError } from './terminal.ts';

const DEFAULT_NAME = 'admin';

/** As in the body of POST /register. */
const MAX_PASSWORD_LENGTH = 1024;

interface Wanted {
  readonly path: string;
  readonly commonName: string;
  readonly profile: BundleProfile;
  /** Empty for none. */
  readonly bundlePassword: string;
}

/** Issues the first certificate ever, or none. */
export const create: Run = async (terminal, given) => {
  const wanted = readWanted(terminal, given);
  if (wanted.path === '-') requireOutput(terminal);
  return withSession(terminal, { ifMissing: 'create', needsPassword: true }, async (office) => {
    if ((await office.store.certificates.listAll()).length > 0) throw issuedBefore();
    const file = wanted.path === '-' ? outputFile(terminal) : createNewFile(wanted.path);
    const issued = await intoNewFile(file, () => issueFirst(office, wanted, file));
    const report = wanted.path === '-' ? terminal.stderr : terminal.stdout;
    report.write(given.options.has('--json') ? jsonOf(issued, wanted) : textOf(issued, wanted));
    return EXIT.success;
  });
};

export const grant: Run = (terminal, { operands: [given = ''], options }) =>
  withSession(terminal, { ifMissing: 'refuse' }, async (office) => {
    const certificate = await findCertificate(office, given);
    const { serial, fingerprint, commonName } = certificate;
    const status = statusOf(certificate, unixSeconds(terminal.clock));
    if (status !== 'valid') throw new CommandError(`certificate ${serial} is ${status}: it makes nobody an admin`);
    if (certificate.isAdmin) throw new CommandError(`the holder of certificate ${serial} is an admin already`);
    const granted = office.audit.event('admin_granted', 'success', OPERATOR, { serial, fingerprint });
    const isGranted = await office.store.certificates.grantAdmin(serial, granted);
    if (!isGranted) throw new CommandError(`certificate ${serial} has just been revoked`);
    const record = { ...certificate, isAdmin: true, status };
    const text = `${commonName} is an admin now (certificate ${serial}).`;
    terminal.stdout.write(`${options.has('--json') ? JSON.stringify(presentCertificate(record)) : text}\n`);
    return EXIT.success;
  });

function readWanted(terminal: Terminal, { values }: Given): Wanted {
  const path = values.get('--out')!;
  const commonName = normaliseCommonName(values.get('--name') ?? DEFAULT_NAME);
  if (commonName === undefined) throw new UsageError('--name takes 1 to 64 characters without control characters');
  const passwordPath = values.get('--password-file');
  return {
    path,
    commonName,
    profile: (values.get('--p12-profile') ?? 'modern') as BundleProfile,
    bundlePassword: passwordPath === undefined ? '' : readPassword(terminal, passwordPath),
  };
}

/** The file's text without one newline at its end. */
function readPassword({ readFile }: Terminal, path: string): string {
  let text;
  try {
    text = readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CommandError(`${path} cannot be read (${code})`);
  }
  const password = text.replace(/\r?\n$/, '');
  const length = [...password].length;
  // U+FFFD is what becomes of bytes that are no UTF-8: such a password could never be typed again.
  const isUsable = length >= 1 && length <= MAX_PASSWORD_LENGTH && !/[\0\ufffd]/.test(password);
  if (!isUsable) throw new CommandError(`${path} holds no password of 1 to ${MAX_PASSWORD_LENGTH} characters in UTF-8`);
  return password;
}

function requireOutput(terminal: Terminal): void {
  if (terminal.writesToScreen) throw new UsageError('--out - writes a private key: not onto this screen');
  warnOfReaders(terminal);
}

/** Standard output, which must take all of the bundle before anything is issued. */
function outputFile({ stdout }: Terminal): NewFile {
  return {
    write: async (bytes) => {
      const isTaken = await stdout.writeWhole(bytes);
      if (!isTaken) throw new CommandError('standard output did not take all of the bundle');
    },
    keep: () => {},
    discard: () => {},
  };
}

/** A file that cannot be written must be known before anything is issued; one that nothing was issued for must go. */
async function intoNewFile<Result>(file: NewFile, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await work();
    file.keep();
    return result;
  } catch (error) {
    file.discard();
    throw error instanceof NotFirstError ? issuedBefore() : error;
  }
}

async function issueFirst(office: OperatorSession, wanted: Wanted, file: NewFile): Promise<IssuedCertificate> {
  const { commonName, profile, bundlePassword } = wanted;
  const authority = await office.authorities.ensured(OPERATOR);
  const key = await newKey();
  const before = async (certificate: Uint8Array): Promise<void> => {
    const keyed = { certificate, privateKey: key.privateKey, authority: authority.certificate };
    const request = { profile, password: bundlePassword, friendlyName: commonName, ...keyed };
    await file.write(await makeBundle(request, { random: randomBytes, derive: deriveKeys }));
  };
  const request = { commonName, key, requester: OPERATOR, spend: null, before, onlyFirst: true };
  return issueCertificate(office, request, authority);
}

function issuedBefore(): CommandError {
  return new CommandError(
    'certificates have been issued already, and the first of them was the admin\'s; ' +
      'to make the holder of one an admin: pasted admin grant SERIAL',
  );
}

function textOf({ serial, fingerprint, expiresAt }: IssuedCertificate, { path, bundlePassword }: Wanted): string {
  const lines = [
    `Wrote ${path === '-' ? 'to standard output' : path}: the certificate of the admin with its key.`,
    `serial       ${serial}`,
    `fingerprint  ${fingerprint}`,
    `expires      ${isoSeconds(expiresAt)}`,
  ];
  if (bundlePassword === '') lines.push('The file has no password: whoever has it is the admin.');
  return `${lines.join('\n')}\n`;
}

function jsonOf(issued: IssuedCertificate, { path }: Wanted): string {
  const { serial, commonName, fingerprint, createdAt, expiresAt, isAdmin } = issued;
  const shown = {
    file: path,
    serial,
    common_name: commonName,
    fingerprint_sha1: fingerprint,
    created_at: createdAt,
    expires_at: expiresAt,
    is_admin: isAdmin,
  };
  return `${JSON.stringify(shown)}\n`;
}

// `pasted pki`: what the authority issued and revoked, for the operator: any certificate, whoever obtained it.

const ASKING = { ifMissing: 'refuse' } as const;

export const list: Run = (terminal, { options }) =>
  withSession(terminal, ASKING, async ({ store }) => {
    const nowSeconds = unixSeconds(terminal.clock);
    const certificates = await store.certificates.listAll();
    const records = certificates.map((certificate) => ({ ...certificate, status: statusOf(certificate, nowSeconds) }));
    const asJson = options.has('--json');
    terminal.stdout.write(asJson ? `${JSON.stringify(presentCertificates(records))}\n` : tableOf(records));
    return EXIT.success;
  });

/** The common name last: it is the only cell whose width nobody knows. */
function tableOf(records: readonly CertificateRecord[]): string {
  const rows = records.map(({ serial, status, isAdmin, expiresAt, commonName }) => {
    return [serial, status, isAdmin ? 'admin' : '-', isoSeconds(expiresAt), commonName];
  });
  return alignColumns([['SERIAL', 'STATUS', 'ROLE', 'EXPIRES', 'COMMON NAME'], ...rows]);
}

export const revoke: Run = (terminal, { operands: [given = ''], options, values }) =>
  withSession(terminal, ASKING, async (office) => {
    const certificate = await findCertificate(office, given);
    const { serial, commonName, fingerprint } = certificate;
    const reason = (values.get('--reason') ?? null) as RevocationReason | null;
    // The operator may do what the holder may.
    const holder: Caller = { tier: 'trusted', fingerprint };
    await revokeCertificate(office, serial, { caller: holder, requester: OPERATOR }, reason);
    const record: CertificateRecord = { ...certificate, status: 'revoked' };
    const text = `Revoked certificate ${serial} of ${commonName}.`;
    terminal.stdout.write(`${options.has('--json') ? JSON.stringify(presentCertificate(record)) : text}\n`);
    return EXIT.success;
  });

export const crl: Run = (terminal, { options, values }) =>
  withSession(terminal, ASKING, async ({ revocationList }) => {
    const { der } = await revocationList.current();
    const path = values.get('--out') ?? '-';
    const written = options.has('--der') ? der : Buffer.from(encodePem('X509 CRL', der));
    if (path === '-') terminal.stdout.write(written);
    else replaceFile(path, written);
    return EXIT.success;
  });

export const ca: Run = (terminal) =>
  withSession(terminal, ASKING, async ({ authorities }) => {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    terminal.stdout.write(encodePem('CERTIFICATE', authority.certificate));
    return EXIT.success;
  });

// `pasted tls self-signed`: a certificate and key for a listener of one's own. Uses neither the database nor the
// settings; what a listener does with the files is http/tls.ts.

/** As many as public authorities take. */
const MAX_NAMES = 100;

/** Apple's systems refuse a server certificate that is valid for more than 825 days, from five minutes ago on. */
const DAYS = { minimum: 1, maximum: 824, fallback: 365 };

interface WantedServer {
  readonly names: readonly ServerName[];
  readonly days: number;
  /** Absolute, so that they can be copied into settings. */
  readonly certificatePath: string;
  readonly keyPath: string;
}

interface Made extends WantedServer {
  readonly serial: string;
  readonly certificate: Uint8Array;
  readonly issuedAt: number;
  readonly validity: Validity;
}

export const selfSigned: Run = async (terminal, given) => {
  const wanted: WantedServer = {
    names: readNames(given.values.get('--host')!),
    days: wholeNumber(given, '--days', DAYS),
    certificatePath: resolve(given.values.get('--out-cert') ?? 'server.crt'),
    keyPath: resolve(given.values.get('--out-key') ?? 'server.key'),
  };
  const made = await intoNewFiles(wanted, (files) => makeServer(wanted, unixSeconds(terminal.clock), files));
  terminal.stdout.write(given.options.has('--json') ? `${JSON.stringify(serverJson(made))}\n` : serverText(made));
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
async function intoNewFiles(wanted: WantedServer, work: (files: NewFiles) => Promise<Made>): Promise<Made> {
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

async function makeServer(wanted: WantedServer, issuedAt: number, files: NewFiles): Promise<Made> {
  const serial = makeSerial(randomBytes);
  const validity = validityFrom(issuedAt, wanted.days);
  const keyPair = await generateServerKeyPair();
  const certificate = await makeServerCertificate({ names: wanted.names, serial, validity, keyPair });
  files.certificate.write(Buffer.from(encodePem('CERTIFICATE', certificate)));
  files.key.write(Buffer.from(privateKeyPem(keyPair.privateKey)));
  return { ...wanted, serial, certificate, issuedAt, validity };
}

function serverText({ names, certificate, validity, certificatePath, keyPath }: Made): string {
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

function serverJson({ names, serial, certificate, issuedAt, validity, certificatePath, keyPath }: Made): object {
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
