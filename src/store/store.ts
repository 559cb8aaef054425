// What the rest of the program may ask of the storage: nouns and promises, no SQL and no node:sqlite types. Each
// invariant is one call, decided in one transaction; ids and times are parameters. How it is kept starts at open.ts.

import type { CompactBytes } from '../core/content.ts';
import type { LogDetails } from '../core/events.ts';
import type { Awaitable } from '../core/time.ts';

/** A paste without its content. Times are Unix seconds. */
export interface Paste {
  readonly id: string;
  /** Fingerprint of the creator; null when it was anonymous. */
  readonly owner: string | null;
  readonly mimeType: string;
  /** Bytes of content. */
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
export interface ListedPaste
  extends Pick<Paste, 'id' | 'owner' | 'mimeType' | 'size' | 'createdAt' | 'expiresAt' | 'burnAfterRead'> {
  readonly hasPassword: boolean;
}

export interface PasteWithContent extends Paste {
  /** The content itself when it is in the row, null when it is in chunks. */
  readonly content: CompactBytes | null;
}

/** Content of at most so many bytes is kept in the row of its paste. */
export const INLINE_BYTES = 64 * 1024;

/** The bytes of one row of larger content; every chunk but the last is exactly so long. */
export const CHUNK_BYTES = 256 * 1024;

/** A paste to store: exactly one of `content` and `contentId` is not null. */
export interface NewPaste extends Omit<Paste, 'sha256'> {
  /** Of the content: 32 bytes. */
  readonly sha256: Uint8Array;
  readonly content: Uint8Array | null;
}

/** A challenge that has done its work: of no use again while its token could still be presented. */
export interface SpentChallenge {
  readonly nonce: string;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** Unix seconds, no later than the record of its use is removed: from then on nobody knows whether it was used. */
  readonly spendableUntil: number;
}

export type SpendingRefusal = { readonly kind: 'challengeUsed' } | { readonly kind: 'challengeExpired' };

/** At most `max` stored pastes of the same content in any window. */
export interface DuplicateLimit {
  readonly max: number;
  readonly windowSeconds: number;
}

/** What is decided in the transaction that stores a paste, in this order. */
export interface CreationTerms {
  /** To be used up; null when no work was asked for. */
  readonly spend: SpentChallenge | null;
  readonly duplicates: DuplicateLimit | null;
  /** The quota, see passesQuota; null for none. */
  readonly maxStoredBytes: number | null;
}

export interface UpdateTerms extends Omit<CreationTerms, 'spend'> {
  readonly nowSeconds: number;
}

/** Anything but `stored` has had no effect at all. */
export type CreationOutcome =
  | { readonly kind: 'stored' }
  | SpendingRefusal
  | { readonly kind: 'duplicate'; readonly count: number; readonly retryAfterSeconds: number }
  | { readonly kind: 'storageFull' };

export interface PasteStore {
  /**
   * The paste, unless it has expired at `nowSeconds`. It may be there at once, and is the same object for as long as
   * the store keeps it in memory.
   */
  find(id: string, nowSeconds: number): Awaitable<Paste | undefined>;
  /** The same, with the content of small pastes. */
  findWithContent(id: string, nowSeconds: number): Awaitable<PasteWithContent | undefined>;
  /** Durable when it resolves. Chunks of `contentId` must have been written; they belong to the paste from then on. */
  create(paste: NewPaste, terms: CreationTerms): Promise<CreationOutcome>;
  /**
   * The claim that makes burning happen once: removes the paste if it is burn-after-read, has not expired, and still
   * has the password hash that was checked. Durable when it resolves; true for exactly one of any number of callers.
   */
  burn(id: string, passwordHash: string | null, nowSeconds: number): Promise<boolean>;
  /**
   * Changes a paste of `owner`, all or nothing: readers see the old one or the new one. With content, the terms are
   * those of creating. Chunks of what is replaced go when nobody reads them any more.
   */
  update(id: string, owner: string, changes: PasteChanges, terms: UpdateTerms): Promise<UpdateOutcome>;
  /** Removes a paste that `by` owns; anyone's with `asAdmin`, and then with this entry in the audit log. */
  remove(id: string, by: string, nowSeconds: number, asAdmin: AuditEvent | null): Promise<DeletionOutcome>;
  /** Newest first, ties by id. */
  list(filter: PasteFilter, page: Page, nowSeconds: number): Promise<Listed<ListedPaste>>;
  /** Notes an access; written in batches within seconds, lost at worst by a crash. */
  touch(id: string, nowSeconds: number): void;
  /** Removes at most `limit` pastes that have expired; how many were removed. */
  removeExpired(nowSeconds: number, limit: number): Promise<number>;
  /** What all pastes take together, expired ones that have not been removed included, and what the database does. */
  usage(): Promise<StoredUsage>;
}

export interface StoredUsage {
  readonly pastes: number;
  /** Of content. */
  readonly bytes: number;
  /** What the database takes beyond OWN_BYTES: rows, uploads under way, content that is still read or being removed. */
  readonly databaseBytes: number;
}

/** What an empty database takes, and as much again: a quota is for what comes beside it. */
export const OWN_BYTES = 512 * 1024;

/** What is held against a quota. */
export function countedBytes({ bytes, databaseBytes }: StoredUsage): number {
  return Math.max(bytes, databaseBytes);
}

/**
 * Whether a quota has no room for so much more content, of which `unwrittenBytes` are not in the database yet. What is
 * there already was let in when it was written.
 */
export function passesQuota(
  { bytes, databaseBytes }: StoredUsage,
  maxStoredBytes: number,
  { contentBytes, unwrittenBytes }: { readonly contentBytes: number; readonly unwrittenBytes: number },
): boolean {
  if (bytes + contentBytes > maxStoredBytes) return true;
  return unwrittenBytes > 0 && databaseBytes + unwrittenBytes > maxStoredBytes;
}

/** What an owner changes about a paste; undefined members stay as they are. */
export interface PasteChanges {
  readonly content?: ChangedContent | undefined;
  /** null takes the password away. */
  readonly passwordHash?: string | null | undefined;
  readonly expiresAt?: number | undefined;
}

export type ChangedContent = Pick<NewPaste, 'mimeType' | 'size' | 'sha256' | 'contentId' | 'content'>;

export type UpdateOutcome =
  | { readonly kind: 'updated'; readonly paste: Paste }
  | { readonly kind: 'notFound' }
  | { readonly kind: 'notOwner' }
  | { readonly kind: 'burnAfterRead' }
  | Extract<CreationOutcome, { kind: 'duplicate' | 'storageFull' }>;

export type DeletionOutcome =
  /** `audited`: the entry that was written, with the owner in its details; null for a paste of one's own. */
  | { readonly kind: 'deleted'; readonly audited: AuditEvent | null }
  | { readonly kind: 'notFound' }
  | { readonly kind: 'notOwner' };

/** Which pastes a list holds. Never expired ones. */
export interface PasteFilter {
  /** null lists everyone's. */
  readonly owner: string | null;
  /** As core/content.ts makes it; null for every type. */
  readonly typeGlob: string | null;
  /** Created after, and before, these Unix seconds; both exclusive. */
  readonly after: number;
  readonly before: number;
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A page, and how many match in all. */
export interface Listed<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}

/** What happened, for whoever must answer for it. Never in it: passwords, secrets, keys, content, whole paste ids. */
export interface AuditEvent {
  /** Unix seconds. */
  readonly time: number;
  readonly event: string;
  readonly outcome: 'success' | 'failure';
  /** Fingerprint of who caused it; null where there is none. */
  readonly clientId: string | null;
  readonly clientIp: string | null;
  readonly details: LogDetails;
}

export interface AuditEntry extends AuditEvent {
  readonly id: number;
}

export interface AuditFilter {
  readonly event: string | null;
  readonly outcome: string | null;
  readonly clientId: string | null;
  /** Unix seconds, both exclusive. */
  readonly after: number;
  readonly before: number;
}

export interface AuditStore {
  /** For events that change nothing else; those that do are recorded with what they record. */
  record(event: AuditEvent): Promise<void>;
  /** Newest first. */
  list(filter: AuditFilter, page: Page): Promise<Listed<AuditEntry>>;
  /** Forgets at most `limit` entries from `untilSeconds` or before; how many. */
  removeUntil(untilSeconds: number, limit: number): Promise<number>;
}

/** Challenges that were used. They are spent by creating; here one only asks and tidies. */
export interface ChallengeStore {
  isSpent(nonce: string): Promise<boolean>;
  /** Forgets at most `limit` whose token has expired at `nowSeconds`; how many. */
  removeExpired(untilSeconds: number, limit: number): Promise<number>;
}

/** What was stored when, by digest, for the duplicate throttle. Creating records it. */
export interface SubmissionStore {
  /** Forgets at most `limit` that were stored at `untilSeconds` or before; how many. */
  removeUntil(untilSeconds: number, limit: number): Promise<number>;
}

/** Keys that the service makes for itself and must find again after a restart. */
export interface SecretStore {
  /** The value kept under that name; the first one offered is kept. */
  keep(name: string, offered: Uint8Array): Promise<Uint8Array>;
}

export interface UploadQuota {
  readonly maxStoredBytes: number;
  /** The first chunk is written only where there is room for so many bytes, which is then kept; 0 if unknown. */
  readonly declaredBytes: number;
}

/** Larger content on its way in. What is never given to a paste is removed: by discard, or at the next start. */
export interface Upload {
  readonly contentId: string;
  /**
   * The next chunk: CHUNK_BYTES but for the last. A buffer that was taken from `chunks` is given back there; another is
   * copied. Resolves when it is committed.
   */
  write(chunk: Uint8Array): Promise<void>;
  /** Gives the chunks up. */
  discard(): Promise<void>;
}

/** Larger content on its way out. It stays readable until closed, whatever happens to its paste meanwhile. */
export interface ContentReader {
  /**
   * The bytes from `start` up to, not including, `end`, a piece at a time. Each is good until the next is asked for,
   * which takes its place.
   */
  read(start: number, end: number): AsyncIterable<Uint8Array>;
  /** Must be called once; what no paste refers to any more is then removed. Further calls do nothing. */
  close(): void;
}

export interface ContentStore {
  /** What chunks to write are gathered in. */
  readonly chunks: ChunkBuffers;
  /** `contentId` is new and random, made like a paste's id. What the quota has no room for is refused as `full`. */
  upload(contentId: string, quota?: UploadQuota | null): Upload;
  /** Holds the content for reading; undefined when it is gone, as after a PUT or DELETE since the paste was found. */
  open(contentId: string): ContentReader | undefined;
}

/** Upkeep, each call a bounded step. Called by the cleanup schedule. */
export interface StoreUpkeep {
  /**
   * Moves the write-ahead log into the database and empties it, so that removed content is gone from both files. False
   * when something else kept the log busy, such as a backup: to be tried again.
   */
  truncateWal(): Promise<boolean>;
  /** Gives at most `pages` free pages back to the file system; how many pages are still free. */
  releasePages(pages: number): Promise<number>;
  /** Lets SQLite refresh its statistics. */
  optimize(): Promise<void>;
  /** Makes the room in reserve, where it is missing and there is room for it; whether it is there. */
  restoreBallast(): Promise<boolean>;
  /** Sizes of the files; 0 for one that is not there. */
  fileBytes(): { readonly database: number; readonly wal: number };
  /** Writes that are not durable yet. */
  writesWaiting(): number;
}

export interface Store {
  /** Whether the disk has room for so many bytes of content and keeps its reserve. */
  hasRoomFor(bytes: number): boolean;
  readonly pastes: PasteStore;
  readonly contents: ContentStore;
  readonly certificates: CertificateStore;
  readonly authority: AuthorityStore;
  readonly audit: AuditStore;
  readonly challenges: ChallengeStore;
  readonly submissions: SubmissionStore;
  readonly secrets: SecretStore;
  readonly upkeep: StoreUpkeep;
  /** Whether reading works now and the last write, tried again if it had failed, did. */
  healthy(): Promise<boolean>;
  /** Writes what is batched, truncates the write-ahead log, closes. */
  close(): Promise<void>;
}

export interface ChunkBuffers {
  /** CHUNK_BYTES of whatever was in them before, for the taker alone until it gives them back. */
  take(): Uint8Array<SharedArrayBuffer>;
  /** From any view of a buffer that was taken; other bytes, and those that were given back already, are let be. */
  giveBack(bytes: Uint8Array): void;
  /** How many are taken. */
  readonly taken: number;
}

/** Where a certificate is in the order of their ends. */
export type CertificatePlace = Pick<Certificate, 'expiresAt' | 'serial'>;

export interface CertificateRemoval {
  readonly removed: number;
  /** The last one looked at; null when there are no more. */
  readonly last: CertificatePlace | null;
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
  /** Fingerprint of the requester; null when it was anonymous. */
  readonly issuedTo: string | null;
  readonly isAdmin: boolean;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
}

/** A certificate to record. Whether it makes an admin is decided when it is. */
export interface NewCertificate extends Omit<Certificate, 'isAdmin' | 'revokedAt' | 'revocationReason'> {
  /** 32 bytes: SHA-256 of its SubjectPublicKeyInfo. A key is certified once. */
  readonly publicKeySha256: Uint8Array;
}

export interface Issuance {
  readonly certificate: NewCertificate;
  /** The work to be used up; null when none was asked for. */
  readonly spend: SpentChallenge | null;
  /** Records it only when no certificate was ever issued before. */
  readonly onlyFirst?: boolean;
  readonly issued: AuditEvent;
  /** Recorded beside it when the certificate is the first one ever, and so the admin's. */
  readonly granted: AuditEvent;
}

export type IssueOutcome =
  | { readonly kind: 'issued'; readonly isAdmin: boolean }
  | SpendingRefusal
  | { readonly kind: 'notFirst' }
  | { readonly kind: 'serialTaken' }
  | { readonly kind: 'keyTaken' };

export interface Revocation {
  readonly serial: string;
  readonly nowSeconds: number;
  readonly reason: string | null;
  readonly revoked: AuditEvent;
}

export type RevokeOutcome = 'revoked' | 'notFound' | 'alreadyRevoked';

export interface CertificateCounts {
  readonly valid: number;
  readonly revoked: number;
  readonly expired: number;
}

export interface CertificateStore {
  findByFingerprint(fingerprint: string): Promise<Certificate | undefined>;
  findBySerial(serial: string): Promise<Certificate | undefined>;
  /** A page of those that the fingerprint obtained, and the one that it is of; newest first, ties by serial. */
  listOf(fingerprint: string, page: Page): Promise<Listed<Certificate>>;
  /** Every certificate, newest first. */
  listAll(): Promise<readonly Certificate[]>;
  /** In the order of their revocation; however many there are, others have their turns meanwhile. */
  listRevoked(): AsyncIterable<Certificate>;
  /** How many there are; one that is revoked and has expired counts as revoked. */
  countByStatus(nowSeconds: number): Promise<CertificateCounts>;
  /** Records a certificate; the first one ever is the admin's, of any number that race. */
  issue(issuance: Issuance): Promise<IssueOutcome>;
  revoke(revocation: Revocation): Promise<RevokeOutcome>;
  /**
   * Looks at `limit` that had expired by then, those after that place, and removes the ones that nothing refers to: no
   * paste, no certificate that was obtained with it, no list of revoked ones that must name it once more. Never an
   * admin's: there is a first certificate once. A fingerprint that is removed is one like any other, and owns nothing.
   */
  removeExpired(untilSeconds: number, after: CertificatePlace | null, limit: number): Promise<CertificateRemoval>;
  /** Makes the holder of a certificate an admin; false when there is none of that serial, or it is revoked. */
  grantAdmin(serial: string, granted: AuditEvent): Promise<boolean>;
}

/** The one authority there is. Times are Unix seconds. */
export interface StoredAuthority {
  readonly commonName: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** As crypto/keys.ts locks it. */
  readonly lockedKey: Uint8Array;
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** A revocation list that was made. */
export interface StoredCrl {
  readonly number: number;
  readonly der: Uint8Array;
  readonly thisUpdate: number;
  /** What the store's revokedCount was when it was made: it is old when this differs. */
  readonly revokedCount: number;
}

export interface AuthorityStore {
  find(): Promise<StoredAuthority | undefined>;
  /** Keeps the first one offered, ever; whether it was this one. */
  create(authority: StoredAuthority, created: AuditEvent): Promise<boolean>;
  /** The list that is kept; `known` itself while it is that one. */
  findCrl(known?: StoredCrl): Promise<StoredCrl | undefined>;
  /** Replaces a list of a smaller number; false when a newer one is there. */
  keepCrl(crl: StoredCrl): Promise<boolean>;
  /** How often a certificate was revoked, ever. */
  revokedCount(): Promise<number>;
}
