// What the service is made of. Rules and handlers are functions of these parts; who needs few takes Pick<Parts, ...>.

import type { Config } from '../config/settings.ts';
import type { Count, Log } from '../core/events.ts';
import type { Clock, RandomBytes } from '../core/time.ts';
import type { createDeleteTokens } from '../crypto/passwords.ts';
import type { Antiflood } from '../limits/windows.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { Store } from '../store/open.ts';
import type { Challenges, Passwords, Rates } from './admission.ts';
import type { Audit, Identity } from './identity.ts';

export interface Parts {
  readonly config: Config;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  /** Counts for the metrics; does nothing where nobody can read them. */
  readonly count: Count;
  /** The queue of password checks, and of whatever else takes a tenth of a second of CPU. */
  readonly queue: WorkQueue;
  readonly passwords: Passwords;
  readonly deleteTokens: ReturnType<typeof createDeleteTokens>;
  readonly antiflood: Antiflood;
  readonly challenges: Challenges;
  readonly rates: Rates;
  readonly audit: Audit;
  /** From a request to its caller: `identity.callerOf(request)`. */
  readonly identity: Identity;
}
