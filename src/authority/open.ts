// The certificate authority as the rest of the service has it. Its code is loaded at start where there is a password
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

  /** Before anybody is served. TLS also trusts an authority that a command of the operator makes or renews later. */
  async begin(): Promise<void> {
    if (this.#parts.config.pkiCaPassword !== '') await this.#load();
    if (this.#parts.tls === undefined) return;
    await this.#trustFound();
    this.#watch = setInterval(() => void this.#trustFound(), WATCH_INTERVAL_MS);
  }

  /** See Authorities; nothing where the code is not loaded. */
  async checkKey(): Promise<void> {
    await this.#room?.authorities.checkKey();
  }

  /** Why nobody can register, in words for callers, as far as it is known: the key is tried by checkKey. */
  async whyUnavailable(): Promise<string | undefined> {
    if (this.#parts.config.registerBy === 'off') return REGISTRATION_CLOSED;
    // A command of the operator may have renewed it since, or given its key the password.
    if (this.#room?.authorities.whyUnavailable() !== undefined) await this.checkKey();
    if (this.#room !== undefined) return this.#room.authorities.whyUnavailable();
    return whyUnavailable(this.#parts.config.pkiCaPassword !== '', false, true);
  }

  /** Makes the revocation list that is due, where anybody ever asked for one; whoever asks is told of a failure. */
  async renewRevocationList(): Promise<void> {
    const findCrl = async () => this.#parts.store.read.findCrl();
    const list = await findCrl().catch(() => undefined);
    if (list !== undefined) await (await this.#load()).revocationList.current().catch(() => {});
  }

  async replacePassword(password: string): Promise<boolean> {
    return (await this.#load()).authorities.replacePassword(password);
  }

  async close(): Promise<void> {
    clearInterval(this.#watch);
    (await this.#loading?.catch(() => undefined))?.bundles.close();
  }

  /** When it fails, the certificate before stays: others report a failing storage, or a certificate that is damaged. */
  async #trustFound(): Promise<void> {
    const { store, tls } = this.#parts;
    const findAuthority = async () => store.read.findAuthority();
    await findAuthority().then((found) => found && tls?.trust(found.certificate)).catch(() => {});
  }

  #load(): Promise<AuthorityRoom> {
    return (this.#loading ??= import('./handlers.ts').then(({ createRoom }) => (
      this.#room = createRoom(this.#parts)
    )).catch((error: unknown) => {
      // Such as EMFILE: the next request may find files to be had again.
      this.#loading = undefined;
      throw error;
    }));
  }
}
