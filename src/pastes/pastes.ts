// The rules of pastes: what may be stored, who may read it, and that burning happens once. No HTTP: refusals are
// thrown, values returned. The contract's "States and transitions" and the decisions' "Checks on POST /" are the
// source.

import type { Config } from '../config/settings.ts';
import { type CompactBytes, mediaTypeOf } from '../core/content.ts';
import type { Count } from '../core/events.ts';
import { ID_BYTES, idFromBytes } from '../core/ids.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, type Clock, type RandomBytes, unixSeconds } from '../core/time.ts';
import type { Antiflood } from '../limits/antiflood.ts';
import type {
  ContentReader, NewPaste, Paste, PasteWithContent, SpentChallenge, Store,
} from '../store/store.ts';
import type { Challenges, Work } from './challenges.ts';
import { type ContentRules, createStorageRules, type Offer, ttlSeconds } from './content-rules.ts';
import type { ReceivedContent } from './intake.ts';
import type { Passwords } from './passwords.ts';
import type { Rates } from './rates.ts';

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
    if (outcome.kind === 'challengeUsed' || outcome.kind === 'challengeExpired') {
      throw challenges.notSpent(outcome, 'paste');
    }
    if (outcome.kind !== 'stored') throw storage.refusalOf(outcome, rate);
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
