// Paste ids: made from 128 random bits, since whoever knows an id may read the paste (OWASP ASVS 5.0, 11.5.1).
// Does not make randomness, and does not know which ids exist.

/** RFC 4648 section 6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

const WELL_FORMED = /^[A-Za-z0-9]{6,64}$/;

/** How many random bytes an id is made of. */
export const ID_BYTES = 16;

/** 26 characters of `a-z2-7` for the 128 bits given; the last character holds three bits and two zeros. */
export function idFromBytes(bytes: Uint8Array): string {
  if (bytes.length !== ID_BYTES) throw new RangeError(`an id is made of ${ID_BYTES} bytes, not ${bytes.length}`);
  let id = '';
  // Bits further up than those that are pending fall out on the left, and are never looked at.
  let pending = 0;
  let pendingBits = 0;
  for (const byte of bytes) {
    pending = (pending << 8) | byte;
    pendingBits += 8;
    while (pendingBits >= 5) {
      pendingBits -= 5;
      id += BASE32[(pending >> pendingBits) & 31];
    }
  }
  return id + BASE32[(pending << (5 - pendingBits)) & 31];
}

/** Whether a path segment can be an id at all: wider than what is made here, as the contract's examples differ. */
export function isWellFormedId(segment: string): boolean {
  return WELL_FORMED.test(segment);
}

// Random UUIDs (RFC 9562 section 5.4) from randomness that is handed in.

/** How many random bytes a UUID is made of. */
export const UUID_BYTES = 16;

/** From 32 hex digits: version 4 in the 13th, the variant in the top bits of the 17th. */
export function uuidFromHex(digits: string): string {
  const variant = '89ab'[Number.parseInt(digits.charAt(16), 16) & 3];
  const low = digits.slice(0, 8);
  const mid = digits.slice(8, 12);
  const high = digits.slice(13, 16);
  const clock = digits.slice(17, 20);
  return `${low}-${mid}-4${high}-${variant}${clock}-${digits.slice(20)}`;
}
