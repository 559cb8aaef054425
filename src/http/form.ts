// The form of a request that node's parser lets through although this server must not take it (RFC 9112): version,
// Host, framing and Expect. What the parser itself refuses is client-errors.ts.

import { Refusal } from '../core/refusals.ts';
import type { HeaderLines } from './header-lines.ts';

/** As many as common servers take. node would drop the rest without a word. */
const MAX_HEADER_LINES = 100;

export interface Form {
  /** `Content-Length`, 0 without a body, undefined when chunked. */
  readonly declaredBytes: number | undefined;
  /** A body will come only after 100 (RFC 9110 section 10.1.1). */
  readonly expectsContinue: boolean;
}

/** Refuses what is not well-formed. After that the connection is of no more use: its framing is in doubt. */
export function checkForm(version: string, headers: HeaderLines): Form {
  if (version !== '1.1' && version !== '1.0') throw new Refusal('requestMalformed', { hint: 'use HTTP/1.1' });
  if (headers.count > MAX_HEADER_LINES) throw new Refusal('headersTooLarge');
  const hosts = headers.all('host').length;
  // HTTP/1.0 had no Host yet (RFC 9112 section 3.2).
  if (hosts > 1 || (hosts === 0 && version === '1.1')) throw new Refusal('hostInvalid');
  const declaredBytes = declaredLength(version, headers);
  return { declaredBytes, expectsContinue: checkExpect(version, headers) && declaredBytes !== 0 };
}

/** RFC 9112 section 6. That only one of the two headers is there, once, the parser has seen to. */
function declaredLength(version: string, headers: HeaderLines): number | undefined {
  const encodings = headers.all('transfer-encoding');
  if (encodings.length === 0) return Number(headers.single('content-length') ?? 0);
  if (version === '1.0') throw new Refusal('requestMalformed', { hint: 'HTTP/1.0 has no Transfer-Encoding' });
  if (encodings.join(',').toLowerCase() !== 'chunked') throw new Refusal('transferEncodingUnsupported');
  return undefined;
}

/** An expectation in HTTP/1.0 is ignored (RFC 9110 section 10.1.1). */
function checkExpect(version: string, headers: HeaderLines): boolean {
  const expectations = headers.all('expect');
  if (expectations.length === 0 || version === '1.0') return false;
  if (expectations.join(',').toLowerCase() !== '100-continue') throw new Refusal('expectationFailed');
  return true;
}
