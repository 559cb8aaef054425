// X-Request-ID: the caller's own when it can be echoed safely, otherwise a new UUID.

import type { RandomBytes } from '../core/random.ts';
import { UUID_BYTES, uuidFromHex } from '../core/uuid.ts';

/** What may be echoed: no quotes, spaces or controls, so that it is safe in a header and in any log. */
const ECHOABLE = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** Bytes are fetched for so many ids at once: one call for each would cost more than the rest of the id. */
const IDS_PER_FETCH = 128;

/** Gives the id for a request that presents this one, or none. */
export type RequestIds = (presented?: string) => string;

export function createRequestIds(random: RandomBytes): RequestIds {
  let hex = '';
  let position = 0;
  return (presented) => {
    if (presented !== undefined && ECHOABLE.test(presented)) return presented;
    if (position === hex.length) {
      hex = Buffer.from(random(IDS_PER_FETCH * UUID_BYTES)).toString('hex');
      position = 0;
    }
    const start = position;
    position += 2 * UUID_BYTES;
    return uuidFromHex(hex.slice(start, position));
  };
}
