// The rules of pastes: what may be stored, who may read it, and that burning happens once. No HTTP: refusals are
// thrown, values returned. The contract's "States and transitions" and the decisions' "Checks on POST /" are the
// source.

import type { Config } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import { type CompactBytes, mediaTypeOf } from '../core/content.ts';
import type { Count } from '../core/events.ts';
import { ID_BYTES, idFromBytes } from '../core/ids.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, type Clock, type RandomBytes, unixSeconds } from '../core/time.ts';
import type { Antiflood } from '../limits/antiflood.ts';
import type { ContentReader } from '../store/content.ts';
import type { Store } from '../store/open.ts';
import type {
  ChangedContent, Listed, ListedPaste, NewPaste, Page, Paste, PasteChanges, PasteFilter, PasteWithContent,
  SpentChallenge,
} from '../store/store.ts';
import { cappedTtlSeconds, type Challenges, type Rates, ttlSeconds, type Work } from './admission.ts';
import { type Audit, requireAdmin, requireIdentity } from './identity.ts';
import { type ContentRules, createStorageRules, type Offer, type ReceivedContent } from './intake.ts';
import type { Passwords } from './passwords.ts';

/** A paste found may lose its chunks to a PUT or DELETE before they are held for reading: then it is looked up anew. */
const OPEN_ATTEMPTS = 3;

export interface Submission extends Offer {
  readonly clientAddress: string;
  readonly work: Work;
  readonly burnAfterRead: boolean;
  /** The time to live asked for; undefined for the tier's default. */
  readonly requestedTtlSeconds: number | undefined;
}

export interface CreatedPaste {
  readonly paste: NewPaste;
  /** Where the client stands with the rate limit; null when there is none. */
  readonly rate: RateStanding | null;
}

/** What a reader asks for, and with which password. */
export interface Lookup {
  readonly id: string;
  readonly password: string | undefined;
  readonly clientAddress: string;
}

/** A paste with its content held: in memory, or as a reader that must be closed. */
export interface OpenedPaste {
  readonly paste: Paste;
  readonly content: CompactBytes | ContentReader;
}

export interface Pastes {
  /** Stores a paste; durable when it resolves. */
  create(submission: Submission): Promise<CreatedPaste>;
  /** Metadata; never burns. */
  describe(lookup: Lookup): Awaitable<Paste>;
  /** The content. A burn-after-read paste is gone when it is there. */
  open(lookup: Lookup): Awaitable<OpenedPaste>;
}

