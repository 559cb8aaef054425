// Certificate revocation lists, version 2 (RFC 5280 section 5). When a new one is due, its number, and which entries
// may be left out again, is for the caller to know.

import { setImmediate } from 'node:timers/promises';
import { DAY_SECONDS } from '../core/time.ts';
import {
  authorityKeyIdentifier, certificateSerialNumber, crlNumber, ECDSA_WITH_SHA384, reasonCode,
  type RevocationReason, signed,
} from './certificates.ts';
import { explicit, integer, seq, seqOf, time } from './der.ts';
import { type Authority, readIssuer } from './keys.ts';

/** From thisUpdate to nextUpdate. After it, verifiers refuse every client, so a list is made anew well before. */
export const CRL_TTL_SECONDS = 7 * DAY_SECONDS;

/** Entries encoded in one turn of the event loop: about 2 ms, so that a list of any length holds nothing else up. */
const ENTRIES_A_TURN = 200;

export interface RevokedCertificate {
  /** As makeSerial makes it. */
  readonly serial: string;
  /** Unix seconds. */
  readonly revokedAt: number;
  /** Absent when none was given. */
  readonly reason?: RevocationReason;
}

export interface CrlRequest {
  /** Larger than that of every list before (section 5.2.3). */
  readonly number: number;
  /** Unix seconds. */
  readonly thisUpdate: number;
  readonly revoked: Iterable<RevokedCertificate> | AsyncIterable<RevokedCertificate>;
}

/**
 * The list in DER, valid for CRL_TTL_SECONDS. Rejects with a RangeError what can't be encoded.
 *
 *     TBSCertList ::= SEQUENCE {
 *       version             Version OPTIONAL,
 *       signature           AlgorithmIdentifier,
 *       issuer              Name,
 *       thisUpdate          Time,
 *       nextUpdate          Time OPTIONAL,
 *       revokedCertificates SEQUENCE OF SEQUENCE { ... } OPTIONAL,
 *       crlExtensions       [0] EXPLICIT Extensions OPTIONAL }
 *
 * v2 is the number 1. revokedCertificates MUST be absent when there are none (section 5.1.2.6).
 */
export async function makeCrl(request: CrlRequest, authority: Authority): Promise<Uint8Array> {
  const { number, thisUpdate, revoked } = request;
  const issuer = readIssuer(authority.certificate);
  const entries = await revokedCertificates(revoked);
  const list = entries.length === 0 ? [] : [seqOf(entries)];
  // It may be megabytes, which are copied again twice.
  await setImmediate();
  const tbsCertList = seq(
    integer(1),
    ECDSA_WITH_SHA384,
    issuer.name,
    time(thisUpdate),
    time(thisUpdate + CRL_TTL_SECONDS),
    ...list,
    explicit(0, seq(authorityKeyIdentifier(issuer.keyIdentifier), crlNumber(number))),
  );
  return signed(tbsCertList, authority.privateKey);
}

/** The entries one after the other, in pieces of those of a turn: a hundred thousand are copied faster like that. */
async function revokedCertificates(revoked: CrlRequest['revoked']): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let entries: Uint8Array[] = [];
  for await (const certificate of revoked) {
    entries.push(revokedCertificate(certificate));
    if (entries.length < ENTRIES_A_TURN) continue;
    pieces.push(Buffer.concat(entries));
    entries = [];
    await setImmediate();
  }
  return [...pieces, ...entries];
}

/**
 *     SEQUENCE {
 *       userCertificate     CertificateSerialNumber,
 *       revocationDate      Time,
 *       crlEntryExtensions  Extensions OPTIONAL }
 */
function revokedCertificate({ serial, revokedAt, reason }: RevokedCertificate): Uint8Array {
  const crlEntryExtensions = reason === undefined ? [] : [seq(reasonCode(reason))];
  return seq(certificateSerialNumber(serial), time(revokedAt), ...crlEntryExtensions);
}
