// Paste ids, made from 128 random bits since whoever knows an id may read the paste (OWASP ASVS 5.0, 11.5.1), and
// random UUIDs. Randomness is handed in.

/** RFC 4648 section 6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

const WELL_FORMED = /^[A-Za-z0-9]{6,64}$/;

/** How many random bytes an id is made of. */
export const ID_BYTES = 16;

/** 26 characters of `a-z2-7` for the 128 bits given; the last character holds three bits and two zeros. */
export function idFromBytes(bytes: Uint8Array): string {
  if (bytes.length !== ID_BYTES) throw new RangeError(`an id is made of ${ID_BYTES} bytes, not ${bytes.length}`);
  let id = '';
  for (let bit = 0; bit < ID_BYTES * 8; bit += 5) {
    // The five bits are in one byte or across two.
    const pair = (bytes[bit >> 3]! << 8) | (bytes[(bit >> 3) + 1] ?? 0);
    id += BASE32[(pair >> (11 - (bit & 7))) & 31];
  }
  return id;
}

/** Whether a path segment can be an id at all: wider than what is made here, as the contract's examples differ. */
export function isWellFormedId(segment: string): boolean {
  return WELL_FORMED.test(segment);
}

/** How many random bytes a UUID is made of. */
export const UUID_BYTES = 16;

/** RFC 9562 section 5.4, from 32 hex digits: version 4 in the 13th, the variant in the top bits of the 17th. */
export function uuidFromHex(hex: string): string {
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
