// `pasted admin`: who the admins are. `pasted pki`: what the authority issued and revoked, to whomever. `pasted tls`: a
// certificate and key for a listener of one's own. The store decides whose certificate is the first, so the admin's.

import { resolve } from 'node:path';
import {
  makeSerial, makeServerCertificate, type RevocationReason, shownFingerprint, validityFrom,
} from '../authority/certificates.ts';
import { normaliseCommonName, parseServerName, type ServerName } from '../authority/der.ts';
import { presentCertificate, presentCertificates } from '../authority/handlers.ts';
import {
  type CertificateRecord, issueCertificate, newKey, NotFirstError, revokeCertificate,
} from '../authority/issuing.ts';
import { encodePem, generateServerKeyPair, privateKeyPem } from '../authority/keys.ts';
import { type BundleProfile, deriveKeys, makeBundle } from '../authority/pkcs12.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { hostOf } from '../http/engine/head.ts';
import { statusOf } from '../pastes/identity.ts';
import { wholeNumber } from './arguments.ts';
import { attempt, createNewFile, keepingFiles, type NewFile, replaceFile, requireSecretOutput } from './files.ts';
import { findCertificate, inSession, OPERATOR, type OperatorSession } from './session.ts';
import { alignColumns, CommandError, type Given, report, type Run, type Terminal, UsageError } from './terminal.ts';

/** As in the body of POST /register. */
const MAX_PASSWORD_LENGTH = 1024;

/** Issues the first certificate ever, or none. */
export const create: Run = async (terminal, given) => {
  const wanted = readWanted(terminal, given);
  const { path, bundlePassword } = wanted;
  const isStream = path === '-';
  if (isStream) requireSecretOutput(terminal, '--out - writes a private key: not onto this screen');
  await inSession(terminal, async (session) => {
    if ((await session.store.certificates.listAll()).length > 0) throw issuedBefore();
    // A file that cannot be written must be known before anything is issued, and go again when nothing was.
    const file = isStream ? () => outputFile(terminal) : () => createNewFile(path);
    const { serial, commonName, fingerprint, createdAt, expiresAt, isAdmin } =
      await keepingFiles([file], ([made]) => issueFirst(session, wanted, made!));
    const lines = [
      `Wrote ${isStream ? 'to standard output' : path}: the certificate of the admin with its key.`,
      `serial       ${serial}`,
      `fingerprint  ${fingerprint}`,
      `expires      ${isoSeconds(expiresAt)}`,
      ...(bundlePassword === '' ? ['The file has no password: whoever has it is the admin.'] : []),
    ];
    report(isStream ? terminal.stderr : terminal.stdout, given, {
      file: path, serial, common_name: commonName, fingerprint_sha1: fingerprint, created_at: createdAt,
      expires_at: expiresAt, is_admin: isAdmin,
    }, `${lines.join('\n')}\n`);
  }, 'create');
};

function readWanted({ readFile }: Terminal, { values }: Given) {
  const commonName = normaliseCommonName(values.get('--name') ?? 'admin');
  if (commonName === undefined) throw new UsageError('--name takes 1 to 64 characters without control characters');
  const passwordPath = values.get('--password-file');
  return {
    path: values.get('--out')!,
    commonName,
    profile: (values.get('--p12-profile') ?? 'modern') as BundleProfile,
    /** Empty for none. */
    bundlePassword: passwordPath === undefined ? '' : readPassword(readFile, passwordPath),
  };
}

