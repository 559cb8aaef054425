// The rules for owners, the admin and callers who show a delete token: which pastes they may change, delete and list.
// From the decisions' "PUT /{id}" and "Lists and audit". Loaded with the first such request.

import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { unixSeconds } from '../core/time.ts';
import type { Paste } from '../store/store.ts';
import { ttlSeconds } from './admission.ts';
import { requireAdmin, requireIdentity } from './identity.ts';
import { Intake, type Offer, requireDeclaredSize } from './intake.ts';
import type { Parts } from './parts.ts';
import { notStored, storageTerms } from './pastes.ts';

/** Enough of an id to tell pastes apart in the audit log, and not enough to read one. */
export const AUDITED_ID_CHARACTERS = 8;

type Amendment = Offer & Target & Readonly<{ removesPassword: boolean }>;

/** Changes a paste that the caller owns, and asks for no password. `rate` is null also if nothing was counted. */
export async function updatePaste(parts: Parts, amendment: Amendment) {
  const { config, store, passwords, rates, clock, count } = parts;
  const { id, caller, clientAddress, declaredBytes, password, requestedTtlSeconds } = amendment;
  const hasContent = declaredBytes !== 0;
  const owner = requireIdentity(caller);
  requireDeclaredSize(parts, amendment);
  requireSomething(amendment);
  const before = await requireChangeable(parts, amendment);
  if (before.burnAfterRead) throw new Refusal('burnNotUpdatable');
  const onlySha256 = amendment.meantContent?.(before);
  // A password costs as much to hash for an update as for a new paste.
  const rate = hasContent || password !== undefined ? rates.countCreation(clientAddress, caller) : null;
  await using intake = hasContent ? new Intake(parts, amendment) : null;
  const content = intake === null ? undefined : await intake.receive(before.size);
  const newHash = password === undefined ? undefined : await passwords.hash(password, clientAddress);
  const nowSeconds = unixSeconds(clock);
  const ttl = requestedTtlSeconds === undefined ? undefined : ttlSeconds(config, caller, requestedTtlSeconds);
  const changes = {
    content, passwordHash: amendment.removesPassword ? null : newHash,
    expiresAt: ttl === undefined ? undefined : nowSeconds + ttl,
  };
  const outcome = await store.pastes.update(id, owner, changes, { ...storageTerms(config), nowSeconds, onlySha256 });
  if (outcome.refused !== null) throw notStored(parts, outcome, rate);
  intake?.keep();
  if (hasContent && config.duplicateMax > 0) count('duplicateChecks', 'accepted');
  return { paste: outcome.paste, rate };
}

function requireSomething({ declaredBytes, password, removesPassword, requestedTtlSeconds }: Amendment): void {
  if (password !== undefined && removesPassword) {
    throw new Refusal('requestMalformed', { hint: 'X-Paste-Password and X-Remove-Password exclude each other' });
  }
  if (declaredBytes !== 0 || password !== undefined || removesPassword || requestedTtlSeconds !== undefined) return;
  throw new Refusal('nothingToUpdate', { hint: 'send new content, X-Paste-Password, X-Remove-Password or X-Expiry' });
}

export interface Target {
  readonly id: string;
  readonly caller: Caller;
  readonly clientAddress: string;
  /** Set when the caller means one certain content: returns the paste's digest, or throws if the paste has another. */
  readonly meantContent: ((paste: Paste) => string) | undefined;
}

/** Before any body is read; the writer decides again. Telling of an id, or of another's content, counts as a lookup. */
async function requireChangeable(parts: Parts, target: Target, ofAnyone = false, token?: string): Promise<Paste> {
  const { store, rates, deleteTokens, clock } = parts;
  const { id, caller, clientAddress, meantContent } = target;
  const paste = await store.pastes.find(id, unixSeconds(clock));
  const isFree = ofAnyone && meantContent === undefined;
  if (paste !== undefined && (isFree || (paste.owner !== null && paste.owner === caller.fingerprint))) return paste;
  rates.countLookup(clientAddress, caller);
  if (paste === undefined) throw new Refusal('pasteNotFound');
  if (ofAnyone) return paste;
  if (paste.owner === null && token !== undefined && deleteTokens.isTokenOf(id, token)) return paste;
  throw new Refusal('permissionDenied');
}

/** Deletes the caller's own paste; for the admin anyone's, with an audit entry; one without owner by its token. */
export async function deletePaste(parts: Parts, target: Target, token: string | undefined): Promise<void> {
  const { store, audit, clock, count } = parts;
  const { id, caller, caller: { fingerprint }, clientAddress } = target;
  if (token === undefined) requireIdentity(caller, 'send X-Delete-Token, or present a client certificate');
  const isAdmin = caller.tier === 'admin';
  const before = await requireChangeable(parts, target, isAdmin, token);
  const paste = id.slice(0, AUDITED_ID_CHARACTERS);
  const asAdmin = isAdmin ? audit.event('paste_deleted', 'success', { fingerprint, clientAddress }, { paste }) : null;
  const by = isAdmin ? fingerprint : before.owner;
  const outcome = await store.pastes.remove(id, by, unixSeconds(clock), asAdmin, target.meantContent?.(before));
  if (outcome.refused !== null) throw new Refusal(outcome.refused);
  count('pastesDeleted', 'deleted');
  if (outcome.audited !== null) audit.announce(outcome.audited);
}

/** Whose pastes are listed: the caller's own; null for everyone's, which only the admin may ask for. */
export function ownerListed(caller: Caller, all: boolean): string | null {
  if (all) requireAdmin(caller);
  return all ? null : requireIdentity(caller);
}
