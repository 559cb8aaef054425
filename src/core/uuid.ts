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
