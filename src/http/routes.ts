// The table of the whole API, from which router, `Allow`, index, the metrics' labels and the manual page derive.

import type { Config } from '../config/settings.ts';
import type { Handler } from './engine/reply.ts';

export interface Route {
  /** The name of its handler. */
  readonly name: string;
  /** With one `{name}` at most. A `{id}` must be a well-formed paste id, or the request is refused. */
  readonly path: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** One line for the index and the manual page. */
  readonly summary: string;
  /** Only for the forms of pages: for any other request it is as if the route were not there. */
  readonly isForm?: true;
}

/** `curl -T name host/` sends PUT /name, which may look like an id, or be none. */
export const UPLOAD_HINT = 'to store a paste, send it to / itself: curl -T - URL < FILE';

/** HEAD works wherever GET does. `PUT /` is an alias of `POST /`, since `curl -T` sends it. */
export const ROUTES = [
  { name: 'index', method: 'GET', path: '/', summary: 'what there is here: endpoints, limits, examples' },
  { name: 'createPaste', method: 'POST', path: '/', summary: 'store a paste: the body, or JSON {"content": "..."}' },
  { name: 'createPaste', method: 'PUT', path: '/', summary: 'the same as POST /, for curl -T' },
  { name: 'health', method: 'GET', path: '/health', summary: 'whether the service and its database work' },
  { name: 'getChallenge', method: 'GET', path: '/challenge', summary: 'a proof-of-work challenge for POST /' },
  { name: 'securityText', method: 'GET', path: '/.well-known/security.txt',
    summary: 'whom to tell about abuse or a vulnerability' },
  { name: 'getClient', method: 'GET', path: '/client', summary: 'the command-line client, a shell script' },
  { name: 'listPastes', method: 'GET', path: '/pastes', summary: 'your own pastes; with all=1 for the admin all' },
  { name: 'listAudit', method: 'GET', path: '/audit', summary: 'the audit log, for the admin' },
  { name: 'registrationChallenge', method: 'GET', path: '/register/challenge',
    summary: 'a proof-of-work challenge for POST /register' },
  { name: 'register', method: 'POST', path: '/register',
    summary: 'a client certificate with its key, as PKCS#12; or for the key of a CSR' },
  { name: 'renewCertificate', method: 'POST', path: '/register/renew',
    summary: 'a new certificate for the holder of one of this service' },
  { name: 'describePki', method: 'GET', path: '/pki', summary: 'the certificate authority' },
  { name: 'createAuthority', method: 'POST', path: '/pki/ca', summary: 'create the certificate authority, once' },
  { name: 'authorityCertificate', method: 'GET', path: '/pki/ca.crt', summary: 'the CA certificate, PEM' },
  { name: 'revocationList', method: 'GET', path: '/pki/ca.crl', summary: 'the certificate revocation list, DER' },
  { name: 'revocationListPem', method: 'GET', path: '/pki/ca.crl.pem',
    summary: 'the certificate revocation list, PEM' },
  { name: 'issueCertificate', method: 'POST', path: '/pki/issue',
    summary: 'issue a client certificate, or certify the key of a CSR' },
  { name: 'listCertificates', method: 'GET', path: '/pki/certs',
    summary: 'certificates that the caller obtained or holds' },
  { name: 'revokeCertificate', method: 'POST', path: '/pki/revoke/{serial}',
    summary: 'revoke a certificate that the caller obtained or holds' },
  { name: 'getPaste', method: 'GET', path: '/{id}', summary: 'metadata of a paste' },
  { name: 'getRaw', method: 'GET', path: '/{id}/raw', summary: 'content of a paste, with its media type' },
  { name: 'answerForm', method: 'POST', path: '/{id}', isForm: true,
    summary: 'a page of a paste for the forms of its page: with the password, or read once' },
  { name: 'updatePaste', method: 'PUT', path: '/{id}', summary: 'change content, password or expiry of your paste' },
  { name: 'deletePaste', method: 'DELETE', path: '/{id}',
    summary: 'delete a paste of your own; for the admin anyone\'s; one without an owner by its X-Delete-Token' },
] as const satisfies readonly Route[];

/** Without a contact there is no security.txt, as if its route were not there. */
export function routesOf({ contact }: Pick<Config, 'contact'>): readonly (typeof ROUTES)[number][] {
  return contact === '' ? ROUTES.filter(({ name }) => name !== 'securityText') : ROUTES;
}

export type RouteName = (typeof ROUTES)[number]['name'];

export type Handlers = Readonly<Record<RouteName, Handler>>;

export function allowOf(routes: readonly Route[]): string {
  const open = routes.filter(({ isForm }) => isForm !== true);
  const methods = open.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set([...methods, 'OPTIONS'])].join(', ');
}
