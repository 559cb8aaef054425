// `pasted admin`: who the admins are. Whose certificate is the first and so the admin's is decided in the store.

import type { RevocationReason } from '../authority/certificates.ts';
import { normaliseCommonName } from '../authority/der.ts';
import { type CertificateRecord, type IssuedCertificate, newKey, NotFirstError } from '../authority/issuing.ts';
import { encodePem } from '../authority/keys.ts';
import { createKdfThread } from '../authority/pkcs12-kdf-thread.ts';
import { type BundleProfile, makeBundle } from '../authority/pkcs12.ts';
import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { presentCertificate, presentCertificates } from '../http/present.ts';
import { statusOf } from '../pastes/identity.ts';
import type { Given, Run } from './commands.ts';
import { CommandError, EXIT, UsageError } from './failures.ts';
import { createNewFile, type NewFile, replaceFile, warnOfReaders } from './files.ts';
import { findCertificate, inOffice, type Office, OPERATOR } from './operator.ts';
import { alignColumns, type Terminal } from './output.ts';

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
  return inOffice(terminal, { ifMissing: 'create', needsPassword: true }, async (office) => {
    if ((await office.store.certificates.listAll()).length > 0) throw issuedBefore();
    const file = wanted.path === '-' ? outputFile(terminal) : createNewFile(wanted.path);
    const issued = await intoNewFile(file, () => issueFirst(office, wanted, file));
    const report = wanted.path === '-' ? terminal.stderr : terminal.stdout;
    report.write(given.options.has('--json') ? jsonOf(issued, wanted) : textOf(issued, wanted));
    return EXIT.success;
  });
};

export const grant: Run = (terminal, { operands: [given = ''], options }) =>
  inOffice(terminal, { ifMissing: 'refuse' }, async (office) => {
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

async function issueFirst(office: Office, wanted: Wanted, file: NewFile): Promise<IssuedCertificate> {
  const { commonName, profile, bundlePassword } = wanted;
  const authority = await office.authorities.ensured(OPERATOR);
  const key = await newKey();
  const kdf = createKdfThread(0);
  const before = async (certificate: Uint8Array): Promise<void> => {
    const keyed = { certificate, privateKey: key.privateKey, authority: authority.certificate };
    const request = { profile, password: bundlePassword, friendlyName: commonName, ...keyed };
    await file.write(await makeBundle(request, { random: randomBytes, derive: kdf.derive }));
  };
  try {
    const request = { commonName, key, requester: OPERATOR, spend: null, before, onlyFirst: true };
    return await office.certificates.issue(request, authority);
  } finally {
    await kdf.close();
  }
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
  inOffice(terminal, ASKING, async ({ store }) => {
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
  inOffice(terminal, ASKING, async (office) => {
    const certificate = await findCertificate(office, given);
    const { serial, commonName, fingerprint } = certificate;
    const reason = (values.get('--reason') ?? null) as RevocationReason | null;
    // The operator may do what the holder may.
    const holder: Caller = { tier: 'trusted', fingerprint };
    await office.certificates.revoke(serial, { caller: holder, requester: OPERATOR }, reason);
    const record: CertificateRecord = { ...certificate, status: 'revoked' };
    const text = `Revoked certificate ${serial} of ${commonName}.`;
    terminal.stdout.write(`${options.has('--json') ? JSON.stringify(presentCertificate(record)) : text}\n`);
    return EXIT.success;
  });

export const crl: Run = (terminal, { options, values }) =>
  inOffice(terminal, ASKING, async ({ revocationList }) => {
    const { der } = await revocationList.current();
    const path = values.get('--out') ?? '-';
    const written = options.has('--der') ? der : Buffer.from(encodePem('X509 CRL', der));
    if (path === '-') terminal.stdout.write(written);
    else replaceFile(path, written);
    return EXIT.success;
  });

export const ca: Run = (terminal) =>
  inOffice(terminal, ASKING, async ({ authorities }) => {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    terminal.stdout.write(encodePem('CERTIFICATE', authority.certificate));
    return EXIT.success;
  });
