// `pasted pki`: what the authority issued and revoked, for the operator: any certificate, whoever obtained it.

import { Refusal } from '../core/refusals.ts';
import type { Caller } from '../core/tiers.ts';
import { isoSeconds, unixSeconds } from '../core/time.ts';
import type { RevocationReason } from '../crypto/extensions.ts';
import { encodePem } from '../crypto/pem.ts';
import { presentCertificate, presentCertificates } from '../http/present.ts';
import type { CertificateRecord } from '../service/certificates.ts';
import { statusOf } from '../service/identity.ts';
import { alignColumns } from './columns.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';
import { replaceFile } from './files.ts';
import { OPERATOR, findCertificate, inOffice } from './operator.ts';

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
