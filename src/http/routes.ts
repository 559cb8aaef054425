// The table of the whole API. The router, `Allow`, the index, the metrics' labels and the manual page derive from it
// or are tested against it. What a route does is in handlers/.

import { isWellFormedId } from '../core/ids.ts';
import { Refusal } from '../core/refusals.ts';
import type { Handler } from './engine/reply.ts';
import type { Match, Router } from './engine/server.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export interface Route {
  /** The handler's name. */
  readonly name: string;
  readonly method: Method;
  /** Fixed segments, and one `{name}` at most. A `{id}` must be a well-formed paste id, or the request is refused. */
  readonly path: string;
  /** One line for the index and the manual page. */
  readonly summary: string;
}

/** HEAD works wherever GET does. `PUT /` is an alias of `POST /`, since `curl -T` sends it. */
export const ROUTES = [
  { name: 'index', method: 'GET', path: '/', summary: 'this description' },
  { name: 'createPaste', method: 'POST', path: '/', summary: 'store a paste: the body, or JSON {"content": "..."}' },
  { name: 'createPaste', method: 'PUT', path: '/', summary: 'the same as POST /, for curl -T' },
  { name: 'health', method: 'GET', path: '/health', summary: 'whether the service and its database work' },
  { name: 'getChallenge', method: 'GET', path: '/challenge', summary: 'a proof-of-work challenge for POST /' },
  { name: 'getClient', method: 'GET', path: '/client', summary: 'the command-line client, a shell script' },
  { name: 'listPastes', method: 'GET', path: '/pastes', summary: 'own pastes; everyone\'s with all=1 for the admin' },
  { name: 'listAudit', method: 'GET', path: '/audit', summary: 'the audit log, for the admin' },
  {
    name: 'registrationChallenge', method: 'GET', path: '/register/challenge',
    summary: 'a proof-of-work challenge for POST /register',
  },
  { name: 'register', method: 'POST', path: '/register', summary: 'a client certificate with its key, as PKCS#12' },
  { name: 'describePki', method: 'GET', path: '/pki', summary: 'the certificate authority' },
  { name: 'createAuthority', method: 'POST', path: '/pki/ca', summary: 'create the certificate authority, once' },
  { name: 'authorityCertificate', method: 'GET', path: '/pki/ca.crt', summary: 'the CA certificate, PEM' },
  { name: 'revocationList', method: 'GET', path: '/pki/ca.crl', summary: 'the certificate revocation list, DER' },
  {
    name: 'revocationListPem', method: 'GET', path: '/pki/ca.crl.pem',
    summary: 'the certificate revocation list, PEM',
  },
  {
    name: 'issueCertificate', method: 'POST', path: '/pki/issue',
    summary: 'issue a client certificate, or certify the key of a CSR',
  },
  {
    name: 'listCertificates', method: 'GET', path: '/pki/certs',
    summary: 'certificates that the caller obtained or holds',
  },
  {
    name: 'revokeCertificate', method: 'POST', path: '/pki/revoke/{serial}',
    summary: 'revoke a certificate that the caller obtained or holds',
  },
  { name: 'getPaste', method: 'GET', path: '/{id}', summary: 'metadata of a paste' },
  { name: 'getRaw', method: 'GET', path: '/{id}/raw', summary: 'content of a paste, with its media type' },
  { name: 'updatePaste', method: 'PUT', path: '/{id}', summary: 'change content, password or expiry of an own paste' },
  { name: 'deletePaste', method: 'DELETE', path: '/{id}', summary: 'delete an own paste; anyone\'s for the admin' },
] as const satisfies readonly Route[];

export type RouteName = (typeof ROUTES)[number]['name'];

/** One handler for every route of the table, by name. */
export type Handlers = Readonly<Record<RouteName, Handler>>;

// From method and raw path to a route of the table. Nothing is decoded: fixed segments and ids are compared as they
// came.

/** All routes of one path. */
interface PathEntry {
  readonly path: string;
  readonly routes: ReadonlyMap<string, Route>;
  readonly allow: string;
  /** The name of its parameter, and what finds the value in a path; undefined for a fixed path. */
  readonly parameter: { readonly name: string; readonly pattern: RegExp } | undefined;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

const UPLOAD_HINT = 'to store a paste, send it to / itself: curl -T - URL < FILE';

/**
 * The table's order does not matter: a path without a parameter is found before any with one. Throws a TypeError for a
 * path with several.
 */
export function createRouter(routes: readonly Route[]): Router {
  const entries = [...Map.groupBy(routes, (route) => route.path)].map(([path, ofPath]) => pathEntry(path, ofPath));
  const fixed = new Map(entries.filter(({ parameter }) => parameter === undefined).map((entry) => [entry.path, entry]));
  const withParameter = entries.filter(({ parameter }) => parameter !== undefined);
  // The decisions, "Ids and addresses": fixed names are never ids.
  const firstSegments = entries.map(({ path }) => path.split('/', 2)[1] ?? '');
  const reserved = new Set(firstSegments.filter((segment) => segment !== '' && !segment.startsWith('{')));

  function match(method: string, path: string): Match {
    const entry = fixed.get(path);
    if (entry !== undefined) return matchMethod(entry, method, NO_PARAMS);
    let isIdInvalid = false;
    for (const candidate of withParameter) {
      const { name, pattern } = candidate.parameter!;
      const value = pattern.exec(path)?.[1];
      if (value === undefined) continue;
      if (name !== 'id' || (isWellFormedId(value) && !reserved.has(value))) {
        return matchMethod(candidate, method, { [name]: value });
      }
      if (!reserved.has(value)) isIdInvalid = true;
    }
    if (!isIdInvalid) throw new Refusal('notFound');
    // `curl -T name host/` sends PUT /name.
    throw new Refusal('idInvalid', method === 'PUT' ? { hint: UPLOAD_HINT } : {});
  }

  return { match, allow: allowOf(routes) };
}

function pathEntry(path: string, routes: readonly Route[]): PathEntry {
  const byMethod = new Map<string, Route>(routes.map((route) => [route.method, route]));
  const get = byMethod.get('GET');
  if (get !== undefined) byMethod.set('HEAD', get);
  const parameter = path.includes('{') ? parameterOf(path) : undefined;
  return { path, routes: byMethod, allow: allowOf(routes), parameter };
}

/** Its value is one segment of the path. */
function parameterOf(path: string): PathEntry['parameter'] {
  const [, before, name, after] = /^([^{]*)\{([^}]+)\}([^{]*)$/.exec(path) ?? [];
  if (name === undefined) throw new TypeError(`a path has one parameter at most, unlike ${path}`);
  return { name, pattern: new RegExp(`^${before}([^/]*)${after}$`) };
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
