// The rules of pastes: creating, reading, burning, and what owners and the admin may change, delete and list. From the
// contract's "States and transitions" and the decisions' "Checks on POST /", "PUT /{id}" and "Lists and audit".

import type { Config } from '../config/settings.ts';
import { type Caller, hasTrustedLimits } from '../core/callers.ts';
import type { CompactBytes } from '../core/content.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, unixSeconds } from '../core/time.ts';
import type { ContentReader } from '../store/content.ts';
import type { CreationTerms, NewPaste, Page, Paste, PasteFilter, PasteWithContent, Refused } from '../store/store.ts';
import { cappedTtlSeconds, ttlSeconds, type Work } from './admission.ts';
import { requireAdmin, requireIdentity } from './identity.ts';
import { Intake, newId, type Offer, requireDeclaredSize } from './intake.ts';
import type { Parts } from './parts.ts';

/** A PUT or DELETE may take the chunks of a paste between its lookup and their opening: it is looked up again then. */
const OPEN_ATTEMPTS = 3;

/** Enough of an id to tell pastes apart in the audit log, and not enough to read one. */
export const AUDITED_ID_CHARACTERS = 8;

export interface Submission extends Offer {
  readonly work: Work;
  readonly burnAfterRead: boolean;
}

/**
 * Stores a paste; durable when it resolves. The five steps of the decisions' "Checks on POST /": the store spends the
 * work and counts the duplicate in the transaction that stores the paste. `rate` is null without a limit.
 */
export async function createPaste(parts: Parts, submission: Submission) {
  const { config, store, passwords, challenges, rates, antiflood, clock, count } = parts;
  const { caller, clientAddress, password } = submission;
  requireCreator(config, caller);
  requireDeclaredSize(parts, submission);
  const spend = await challenges.require(challenges.purposeFor(caller), submission.work);
  const rate = rates.countCreation(clientAddress, caller);
  if (spend !== null) antiflood.record(clock.monotonicMs(), spend);
  await using intake = new Intake(parts, submission);
  const content = await intake.receive();
  const passwordHash = password === undefined ? null : await passwords.hash(password, clientAddress);
  const createdAt = unixSeconds(clock);
  const paste: NewPaste = {
    id: newId(parts.random),
    owner: caller.fingerprint,
    createdAt,
    expiresAt: createdAt + ttlSeconds(config, caller, submission.requestedTtlSeconds),
    burnAfterRead: submission.burnAfterRead,
    passwordHash,
    ...content,
  };
  const outcome = await store.pastes.create(paste, { ...storageTerms(config), spend });
  if (outcome.refused !== null) throw notStored(parts, outcome, rate);
  intake.keep();
  if (config.duplicateMax > 0) count('duplicateChecks', 'accepted');
  count('pastesCreated');
  return { paste, rate };
}

/** What a caller needs to store pastes; undefined where anyone may. */
export function neededToCreate({ createBy }: Config) {
  if (createBy === 'anyone') return undefined;
  const whose = createBy === 'trusted' ? 'a certificate of this service' : 'a client certificate';
  return { needed: createBy, hint: `storing pastes here takes ${whose}: GET /register/challenge is how to get one` };
}

/** Whom SERVICE_CREATE lets in; before any work is checked, so that nobody does it in vain. */
function requireCreator(config: Config, caller: Caller): void {
  const terms = neededToCreate(config);
  if (terms === undefined) return;
  const { needed, hint } = terms;
  if (caller.fingerprint === null) throw new Refusal('identityRequired', { hint });
  if (needed === 'trusted' && !hasTrustedLimits(caller)) throw new Refusal('permissionDenied', { hint });
}

/** The duplicate throttle and the quotas, which the store checks in the transaction that stores content. */
function storageTerms(config: Config): Omit<CreationTerms, 'spend'> {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes, maxOwnerStorageBytes } = config;
  return {
    duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
    maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    maxOwnerBytes: maxOwnerStorageBytes === 0 ? null : maxOwnerStorageBytes,
  };
}

function notStored({ challenges, count }: Parts, outcome: Refused, rate: RateStanding | null): Refusal {
  const { refused, fields, retryAfterSeconds } = outcome;
  if (refused === 'powAlreadyUsed' || refused === 'powExpired') return challenges.refusal(refused, 'paste');
  if (refused !== 'duplicateContent') return new Refusal(refused, fields);
  count('duplicateChecks', 'refused');
  return new Refusal(refused, fields, { retryAfterSeconds, rate });
}