export function createPastes(parts: {
  config: Config;
  store: Store;
  rules: ContentRules;
  passwords: Passwords;
  challenges: Challenges;
  rates: Rates;
  antiflood: Antiflood;
  clock: Clock;
  random: RandomBytes;
  count: Count;
}): Pastes {
  const { config, store, rules, passwords, challenges, rates, antiflood, clock, random, count } = parts;
  const newId = (): string => idFromBytes(random(ID_BYTES));
  const storage = createStorageRules(config, count);

  /**
   * The five steps of the decisions' "Checks on POST /"; the work is spent and the duplicate counted where the paste is
   * stored.
   */
  async function create(submission: Submission): Promise<CreatedPaste> {
    rules.requireDeclaredSize(submission);
    const spend = await challenges.require('paste', submission.work);
    const rate = rates.countCreation(submission.clientAddress, submission.caller);
    if (spend !== null) antiflood.record(clock.monotonicMs(), spend);
    return rules.receive(submission, async (received) => {
      const paste = await newPaste(submission, received);
      await keep(paste, spend, rate);
      return { paste, rate };
    });
  }

  async function keep(paste: NewPaste, spend: SpentChallenge | null, rate: RateStanding | null): Promise<void> {
    const outcome = await store.pastes.create(paste, { ...storage.terms, spend });
    if (outcome.refused === 'powAlreadyUsed' || outcome.refused === 'powExpired') {
      throw challenges.notSpent(outcome.refused, 'paste');
    }
    if (outcome.refused !== null) throw storage.refusalOf(outcome, rate);
    storage.countStored();
    count('pastesCreated');
  }

  async function newPaste(submission: Submission, received: ReceivedContent): Promise<NewPaste> {
    const { caller, password, clientAddress } = submission;
    const passwordHash = password === undefined ? null : await passwords.hash(password, clientAddress);
    const createdAt = unixSeconds(clock);
    return {
      id: newId(),
      owner: caller.fingerprint,
      mimeType: mediaTypeOf(received.isText, submission.isJson ? undefined : submission.contentType),
      size: received.bytes,
      sha256: received.sha256,
      createdAt,
      expiresAt: createdAt + ttlSeconds(config, caller, submission.requestedTtlSeconds),
      burnAfterRead: submission.burnAfterRead,
      passwordHash,
      contentId: received.contentId,
      content: received.content,
    };
  }

  function describe({ id, password, clientAddress }: Lookup): Awaitable<Paste> {
    const find = (): Awaitable<Paste | undefined> => store.pastes.find(id, unixSeconds(clock));
    return andThen(passwords.unlock(find, password, clientAddress), (paste) => {
      noteAccess(paste.id);
      return paste;
    });
  }

  function open(lookup: Lookup, attempt = 1): Awaitable<OpenedPaste> {
    const { id, password, clientAddress } = lookup;
    const find = (): Awaitable<PasteWithContent | undefined> => store.pastes.findWithContent(id, unixSeconds(clock));
    return andThen(passwords.unlock(find, password, clientAddress), (paste) => {
      const content = holdContent(paste);
      if (content === undefined) {
        if (attempt === OPEN_ATTEMPTS) throw new Refusal('pasteNotFound');
        return open(lookup, attempt + 1);
      }
      if (paste.burnAfterRead) return claimBurn(paste, content);
      noteAccess(paste.id);
      return { paste, content };
    });
  }

  /** With the id of the paste, not of the request: it is the same text at each access, whose hash is known. */
  function noteAccess(id: string): void {
    store.pastes.touch(id, unixSeconds(clock));
    count('pastesAccessed');
  }

  function holdContent(paste: PasteWithContent): CompactBytes | ContentReader | undefined {
    if (paste.content !== null) return paste.content;
    return paste.contentId === null ? undefined : store.contents.open(paste.contentId);
  }

  /** The content is held before the claim, since the claim takes it from everyone else. */
  async function claimBurn(paste: Paste, content: CompactBytes | ContentReader): Promise<OpenedPaste> {
    let claimed = false;
    try {
      claimed = await store.pastes.burn(paste.id, paste.passwordHash, unixSeconds(clock));
    } finally {
      if (!claimed) releaseContent(content);
    }
    if (!claimed) throw new Refusal('pasteNotFound');
    count('pastesAccessed');
    count('pastesDeleted', 'burned');
    return { paste, content };
  }

  return { create, describe, open: (lookup) => open(lookup) };
}

/** Lets go of content that is not, or no longer, read. */
export function releaseContent(content: CompactBytes | ContentReader): void {
  if ('close' in content) content.close();
}

// What identified callers do with their pastes, and the admin with everyone's: update, delete, list. Owning is enough:
// no password of a paste is asked for. The decisions' "PUT /{id}" and "Lists and audit" are the source.

/** An update as a request asks for it. */
export interface Amendment extends Offer {
  readonly clientAddress: string;
  readonly hasContent: boolean;
  readonly removesPassword: boolean;
  /** Seconds from now; undefined leaves the expiry. */
  readonly requestedTtlSeconds: number | undefined;
}

export interface WantedList {
  readonly caller: Caller;
  readonly clientAddress: string;
  readonly filter: Omit<PasteFilter, 'owner'>;
  readonly page: Page;
  /** Everyone's pastes, which only the admin may ask for; else the caller's own. */
  readonly all: boolean;
}

export interface UpdatedPaste {
  readonly paste: Paste;
  /** Where the client stands with the rate limit; null when there is none, or nothing was counted. */
  readonly rate: RateStanding | null;
}

export interface OwnPastes {
  update(id: string, amendment: Amendment): Promise<UpdatedPaste>;
  remove(id: string, caller: Caller, clientAddress: string): Promise<void>;
  list(wanted: WantedList): Promise<Listed<ListedPaste>>;
}

