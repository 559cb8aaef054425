// The certificate authority: made once. Its key is unlocked when it is first needed, and kept only as a key object.

import { expected } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { BACKDATE_SECONDS, unixSeconds } from '../core/time.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import { whyUnavailable } from '../http/present.ts';
import { inTurn } from '../pastes/admission.ts';
import type { Requester } from '../pastes/identity.ts';
import type { SharedParts } from '../pastes/parts.ts';
import type { StoredAuthority } from '../store/store.ts';
import { makeAuthorityCertificate, makeSerial, validityFrom } from './certificates.ts';
import { distinguishedName } from './der.ts';
import {
  type Authority, AuthorityKeyError, generateKeyPair, lockPrivateKey, type PrivateKey, unlockPrivateKey,
} from './keys.ts';

/** The key is locked and unlocked once for everybody, so this name waits in the queue instead of a client's address. */
const QUEUED_AS = 'certificate authority';

export const DEFAULT_AUTHORITY_NAME = 'Paste Service CA';

export type SigningAuthority = StoredAuthority & Authority;

type AuthoritiesParts = Pick<SharedParts, 'config' | 'store' | 'queue' | 'audit' | 'clock' | 'random' | 'log'>;

export class Authorities {
  readonly #parts: AuthoritiesParts;
  readonly #onFound: (authority: StoredAuthority) => void;
  #password: string;
  /** Undefined until the key is needed. It stays when another process renews the authority or changes its password. */
  #key: Promise<PrivateKey> | undefined;
  /** The locked key that the password did not open. A try takes 0.1 s, so none follows until the stored key changes. */
  #locked: Uint8Array | undefined;
  /** When the authority, as last looked up, begins and ends. Undefined when there is none: it can be made any time. */
  #found: Pick<StoredAuthority, 'createdAt' | 'expiresAt'> | undefined;
  /** Only one authority is made at a time: others would do work for nothing, and some would find the queue full. */
  #creating: Promise<StoredAuthority> | undefined;

  /** `onFound` is called whenever the authority is looked up or made, before anyone gets a certificate of it. */
  constructor(parts: AuthoritiesParts, onFound: (authority: StoredAuthority) => void = () => {}) {
    this.#parts = parts;
    this.#onFound = onFound;
    this.#password = parts.config.pkiCaPassword;
  }

