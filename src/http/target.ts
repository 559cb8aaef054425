// The request target (RFC 9112 section 3.2), taken apart as raw text and never through `new URL()`, which would
// normalise dot segments and backslashes away. Decodes nothing: no path of this API has a character that needs it.

import { Refusal } from '../core/refusals.ts';
import { isWellFormedHost } from './host.ts';

export interface Target {
  /** The raw path, beginning with a slash; `*` for the server as a whole (OPTIONS only). */
  readonly path: string;
  /** What follows the first question mark; empty when there is none. */
  readonly query: string;
  /** The host that an absolute-form target names, well-formed: it stands in for Host (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined;
}

const ABSOLUTE = /^https?:\/\/([^/?]*)(.*)$/i;

/** `.` and `..` as whole segments, also when written with `%2e` (RFC 3986 section 6.2.2.2 makes that the same). */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Refuses as `targetInvalid` what is no origin-form, http(s) absolute-form or `*`, and paths that are not plain. */
export function parseTarget(method: string, target: string): Target {
  if (target.charCodeAt(0) === 0x2f) return splitTarget(target, undefined);
  if (target === '*' && method === 'OPTIONS') return { path: '*', query: '', authority: undefined };
  const [, authority, rest] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined || rest === undefined || !isWellFormedHost(authority)) throw new Refusal('targetInvalid');
  // RFC 9112 section 3.2.4: without any path, OPTIONS means the server as a whole.
  if (rest === '' && method === 'OPTIONS') return { path: '*', query: '', authority };
  return splitTarget(rest.startsWith('/') ? rest : `/${rest}`, authority);
}

function splitTarget(target: string, authority: string | undefined): Target {
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  // A fragment is never sent (RFC 9110 section 7.1); whoever sends one means another path than we would read.
  if (path.includes('\\') || target.includes('#') || DOT_SEGMENT.test(path)) throw new Refusal('targetInvalid');
  return { path, query: mark === -1 ? '' : target.slice(mark + 1), authority };
}