export function createOwnPastes(parts: {
  config: Config;
  store: Store;
  rules: ContentRules;
  passwords: Passwords;
  rates: Rates;
  audit: Audit;
  clock: Clock;
  count: Count;
}): OwnPastes {
  const { config, store, rules, passwords, rates, audit, clock, count } = parts;
  const storage = createStorageRules(config, count);

  /**
   * Before any body is read, and before the writer is asked; what is decided here is decided again when the change is
   * written. A refusal says whether an id is known, so it counts as a lookup; what owners do to their own never does.
   */
  async function requireChangeable(
    id: string,
    caller: Caller,
    clientAddress: string,
    ofAnyone = false,
  ): Promise<Paste> {
    const paste = await store.pastes.find(id, unixSeconds(clock));
    if (paste !== undefined && (ofAnyone || paste.owner === caller.fingerprint)) return paste;
    rates.countLookup(clientAddress, caller);
    throw new Refusal(paste === undefined ? 'pasteNotFound' : 'permissionDenied');
  }

  async function update(id: string, amendment: Amendment): Promise<UpdatedPaste> {
    const { hasContent, password, clientAddress, caller } = amendment;
    const owner = requireIdentity(caller);
    rules.requireDeclaredSize(amendment);
    requireSomething(amendment);
    const before = await requireChangeable(id, caller, clientAddress);
    if (before.burnAfterRead) throw new Refusal('burnNotUpdatable');
    // A password costs as much to hash for an update as for a new paste.
    const rate = hasContent || password !== undefined ? rates.countCreation(clientAddress, caller) : null;
    if (!hasContent) return write(id, owner, await changesOf(amendment), rate);
    return rules.receive({ ...amendment, replacedBytes: before.size }, async (received) => {
      const content = changedContent(amendment, received);
      return write(id, owner, { ...(await changesOf(amendment)), content }, rate);
    });
  }

  async function changesOf(amendment: Amendment): Promise<PasteChanges> {
    const { password, removesPassword, requestedTtlSeconds, clientAddress } = amendment;
    const passwordHash = password === undefined ? undefined : await passwords.hash(password, clientAddress);
    const expiresAt = requestedTtlSeconds === undefined
      ? undefined
      : unixSeconds(clock) + cappedTtlSeconds(config, requestedTtlSeconds);
    return { passwordHash: removesPassword ? null : passwordHash, expiresAt };
  }

  async function write(
    id: string,
    owner: string,
    changes: PasteChanges,
    rate: RateStanding | null,
  ): Promise<UpdatedPaste> {
    const outcome = await store.pastes.update(id, owner, changes, { ...storage.terms, nowSeconds: unixSeconds(clock) });
    if (outcome.refused !== null) throw storage.refusalOf(outcome, rate);
    if (changes.content !== undefined) storage.countStored();
    return { paste: outcome.paste, rate };
  }

  async function remove(id: string, caller: Caller, clientAddress: string): Promise<void> {
    const fingerprint = requireIdentity(caller);
    await requireChangeable(id, caller, clientAddress, caller.tier === 'admin');
    const asAdmin = caller.tier === 'admin'
      ? audit.event('paste_deleted', 'success', { fingerprint, clientAddress }, { paste: shortened(id) })
      : null;
    const outcome = await store.pastes.remove(id, fingerprint, unixSeconds(clock), asAdmin);
    if (outcome.refused !== null) throw new Refusal(outcome.refused);
    count('pastesDeleted', 'deleted');
    if (outcome.audited !== null) audit.announce(outcome.audited);
  }

  async function list({ caller, clientAddress, filter, page, all }: WantedList): Promise<Listed<ListedPaste>> {
    const owner = requireIdentity(caller);
    if (all) requireAdmin(caller);
    rates.countLookup(clientAddress, caller);
    return store.pastes.list({ ...filter, owner: all ? null : owner }, page, unixSeconds(clock));
  }

  return { update, remove, list };
}

function requireSomething(amendment: Amendment): void {
  const { hasContent, password, removesPassword, requestedTtlSeconds } = amendment;
  if (password !== undefined && removesPassword) {
    throw new Refusal('requestMalformed', { hint: 'X-Paste-Password and X-Remove-Password exclude each other' });
  }
  if (hasContent || password !== undefined || removesPassword || requestedTtlSeconds !== undefined) return;
  throw new Refusal('nothingToUpdate', { hint: 'send new content, X-Paste-Password, X-Remove-Password or X-Expiry' });
}

function changedContent(offer: Offer, received: ReceivedContent): ChangedContent {
  return {
    mimeType: mediaTypeOf(received.isText, offer.isJson ? undefined : offer.contentType),
    size: received.bytes,
    sha256: received.sha256,
    contentId: received.contentId,
    content: received.content,
  };
}

/** Enough to tell pastes apart in the audit log; not enough to read one. */
function shortened(id: string): string {
  return id.slice(0, 8);
}