  async find(): Promise<StoredAuthority | undefined> {
    const stored = await this.#parts.store.read.findAuthority();
    if (stored !== undefined) this.#onFound(stored);
    return (this.#found = stored);
  }

  /** Refuses when there is one. Of calls that race, one makes it; the others wait, then fail as it failed or refuse. */
  async create(commonName: string, requester: Requester): Promise<StoredAuthority> {
    if (this.#creating !== undefined) {
      await this.#creating;
      throw new Refusal('authorityExists');
    }
    return (this.#creating = this.#createOnly(commonName, requester).finally(() => (this.#creating = undefined)));
  }

  /** Refuses where create would, before a name for the authority is known; returns the password for its key. */
  async requireNone(): Promise<string> {
    if ((await this.find()) !== undefined) throw new Refusal('authorityExists');
    return this.#requirePassword();
  }

  /** The authority with its key. Refuses when there is none, or its key can't be had. */
  async signing(): Promise<SigningAuthority> {
    const stored = await this.find();
    if (stored === undefined) throw new Refusal('authorityMissing');
    return this.#withKey(stored);
  }

  /** Like signing, but makes the authority when there is none. */
  async ensured(requester: Requester): Promise<SigningAuthority> {
    const usable = await this.requireUsable();
    if (usable !== undefined) return usable;
    await this.create(DEFAULT_AUTHORITY_NAME, requester).catch((error: unknown) => {
      // Someone else was first: that authority is as good.
      if (!(error instanceof Refusal && error.refusal === 'authorityExists')) throw error;
    });
    return this.signing();
  }

  /** Refuses while nothing can be issued: no password, a CA that is not valid now, or a key that stays locked. */
  async requireUsable(): Promise<SigningAuthority | undefined> {
    this.#requirePassword();
    const stored = await this.find();
    if (!this.#isValid()) throw new Refusal('issuanceFailed');
    return stored && this.#withKey(stored);
  }

  /** Tries the password on the stored key, so that a wrong one is in the log from the start. Never rejects. */
  async checkKey(): Promise<void> {
    // #unlock has logged it; callers are told when they need the key.
    await this.requireUsable().catch(() => {});
  }

  /** Why nothing can be issued, in words for callers, as far as is known: it does not try the key, checkKey does. */
  whyUnavailable(): string | undefined {
    return whyUnavailable(this.#password !== '', Boolean(this.#locked), this.#isValid());
  }

  /** An authority that was made while the clock was ahead begins later than now. */
  #isValid(): boolean {
    const nowSeconds = unixSeconds(this.#parts.clock);
    const { createdAt, expiresAt } = this.#found ?? { createdAt: nowSeconds, expiresAt: Infinity };
    return createdAt - BACKDATE_SECONDS <= nowSeconds && nowSeconds < expiresAt;
  }

  /** Takes the new password unless there is a stored key that it does not open. Returns whether it was taken. */
  async replacePassword(password: string): Promise<boolean> {
    // An authority that is just being made is locked with the old password, so wait for it.
    await this.#creating?.catch(() => {});
    const stored = await this.find();
    if (stored !== undefined) {
      // #unlock has logged why the password does not open the key.
      const opened = await this.#unlock(stored, password).catch((error) => void expected(AuthorityKeyError, error));
      if (opened === undefined) return false;
      this.#key = Promise.resolve(opened);
    }
    this.#locked = undefined;
    this.#password = password;
    return true;
  }

  #requirePassword(): string {
    if (this.#password === '') throw new Refusal('authorityPasswordMissing');
    return this.#password;
  }

  async #createOnly(commonName: string, requester: Requester): Promise<StoredAuthority> {
    const { config, store, queue, audit, clock, random } = this.#parts;
    const password = await this.requireNone();
    const createdAt = unixSeconds(clock);
    const validity = validityFrom(createdAt, config.pkiCaDays);
    const { privateKey, spki } = await generateKeyPair();
    const request = { serial: makeSerial(random), validity, spki, privateKey };
    const certificate = await makeAuthorityCertificate(request, distinguishedName(commonName));
    const lockedKey = await inTurn(queue, QUEUED_AS, () => lockPrivateKey(privateKey, password, random));
    const fingerprint = fingerprintSha1(certificate);
    const expiresAt = validity.notAfter;
    const details = { type: 'ca', common_name: commonName, fingerprint, expires_at: expiresAt };
    const created = audit.event('cert_issued', 'success', requester, details);
    const stored = { commonName, certificate, lockedKey, fingerprint, createdAt, expiresAt };
    if (!(await store.run('createAuthority', { authority: stored, created }))) throw new Refusal('authorityExists');
    audit.announce(created);
    this.#key = Promise.resolve(privateKey);
    this.#onFound(stored);
    return stored;
  }

  async #withKey(stored: StoredAuthority): Promise<SigningAuthority> {
    const password = this.#requirePassword();
    const { lockedKey } = stored;
    if (this.#locked && Buffer.compare(this.#locked, lockedKey) === 0) throw new Refusal('issuanceFailed');
    this.#key ??= this.#unlock(stored, password).catch((error: unknown) => {
      this.#key = undefined;
      // A full queue says nothing about the password, and this failure nothing about a password that came meanwhile.
      if (!(error instanceof AuthorityKeyError)) throw error;
      if (password === this.#password) this.#locked = lockedKey;
      throw new Refusal('issuanceFailed');
    });
    const privateKey = await this.#key;
    if (this.#locked) this.#parts.log({ level: 'info', logger: 'pki', event: 'CA key usable', outcome: 'success' });
    this.#locked = undefined;
    return { ...stored, privateKey };
  }

  async #unlock({ certificate, lockedKey }: StoredAuthority, password: string): Promise<PrivateKey> {
    const { queue, log } = this.#parts;
    try {
      return await inTurn(queue, QUEUED_AS, () => unlockPrivateKey(lockedKey, password, certificate));
    } catch (error) {
      const details = { reason: expected(AuthorityKeyError, error).message };
      log({ level: 'error', logger: 'pki', event: 'CA key not usable', outcome: 'failure', details });
      throw error;
    }
  }
}
