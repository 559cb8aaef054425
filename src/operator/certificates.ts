// `pasted admin`, `pasted pki` and `pasted tls`: certificates, and the authority that issues them.

import { resolve } from 'node:path';
import {
  makeSerial, makeServerCertificate, renewAuthorityCertificate, type RevocationReason, shownFingerprint, validityFrom,
} from '../authority/certificates.ts';
import { normaliseCommonName, parseServerName, type ServerName } from '../authority/der.ts';
import {
  issueCertificate, NotFirstError, presentCertificate, presentIssued, recordsOf, revokeCertificate,
} from '../authority/issuing.ts';
import { encodePem, generateKeyPair, lockPrivateKey, privateKeyPem, unlockPrivateKey } from '../authority/keys.ts';
import { type BundleProfile, isBundlePassword, makeBundle, MAX_PASSWORD_LENGTH } from '../authority/pkcs12.ts';
import { CRL_DUE_SECONDS } from '../authority/revocation-list.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import { hostOf } from '../http/engine/head.ts';
import { statusOf } from '../pastes/identity.ts';
import { type AuditEvent, type Certificate, type StoredAuthority, StoreError } from '../store/store.ts';
import { wholeNumber, wrongValue } from './arguments.ts';
import { requireFree } from './database.ts';
import { CommandError, UsageError } from './failures.ts';
import {
  createNewFile, findCertificate, inSession, OPERATOR, type OperatorSession, READABLE_BY_ALL, readText, replaceFile,
  requireSecretOutput,
} from './session.ts';
import { alignColumns, type Given, report, type Run, type Terminal } from './terminal.ts';

const ISSUED_BEFORE = 'certificates have been issued already, and the first of them was the admin\'s; ' +
  'to make the holder of one an admin: pasted admin grant SERIAL';

/** Issues the first certificate ever, or none. */
export const create = issuing('--name', true);
export const issue = issuing('--common-name', false);

function issuing(nameOption: '--name' | '--common-name', onlyFirst: boolean): Run {
  return async (terminal, given) => {
    const path = given.options.get('--out')!;
    const isStream = path === '-';
    const { commonName, profile, password } = readWanted(terminal, given, nameOption);
    if (isStream) requireSecretOutput(terminal, '--out - writes a private key: not onto this screen');
    await inSession(terminal, async (session) => {
      const { authorities, store } = session;
      if (onlyFirst && (await store.read.hasCertificates())) throw new CommandError(ISSUED_BEFORE);
      // If the file cannot be made, this must be known before anything is issued.
      using file = isStream ? undefined : createNewFile(terminal, path);
      const authority = await (onlyFirst ? authorities.ensured(OPERATOR) : authorities.signing());
      const { spki, privateKey } = await generateKeyPair();
      const request = { commonName, key: { spki, privateKey }, requester: OPERATOR, spend: null, onlyFirst };
      // The operator must have the bundle before the certificate is recorded.
      const issued = await issueCertificate(session, request, authority, async ({ certificate }) => {
        const content = { commonName, certificate, privateKey, authority: authority.certificate, profile, password };
        const bundle = await makeBundle(content, randomBytes);
        if (file !== undefined) return file.write(bundle);
        const isTaken = await terminal.stdout.writeWhole(bundle);
        if (!isTaken) throw new CommandError('standard output did not take all of the bundle');
      }).catch((error: unknown) => {
        if (error instanceof NotFirstError) throw new CommandError(ISSUED_BEFORE);
        if (!(error instanceof StoreError && error.failure === 'unavailable' && file?.keep())) throw error;
        // Nodes that did not answer may have recorded it: then its key is nowhere else.
        throw new CommandError(`${error.message}; ${path} stays: see whether its certificate is in pasted pki list`);
      });
      file?.keep();
      const { serial, fingerprint, expiresAt, isAdmin } = issued;
      const holder = isAdmin ? 'the admin' : commonName;
      const isCut = expiresAt === authority.expiresAt;
      const lines = [
        `Wrote ${isStream ? 'to standard output' : path}: the certificate of ${holder} with its key.`,
        `serial       ${serial}`,
        `fingerprint  ${fingerprint}`,
        `expires      ${isoSeconds(expiresAt)}${isCut ? ', with the authority: pasted pki ca renew' : ''}`,
        ...(password === '' ? [`The file has no password: whoever has it is ${holder}.`] : []),
      ];
      const json = { file: path, serial, ...presentIssued(issued), is_admin: isAdmin };
      report(isStream ? terminal.stderr : terminal.stdout, given, json, `${lines.join('\n')}\n`);
    }, onlyFirst ? 'create' : 'refuse');
  };
}

function readWanted(terminal: Terminal, { options }: Given, nameOption: string) {
  const commonName = normaliseCommonName(options.get(nameOption) ?? 'admin');
  if (commonName === undefined) {
    throw new UsageError(`${nameOption} takes 1 to 64 characters, none invisible, for control or private use`);
  }
  const profile = (options.get('--p12-profile') ?? 'modern') as BundleProfile;
  const passwordPath = options.get('--password-file');
  return { commonName, profile, password: passwordPath === undefined ? '' : readPassword(terminal, passwordPath) };
}

