// The certificate revocation list (RFC 5280 section 5), made anew after a revocation and once half its life is over.
// Whether one is due is read from the store, so that revocations from the command line count too.

import { setImmediate } from 'node:timers/promises';
import { BACKDATE_SECONDS, DAY_SECONDS, unixSeconds } from '../core/time.ts';
import type { SharedParts } from '../pastes/parts.ts';
import { listRevoked } from '../store/open.ts';
import type { Certificate, StoredCrl } from '../store/store.ts';
import type { Authorities } from './authority.ts';
import {
  authorityKeyIdentifier, certificateSerialNumber, extension, readIssuer, REVOCATION_REASONS, type RevocationReason,
} from './certificates.ts';
import { enumerated, explicit, integer, OIDS, seq, time } from './der.ts';
import { type Authority, ECDSA_WITH, signed } from './keys.ts';

/** From thisUpdate to nextUpdate, after which verifiers refuse every client; a new list is due at half of it. */
export const CRL_TTL_SECONDS = 7 * DAY_SECONDS;
export const CRL_DUE_SECONDS = CRL_TTL_SECONDS / 2;

/** Entries encoded in one turn of the event loop: about 2 ms, so that a list of any length holds nothing else up. */
const ENTRIES_A_TURN = 200;

export function isRevocationReason(text: string): text is RevocationReason {
  return Object.hasOwn(REVOCATION_REASONS, text);
}

interface RevocationListParts extends Pick<SharedParts, 'clock' | 'store'> {
  readonly authorities: Pick<Authorities, 'signing'>;
}

export class RevocationList {
  readonly #parts: RevocationListParts;
  #making: Promise<StoredCrl | undefined> | undefined;
  #kept: StoredCrl | undefined;

  constructor(parts: RevocationListParts) {
    this.#parts = parts;
  }

  /** The current list, the same object as long as it is current. Refuses when there is none and none can be made. */
  async current(): Promise<StoredCrl> {
    // Wait for a list that is being made, then check it: it may lack what was revoked since its making began.
    await this.#making?.catch(() => {});
    const found = await this.#findYounger(CRL_DUE_SECONDS);
    if (found !== undefined) return found;
    this.#making ??= this.#make().finally(() => (this.#making = undefined));
    try {
      // Undefined means that another process has stored a list meanwhile: look at that one.
      return (await this.#making) ?? this.current();
    } catch (error) {
      // A list that names all that are revoked is good to the end of its life.
      const good = await this.#findYounger(CRL_TTL_SECONDS);
      if (good === undefined) throw error;
      return good;
    }
  }

  async #find(): Promise<StoredCrl | undefined> {
    return (this.#kept = await this.#parts.store.read.findCrl(this.#kept));
  }

  async #findYounger(maxAgeSeconds: number): Promise<StoredCrl | undefined> {
    const { store, clock } = this.#parts;
    const found = await this.#find();
    if (found === undefined || found.revokedCount !== (await store.read.revokedCount())) return undefined;
    // Verifiers refuse a list from the future, such as one made before the host's clock was set back.
    const ageSeconds = unixSeconds(clock) - found.thisUpdate;
    return ageSeconds >= 0 && ageSeconds < maxAgeSeconds ? found : undefined;
  }

  /** Undefined when another process has stored a list of this number, or of a larger one, meanwhile. */
  async #make(): Promise<StoredCrl | undefined> {
    const { authorities, store, clock } = this.#parts;
    const authority = await authorities.signing();
    const before = await this.#find();
    // Counted before the entries are read, so that a revocation meanwhile makes this list outdated.
    const revokedCount = await store.read.revokedCount();
    const nowSeconds = unixSeconds(clock);
    const thisUpdate = nowSeconds - BACKDATE_SECONDS;
    // At least the current time, so that no number is used twice after an older database was restored.
    const number = Math.max((before?.number ?? 0) + 1, nowSeconds);
    const revoked = entriesSince(Math.min(before?.thisUpdate ?? -Infinity, thisUpdate), store);
    const made = { number, thisUpdate, revokedCount, der: await makeCrl({ number, thisUpdate, revoked }, authority) };
    if (!(await store.run('keepCrl', made))) return undefined;
    return (this.#kept = made);
  }
}

/** An entry stays until it was on a list whose thisUpdate is after the certificate's end (RFC 5280 section 3.3). */
async function* entriesSince(lastUpdate: number, { read }: RevocationListParts['store']) {
  for await (const certificate of listRevoked(read)) {
    if (Math.max(certificate.expiresAt, certificate.revokedAt!) >= lastUpdate) yield certificate;
  }
}

/** A reason that is not known is left out. */
export type RevokedCertificate = Pick<Certificate, 'serial' | 'revokedAt'> & Partial<Certificate>;

type Revoked = Iterable<RevokedCertificate> | AsyncIterable<RevokedCertificate>;

/** In DER; `number` must be above that of all lists before (section 5.2.3). A RangeError for what can't be encoded. */
export async function makeCrl(
  { number, thisUpdate, revoked }: { number: number; thisUpdate: number; revoked: Revoked },
  { certificate, privateKey }: Authority,
): Promise<Uint8Array> {
  const issuer = readIssuer(certificate);
  const entries = await revokedCertificates(revoked);
  // revokedCertificates MUST be absent when there are none (section 5.1.2.6).
  const list = entries.length === 0 ? [] : [seq(...entries)];
  // The list may be megabytes, and seq and signed each copy it once more, so let other work run first.
  await setImmediate();
  // TBSCertList (section 5.1), its fields in their order.
  const tbsCertList = seq(
    integer(1), // v2
    ECDSA_WITH.sha384, issuer.name,
    time(thisUpdate), time(thisUpdate + CRL_TTL_SECONDS),
    ...list,
    explicit(0, seq(authorityKeyIdentifier(issuer.keyIdentifier), extension(OIDS.cRLNumber, integer(number)))),
  );
  return signed(tbsCertList, privateKey, 'sha384');
}

/** The entries, joined into few pieces: a hundred thousand are copied faster so, and fit an argument list. */
async function revokedCertificates(revoked: Revoked): Promise<Uint8Array[]> {
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

/** SEQUENCE { userCertificate, revocationDate, crlEntryExtensions OPTIONAL } (section 5.1.2.6) */
function revokedCertificate({ serial, revokedAt, revocationReason: reason }: RevokedCertificate): Uint8Array {
  const isNamed = typeof reason === 'string' && isRevocationReason(reason);
  const crlEntryExtensions = isNamed ? [seq(extension(OIDS.reasonCode, enumerated(REVOCATION_REASONS[reason])))] : [];
  return seq(certificateSerialNumber(serial), time(revokedAt!), ...crlEntryExtensions);
}
