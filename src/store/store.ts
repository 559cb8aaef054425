// The shapes that the store takes and gives, what counts against a quota, how storage fails. Its calls are in open.ts.

import type { StatementSync } from 'node:sqlite';
import type { CompactBytes } from '../core/content.ts';
import type { LogDetails } from '../core/events.ts';
import type { RefusalFields, RefusalName } from '../core/refusals.ts';
import { KIB } from '../core/time.ts';

/** What statements are prepared on: a connection of node:sqlite, or the nodes of a cluster (cluster/statements.ts). */
export interface Database {
  prepare(sql: string): Statement;
  /** SQL over the row of `usage` that gives `databaseBytes` where it is not counted in pages of the file. */
  readonly databaseBytes?: string;
}

export type Statement = Pick<
  StatementSync, 'get' | 'all' | 'run' | 'setReturnArrays' | 'setAllowUnknownNamedParameters'
>;

/** A paste without its content, which has `size` bytes. Times are Unix seconds. */
export interface Paste {
  readonly id: string;
  /** Fingerprint of the creator; null when anonymous. */
  readonly owner: string | null;
  readonly mimeType: string;
  readonly size: number;
  /** Of the content, as 64 hexadecimal digits in lower case. */
  readonly sha256: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly burnAfterRead: boolean;
  /** As crypto/passwords.ts writes it; null when there is no password. */
  readonly passwordHash: string | null;
  /** Names the chunks of content larger than INLINE_BYTES; null when the content is in the row itself. */
  readonly contentId: string | null;
}

/** What a list shows of a paste: all of it is in the index that an owner's list is read from. */
export type ListedPaste = { readonly hasPassword: boolean }
  & Pick<Paste, 'id' | 'owner' | 'mimeType' | 'size' | 'createdAt' | 'expiresAt' | 'burnAfterRead'>;

/** The content itself when it is in the row, null when it is in chunks. */
export type PasteWithContent = Paste & { readonly content: CompactBytes | null };

/** Content of at most this many bytes is kept in the row of its paste. */
export const INLINE_BYTES = 64 * KIB;

/** The bytes of one row of larger content; every chunk but the last is exactly this long. */
export const CHUNK_BYTES = 256 * KIB;

/** A paste to store: exactly one of `content` and `contentId` is not null. */
export interface NewPaste extends Omit<Paste, 'sha256'> {
  /** Of the content: 32 bytes. */
  readonly sha256: Uint8Array;
  readonly content: Uint8Array | null;
}

/** What an owner changes about a paste; a field that is undefined stays as it is. */
export interface PasteChanges {
  readonly content?: ChangedContent | undefined;
  /** null takes the password away. */
  readonly passwordHash?: string | null | undefined;
  readonly expiresAt?: number | undefined;
}

export type ChangedContent = Pick<NewPaste, 'mimeType' | 'size' | 'sha256' | 'contentId' | 'content'>;

/** A solved challenge, to be used up. Times are Unix seconds. */
export interface SpentChallenge {
  readonly nonce: string;
  readonly expiresAt: number;
  /** The record of its use is kept at least until then. Later the challenge is refused: its use may be forgotten. */
  readonly spendableUntil: number;
}

/** At most `max` stored pastes of the same content in any window. */
export type DuplicateLimit = Readonly<Record<'max' | 'windowSeconds', number>>;

/** In the storing transaction, checked in this order: spend, duplicates, maxOwnerBytes, maxStoredBytes; null: not. */
export interface CreationTerms {
  readonly spend: SpentChallenge | null;
  readonly duplicates: DuplicateLimit | null;
  /** The quota, see prepareQuota in records.ts. */
  readonly maxStoredBytes: number | null;
  /** The limit for all content of one owner. */
  readonly maxOwnerBytes: number | null;
}

export interface UpdateTerms extends Omit<CreationTerms, 'spend'> {
  readonly nowSeconds: number;
  /** The content that the paste must have, or the update is refused; undefined if any will do. */
  readonly onlySha256?: string | undefined;
}

/** Why a call had no effect at all: a name from core/refusals.ts, and what else its answer says. */
export type Refused<Name extends string = RefusalName> = Name extends string
  ? { readonly refused: Name; readonly fields?: RefusalFields; readonly retryAfterSeconds?: number }
  : never;

type Done<Answer = object> = Answer & { readonly refused: null };

