// The rules of pastes: creating, reading and burning. From the contract's "States and transitions" and the decisions'
// "Checks on POST /". What owners do to their pastes is in owned.ts.

import type { Config } from '../config/settings.ts';
import { type Caller, hasTrustedLimits } from '../core/callers.ts';
import type { CompactBytes } from '../core/content.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, unixSeconds } from '../core/time.ts';
import type { ContentReader } from '../store/content.ts';
import type { CreationTerms, NewPaste, Paste, PasteWithContent, Refused } from '../store/store.ts';
import { ttlSeconds, type Work } from './admission.ts';
import { Intake, newId, type Offer, requireDeclaredSize } from './intake.ts';
import type { Parts } from './parts.ts';

/** A PUT or DELETE may remove a paste's chunks between its lookup and their opening; then it is looked up again. */
const OPEN_ATTEMPTS = 3;

/** The five steps of the decisions' "Checks on POST /"; the store does the last. The paste is durable on resolving. */
export async function createPaste(parts: Parts, submission: Offer & { work: Work; burnAfterRead: boolean }) {
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
    id: newId(parts.random), owner: caller.fingerprint,
    createdAt, expiresAt: createdAt + ttlSeconds(config, caller, submission.requestedTtlSeconds),
    burnAfterRead: submission.burnAfterRead, passwordHash, ...content,
  };
  const outcome = await store.pastes.create(paste, { ...storageTerms(config), spend });
  if (outcome.refused !== null) throw notStored(parts, outcome, rate);
  intake.keep();
  if (config.duplicateMax > 0) count('duplicateChecks', 'accepted');
  count('pastesCreated');
  return { paste, rate };
}

/** What a caller needs to store pastes; undefined when anyone may. */
export function neededToCreate({ createBy, registerBy }: Config) {
  if (createBy === 'anyone') return undefined;
  const whose = createBy === 'trusted' ? 'a certificate of this service' : 'a client certificate';
  const how = registerBy === 'off' ? 'ask the operator for one' : 'GET /register/challenge is how to get one';
  return { needed: createBy, hint: `storing pastes here takes ${whose}: ${how}` };
}

/** Refuses callers that SERVICE_CREATE keeps out. It comes before the check of work, so that nobody works in vain. */
function requireCreator(config: Config, caller: Caller): void {
  const terms = neededToCreate(config);
  if (terms === undefined) return;
  const { needed, hint } = terms;
  if (caller.fingerprint === null) throw new Refusal('identityRequired', { hint });
  if (needed === 'trusted' && !hasTrustedLimits(caller)) throw new Refusal('permissionDenied', { hint });
}

/** The duplicate throttle and the quotas, which the store checks in the transaction that stores content. */
export function storageTerms(config: Config): Omit<CreationTerms, 'spend'> {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes, maxOwnerStorageBytes } = config;
  return {
    duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
    maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    maxOwnerBytes: maxOwnerStorageBytes === 0 ? null : maxOwnerStorageBytes,
  };
}

export function notStored({ challenges, count }: Parts, outcome: Refused, rate: RateStanding | null): Refusal {
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
  /** Called before a paste burns: throws if somebody else may have made the client send the request. */
  readonly requireAsked: () => void;
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
  return andThen(passwords.unlock(find, password, clientAddress), (paste) => noteAccess(parts, paste));
}

/** Release the result if it is not read. A look never burns, so nobody may get the content of a paste that would. */
export function openPaste(
  parts: ReadingParts, lookup: Lookup, purpose: 'read' | 'look' = 'read', attempt = 1,
): Awaitable<OpenedPaste> {
  const { store, passwords, clock } = parts;
  const { id, password, clientAddress } = lookup;
  const find = (): Awaitable<PasteWithContent | undefined> => store.pastes.findWithContent(id, unixSeconds(clock));
  return andThen(passwords.unlock(find, password, clientAddress), (paste) => andThen(hold(parts, paste), (opened) => {
    if (opened === undefined) {
      if (attempt === OPEN_ATTEMPTS) throw new Refusal('pasteNotFound');
      return openPaste(parts, lookup, purpose, attempt + 1);
    }
    if (paste.burnAfterRead && purpose === 'read') return claimBurn(parts, opened, lookup);
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

/** The claim takes the content from all others. Before it, the content is held and its start read: it must be there. */
async function claimBurn({ store, clock, count }: ReadingParts, opened: OpenedPaste, { requireAsked }: Lookup) {
  using held = new DisposableStack();
  held.defer(() => release(opened));
  if (opened.kind === 'large') for await (const _ of opened.reader.read(0, 1));
  requireAsked();
  const { id, passwordHash } = opened.paste;
  if (!(await store.pastes.burn(id, passwordHash, unixSeconds(clock)))) throw new Refusal('pasteNotFound');
  held.move();
  count('pastesAccessed');
  count('pastesDeleted', 'burned');
  return opened;
}

/** Uses the paste's id, not the request's: it is the same string at each access, so its hash is known already. */
function noteAccess({ store, clock, count }: ReadingParts, paste: Paste): Paste {
  store.pastes.touch(paste.id, unixSeconds(clock));
  count('pastesAccessed');
  return paste;
}
