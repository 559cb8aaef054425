// From a request to who is calling: the one line that every handler with an identity begins with.

import type { Awaitable } from '../core/awaitable.ts';
import type { Caller } from '../core/tiers.ts';
import type { Identity } from '../service/identity.ts';
import type { Request } from './request.ts';

export type CallerOf = (request: Request) => Awaitable<Caller>;

export function createCallerOf(identity: Identity): CallerOf {
  return ({ fingerprint, certificate, clientAddress }) => (
    identity.callerOf({ fingerprint, certificate, clientAddress })
  );
}
