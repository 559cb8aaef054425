// The certificate authority as the rest of the service sees it. Its code is loaded at start where there is a password
// for it, else by the first request that needs it: most services never issue a certificate.

import type { Handler } from '../http/engine/reply.ts';
import { REGISTRATION_CLOSED, whyUnavailable } from '../http/present.ts';
import type { Handlers } from '../http/routes.ts';
import type { AuthorityParts, AuthorityRoom, RoomRoute } from './handlers.ts';

const ROUTES = [
  'describePki', 'createAuthority', 'authorityCertificate', 'revocationList', 'revocationListPem', 'issueCertificate',
  'listCertificates', 'revokeCertificate', 'registrationChallenge', 'register', 'renewCertificate',
] as const satisfies readonly RoomRoute[];

const WATCH_INTERVAL_MS = 1000;

export class LazyAuthority {
  readonly handlers: Pick<Handlers, (typeof ROUTES)[number]>;
  readonly #parts: AuthorityParts;
  #loading: Promise<AuthorityRoom> | undefined;
  #room: AuthorityRoom | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
    const handlerOf = (name: RoomRoute): Handler => async (request) => (await this.#load()).handle(name, request);
    this.handlers = Object.fromEntries(ROUTES.map((name) => [name, handlerOf(name)])) as LazyAuthority['handlers'];
  }

  /** Called before anybody is served. TLS also trusts an authority that an operator's command makes or renews later. */
  async begin(): Promise<void> {
    if (this.#parts.config.pkiCaPassword !== '') await this.#load();
    if (this.#parts.tls === undefined) return;
    await this.#trustFound();
    this.#watch = setInterval(() => void this.#trustFound(), WATCH_INTERVAL_MS);
  }

  /** See Authorities; does nothing while the code is not loaded. */
  async checkKey(): Promise<void> {
    await this.#room?.authorities.checkKey();
  }

  /** Why nobody can register, in words for callers, as far as is known: to have the key tried, call checkKey. */
  async whyUnavailable(): Promise<string | undefined> {
    if (this.#parts.config.registerBy === 'off') return REGISTRATION_CLOSED;
    // An operator's command may have renewed the authority since, or changed the key's password to this one.
    if (this.#room?.authorities.whyUnavailable() !== undefined) await this.checkKey();
    if (this.#room !== undefined) return this.#room.authorities.whyUnavailable();
    return whyUnavailable(this.#parts.config.pkiCaPassword !== '', false, true);
  }

  /** Makes a new revocation list if one exists and a new one is due. If that fails, requests for the list tell why. */
  async renewRevocationList(): Promise<void> {
    const list = await (async () => this.#parts.store.read.findCrl())().catch(() => undefined);
    if (list !== undefined) await (await this.#load()).revocationList.current().catch(() => {});
  }

  async replacePassword(password: string): Promise<boolean> {
    return (await this.#load()).authorities.replacePassword(password);
  }

  async close(): Promise<void> {
    clearInterval(this.#watch);
    (await this.#loading?.catch(() => undefined))?.bundles.close();
  }

  /** If this fails, TLS keeps the certificate that it has: others report a failing storage or a damaged certificate. */
  async #trustFound(): Promise<void> {
    const { store, tls } = this.#parts;
    const findAuthority = async () => store.read.findAuthority();
    await findAuthority().then((found) => found && tls?.trust(found.certificate)).catch(() => {});
  }

  #load(): Promise<AuthorityRoom> {
    return (this.#loading ??= import('./handlers.ts').then(({ createRoom }) => (
      this.#room = createRoom(this.#parts)
    )).catch((error: unknown) => {
      // The reason may be one that passes, such as EMFILE, so let the next request try again.
      this.#loading = undefined;
      throw error;
    }));
  }
}
