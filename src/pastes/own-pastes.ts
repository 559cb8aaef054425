// What identified callers do with their pastes, and the admin with everyone's: update, delete, list. Owning is enough:
// no password of a paste is asked for. The decisions' "PUT /{id}" and "Lists and audit" are the source.

import type { Config } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import { mediaTypeOf } from '../core/content.ts';
import type { Count } from '../core/events.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { type Clock, unixSeconds } from '../core/time.ts';
import type {
  ChangedContent, Listed, ListedPaste, Page, Paste, PasteChanges, PasteFilter, Store, UpdateOutcome,
} from '../store/store.ts';
import { cappedTtlSeconds, type ContentRules, createStorageRules, type Offer } from './content-rules.ts';
import { type Audit, requireAdmin, requireIdentity } from './identity.ts';
import type { ReceivedContent } from './intake.ts';
import type { Passwords } from './passwords.ts';
import type { Rates } from './rates.ts';

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
    if (outcome.kind !== 'updated') throw refusalOf(outcome, rate);
    if (changes.content !== undefined) storage.countStored();
    return { paste: outcome.paste, rate };
  }

  function refusalOf(outcome: Exclude<UpdateOutcome, { kind: 'updated' }>, rate: RateStanding | null): Refusal {
    switch (outcome.kind) {
      case 'notFound':
        return new Refusal('pasteNotFound');
      case 'notOwner':
        return new Refusal('permissionDenied');
      case 'burnAfterRead':
        return new Refusal('burnNotUpdatable');
      default:
        return storage.refusalOf(outcome, rate);
    }
  }

  async function remove(id: string, caller: Caller, clientAddress: string): Promise<void> {
    const fingerprint = requireIdentity(caller);
    await requireChangeable(id, caller, clientAddress, caller.tier === 'admin');
    const asAdmin = caller.tier === 'admin'
      ? audit.event('paste_deleted', 'success', { fingerprint, clientAddress }, { paste: shortened(id) })
      : null;
    const outcome = await store.pastes.remove(id, fingerprint, unixSeconds(clock), asAdmin);
    if (outcome.kind === 'notFound') throw new Refusal('pasteNotFound');
    if (outcome.kind === 'notOwner') throw new Refusal('permissionDenied');
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
