// What is in the database, for `pasted check`: its version, whether it is whole, the certificate authority, and what it
// says about the clock. Reads alone: store/examine.ts.

import { statSync } from 'node:fs';

import { isProduction } from '../config/checks.ts';
import { SETTINGS, type Config } from '../config/settings.ts';
import { MINUTE_SECONDS, isoSeconds } from '../core/time.ts';
import { CRL_TTL_SECONDS } from '../crypto/crl.ts';
import { AuthorityKeyError, unlockPrivateKey } from '../crypto/private-key.ts';
import { isExposed, publicPlace } from '../http/listening-place.ts';
import { adminDoubt, authorityDoubt } from '../service/doubts.ts';
import { examineDatabase, type Contents, type Examination } from '../store/examine.ts';
import type { StoredAuthority, StoredCrl } from '../store/pki-store.ts';
import { StoreError } from '../store/store.ts';
import type { CheckDepth } from '../store/verify.ts';
import { fail, ok, warn, type Finding } from './findings.ts';
import { showBytes } from './quantities.ts';

/** No release is older: a clock that says so was never set. */
const EARLIEST_MOMENT_SECONDS = Date.UTC(2026, 0, 1) / 1000;

/** A host whose clock is corrected in small steps stays within it. */
const CLOCK_MARGIN_SECONDS = 5 * MINUTE_SECONDS;

/** Of more damage nobody learns more. */
const MOST_DAMAGE_SHOWN = 5;

export async function checkDatabase(config: Config, depth: CheckDepth, nowSeconds: number): Promise<Finding[]> {
  const { databasePath: path } = config;
  if (isMissing(path)) {
    const reason = `the service makes a new one when it starts, or ${SETTINGS.databasePath.name} is wrong`;
    return [fail('database', `there is none at ${path}: ${reason}`), checkClock(null, nowSeconds)];
  }
  let examination;
  try {
    examination = examineDatabase(path, depth);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return [fail('database', error.message), checkClock(null, nowSeconds)];
  }
  const { contents } = examination;
  return [
    checkSchema(examination),
    ...checkDamage(examination, depth),
    checkClock(contents?.newestCreatedAt ?? null, nowSeconds),
    ...(contents === undefined ? [] : checkAdmin(config, contents)),
    ...(contents === undefined ? [] : await checkAuthority(config, contents, nowSeconds)),
  ];
}

/** Not of one that this user may not see. */
function isMissing(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function checkSchema({ strangeness, damage, schemaVersion, newestSchemaVersion }: Examination): Finding {
  if (strangeness !== undefined) return fail('schema', `the database ${strangeness}`);
  if (damage.length > 0) return fail('schema', 'cannot be trusted in a damaged database');
  if (schemaVersion === newestSchemaVersion) return ok('schema', `${schemaVersion}, of this version`);
  return warn('schema', `${schemaVersion}; the next start brings it to ${newestSchemaVersion}: make a backup before`);
}

function checkDamage({ strangeness, damage, contents }: Examination, depth: CheckDepth): Finding[] {
  if (strangeness !== undefined) return [];
  if (damage.length > 0) return damage.slice(0, MOST_DAMAGE_SHOWN).map((line) => fail('integrity', oneLine(line)));
  const held = contents?.holdings;
  const what = held === undefined ? '' : `, ${held.pastes} pastes with ${showBytes(held.contentBytes)} of content`;
  return [ok('integrity', `no damage by a ${depth} check${what}`)];
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, '; ');
}

/** A clock that is behind lets what has expired live longer, and makes certificates that are not valid yet. */
function checkClock(newestCreatedAt: number | null, nowSeconds: number): Finding {
  const shown = isoSeconds(nowSeconds);
  if (nowSeconds < EARLIEST_MOMENT_SECONDS) return fail('clock', `says ${shown}, before this program was written`);
  if (newestCreatedAt !== null && newestCreatedAt > nowSeconds + CLOCK_MARGIN_SECONDS) {
    return fail('clock', `says ${shown}, and the newest paste was made at ${isoSeconds(newestCreatedAt)}`);
  }
  return ok('clock', `says ${shown}`);
}

function checkAdmin(config: Config, { certificates }: Contents): Finding[] {
  const isOpen = isProduction(config) || isExposed(publicPlace(config, 0));
  const doubt = isOpen ? adminDoubt(config, certificates) : undefined;
  return doubt === undefined ? [] : [warn('admin', doubt.message)];
}

async function checkAuthority(config: Config, { authority, crl }: Contents, nowSeconds: number): Promise<Finding[]> {
  if (authority === undefined) return [ok('certificate authority', 'there is none')];
  return [
    checkAuthorityExpiry(authority, nowSeconds),
    await checkAuthorityKey(config, authority),
    ...(crl === undefined ? [] : [checkCrl(crl, nowSeconds)]),
  ];
}

function checkAuthorityExpiry({ commonName, expiresAt }: StoredAuthority, nowSeconds: number): Finding {
  const name = 'certificate authority';
  const doubt = authorityDoubt(expiresAt, nowSeconds);
  if (doubt !== undefined) return (doubt.level === 'error' ? fail : warn)(name, doubt.message);
  return ok(name, `${JSON.stringify(commonName)}, valid until ${isoSeconds(expiresAt)}`);
}

async function checkAuthorityKey(config: Config, authority: StoredAuthority): Promise<Finding> {
  const name = 'authority key';
  const setting = SETTINGS.pkiCaPassword.name;
  if (config.pkiCaPassword === '') return warn(name, `${setting} is not set: nothing can be signed`);
  try {
    await unlockPrivateKey(authority.lockedKey, config.pkiCaPassword, authority.certificate);
    return ok(name, `opens with ${setting}, and belongs to the certificate`);
  } catch (error) {
    if (!(error instanceof AuthorityKeyError)) throw error;
    return fail(name, `${setting}: ${error.message}`);
  }
}

/** The service makes a new one whenever it is asked; an old one says that whoever should ask does not. */
function checkCrl({ thisUpdate }: StoredCrl, nowSeconds: number): Finding {
  const name = 'revocation list';
  const nextUpdate = thisUpdate + CRL_TTL_SECONDS;
  if (nextUpdate > nowSeconds) return ok(name, `the last one is good until ${isoSeconds(nextUpdate)}`);
  const since = `the last one ran out at ${isoSeconds(nextUpdate)}`;
  return warn(name, `${since}: a proxy that checks it refuses every certificate, until it is given a new one`);
}
