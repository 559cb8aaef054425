// What every answer must be, whatever was asked: the contract's "Common response headers" and the form of errors. The
// values are written out here, and not taken from the source, so that a change of them is noticed.

import assert from 'node:assert/strict';
import type { RawAnswer } from './raw-http.ts';

const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'permissions-policy': 'geolocation=(), microphone=(), camera=()',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'cache-control': 'no-store, no-cache, must-revalidate, private',
  pragma: 'no-cache',
};

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Every common header, and a request id. fetch joins the values of a repeated header, so a repeated one fails too. */
export function assertCommonHeaders(headers: Headers): void {
  for (const [name, value] of Object.entries(COMMON_HEADERS)) assert.equal(headers.get(name), value);
  assert.match(headers.get('x-request-id') ?? '', /^[A-Za-z0-9._:/+=@-]{1,128}$/);
}

/** Every common header exactly once, a request id, a date, and no X-XSS-Protection. */
export function assertContract(answer: RawAnswer): void {
  for (const [name, value] of Object.entries(COMMON_HEADERS)) assert.equal(answer.header(name), value);
  assert.match(answer.header('x-request-id'), /^[A-Za-z0-9._:/+=@-]{1,128}$/);
  assert.equal(answer.headers.has('x-xss-protection'), false);
  // RFC 9110 section 15.5.2.
  assert.equal(answer.headers.has('www-authenticate'), answer.status === 401);
  assert.match(answer.header('date'), / GMT$/);
}

/** The same for a refusal, whose body names this error. */
export function assertRefused(answer: RawAnswer, status: number, error: string): Record<string, unknown> {
  assert.equal(answer.status, status, answer.body.toString());
  assertContract(answer);
  assert.equal(answer.header('content-type'), 'application/json');
  const json = answer.json();
  assert.equal(Object.keys(json)[0], 'error');
  assert.equal(json['error'], error);
  return json;
}