export type SpendingRefusal = 'powAlreadyUsed' | 'powExpired';
export type StorageRefusal = 'contentRefused' | 'duplicateContent' | 'storageFull';
export type CreationOutcome = Done | Refused<SpendingRefusal | StorageRefusal>;
export type UpdateOutcome =
  | Done<{ readonly paste: Paste }>
  | Refused<'pasteNotFound' | 'permissionDenied' | 'burnNotUpdatable' | 'preconditionFailed' | StorageRefusal>;
/** `audited`: the entry that was written, with the owner in its details; null for a paste of one's own. */
export type DeletionOutcome =
  | Done<{ readonly audited: AuditEvent | null }>
  | Refused<'pasteNotFound' | 'permissionDenied' | 'preconditionFailed'>;
/** `audited` are the entries that were written. `notFirst` and `serialTaken` are for authority/issuing.ts alone. */
export type IssueOutcome =
  | Done<{ readonly isAdmin: boolean; readonly audited: readonly AuditEvent[] }>
  | Refused<SpendingRefusal | 'invitationRequired' | 'certificateRevoked' | 'rateLimited' | 'keyReused'>
  | Refused<'notFirst' | 'serialTaken'>;
export type RevokeOutcome =
  | Done<{ readonly audited: readonly AuditEvent[] }>
  | Refused<'certificateNotFound' | 'certificateRevoked'>;

/** How many pastes there are, including expired ones that have not been removed, and the `bytes` of their content. */
export interface StoredUsage {
  readonly pastes: number;
  readonly bytes: number;
  /** What the database takes beyond OWN_BYTES: rows, uploads under way, content that is still read or being removed. */
  readonly databaseBytes: number;
}

/** Twice what an empty database takes: a quota does not count it. */
export const OWN_BYTES = 640 * KIB;

/** What counts against a quota. */
export function countedBytes({ bytes, databaseBytes }: StoredUsage): number {
  return Math.max(bytes, databaseBytes);
}

/** Content to be added. What has been written of it already is in `databaseBytes`. */
export type MoreContent = Readonly<Record<'maxStoredBytes' | 'contentBytes' | 'unwrittenBytes', number>>;

export interface UploadQuota {
  readonly maxStoredBytes: number;
  /** The first chunk is admitted only if there is room for this many bytes, which are then reserved; 0 if unknown. */
  readonly declaredBytes: number;
}

/** Which pastes a list holds. Never expired ones. */
export interface PasteFilter {
  /** null lists everyone's. */
  readonly owner: string | null;
  /** As http/input.ts makes it; null for every type. */
  readonly typeGlob: string | null;
  /** When it was created, in Unix seconds; both exclusive. */
  readonly after: number;
  readonly before: number;
}

export type Page = Readonly<Record<'limit' | 'offset', number>>;

/** `total` is how many match in all. */
export type Listed<Item> = Readonly<{ items: readonly Item[]; total: number }>;

/** What happened, at a Unix second. It never holds passwords, secrets, keys, content or whole paste ids. */
export interface AuditEvent {
  readonly time: number;
  readonly event: string;
  readonly outcome: 'success' | 'failure';
  /** Fingerprint of who caused it; null where there is none. */
  readonly clientId: string | null;
  readonly clientIp: string | null;
  readonly details: LogDetails;
}

export type AuditEntry = AuditEvent & { readonly id: number };

export interface AuditFilter {
  readonly event: string | null;
  readonly outcome: string | null;
  readonly clientId: string | null;
  /** Unix seconds, both exclusive. */
  readonly after: number;
  readonly before: number;
}

/** A certificate that this service issued. Times are Unix seconds. */
export interface Certificate {
  /** 32 lowercase hex digits. */
  readonly serial: string;
  readonly commonName: string;
  /** SHA-1 of the DER, 40 lowercase hex digits. */
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Fingerprint of the requester; of a renewal, the one who requested the first. Null when that one was anonymous. */
  readonly issuedTo: string | null;
  readonly isAdmin: boolean;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
  /** The first fingerprint in its chain of renewals. All that the holder owns is owned by this fingerprint. */
  readonly holder: string;
  /** It renews another certificate and has not been presented yet; until it is, the other one stays valid as well. */
  readonly isUnused: boolean;
}

export interface NewCertificate
  extends Omit<Certificate, 'isAdmin' | 'revokedAt' | 'revocationReason' | 'holder' | 'isUnused'> {
  /** 32 bytes: SHA-256 of its SubjectPublicKeyInfo. Until it expires, its key is certified for its holder only. */
  readonly publicKeySha256: Uint8Array;
}

