// The headers that every answer carries, whoever writes it: the contract's "Common response headers". X-Request-ID, the
// one whose value differs, is request-id.ts.

/** In the contract's order. */
export const COMMON_HEADERS = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'strict-origin-when-cross-origin'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Permissions-Policy', 'geolocation=(), microphone=(), camera=()'],
  ['Strict-Transport-Security', 'max-age=31536000; includeSubDomains'],
  ['Cache-Control', 'no-store, no-cache, must-revalidate, private'],
  ['Pragma', 'no-cache'],
] as const;

const FLAT: readonly string[] = COMMON_HEADERS.flat();

/** A new list of names and values in turn, as `writeHead` takes it, for the caller to add to. */
export function commonHead(requestId: string): string[] {
  const head = FLAT.slice();
  head.push('X-Request-ID', requestId);
  return head;
}
