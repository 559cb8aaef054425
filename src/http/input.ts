// Request headers of pastes as typed values, each parsed once and here. What a value means is decided in service/.

import { Refusal } from '../core/refusals.ts';
import type { Work } from '../service/challenges.ts';
import type { RequestHeaders } from './request.ts';

const YES = /^(?:true|1|yes)$/i;
const POSITIVE_INTEGER = /^\d+$/;

/** Header values arrive as one character a byte (RFC 9110 section 5.5); passwords are UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function burnRequested(headers: RequestHeaders): boolean {
  return YES.test(headers.single('x-burn-after-read') ?? '');
}

/** Seconds; undefined for anything but a positive decimal integer. A value past all bounds is still a number to be capped. */
export function requestedTtlSeconds(headers: RequestHeaders): number | undefined {
  const value = headers.single('x-expiry') ?? '';
  if (!POSITIVE_INTEGER.test(value)) return undefined;
  const seconds = Number(value);
  return seconds > 0 ? seconds : undefined;
}

/** The same for an update, where there is no default to fall back on: anything else is refused. */
export function amendedTtlSeconds(headers: RequestHeaders): number | undefined {
  const isAbsent = headers.single('x-expiry') === undefined;
  const seconds = requestedTtlSeconds(headers);
  if (!isAbsent && seconds === undefined) throw new Refusal('expiryInvalid');
  return seconds;
}

export function removesPassword(headers: RequestHeaders): boolean {
  return YES.test(headers.single('x-remove-password') ?? '');
}

/** The password's text; undefined when absent or empty. Refuses bytes that are not UTF-8. */
export function password(headers: RequestHeaders): string | undefined {
  const value = headers.single('x-paste-password') ?? '';
  if (value === '') return undefined;
  try {
    return utf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    throw new Refusal('requestMalformed', { hint: 'X-Paste-Password must be UTF-8 text' });
  }
}

/** What the request shows for its proof-of-work, still unchecked. */
export function work(headers: RequestHeaders): Work {
  return { token: headers.single('x-pow-token'), solution: headers.single('x-pow-solution') };
}

/** Exactly `application/json`, with or without parameters. */
export function isJson(contentType: string | undefined): boolean {
  return isOfType(contentType, 'application/json');
}

export function isForm(contentType: string | undefined): boolean {
  return isOfType(contentType, 'multipart/form-data');
}

function isOfType(contentType: string | undefined, type: string): boolean {
  if (contentType === undefined) return false;
  const [given = ''] = contentType.split(';', 1);
  return given.trim().toLowerCase() === type;
}

/** A decoder is an attack surface and a store must keep what it was sent: only identity is taken. */
export function requireIdentityEncoding(headers: RequestHeaders): void {
  const encoding = headers.single('content-encoding') ?? 'identity';
  if (encoding.trim().toLowerCase() === 'identity') return;
  throw new Refusal('contentEncodingUnsupported', { hint: 'send the content without Content-Encoding' });
}