/** `-` is standard input: pastedctl's user has no other way to get a file that root alone may read. */
function readPassword(terminal: Terminal, given: string): string {
  const [path, name] = given === '-' ? [0, 'standard input'] as const : [given, given];
  const password = readText(terminal, path, name).replace(/\r?\n$/, '');
  // Bytes that are no UTF-8 become U+FFFD, and some editors begin with U+FEFF: nobody could type such a password again.
  if (isBundlePassword(password) && !/\ufffd|^\ufeff/.test(password)) return password;
  const expected = `1 to ${MAX_PASSWORD_LENGTH} characters in UTF-8, without a byte order mark`;
  throw new CommandError(`${name} holds no password of ${expected}`);
}

export const grant: Run = (terminal, given) => inSession(terminal, async (session) => {
  const certificate = await findCertificate(session, given.operands[0]!);
  const { serial, fingerprint, commonName } = certificate;
  const status = statusOf(certificate, unixSeconds(terminal.clock));
  if (status !== 'valid') throw new CommandError(`certificate ${serial} is ${status}: it makes nobody an admin`);
  if (certificate.isAdmin) throw new CommandError(`the holder of certificate ${serial} is an admin already`);
  const granted = session.audit.event('admin_granted', 'success', OPERATOR, { serial, fingerprint });
  const isGranted = await session.store.run('grantAdmin', { serial, granted });
  if (!isGranted) throw new CommandError(`certificate ${serial} has just been revoked, or its holder made an admin`);
  const text = `${commonName} is an admin now (certificate ${serial}).\n`;
  report(terminal.stdout, given, presentCertificate({ ...certificate, isAdmin: true, status }), text);
});

export const list: Run = (terminal, given) => inSession(terminal, async ({ store }) => {
  const records = recordsOf(await store.read.listCertificates(), terminal.clock);
  const rows = records.map(({ serial, status, isAdmin, expiresAt, commonName }) => {
    return [serial, status, isAdmin ? 'admin' : '-', isoSeconds(expiresAt), commonName];
  });
  const table = alignColumns([['SERIAL', 'STATUS', 'ROLE', 'EXPIRES', 'COMMON NAME'], ...rows]);
  const certificates = records.map(presentCertificate);
  report(terminal.stdout, given, { certificates, count: certificates.length }, table);
});

export const revoke: Run = (terminal, given) => inSession(terminal, async (session) => {
  const certificate = await findCertificate(session, given.operands[0]!);
  const { serial, commonName } = certificate;
  await requireNoSuccessor(session, certificate);
  const reason = (given.options.get('--reason') ?? null) as RevocationReason | null;
  // The operator may do what the holder may.
  const holder: Caller = { tier: 'trusted', fingerprint: certificate.holder };
  await revokeCertificate(session, serial, { caller: holder, requester: OPERATOR }, reason);
  const text = `Revoked certificate ${serial} of ${commonName}.\n`;
  report(terminal.stdout, given, presentCertificate({ ...certificate, status: 'revoked' }), text);
});

/** A thief may have renewed the certificate: the answer that this one is revoked already would end nothing. */
async function requireNoSuccessor({ store, clock }: OperatorSession, { serial, holder, revokedAt }: Certificate) {
  if (revokedAt === null) return;
  const records = recordsOf(await store.read.listCertificates(), clock);
  const successor = records.find((record) => record.holder === holder && record.status === 'valid');
  if (successor === undefined) return;
  const what = `certificate ${serial} is revoked already, and its holder has another since`;
  throw new CommandError(`${what}: pasted pki revoke ${successor.serial} ends that`);
}

export const crl: Run = (terminal, { options }) => inSession(terminal, async ({ config, revocationList }) => {
  const path = options.get('--out') ?? '-';
  if (path !== '-') requireFree(path, config.databasePath, 'replace');
  const { der, thisUpdate } = await revocationList.current();
  const isDue = unixSeconds(terminal.clock) - thisUpdate >= CRL_DUE_SECONDS;
  if (isDue) terminal.stderr.write('pasted: warning: a new list is due, but cannot be made: see pasted check\n');
  const written = options.has('--der') ? der : Buffer.from(encodePem('X509 CRL', der));
  if (path === '-') terminal.stdout.write(written);
  else replaceFile(terminal, path, written);
});

export const ca: Run = (terminal) => inSession(terminal, async ({ authorities }) => {
  const authority = await authorities.find();
  if (authority === undefined) throw new Refusal('authorityMissing');
  terminal.stdout.write(encodePem('CERTIFICATE', authority.certificate));
});

