// TLS of the public listener: which protocol it speaks, whose client certificates it believes, and how both certificate
// and trust change while it runs. Whether a believed certificate is revoked is decided in pastes/identity.ts.

import { createServer, type Server, type ServerOptions } from 'node:https';
import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { ConfigError, readSettingFile } from '../config/load.ts';
import { type Config, SETTINGS } from '../config/settings.ts';
import { codeOf } from '../core/events.ts';
import { DAY_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import {
  certificatePem, CIPHERS, fingerprintSha1, FULL_HANDSHAKES_ONLY, issuedSerial, NO_RENEGOTIATION, readServerPair,
} from '../crypto/presented.ts';
import type { Parts } from '../pastes/parts.ts';
import { NO_CERTIFICATE, type Presented } from './engine/request.ts';
import type { TlsTermination } from './engine/server.ts';

/** Long enough to notice that the renewal has broken, and to make a new certificate. */
const EXPIRY_WARNING_SECONDS = 14 * DAY_SECONDS;

const FAILURES_LOGGED_MS = MINUTE_SECONDS * 1000;

/** The TLS of one server. Its changes hold for new connections; those that are open go on as they are. */
export class Tls implements TlsTermination {
  readonly #parts: Pick<Parts, 'config' | 'clock' | 'log'>;
  #certificate: ReturnType<typeof readServerCertificate>;
  /** DER; undefined before there is an authority, and until then nobody is identified. */
  #authority: Uint8Array | undefined;
  #server: Server | undefined;
  #unlogged: { reason: string; count: number } | undefined;
  #pause: NodeJS.Timeout | undefined;

  /** Throws ConfigError when the certificate can't be used. */
  constructor(parts: Pick<Parts, 'config' | 'clock' | 'log'>) {
    this.#parts = parts;
    this.#certificate = readServerCertificate(parts.config);
  }

  createServer(options: ServerOptions): Server {
    this.#server = createServer({
      ...options,
      ...this.#context(),
      // Everyone is served; presentedBy decides who is identified.
      requestCert: true,
      rejectUnauthorized: false,
      // A handshake has the time that a head has.
      handshakeTimeout: options.headersTimeout,
    });
    this.#renewContext();
    return this.#server;
  }

  /** Takes what is in the files now; true if the certificate changed. If it throws ConfigError, nothing changes. */
  rereadCertificate(): boolean {
    const before = this.#certificate;
    this.#certificate = readServerCertificate(this.#parts.config);
    this.warnOfExpiry();
    if (before.certificate === this.#certificate.certificate) return false;
    this.#renewContext();
    return true;
  }

  /** Believes certificates of this authority (DER). There is only ever one: another certificate is its renewal. */
  trust(authority: Uint8Array): void {
    if (this.#authority !== undefined && Buffer.compare(this.#authority, authority) === 0) return;
    this.#authority = authority;
    this.#renewContext();
  }

  /** What the handshake has proved: a certificate of the authority, even an expired one, which the audit log needs. */
  presentedBy(socket: TLSSocket): Presented {
    const certificate = socket.getPeerX509Certificate()?.raw;
    if (certificate === undefined || this.#authority === undefined) return NO_CERTIFICATE;
    // OpenSSL keeps only the last error: before it found that the certificate has expired it may have found worse.
    const isExpired = String(socket.authorizationError) === 'CERT_HAS_EXPIRED';
    const isOurs = socket.authorized || (isExpired && issuedSerial(certificate, this.#authority) !== undefined);
    return isOurs ? { fingerprint: fingerprintSha1(certificate), certificate } : NO_CERTIFICATE;
  }

  /** Scanners may fail at any rate: the first failure has a line, later ones share one line a minute, with a count. */
  noteFailure(reason: string): void {
    this.#unlogged = { reason, count: (this.#unlogged?.count ?? 0) + 1 };
    if (this.#pause === undefined) this.#logFailures();
  }

  #logFailures(): void {
    const details = this.#unlogged;
    this.#unlogged = undefined;
    this.#pause = details && setTimeout(() => this.#logFailures(), FAILURES_LOGGED_MS).unref();
    if (details === undefined) return;
    this.#parts.log({ level: 'info', logger: 'http', event: 'TLS handshakes failed', outcome: 'failure', details });
  }

  #renewContext(): void {
    const server = this.#server;
    if (server === undefined) return;
    // No SSL_OP_NO_TICKET beside the callback: TLS 1.3 would then send tickets of sessions that are not kept.
    const withCallback = ticketsOf(server) === undefined ? {} : { secureOptions: NO_RENEGOTIATION };
    server.setSecureContext({ ...this.#context(), ...withCallback });
    const tickets = ticketsOf(server);
    if (tickets === undefined) return;
    tickets.onticketkeycallback = () => NO_TICKET;
    tickets.enableTicketKeyCallback();
  }

  /** All of it each time: what setSecureContext is not given falls back to node's defaults. */
  #context(): SecureContextOptions {
    const { certificate, privateKey } = this.#certificate;
    return {
      cert: certificate,
      key: privateKey,
      // An empty list trusts nobody. Undefined would trust the public authorities of the web.
      ca: this.#authority === undefined ? [] : [certificatePem(this.#authority)],
      ciphers: CIPHERS,
      secureOptions: FULL_HANDSHAKES_ONLY,
    };
  }

  /** Logs it when the certificate in use has EXPIRY_WARNING_SECONDS or less, or has not begun; to be called daily. */
  warnOfExpiry(): void {
    const doubt = validityDoubt(this.#certificate, unixSeconds(this.#parts.clock));
    if (doubt === undefined) return;
    const { beginsAt, expiresAt } = this.#certificate;
    const details = { begins: isoSeconds(beginsAt), expires: isoSeconds(expiresAt) };
    this.#parts.log({ level: 'warning', logger: 'http', event: `server certificate ${doubt}`, details });
  }
}

/** node's callback for ticket keys, unknown to its types: no documented option keeps TLS 1.3 without tickets. */
type Tickets = { onticketkeycallback: () => readonly unknown[]; readonly enableTicketKeyCallback: () => void };

/** Zero means no tickets (SSL_CTX_set_tlsext_ticket_key_cb(3)). Node reads HMAC key, AES key, name and IV anyway. */
const NO_TICKET: readonly unknown[] = [0, ...Array.from({ length: 4 }, () => Buffer.alloc(16))];

/** The callback of the context that the server has now; undefined where this node no longer has such a callback. */
function ticketsOf(server: Server): Tickets | undefined {
  const { context } = (server as Server & { readonly _sharedCreds: { readonly context: Tickets } })._sharedCreds;
  return typeof context.enableTicketKeyCallback === 'function' ? context : undefined;
}

const { tlsCertPath: { name: CERT }, tlsKeyPath: { name: KEY } } = SETTINGS;

export function validityDoubt({ beginsAt, expiresAt }: Record<'beginsAt' | 'expiresAt', number>, nowSeconds: number) {
  if (beginsAt > nowSeconds) return 'is not valid yet';
  if (expiresAt <= nowSeconds) return 'has expired';
  return expiresAt - nowSeconds <= EXPIRY_WARNING_SECONDS ? 'expires soon' : undefined;
}

/** The pair in the files that the two settings name, as PEM. Throws ConfigError; no message has what a file holds. */
export function readServerCertificate({ tlsCertPath, tlsKeyPath }: Config) {
  const certificate = readSettingFile(tlsCertPath, `${CERT}: expected the path of a file that can be read`);
  const privateKey = readSettingFile(tlsKeyPath, `${KEY}: expected the path of a file that can be read`);
  const pair = readServerPair(certificate, privateKey, [CERT, KEY]);
  if ('problem' in pair) throw new ConfigError([pair.problem]);
  try {
    createSecureContext({ cert: certificate, key: privateKey });
  } catch (error) {
    // Such as a key that is too short (ERR_SSL_EE_KEY_TOO_SMALL), or a broken block further down in the chain.
    throw new ConfigError([`${CERT}: expected a certificate that TLS can use (${codeOf(error)})`]);
  }
  return { certificate, privateKey, ...pair };
}
