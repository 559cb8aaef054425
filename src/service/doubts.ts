// What the operator should know about certificates, said when the service starts and by `pasted check`: that anyone can
// become the admin, that the authority runs out. Does not look anything up.

import { SETTINGS, type Config } from '../config/settings.ts';
import { DAY_SECONDS, isoSeconds } from '../core/time.ts';

export interface Doubt {
  readonly level: 'warning' | 'error';
  readonly message: string;
}

/** A new authority means new certificates for everyone. */
const EXPIRY_NOTICE_SECONDS = 90 * DAY_SECONDS;
const EXPIRY_ALARM_SECONDS = 30 * DAY_SECONDS;

/** With a password, POST /register makes whoever comes first the admin. `issued` is how many certificates there are. */
export function adminDoubt({ pkiCaPassword }: Config, issued: number): Doubt | undefined {
  if (pkiCaPassword === '' || issued > 0) return undefined;
  const message = `there is no admin, and ${SETTINGS.pkiCaPassword.name} is set: whoever registers first becomes ` +
    'the admin; before that: pasted admin create';
  return { level: 'warning', message };
}

export function authorityDoubt(expiresAt: number, nowSeconds: number): Doubt | undefined {
  const moment = isoSeconds(expiresAt);
  const leftSeconds = expiresAt - nowSeconds;
  if (leftSeconds <= 0) return { level: 'error', message: `ran out at ${moment}, and all of its certificates with it` };
  if (leftSeconds > EXPIRY_NOTICE_SECONDS) return undefined;
  const days = Math.floor(leftSeconds / DAY_SECONDS);
  const level = leftSeconds <= EXPIRY_ALARM_SECONDS ? 'error' : 'warning';
  return { level, message: `runs out soon, at ${moment} (${days} days), and all of its certificates with it` };
}
