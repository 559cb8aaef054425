// `pasted pki crl` and `pki ca`: what the authority publishes, a later end for it, and a new password for its key.

import { makeSerial, renewAuthorityCertificate, shownFingerprint, validityFrom } from '../authority/certificates.ts';
import { presentIssued } from '../authority/issuing.ts';
import { encodePem, lockPrivateKey, unlockPrivateKey } from '../authority/keys.ts';
import { SETTINGS } from '../config/settings.ts';
import { Refusal } from '../core/refusals.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import type { AuditEvent, StoredAuthority } from '../store/store.ts';
import { readPassword } from './certificates.ts';
import { CommandError } from './failures.ts';
import { inSession, OPERATOR, type OperatorSession, replaceFile } from './session.ts';
import { report, type Run } from './terminal.ts';

export const crl: Run = (terminal, { flags, values }) =>
  inSession(terminal, async ({ revocationList }) => {
    const { der } = await revocationList.current();
    const path = values.get('--out') ?? '-';
    const written = flags.has('--der') ? der : Buffer.from(encodePem('X509 CRL', der));
    if (path === '-') terminal.stdout.write(written);
    else replaceFile(path, written);
  });

export const ca: Run = (terminal) =>
  inSession(terminal, async ({ authorities }) => {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    terminal.stdout.write(encodePem('CERTIFICATE', authority.certificate));
  });

export const renew: Run = (terminal, given) =>
  inSession(terminal, async (session) => {
    const { privateKey, ...before } = await session.authorities.signing();
    const createdAt = unixSeconds(terminal.clock);
    const validity = validityFrom(createdAt, session.config.pkiCaDays);
    const expiresAt = validity.notAfter;
    if (expiresAt <= before.expiresAt) {
      const moments = `${isoSeconds(before.expiresAt)}, and would be until ${isoSeconds(expiresAt)}`;
      throw new CommandError(`the certificate authority is valid until ${moments}: raise ${SETTINGS.pkiCaDays.name}`);
    }
    const serial = makeSerial(randomBytes);
    const certificate = await renewAuthorityCertificate({ serial, validity }, { ...before, privateKey });
    const fingerprint = fingerprintSha1(certificate);
    const { commonName } = before;
    const details = { type: 'ca', common_name: commonName, fingerprint, expires_at: expiresAt };
    const issued = session.audit.event('cert_issued', 'success', OPERATOR, details);
    const renewed = { ...before, certificate, fingerprint, createdAt, expiresAt };
    await replace(session, before, renewed, issued);
    const lines = [
      `The certificate authority ${JSON.stringify(commonName)} is valid until ${isoSeconds(expiresAt)} now.`,
      `fingerprint  ${shownFingerprint(certificate)}`,
      'A proxy that verifies client certificates needs the new one: pasted pki ca',
    ];
    report(terminal.stdout, given, { serial, ...presentIssued(renewed) }, `${lines.join('\n')}\n`);
  });

export const passphrase: Run = async (terminal, given) => {
  const path = given.values.get('--new-password-file')!;
  const password = readPassword(terminal, path);
  const { name, parse, expected } = SETTINGS.pkiCaPassword;
  // The key would be lost: nobody could give the service its password.
  if (parse(password) === undefined) throw new CommandError(`${path} does not fit ${name}, which takes ${expected}`);
  await inSession(terminal, async (session) => {
    const { privateKey, ...before } = await session.authorities.signing();
    const lockedKey = await lockPrivateKey(privateKey, password, randomBytes);
    // What can't be opened again must not take the place of what can.
    await unlockPrivateKey(lockedKey, password, before.certificate);
    const { fingerprint } = before;
    const changed = session.audit.event('ca_password_changed', 'success', OPERATOR, { fingerprint });
    await replace(session, before, { ...before, lockedKey }, changed);
    const next = `make it ${name} now, and send a running service SIGHUP`;
    const text = `The key of the certificate authority has the new password: ${next}.\n`;
    report(terminal.stdout, given, { fingerprint_sha1: fingerprint }, text);
  });
};

async function replace(
  { store }: OperatorSession, before: StoredAuthority, after: StoredAuthority, audited: AuditEvent,
): Promise<void> {
  if (await store.authority.replace(before, after, audited)) return;
  throw new CommandError('the certificate authority has just been changed by another command: nothing was done');
}
