// What content may be stored: the checks of POST / and PUT / that look at the request's form (step 1) and at the
// content (step 4), in the decided order. Who may store, and how often, is decided elsewhere.

import type { Config } from '../config/settings.ts';
import { type Caller, hasTrustedLimits } from '../core/callers.ts';
import { type ByteSource, createContentScan, TEXT_TYPE } from '../core/content.ts';
import type { Count } from '../core/events.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { SHA256 } from '../crypto/digest.ts';
import {
  type ContentStore, type CreationOutcome, type CreationTerms, INLINE_BYTES, passesQuota, type Store,
} from '../store/store.ts';
import { receiveContent, type ReceivedContent } from './intake.ts';
import type { Passwords } from './passwords.ts';

/** Content that a caller wants stored. */
export interface Offer {
  readonly caller: Caller;
  readonly source: ByteSource;
  /** `Content-Length`; undefined when the body is chunked. */
  readonly declaredBytes: number | undefined;
  /** Whether the body is JSON with the content in it. */
  readonly isJson: boolean;
  /** The media type that the caller names, as sent. */
  readonly contentType: string | undefined;
  readonly password: string | undefined;
  /** Bytes of the content that it takes the place of, whose room it may have. */
  readonly replacedBytes?: number;
}

export interface ContentRules {
  /** Step 1: refuses a raw body by its declared length, before any of it is read. */
  requireDeclaredSize(offer: Offer): void;
  /** Step 4: takes the content in, checks it, and hands it to `keep`. Whatever fails, nothing of it stays behind. */
  receive<Result>(offer: Offer, keep: (received: ReceivedContent) => Promise<Result>): Promise<Result>;
}

export function createContentRules(parts: {
  config: Config;
  store: Store;
  passwords: Passwords;
  newContentId: () => string;
}): ContentRules {
  const { config, store, passwords, newContentId } = parts;

  function refuseSize({ caller }: Offer, size: number): never {
    const maxSize = maxPasteBytes(config, caller);
    throw new Refusal('pasteTooLarge', { size, maxSize, authenticated: caller.fingerprint !== null });
  }

  /** A full store says so before it has taken megabytes. All of it is decided again when content is written. */
  async function requireRoom(declaredBytes: number, replacedBytes: number): Promise<void> {
    if (!store.hasRoomFor(declaredBytes)) throw new Refusal('storageFull');
    if (config.maxStorageBytes === 0) return;
    const contentBytes = declaredBytes - replacedBytes;
    // Chunks are written before what they replace can go.
    const more = { contentBytes, unwrittenBytes: declaredBytes <= INLINE_BYTES ? contentBytes : declaredBytes };
    if (passesQuota(await store.pastes.usage(), config.maxStorageBytes, more)) throw new Refusal('storageFull');
  }

  /** Where content is written to: under the quota. */
  function contentsFor(declaredBytes: number): ContentStore {
    if (config.maxStorageBytes === 0) return store.contents;
    const quota = { maxStoredBytes: config.maxStorageBytes, declaredBytes };
    return { ...store.contents, upload: (contentId) => store.contents.upload(contentId, quota) };
  }

  function requireAcceptable(offer: Offer, received: ReceivedContent): void {
    if (received.bytes === 0) throw new Refusal('noContent');
    passwords.requireAcceptable(offer.password);
    if (received.bytes < config.minBytes) {
      throw new Refusal('pasteTooSmall', { size: received.bytes, minSize: config.minBytes });
    }
    if (config.requireBinary && received.isText) {
      throw new Refusal('textRefused', { hint: 'compress or encrypt the content first', detected: TEXT_TYPE });
    }
    requireEntropy(received);
  }

  function requireEntropy({ bytes, entropyBits }: ReceivedContent): void {
    if (entropyBits === undefined || bytes < config.minEntropyBytes || entropyBits >= config.minEntropyBits) return;
    throw new Refusal('entropyTooLow', {
      hint: 'compress or encrypt the content first',
      entropy: Math.floor(entropyBits * 1000) / 1000,
      minEntropy: config.minEntropyBits,
    });
  }

  return {
    requireDeclaredSize: (offer) => {
      const { declaredBytes = 0 } = offer;
      if (!offer.isJson && declaredBytes > maxPasteBytes(config, offer.caller)) refuseSize(offer, declaredBytes);
    },
    receive: async (offer, keep) => {
      // Of a JSON document it is not known how much of it is content.
      const declaredBytes = offer.isJson ? 0 : (offer.declaredBytes ?? 0);
      await requireRoom(declaredBytes, offer.replacedBytes ?? 0);
      const intake = {
        source: offer.source,
        isJson: offer.isJson,
        maxBytes: maxPasteBytes(config, offer.caller),
        refuseSize: (seenBytes: number): never => {
          passwords.requireAcceptable(offer.password);
          return refuseSize(offer, seenBytes);
        },
        scan: createContentScan({ sha256: SHA256, entropy: config.minEntropyBits > 0 }),
        contents: contentsFor(declaredBytes),
        newContentId,
      };
      return receiveContent(intake, async (received) => {
        requireAcceptable(offer, received);
        return keep(received);
      });
    },
  };
}

// What storing content depends on in the transaction itself, the same for creating and updating: the duplicate throttle
// and the quota.

export interface StorageRules {
  /** As plain values, for the store. */
  readonly terms: Omit<CreationTerms, 'spend'>;
  /** To be called when content was stored under these terms. */
  countStored(): void;
  refusalOf(
    outcome: Extract<CreationOutcome, { kind: 'duplicate' | 'storageFull' }>,
    rate: RateStanding | null,
  ): Refusal;
}

export function createStorageRules(config: Config, count: Count): StorageRules {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes } = config;
  return {
    terms: {
      duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
      maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    },
    countStored: () => {
      if (duplicateMax > 0) count('duplicateChecks', 'accepted');
    },
    refusalOf: (outcome, rate) => {
      if (outcome.kind === 'storageFull') return new Refusal('storageFull');
      count('duplicateChecks', 'refused');
      const fields = { count: outcome.count, windowSeconds: duplicateWindowSeconds };
      return new Refusal('duplicateContent', fields, { retryAfterSeconds: outcome.retryAfterSeconds, rate });
    },
  };
}

// What each tier may do, in numbers from the settings: sizes, times to live, rates. Rates are applied in rates.ts.

/** The largest paste, in bytes, that the caller may store. */
export function maxPasteBytes(config: Config, caller: Caller): number {
  return hasTrustedLimits(caller) ? config.maxAuthBytes : config.maxAnonBytes;
}

/**
 * Seconds until a new paste expires: what was asked for, up to SERVICE_MAX_EXPIRY, or the tier's default. The cap is
 * for requests only: an operator may set a default above it.
 */
export function ttlSeconds(config: Config, caller: Caller, requestedSeconds: number | undefined): number {
  if (requestedSeconds !== undefined) return cappedTtlSeconds(config, requestedSeconds);
  if (hasTrustedLimits(caller)) return config.expiryTrustedSeconds;
  return caller.tier === 'untrusted' ? config.expiryUntrustedSeconds : config.expiryAnonSeconds;
}

export function cappedTtlSeconds(config: Config, requestedSeconds: number): number {
  return Math.min(requestedSeconds, config.maxExpirySeconds);
}

/** What a rate of strangers, creations or lookups in a window, is for the caller; 0 stays no limit. */
export function rateMaxFor(config: Config, caller: Caller, max: number): number {
  return hasTrustedLimits(caller) ? max * config.rateTrustedFactor : max;
}
