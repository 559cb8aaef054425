// From method and raw path to a route of the table, or to what the answer is when there is none. Does not call handlers
// and does not decode: fixed segments and ids are compared as they came.

import { isWellFormedId } from '../core/ids.ts';
import type { Route } from './routes.ts';

export type Match =
  | { readonly kind: 'route'; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  /** A known path: OPTIONS asked for it, or its methods do not include this one. */
  | { readonly kind: 'options' | 'methodNotAllowed'; readonly path: string; readonly allow: string }
  | { readonly kind: 'notFound' | 'idInvalid' };

export interface Router {
  match(method: string, path: string): Match;
  /** Every method that some path of this server takes, for `OPTIONS *`. */
  readonly allow: string;
}

/** All routes of one path. */
interface PathEntry {
  readonly path: string;
  readonly segments: readonly string[];
  readonly routes: ReadonlyMap<string, Route>;
  readonly allow: string;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
const NOT_FOUND: Match = { kind: 'notFound' };
const ID_INVALID: Match = { kind: 'idInvalid' };

/** The table's order does not matter: a path without parameters is found before any with them. */
export function createRouter(routes: readonly Route[]): Router {
  const paths = [...Map.groupBy(routes, (route) => route.path)].map(([path, ofPath]) => pathEntry(path, ofPath));
  const fixed = new Map(paths.filter((entry) => !entry.path.includes('{')).map((entry) => [entry.path, entry]));
  const withParams = paths.filter((entry) => entry.path.includes('{'));
  // The decisions, "Ids and addresses": fixed names are never ids.
  const reserved = new Set(paths.map((entry) => entry.segments[1] ?? '').filter((segment) => !segment.startsWith('{')));
  reserved.delete('');

  function match(method: string, path: string): Match {
    const entry = fixed.get(path);
    if (entry !== undefined) return matchMethod(entry, method, NO_PARAMS);
    const segments = path.split('/');
    let isIdInvalid = false;
    for (const candidate of withParams) {
      const params = matchSegments(candidate.segments, segments);
      if (params === undefined) continue;
      const { id } = params;
      if (id === undefined || (isWellFormedId(id) && !reserved.has(id))) return matchMethod(candidate, method, params);
      if (!reserved.has(id)) isIdInvalid = true;
    }
    return isIdInvalid ? ID_INVALID : NOT_FOUND;
  }

  return { match, allow: allowOf(routes) };
}

function pathEntry(path: string, routes: readonly Route[]): PathEntry {
  const byMethod = new Map<string, Route>(routes.map((route) => [route.method, route]));
  const get = byMethod.get('GET');
  if (get !== undefined) byMethod.set('HEAD', get);
  return { path, segments: path.split('/'), routes: byMethod, allow: allowOf(routes) };
}

function allowOf(routes: readonly Route[]): string {
  const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set([...methods, 'OPTIONS'])].join(', ');
}

function matchMethod(entry: PathEntry, method: string, params: Readonly<Record<string, string>>): Match {
  const route = entry.routes.get(method);
  if (route !== undefined) return { kind: 'route', route, params };
  return { kind: method === 'OPTIONS' ? 'options' : 'methodNotAllowed', path: entry.path, allow: entry.allow };
}

/** The parameters' values when every segment fits. */
function matchSegments(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (expected.startsWith('{')) params[expected.slice(1, -1)] = segment;
    else if (expected !== segment) return undefined;
  }
  return params;
}
