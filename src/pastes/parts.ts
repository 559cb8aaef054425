// What the service is made of. Rules and handlers are functions of these parts, or of a few of them: Pick<Parts, ...>.

import type { Log } from '../core/events.ts';
import type { createDeleteTokens } from '../crypto/passwords.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { Store } from '../store/open.ts';
import type { ChallengeParts, Challenges, createRates, Passwords } from './admission.ts';
import type { Audit, Identity } from './identity.ts';

/** ChallengeParts adds the configuration, the clock, randomness, counts and anti-flood. */
export interface Parts extends ChallengeParts {
  readonly store: Store;
  /** Gives a random UUID (RFC 9562 section 5.4). */
  readonly newUuid: () => string;
  readonly log: Log;
  /** The queue of password checks, and of all other work that takes a tenth of a second of CPU. */
  readonly queue: WorkQueue;
  readonly passwords: Passwords;
  readonly deleteTokens: ReturnType<typeof createDeleteTokens>;
  readonly challenges: Challenges;
  readonly rates: ReturnType<typeof createRates>;
  readonly audit: Audit;
  /** From a request to its caller: `identity.callerOf(request)`. */
  readonly identity: Identity;
}

/** For rules that operator commands apply too: the store of a command keeps no content (store/visit.ts). */
export type SharedParts = Omit<Parts, 'store'> & { readonly store: Pick<Store, 'read' | 'run'> };
