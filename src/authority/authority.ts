// The certificate authority: made once, its key unlocked when it is first needed and kept only as a key object. Issuing
// with it is certificates.ts, its revocation list revocation-list.ts.

import type { Config } from '../config/settings.ts';
import type { Log } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { type Clock, type RandomBytes, unixSeconds } from '../core/time.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import { whyUnavailable } from '../http/present.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { Audit, Requester } from '../pastes/identity.ts';
import { inTurn } from '../pastes/passwords.ts';
import type { AuthorityStore } from '../store/open.ts';
import type { StoredAuthority } from '../store/store.ts';
import { makeAuthorityCertificate, makeSerial, validityFrom } from './certificates.ts';
import { type Authority, AuthorityKeyError, generateKeyPair, lockPrivateKey, unlockPrivateKey } from './keys.ts';

/** Under which name its key is locked and unlocked: once, for everybody. */
const QUEUED_AS = 'certificate authority';

export const DEFAULT_AUTHORITY_NAME = 'Paste Service CA';

/** An authority that can sign, with what is stored about it. */
export interface SigningAuthority extends Authority {
  readonly stored: StoredAuthority;
}

export interface Authorities {
  /** What there is; undefined before the authority was made. */
  find(): Promise<StoredAuthority | undefined>;
  /** Makes the authority. Refuses when there is one, of any number that race all but one. */
  create(commonName: string, requester: Requester): Promise<StoredAuthority>;
  /** The authority with its key. Refuses when there is none, or its key can't be had. */
  signing(): Promise<SigningAuthority>;
  /** The same; makes the authority when there is none. */
  ensured(requester: Requester): Promise<SigningAuthority>;
  /** Refuses where create would, before anyone has said what to create. */
  requireNone(): Promise<void>;
  /** Refuses while nothing can be issued: there is no password, or it does not open the stored key. */
  requireUsable(): Promise<void>;
  /** Tries the password on the stored key, so that a wrong one is in the log from the start. Never rejects. */
  checkKey(): Promise<void>;
  /** Why nothing can be issued, in words for callers, as far as it is known: the key is tried by checkKey. */
  whyUnavailable(): string | undefined;
  /** Takes this one instead, once it has opened the stored key where there is one; whether it did. */
  replacePassword(password: string): Promise<boolean>;
}

export function createAuthorities(parts: {
  config: Config;
  store: AuthorityStore;
  queue: WorkQueue;
  audit: Audit;
  clock: Clock;
  random: RandomBytes;
  log: Log;
  /** Called with the authority whenever it has been looked up or made, before anyone gets a certificate of it. */
  onFound?: (authority: StoredAuthority) => void;
}): Authorities {
  const { config, store, queue, audit, clock, random, log, onFound } = parts;
  let caPassword = config.pkiCaPassword;
  let unlocked: Promise<SigningAuthority> | undefined;
  /** The password does not open the stored key. Remembered, since trying it takes a tenth of a second. */
  let isKeyLocked = false;
  /** Of those that each made its own, all but one would have worked for nothing, and some found the queue full. */
  let creating: Promise<StoredAuthority> | undefined;

  function requirePassword(): string {
    if (caPassword === '') throw new Refusal('authorityPasswordMissing');
    return caPassword;
  }

  async function find(): Promise<StoredAuthority | undefined> {
    const stored = await store.find();
    if (stored !== undefined) onFound?.(stored);
    return stored;
  }

  /** Those that come while it is being made fail as it fails. */
  async function create(commonName: string, requester: Requester): Promise<StoredAuthority> {
    if (creating !== undefined) {
      await creating;
      throw new Refusal('authorityExists');
    }
    creating = createOnly(commonName, requester).finally(() => {
      creating = undefined;
    });
    return creating;
  }

  async function requireNone(): Promise<void> {
    if ((await find()) !== undefined) throw new Refusal('authorityExists');
    requirePassword();
  }

  async function createOnly(commonName: string, requester: Requester): Promise<StoredAuthority> {
    await requireNone();
    const made = await make(commonName, requirePassword());
    const { fingerprint, expiresAt } = made.stored;
    const details = { type: 'ca', common_name: commonName, fingerprint, expires_at: expiresAt };
    const created = audit.event('cert_issued', 'success', requester, details);
    if (!(await store.create(made.stored, created))) throw new Refusal('authorityExists');
    audit.announce(created);
    unlocked = Promise.resolve(made);
    onFound?.(made.stored);
    return made.stored;
  }

  async function make(commonName: string, password: string): Promise<SigningAuthority> {
    const createdAt = unixSeconds(clock);
    const validity = validityFrom(createdAt, config.pkiCaDays);
    const keyPair = await generateKeyPair();
    const certificate = await makeAuthorityCertificate({ commonName, serial: makeSerial(random), validity, keyPair });
    const lockedKey = await inTurn(queue, QUEUED_AS, () => lockPrivateKey(keyPair.privateKey, password, random));
    const fingerprint = fingerprintSha1(certificate);
    const stored = { commonName, certificate, lockedKey, fingerprint, createdAt, expiresAt: validity.notAfter };
    return { certificate, privateKey: keyPair.privateKey, stored };
  }

  async function signing(): Promise<SigningAuthority> {
    const stored = await find();
    if (stored === undefined) throw new Refusal('authorityMissing');
    const password = requirePassword();
    if (isKeyLocked) throw new Refusal('issuanceFailed');
    unlocked ??= unlock(stored, password).catch((error: unknown) => {
      unlocked = undefined;
      if (password === caPassword) isKeyLocked = error instanceof Refusal && error.refusal === 'issuanceFailed';
      throw error;
    });
    return unlocked;
  }

  async function unlock(stored: StoredAuthority, password: string): Promise<SigningAuthority> {
    const { certificate, lockedKey } = stored;
    try {
      const privateKey = await inTurn(queue, QUEUED_AS, () => unlockPrivateKey(lockedKey, password, certificate));
      return { certificate, privateKey, stored };
    } catch (error) {
      if (!(error instanceof AuthorityKeyError)) throw error;
      const details = { reason: error.message };
      log({ level: 'error', logger: 'pki', event: 'CA key not usable', outcome: 'failure', details });
      throw new Refusal('issuanceFailed');
    }
  }

  async function ensured(requester: Requester): Promise<SigningAuthority> {
    requirePassword();
    if ((await find()) === undefined) await createDefault(requester);
    return signing();
  }

  async function createDefault(requester: Requester): Promise<void> {
    try {
      await create(DEFAULT_AUTHORITY_NAME, requester);
    } catch (error) {
      // Someone else was first: that authority is as good.
      if (!(error instanceof Refusal && error.refusal === 'authorityExists')) throw error;
    }
  }

  async function requireUsable(): Promise<void> {
    requirePassword();
    if ((await find()) !== undefined) await signing();
  }

  async function checkKey(): Promise<void> {
    // Said in the log by whoever found out; callers are told when they need the key.
    await requireUsable().catch(() => {});
  }

  async function replacePassword(password: string): Promise<boolean> {
    const stored = await find();
    if (stored !== undefined) {
      // Why it does not open the key, unlock() has logged.
      const opened = await unlock(stored, password).catch(() => undefined);
      if (opened === undefined) return false;
      unlocked = Promise.resolve(opened);
      isKeyLocked = false;
    }
    caPassword = password;
    return true;
  }

  return {
    find, create, signing, ensured, requireNone, requireUsable, checkKey, replacePassword,
    whyUnavailable: () => whyUnavailable(caPassword !== '', isKeyLocked),
  };
}
