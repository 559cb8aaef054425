// The certificate revocation list (RFC 5280 section 5): made anew when a certificate was revoked since, and before half its life is over.
// Who revokes does not matter: it is compared with what is stored, so the command line's revocations count too.

import { unixSeconds, type Clock } from '../core/time.ts';
import { CRL_TTL_SECONDS, makeCrl } from '../crypto/crl.ts';
import { REVOCATION_REASONS, type RevocationReason } from '../crypto/extensions.ts';
import type { AuthorityStore, Certificate, CertificateStore } from '../store/pki-store.ts';
import type { Authorities } from './authority.ts';

export interface RevocationList {
  /** The list in DER, current at this moment. Refuses when there is no authority, or its key can't be had. */
  current(): Promise<Uint8Array>;
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
  let making: Promise<Uint8Array | undefined> | undefined;

  async function findCurrent(): Promise<Uint8Array | undefined> {
    const stored = await store.findCrl();
    if (stored === undefined || stored.revokedCount !== (await store.revokedCount())) return undefined;
    // A list from the future, made before the host's clock was set right, is refused by verifiers.
    const ageSeconds = unixSeconds(clock) - stored.thisUpdate;
    return ageSeconds >= 0 && ageSeconds < CRL_TTL_SECONDS / 2 ? stored.der : undefined;
  }

  /** Undefined when another process has kept one of the same number meanwhile. */
  async function make(): Promise<Uint8Array | undefined> {
    const authority = await authorities.signing();
    const revoked = (await certificates.listRevoked()).map(entryOf);
    const number = ((await store.findCrl())?.number ?? 0) + 1;
    const thisUpdate = unixSeconds(clock);
    const der = await makeCrl({ number, thisUpdate, revoked }, authority);
    const isKept = await store.keepCrl({ number, der, thisUpdate, revokedCount: revoked.length });
    return isKept ? der : undefined;
  }

  async function current(): Promise<Uint8Array> {
    // What is being made already may lack what was revoked since it was begun.
    await making?.catch(() => {});
    const found = await findCurrent();
    if (found !== undefined) return found;
    making ??= make().finally(() => {
      making = undefined;
    });
    return (await making) ?? current();
  }

  return { current };
}

/** Of a certificate that is revoked. */
function entryOf({ serial, revokedAt, revocationReason }: Certificate) {
  const reason = revocationReason !== null && isRevocationReason(revocationReason) ? { reason: revocationReason } : {};
  return { serial, revokedAt: revokedAt!, ...reason };
}