export interface Lookup {
  readonly id: string;
  readonly password: string | undefined;
  readonly clientAddress: string;
}

/** A paste with its content held: small content in memory, larger content as a reader that must be closed. */
export type OpenedPaste =
  | { readonly kind: 'small'; readonly paste: Paste; readonly content: CompactBytes }
  | { readonly kind: 'large'; readonly paste: Paste; readonly reader: ContentReader };

type ReadingParts = Pick<Parts, 'store' | 'passwords' | 'clock' | 'count'>;

/** The metadata. Never burns. */
export function describePaste(parts: ReadingParts, { id, password, clientAddress }: Lookup): Awaitable<Paste> {
  const { store, passwords, clock } = parts;
  const find = (): Awaitable<Paste | undefined> => store.pastes.find(id, unixSeconds(clock));
  return andThen(passwords.unlock(find, password, clientAddress), (paste) => {
    noteAccess(parts, paste);
    return paste;
  });
}

/** To be released when it is not read. To read burns; a look does not, so nobody may be given its content. */
export function openPaste(
  parts: ReadingParts,
  lookup: Lookup,
  purpose: 'read' | 'look' = 'read',
  attempt = 1,
): Awaitable<OpenedPaste> {
  const { store, passwords, clock } = parts;
  const { id, password, clientAddress } = lookup;
  const find = (): Awaitable<PasteWithContent | undefined> => store.pastes.findWithContent(id, unixSeconds(clock));
  return andThen(passwords.unlock(find, password, clientAddress), (paste) => andThen(hold(parts, paste), (opened) => {
    if (opened === undefined) {
      if (attempt === OPEN_ATTEMPTS) throw new Refusal('pasteNotFound');
      return openPaste(parts, lookup, purpose, attempt + 1);
    }
    if (paste.burnAfterRead && purpose === 'read') return claimBurn(parts, opened);
    noteAccess(parts, paste);
    return opened;
  }));
}

export function release(opened: OpenedPaste): void {
  if (opened.kind === 'large') opened.reader.close();
}

function hold({ store }: ReadingParts, paste: PasteWithContent): Awaitable<OpenedPaste | undefined> {
  const { content, contentId } = paste;
  if (content !== null) return { kind: 'small', paste, content };
  if (contentId === null) return undefined;
  return andThen(store.contents.open(contentId), (reader) => reader && { kind: 'large', paste, reader });
}

/** The content is held before the claim, since the claim takes it from everyone else. */
async function claimBurn({ store, clock, count }: ReadingParts, opened: OpenedPaste): Promise<OpenedPaste> {
  const { id, passwordHash } = opened.paste;
  let claimed = false;
  try {
    claimed = await store.pastes.burn(id, passwordHash, unixSeconds(clock));
  } finally {
    if (!claimed) release(opened);
  }
  if (!claimed) throw new Refusal('pasteNotFound');
  count('pastesAccessed');
  count('pastesDeleted', 'burned');
  return opened;
}

/** The id is that of the paste, not of the request: the same text at each access, whose hash is known. */
function noteAccess({ store, clock, count }: ReadingParts, { id }: Paste): void {
  store.pastes.touch(id, unixSeconds(clock));
  count('pastesAccessed');
}

export interface Amendment extends Offer, Target {
  readonly hasContent: boolean;
  readonly removesPassword: boolean;
}

