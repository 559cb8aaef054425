// The /pki endpoints: the authority and what it issues, as far as SERVICE_PKI_ENABLED offers them.

import type { Config } from '../../config/settings.ts';
import { normaliseCommonName } from '../../core/common-name.ts';
import { Refusal } from '../../core/refusals.ts';
import { encodePem, type PemLabel } from '../../crypto/pem.ts';
import { privateKeyPem } from '../../crypto/private-key.ts';
import type { Requester } from '../../service/audit.ts';
import { DEFAULT_AUTHORITY_NAME, type Authorities } from '../../service/authority.ts';
import { newKey, requestedKey, type Certificates } from '../../service/certificates.ts';
import type { Rates } from '../../service/rates.ts';
import { isRevocationReason, type RevocationList } from '../../service/revocation-list.ts';
import type { CallerOf } from '../callers.ts';
import type { Handler, Handlers } from '../handler.ts';
import { jsonBodyOf, textMember, type JsonObject } from '../json-body.ts';
import { presentAuthority, presentCertificates, presentIssued, presentNewAuthority } from '../present.ts';
import { rateHeaders } from '../refused.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { Request } from '../request.ts';

type PkiRoutes =
  | 'describePki' | 'createAuthority' | 'authorityCertificate' | 'revocationList' | 'revocationListPem'
  | 'issueCertificate' | 'listCertificates' | 'revokeCertificate';

export function createPkiHandlers(parts: {
  config: Config;
  authorities: Authorities;
  certificates: Certificates;
  revocationList: RevocationList;
  rates: Rates;
  callerOf: CallerOf;
}): Pick<Handlers, PkiRoutes> {
  const { config, authorities, certificates, revocationList, rates, callerOf } = parts;

  function whenEnabled(handler: Handler): Handler {
    return (request) => {
      if (!config.pkiEnabled) throw new Refusal('pkiDisabled', { hint: 'the operator can set SERVICE_PKI_ENABLED' });
      return handler(request);
    };
  }

  /** Who the audit log names: nobody, for a certificate that is revoked. */
  async function requesterOf(request: Request): Promise<Requester> {
    return { fingerprint: (await callerOf(request)).fingerprint, clientAddress: request.clientAddress };
  }

  async function describePki(): Promise<Reply> {
    if (!config.pkiEnabled) return jsonReply(200, { enabled: false });
    return jsonReply(200, presentAuthority(await authorities.find()));
  }

  async function createAuthority(request: Request): Promise<Reply> {
    const requester = await requesterOf(request);
    await authorities.requireNone();
    const body = await jsonBodyOf(request);
    const commonName = commonNameOf(body) ?? DEFAULT_AUTHORITY_NAME;
    const authority = await authorities.create(commonName, requester);
    return jsonReply(201, presentNewAuthority(authority));
  }

  async function authorityCertificate(): Promise<Reply> {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    return pemReply('CERTIFICATE', authority.certificate);
  }

  async function issueCertificate(request: Request): Promise<Reply> {
    const caller = await callerOf(request);
    const rate = rates.countCreation(request.clientAddress, caller);
    const body = await jsonBodyOf(request);
    const commonName = commonNameOf(body);
    if (commonName === undefined) throw new Refusal('commonNameRequired');
    const authority = await authorities.signing();
    const csr = textMember(body, 'csr', () => new Refusal('csrInvalid', { hint: 'csr must be PEM text' }));
    const key = csr === undefined ? await newKey() : requestedKey(csr);
    const requester = { fingerprint: caller.fingerprint, clientAddress: request.clientAddress };
    const issued = await certificates.issue({ commonName, key, requester, spend: null }, authority);
    const keyPem = key.privateKey === undefined ? undefined : privateKeyPem(key.privateKey);
    const replyHeaders = rate === null ? {} : rateHeaders(rate);
    return jsonReply(201, presentIssued(issued, encodePem('CERTIFICATE', issued.certificate), keyPem), replyHeaders);
  }

  async function listCertificates(request: Request): Promise<Reply> {
    return jsonReply(200, presentCertificates(await certificates.listOf(await callerOf(request))));
  }

  async function revokeCertificate(request: Request): Promise<Reply> {
    const serial = (request.params['serial'] ?? '').toLowerCase();
    const caller = await callerOf(request);
    // Of a holder the fingerprint on record; of anyone else what was presented.
    const requester = { fingerprint: caller.fingerprint ?? request.fingerprint, clientAddress: request.clientAddress };
    await certificates.requireRevocable(serial, { caller, requester });
    const reason = await revocationReason(request);
    await certificates.revoke(serial, { caller, requester }, reason);
    return jsonReply(200, { message: 'certificate revoked', serial });
  }

  return {
    describePki,
    createAuthority: whenEnabled(createAuthority),
    authorityCertificate: whenEnabled(authorityCertificate),
    revocationList: whenEnabled(async () => derReply(await revocationList.current())),
    revocationListPem: whenEnabled(async () => pemReply('X509 CRL', await revocationList.current())),
    issueCertificate: whenEnabled(issueCertificate),
    listCertificates: whenEnabled(listCertificates),
    revokeCertificate: whenEnabled(revokeCertificate),
  };
}

/** The normalised name; undefined when none is given, or an empty one. */
export function commonNameOf(body: JsonObject): string | undefined {
  const given = textMember(body, 'common_name', () => new Refusal('commonNameInvalid'));
  if (given === undefined || given === '') return undefined;
  const commonName = normaliseCommonName(given);
  if (commonName === undefined) throw new Refusal('commonNameInvalid');
  return commonName;
}

async function revocationReason(request: Request) {
  const body = await jsonBodyOf(request);
  const reason = textMember(body, 'reason', () => new Refusal('reasonInvalid'));
  if (reason === undefined) return null;
  if (!isRevocationReason(reason)) throw new Refusal('reasonInvalid', { hint: 'such as keyCompromise or superseded' });
  return reason;
}

function pemReply(label: PemLabel, der: Uint8Array): Reply {
  return { status: 200, headers: { 'Content-Type': 'application/x-pem-file' }, body: encodePem(label, der) };
}

function derReply(der: Uint8Array): Reply {
  return { status: 200, headers: { 'Content-Type': 'application/pkix-crl' }, body: der };
}