/** A new certificate for the same name and key. */
export const renew: Run = (terminal, given) => inSession(terminal, async (session) => {
  const { privateKey, ...before } = await session.authorities.signing();
  const createdAt = unixSeconds(terminal.clock);
  const validity = validityFrom(createdAt, session.config.pkiCaDays);
  const expiresAt = validity.notAfter;
  // The new one may end sooner only if the one before was made while the clock was ahead.
  if (expiresAt <= before.expiresAt && createdAt >= before.createdAt) {
    const moments = `${isoSeconds(before.expiresAt)}, and would be until ${isoSeconds(expiresAt)}`;
    throw new CommandError(`the certificate authority is valid until ${moments}: raise ${SETTINGS.pkiCaDays.name}`);
  }
  const serial = makeSerial(randomBytes);
  const certificate = await renewAuthorityCertificate({ serial, validity }, { ...before, privateKey });
  const fingerprint = fingerprintSha1(certificate);
  const details = { type: 'ca', common_name: before.commonName, fingerprint, expires_at: expiresAt };
  const issued = session.audit.event('cert_issued', 'success', OPERATOR, details);
  const renewed = { ...before, certificate, fingerprint, createdAt, expiresAt };
  await replace(session, before, renewed, issued);
  const lines = [
    `The certificate authority ${JSON.stringify(before.commonName)} is valid until ${isoSeconds(expiresAt)} now.`,
    `fingerprint  ${shownFingerprint(certificate)}`,
    'A proxy that verifies client certificates needs the new one: pasted pki ca',
  ];
  report(terminal.stdout, given, { serial, ...presentIssued(renewed) }, `${lines.join('\n')}\n`);
});

export const passphrase: Run = async (terminal, given) => {
  const password = readPassword(terminal, given.options.get('--new-password-file')!);
  const { name, parse, expected } = SETTINGS.pkiCaPassword;
  // Otherwise the key would be lost: nobody could give the service this password.
  if (parse(password) === undefined) throw new CommandError(`the password does not fit ${name}: it takes ${expected}`);
  await inSession(terminal, async (session) => {
    const { privateKey, ...before } = await session.authorities.signing();
    const lockedKey = await lockPrivateKey(privateKey, password, randomBytes);
    // A key that can't be opened again must not take the place of one that can.
    await unlockPrivateKey(lockedKey, password, before.certificate);
    const { fingerprint } = before;
    const changed = session.audit.event('ca_password_changed', 'success', OPERATOR, { fingerprint });
    await replace(session, before, { ...before, lockedKey }, changed);
    const next = `make it ${name} now, and restart the service`;
    const text = `The key of the certificate authority has the new password: ${next}.\n`;
    report(terminal.stdout, given, { fingerprint_sha1: fingerprint }, text);
  });
};

async function replace(
  { store }: OperatorSession, before: StoredAuthority, after: StoredAuthority, audited: AuditEvent,
): Promise<void> {
  if (await store.run('replaceAuthority', { before, after, audited })) return;
  throw new CommandError('the certificate authority has just been changed by another command: nothing was done');
}

/** The most that public authorities take. */
const MAX_NAMES = 100;

/** Apple's systems refuse a server certificate valid for more than 825 days; ours is valid from five minutes ago. */
const DAYS = { minimum: 1, maximum: 824, fallback: 365 };

/** Uses neither the database nor the settings. */
export const selfSigned: Run = async (terminal, given) => {
  const names = readNames(given.options.get('--host')!);
  const days = wholeNumber(given, '--days', DAYS);
  // Absolute, so that they can be copied into settings.
  const certificatePath = resolve(given.options.get('--out-cert') ?? 'server.crt');
  const keyPath = resolve(given.options.get('--out-key') ?? 'server.key');
  const issuedAt = unixSeconds(terminal.clock);
  const serial = makeSerial(randomBytes);
  const validity = validityFrom(issuedAt, days);
  const keyPair = await generateKeyPair('prime256v1');
  const certificate = await makeServerCertificate({ names, serial, validity, ...keyPair });
  using certificateFile = createNewFile(terminal, certificatePath, READABLE_BY_ALL);
  using keyFile = createNewFile(terminal, keyPath);
  certificateFile.write(Buffer.from(encodePem('CERTIFICATE', certificate)));
  keyFile.write(Buffer.from(privateKeyPem(keyPair.privateKey)));
  certificateFile.keep();
  keyFile.keep();
  const fingerprint = shownFingerprint(certificate);
  const shownNames = names.map(({ name }) => name);
  // A client can't ask for a pattern such as *.example.
  const askable = shownNames.find((name) => !name.startsWith('*')) ?? shownNames[0]!.replace('*', 'paste');
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
    `  curl --cacert ${certificatePath} https://${hostOf(askable, SETTINGS.port.fallback)}/`,
  ];
  report(terminal.stdout, given, {
    certificate_file: certificatePath, key_file: keyPath, names: shownNames, serial,
    fingerprint_sha256: fingerprint.replaceAll(':', '').toLowerCase(),
    created_at: issuedAt, expires_at: validity.notAfter,
  }, `${lines.join('\n')}\n`);
};

function readNames(text: string): ServerName[] {
  const names = new Map<string, ServerName>();
  for (const item of text.split(',').map((part) => part.trim())) {
    const name = parseServerName(item);
    if (name === undefined) throw wrongValue('--host', 'host names and addresses, as in paste.example,192.0.2.1', item);
    names.set(name.name, name);
  }
  if (names.size > MAX_NAMES) throw new UsageError(`--host takes at most ${MAX_NAMES} names`);
  return [...names.values()];
}
