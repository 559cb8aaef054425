// The certificate revocation list (RFC 5280 section 5): made anew when a certificate was revoked since, and before half
// its life is over. Who revokes does not matter: it is compared with what is stored, so the command line's revocations
// count too.

import { type Clock, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import type { AuthorityStore, Certificate, CertificateStore, StoredCrl } from '../store/store.ts';
import type { Authorities } from './authority.ts';
import { REVOCATION_REASONS, type RevocationReason } from './certificates.ts';
import { CRL_TTL_SECONDS, makeCrl, type RevokedCertificate } from './crl.ts';

/** How long before its making a list begins, for verifiers whose clocks are slow: they would refuse everyone. */
const BACKDATE_SECONDS = 5 * MINUTE_SECONDS;

export interface RevocationList {
  /**
   * The list of this moment, the same object while it is. Where no other can be made, one that names all that are
   * revoked is good to the end of its life; else refuses when there is no authority, or its key can't be had.
   */
  current(): Promise<StoredCrl>;
  /** Makes the list that is due where anybody ever asked for one: what it names can go only then. Never rejects. */
  renew(): Promise<void>;
}

export function isRevocationReason(text: string): text is RevocationReason {
  return Object.hasOwn(REVOCATION_REASONS, text);
}

export function createRevocationList(parts: {
  authorities: Authorities;
  store: AuthorityStore;
  certificates: CertificateStore;
  clock: Clock;
}): RevocationList {
  const { authorities, store, certificates, clock } = parts;
  let making: Promise<StoredCrl | undefined> | undefined;
  let kept: StoredCrl | undefined;

  async function find(): Promise<StoredCrl | undefined> {
    kept = await store.findCrl(kept);
    return kept;
  }

  async function findYounger(maxAgeSeconds: number): Promise<StoredCrl | undefined> {
    const found = await find();
    if (found === undefined || found.revokedCount !== (await store.revokedCount())) return undefined;
    // A list from the future, made before the host's clock was set right, is refused by verifiers.
    const ageSeconds = unixSeconds(clock) - found.thisUpdate;
    return ageSeconds >= 0 && ageSeconds < maxAgeSeconds ? found : undefined;
  }

  /** Undefined when another process has kept one of the same number meanwhile. */
  async function make(): Promise<StoredCrl | undefined> {
    const authority = await authorities.signing();
    const before = await find();
    // Counted before they are read: what is revoked meanwhile makes this list an old one.
    const revokedCount = await store.revokedCount();
    const nowSeconds = unixSeconds(clock);
    const thisUpdate = nowSeconds - BACKDATE_SECONDS;
    // By the clock, so that a number is not used again after an older database was put back.
    const number = Math.max((before?.number ?? 0) + 1, nowSeconds);
    const revoked = entriesSince(Math.min(before?.thisUpdate ?? -Infinity, thisUpdate));
    const made = { number, thisUpdate, revokedCount, der: await makeCrl({ number, thisUpdate, revoked }, authority) };
    if (!(await store.keepCrl(made))) return undefined;
    kept = made;
    return made;
  }

  /** An entry stays until it was on a list that began after its certificate's end (RFC 5280 section 3.3). */
  async function* entriesSince(lastUpdate: number): AsyncGenerator<RevokedCertificate> {
    for await (const certificate of certificates.listRevoked()) {
      if (Math.max(certificate.expiresAt, certificate.revokedAt!) >= lastUpdate) yield entryOf(certificate);
    }
  }

  async function current(): Promise<StoredCrl> {
    // What is being made already may lack what was revoked since it was begun.
    await making?.catch(() => {});
    const found = await findYounger(CRL_TTL_SECONDS / 2);
    if (found !== undefined) return found;
    making ??= make().finally(() => {
      making = undefined;
    });
    try {
      return (await making) ?? current();
    } catch (error) {
      const good = await findYounger(CRL_TTL_SECONDS);
      if (good === undefined) throw error;
      return good;
    }
  }

  async function renew(): Promise<void> {
    if ((await find()) !== undefined) await current();
  }

  return { current, renew: () => renew().catch(() => {}) };
}

/** Of a certificate that is revoked. */
function entryOf({ serial, revokedAt, revocationReason }: Certificate): RevokedCertificate {
  const reason = revocationReason !== null && isRevocationReason(revocationReason) ? { reason: revocationReason } : {};
  return { serial, revokedAt: revokedAt!, ...reason };
}