/** The file's text without one newline at its end. */
function readPassword(readFile: Terminal['readFile'], path: string): string {
  const password = attempt(path, () => readFile(path), 'read').replace(/\r?\n$/, '');
  const length = [...password].length;
  // Bytes that are no UTF-8 become U+FFFD: such a password could never be typed again.
  const isUsable = length >= 1 && length <= MAX_PASSWORD_LENGTH && !/[\0\ufffd]/.test(password);
  if (!isUsable) throw new CommandError(`${path} holds no password of 1 to ${MAX_PASSWORD_LENGTH} characters in UTF-8`);
  return password;
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

async function issueFirst(session: OperatorSession, wanted: ReturnType<typeof readWanted>, file: NewFile) {
  const { commonName, profile, bundlePassword: password } = wanted;
  const authority = await session.authorities.ensured(OPERATOR);
  const key = await newKey();
  const before = async (certificate: Uint8Array): Promise<void> => {
    const keyed = { certificate, privateKey: key.privateKey, authority: authority.certificate };
    const request = { profile, password, friendlyName: commonName, ...keyed };
    await file.write(await makeBundle(request, { random: randomBytes, derive: deriveKeys }));
  };
  try {
    const request = { commonName, key, requester: OPERATOR, spend: null, before, onlyFirst: true };
    return await issueCertificate(session, request, authority);
  } catch (error) {
    throw error instanceof NotFirstError ? issuedBefore() : error;
  }
}

function issuedBefore(): CommandError {
  return new CommandError(
    'certificates have been issued already, and the first of them was the admin\'s; ' +
      'to make the holder of one an admin: pasted admin grant SERIAL',
  );
}

export const grant: Run = (terminal, given) =>
  inSession(terminal, async (session) => {
    const certificate = await findCertificate(session, given.operands[0]!);
    const { serial, fingerprint, commonName } = certificate;
    const status = statusOf(certificate, unixSeconds(terminal.clock));
    if (status !== 'valid') throw new CommandError(`certificate ${serial} is ${status}: it makes nobody an admin`);
    if (certificate.isAdmin) throw new CommandError(`the holder of certificate ${serial} is an admin already`);
    const granted = session.audit.event('admin_granted', 'success', OPERATOR, { serial, fingerprint });
    const isGranted = await session.store.certificates.grantAdmin(serial, granted);
    if (!isGranted) throw new CommandError(`certificate ${serial} has just been revoked`);
    const text = `${commonName} is an admin now (certificate ${serial}).\n`;
    report(terminal.stdout, given, presentCertificate({ ...certificate, isAdmin: true, status }), text);
  });

export const list: Run = (terminal, given) =>
  inSession(terminal, async ({ store }) => {
    const nowSeconds = unixSeconds(terminal.clock);
    const certificates = await store.certificates.listAll();
    const records = certificates.map((certificate) => ({ ...certificate, status: statusOf(certificate, nowSeconds) }));
    report(terminal.stdout, given, presentCertificates(records), tableOf(records));
  });

/** The common name last: it is the only cell whose width nobody knows. */
function tableOf(records: readonly CertificateRecord[]): string {
  const rows = records.map(({ serial, status, isAdmin, expiresAt, commonName }) => {
    return [serial, status, isAdmin ? 'admin' : '-', isoSeconds(expiresAt), commonName];
  });
  return alignColumns([['SERIAL', 'STATUS', 'ROLE', 'EXPIRES', 'COMMON NAME'], ...rows]);
}

export const revoke: Run = (terminal, given) =>
  inSession(terminal, async (session) => {
    const certificate = await findCertificate(session, given.operands[0]!);
    const { serial, commonName, fingerprint } = certificate;
    const reason = (given.values.get('--reason') ?? null) as RevocationReason | null;
    // The operator may do what the holder may.
    const holder: Caller = { tier: 'trusted', fingerprint };
    await revokeCertificate(session, serial, { caller: holder, requester: OPERATOR }, reason);
    const text = `Revoked certificate ${serial} of ${commonName}.\n`;
    report(terminal.stdout, given, presentCertificate({ ...certificate, status: 'revoked' }), text);
  });

export const crl: Run = (terminal, { options, values }) =>
  inSession(terminal, async ({ revocationList }) => {
    const { der } = await revocationList.current();
    const path = values.get('--out') ?? '-';
    const written = options.has('--der') ? der : Buffer.from(encodePem('X509 CRL', der));
    if (path === '-') terminal.stdout.write(written);
    else replaceFile(path, written);
  });

export const ca: Run = (terminal) =>
  inSession(terminal, async ({ authorities }) => {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    terminal.stdout.write(encodePem('CERTIFICATE', authority.certificate));
  });

/** As many as public authorities take. */
const MAX_NAMES = 100;

/** Apple's systems refuse a server certificate that is valid for more than 825 days, from five minutes ago on. */
const DAYS = { minimum: 1, maximum: 824, fallback: 365 };

/** Uses neither the database nor the settings. */
export const selfSigned: Run = async (terminal, given) => {
  const names = readNames(given.values.get('--host')!);
  const days = wholeNumber(given, '--days', DAYS);
  // Absolute, so that they can be copied into settings.
  const certificatePath = resolve(given.values.get('--out-cert') ?? 'server.crt');
  const keyPath = resolve(given.values.get('--out-key') ?? 'server.key');
  const issuedAt = unixSeconds(terminal.clock);
  const serial = makeSerial(randomBytes);
  const validity = validityFrom(issuedAt, days);
  const newFiles = [() => createNewFile(certificatePath, 'readable by all'), () => createNewFile(keyPath)];
  const certificate = await keepingFiles(newFiles, async ([certificateFile, keyFile]) => {
    const keyPair = await generateServerKeyPair();
    const made = await makeServerCertificate({ names, serial, validity, keyPair });
    await certificateFile!.write(Buffer.from(encodePem('CERTIFICATE', made)));
    await keyFile!.write(Buffer.from(privateKeyPem(keyPair.privateKey)));
    return made;
  });
  const fingerprint = shownFingerprint(certificate);
  const shownNames = names.map(({ name }) => name);
  const lines = [
    `Wrote ${certificatePath} and ${keyPath}.`,
    `names        ${shownNames.join(', ')}`,
    `fingerprint  ${fingerprint}`,
    `valid        ${isoSeconds(validity.notBefore)} to ${isoSeconds(validity.notAfter)}`,
    '',
    'The service uses them with these settings:',
    `  ${SETTINGS.tlsCertPath.name}=${certificatePath}`,
    `  ${SETTINGS.tlsKeyPath.name}=${keyPath}`,
    'Clients need the certificate to trust it:',
    `  curl --cacert ${certificatePath} https://${hostOf(exampleHost(shownNames), SETTINGS.port.fallback)}/`,
  ];
  report(terminal.stdout, given, {
    certificate_file: certificatePath, key_file: keyPath, names: shownNames, serial,
    fingerprint_sha256: fingerprint.replaceAll(':', '').toLowerCase(),
    created_at: issuedAt, expires_at: validity.notAfter,
  }, `${lines.join('\n')}\n`);
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

/** One that a client can really ask for. */
function exampleHost(names: readonly string[]): string {
  const name = names.find((candidate) => !candidate.startsWith('*')) ?? names[0]!;
  return name.replace('*', 'paste');
}