/** A certificate to record. Whether it makes an admin is decided when it is recorded. */
export interface Issuance {
  readonly certificate: NewCertificate;
  readonly spend: SpentChallenge | null;
  /** SHA-256 of the code of an invitation, to be spent. */
  readonly invitation?: Uint8Array | undefined;
  /** Serial of the certificate that this one is to replace: the one that was presented. */
  readonly renews?: string | undefined;
  /** Records it only when no certificate was ever issued before. */
  readonly onlyFirst?: boolean;
  readonly issued: AuditEvent;
  /** Recorded as well when the certificate is the first one ever, and so the admin's. */
  readonly granted: AuditEvent;
}

/** An invitation to register; its code is kept as a digest. Times are Unix seconds. */
export interface Invitation {
  readonly id: number;
  readonly note: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usesLeft: number;
}

/** Content that nobody may store: by its SHA-256, 64 lowercase hex digits. */
export interface Ban {
  readonly sha256: string;
  readonly note: string;
  readonly createdAt: number;
}

/** The place of a certificate in the order in which certificates expire. */
export type CertificatePlace = Pick<Certificate, 'expiresAt' | 'serial'>;

/** The one authority there is, its certificate in DER. Times are Unix seconds. */
export interface StoredAuthority extends Pick<Certificate, 'commonName' | 'fingerprint' | 'createdAt' | 'expiresAt'> {
  readonly certificate: Uint8Array;
  /** As authority/keys.ts locks it. */
  readonly lockedKey: Uint8Array;
}

/** A revocation list. It is out of date once the store's `revokedCount` differs. */
export interface StoredCrl {
  readonly number: number;
  readonly der: Uint8Array;
  readonly thisUpdate: number;
  readonly revokedCount: number;
}

// How storage fails.

/** Primary result codes (https://sqlite.org/rescode.html) of disk, file and memory. Any other is our own error. */
export const SQLITE = {
  BUSY: 5, LOCKED: 6, NOMEM: 7, READONLY: 8, IOERR: 10, CORRUPT: 11, FULL: 13, CANTOPEN: 14, PROTOCOL: 15, NOTADB: 26,
} as const;

const FAILURES: ReadonlySet<number> = new Set(Object.values(SQLITE));

/** `full`: no room now, on the disk or in the quota. `unavailable`: the storage fails. Nothing was stored. */
export type StoreFailure = 'full' | 'unavailable';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.failure = failure;
  }
}

export function unavailable(reason: string): StoreError {
  return new StoreError('unavailable', `storage unavailable: ${reason}`);
}

/** The file is not one that this program may open: of a newer version, of another program, or damaged. */
export class DatabaseRefusedError extends Error {
  override readonly name = 'DatabaseRefusedError';
}

/** Another process has the database open, and has the file `lockPath` locked for as long. */
export class DatabaseInUseError extends Error {
  override readonly name = 'DatabaseInUseError';
  readonly lockPath: string | undefined;

  constructor(message: string, lockPath?: string) {
    super(message);
    this.lockPath = lockPath;
  }
}

/** undefined if the storage did not fail, as with a violated constraint or a TypeError. See failureAt. */
export function failureOf(error: unknown): StoreFailure | undefined {
  const code = primaryCodeOf(error);
  if (code === SQLITE.FULL) return 'full';
  return FAILURES.has(code) ? 'unavailable' : undefined;
}

/** Whether the file is not a database, or no longer one. A StoreError has SQLite's code only in its message. */
export function isDamage(error: unknown): boolean {
  const told = error instanceof StoreError ? /\(SQLite (\d+)\)/.exec(error.message)?.[1] : undefined;
  const code = told === undefined ? primaryCodeOf(error) : Number(told) & 0xff;
  return code === SQLITE.CORRUPT || code === SQLITE.NOTADB;
}

/** The low byte of the extended code; both are 0, which is SQLite's success, for errors that are not SQLite's. */
export function primaryCodeOf(error: unknown): number {
  return extendedCodeOf(error) & 0xff;
}

function extendedCodeOf(error: unknown): number {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : 0;
}

/** A StoreError with the error as its cause, or the error itself if the storage did not fail. */
export function asStoreError(error: unknown, failure = failureOf(error)): unknown {
  if (failure === undefined) return error;
  return new StoreError(failure, `storage ${failure}: ${describe(error)}`, { cause: error });
}

/** SQLite's messages hold names of tables and columns at most, never a value. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const errcode = extendedCodeOf(error);
  return errcode === 0 ? error.message : `${error.message} (SQLite ${errcode})`;
}
