// The four kinds of caller and what each may do. Who is who is decided in service/identity.ts.

/** `untrusted` presents any fingerprint; `trusted` one of a valid certificate of this service; `admin` the first of these. */
export type Tier = 'anonymous' | 'untrusted' | 'trusted' | 'admin';

export interface Caller {
  readonly tier: Tier;
  /** 40 lowercase hex characters; null for the anonymous tier only. */
  readonly fingerprint: string | null;
}

export const ANONYMOUS: Caller = { tier: 'anonymous', fingerprint: null };

/** The admin has the limits of a trusted caller. */
export function hasTrustedLimits(caller: Caller): boolean {
  return caller.tier === 'trusted' || caller.tier === 'admin';
}