/** Changes a paste of the caller's own, whose password is not asked for. `rate` is null also when nothing counted. */
export async function updatePaste(parts: Parts, amendment: Amendment) {
  const { config, store, passwords, rates, clock, count } = parts;
  const { id, caller, clientAddress, hasContent, password, requestedTtlSeconds } = amendment;
  const owner = requireIdentity(caller);
  requireDeclaredSize(parts, amendment);
  requireSomething(amendment);
  const before = await requireChangeable(parts, amendment);
  if (before.burnAfterRead) throw new Refusal('burnNotUpdatable');
  const onlySha256 = amendment.meantContent(before);
  // A password costs as much to hash for an update as for a new paste.
  const rate = hasContent || password !== undefined ? rates.countCreation(clientAddress, caller) : null;
  await using intake = hasContent ? new Intake(parts, amendment) : null;
  const content = intake === null ? undefined : await intake.receive(before.size);
  const newHash = password === undefined ? undefined : await passwords.hash(password, clientAddress);
  const nowSeconds = unixSeconds(clock);
  const ttl = requestedTtlSeconds === undefined ? undefined : cappedTtlSeconds(config, requestedTtlSeconds);
  const changes = {
    content,
    passwordHash: amendment.removesPassword ? null : newHash,
    expiresAt: ttl === undefined ? undefined : nowSeconds + ttl,
  };
  const terms = { ...storageTerms(config), nowSeconds, onlySha256 };
  const outcome = await store.pastes.update(id, owner, changes, terms);
  if (outcome.refused !== null) throw notStored(parts, outcome, rate);
  intake?.keep();
  if (hasContent && config.duplicateMax > 0) count('duplicateChecks', 'accepted');
  return { paste: outcome.paste, rate };
}

function requireSomething({ hasContent, password, removesPassword, requestedTtlSeconds }: Amendment): void {
  if (password !== undefined && removesPassword) {
    throw new Refusal('requestMalformed', { hint: 'X-Paste-Password and X-Remove-Password exclude each other' });
  }
  if (hasContent || password !== undefined || removesPassword || requestedTtlSeconds !== undefined) return;
  throw new Refusal('nothingToUpdate', { hint: 'send new content, X-Paste-Password, X-Remove-Password or X-Expiry' });
}

export interface Target {
  readonly id: string;
  readonly caller: Caller;
  readonly clientAddress: string;
  /** The digest of the paste's content where the caller means that alone; refuses other content than is meant. */
  readonly meantContent: (paste: Paste) => string | undefined;
}

/**
 * Before any body is read; the writer decides all of it again. A refusal says whether an id is known, so it counts as a
 * lookup, and so does showing a token, right or wrong; what owners do to their own never does.
 */
async function requireChangeable(parts: Parts, target: Target, ofAnyone = false, token?: string): Promise<Paste> {
  const { store, rates, deleteTokens, clock } = parts;
  const { id, caller, clientAddress } = target;
  const paste = await store.pastes.find(id, unixSeconds(clock));
  if (paste !== undefined && (ofAnyone || (paste.owner !== null && paste.owner === caller.fingerprint))) return paste;
  rates.countLookup(clientAddress, caller);
  if (paste === undefined) throw new Refusal('pasteNotFound');
  if (paste.owner === null && token !== undefined && deleteTokens.isTokenOf(id, token)) return paste;
  throw new Refusal('permissionDenied');
}

/** Of the caller's own; for the admin anyone's, which is audited; one without owner for whoever shows its token. */
export async function deletePaste(parts: Parts, target: Target, token: string | undefined): Promise<void> {
  const { store, audit, clock, count } = parts;
  const { id, caller, clientAddress } = target;
  if (token === undefined) requireIdentity(caller);
  const { fingerprint } = caller;
  const isAdmin = caller.tier === 'admin';
  const before = await requireChangeable(parts, target, isAdmin, token);
  const onlySha256 = target.meantContent(before);
  const paste = id.slice(0, AUDITED_ID_CHARACTERS);
  const asAdmin = isAdmin ? audit.event('paste_deleted', 'success', { fingerprint, clientAddress }, { paste }) : null;
  const by = isAdmin ? fingerprint : before.owner;
  const outcome = await store.pastes.remove(id, by, unixSeconds(clock), asAdmin, onlySha256);
  if (outcome.refused !== null) throw new Refusal(outcome.refused);
  count('pastesDeleted', 'deleted');
  if (outcome.audited !== null) audit.announce(outcome.audited);
}

export interface WantedList extends Pick<Target, 'caller' | 'clientAddress'> {
  readonly filter: Omit<PasteFilter, 'owner'>;
  readonly page: Page;
  /** Everyone's pastes, which only the admin may ask for; else the caller's own. */
  readonly all: boolean;
}

export async function listPastes(parts: Parts, { caller, clientAddress, filter, page, all }: WantedList) {
  const owner = requireIdentity(caller);
  if (all) requireAdmin(caller);
  parts.rates.countLookup(clientAddress, caller);
  return parts.store.pastes.list({ ...filter, owner: all ? null : owner }, page, unixSeconds(parts.clock));
}
