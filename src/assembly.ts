// Puts the parts together: the one assembly, in production and in tests. Time, randomness, the log and the store are
// handed in; everything below this file uses what it was given. Who opens the store is serve.ts.

import { LazyAuthority } from './authority/open.ts';
import { ConfigError, isProduction } from './config/load.ts';
import { type Config, SETTINGS } from './config/settings.ts';
import { countNothing, type Log } from './core/events.ts';
import { type Clock, type RandomBytes, unixSeconds } from './core/time.ts';
import { pasteHandlers } from './http/handlers/pastes.ts';
import { serviceHandlers } from './http/handlers/service.ts';
import { isExposed, type ListeningPlace, publicPlace } from './http/listening.ts';
import { ROUTES } from './http/routes.ts';
import { createMetricsServer, createPublicServer, type ListeningAddress } from './http/servers.ts';
import type { ServerCertificate, Tls } from './http/tls.ts';
import { type AntifloodOptions, createAntiflood } from './limits/antiflood.ts';
import { createWorkQueue, type WorkQueue } from './limits/work-queue.ts';
import { Cleanup } from './ops/cleanup.ts';
import { Challenges, Rates } from './pastes/admission.ts';
import { createAudit, Identity } from './pastes/identity.ts';
import type { Parts } from './pastes/parts.ts';
import { Passwords } from './pastes/passwords.ts';
import { adminDoubt, authorityDoubt, cleanupTasks, createRoomMaking, gaugeReaders } from './pastes/upkeep.ts';
import type { Store } from './store/open.ts';
import { StoreError } from './store/store.ts';

export interface AppParts {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  /** Processors of this host. */
  readonly cores: number;
  /** How long a password check takes here; measured at start when not given. */
  readonly passwordCheckMs?: number;
}

/** What a listener that speaks TLS needs. */
export interface ListenerTls {
  readonly tls: Tls;
  /** As the files of the settings are now. Throws ConfigError. */
  readonly readCertificate: () => ServerCertificate;
}

export interface App {
  /** Begins to accept connections, where the settings say unless a place is given. Rejects with ListeningError. */
  listen(place?: ListeningPlace): Promise<ListeningAddress>;
  /** The background tasks, for tests and commands that want one now. */
  readonly cleanup: Cleanup;
  /**
   * Takes what can change while the service runs: the secrets of these settings, and what is in the files of the TLS
   * certificate. What can't be used is logged, and stays as it was; without settings, the secrets do. Gives the names
   * of the settings that changed.
   */
  reload(next: Config | undefined): Promise<readonly string[]>;
  /** Lets requests in flight finish, then stops everything and closes the store. */
  close(): Promise<void>;
}

/** node's default pool has four threads; one must stay free for files and DNS (UV_THREADPOOL_SIZE). */
const MOST_PASSWORD_CHECKS = 3;

/** At 0.1 s a check, a queue of so many is a wait that a person still bears. */
const PASSWORD_CHECKS_WAITING = 32;
const PASSWORD_WAIT_MS = 5000;

/** As long as the output of the HMAC that it is for. */
const CHALLENGE_KEY_BYTES = 32;

/** Nothing listens yet. The store is the app's from then on, and closed with it. */
export async function assemble(
  config: Config,
  host: AppParts,
  { store, listenerTls }: { store: Store; listenerTls: ListenerTls | undefined },
): Promise<App> {
  const { clock, random, log } = host;
  const tls = listenerTls?.tls;
  const queue = createWorkQueue({
    concurrency: Math.max(1, Math.min(host.cores - 1, MOST_PASSWORD_CHECKS)),
    maxWaiting: PASSWORD_CHECKS_WAITING,
    maxWaitMs: PASSWORD_WAIT_MS,
    clock,
  });
  const connectionsOpen = (): number => server.connectionsOpen();
  const metrics = config.metricsListen === ''
    ? undefined
    : await openMetrics(config, host, { store, passwordQueue: queue, connectionsOpen });
  const count = metrics?.count ?? countNothing;
  const passwords = new Passwords({ queue, clock, random, checkMs: host.passwordCheckMs });
  const antiflood = createAntiflood(antifloodOptions(config));
  const key = await challengeKey(config, store, random);
  const challenges = new Challenges({ config, key, antiflood, store, clock, random, count });
  const rates = new Rates({ config, clock, count });
  const audit = createAudit({ clock, log });
  const identity = new Identity({ store, audit, clock });
  const parts: Parts = {
    config, store, clock, random, log, count, queue, passwords, antiflood, challenges, rates, audit, identity,
  };
  const authority = new LazyAuthority({ ...parts, tls });
  const state = { whyUnavailable: () => authority.whyUnavailable(), isStopping: () => server.isStopping() };
  const handlers = {
    ...serviceHandlers(parts, state),
    ...pasteHandlers(parts),
    ...authority.handlers,
  };
  const revocationList = { renew: () => authority.renewRevocationList() };
  const cleanup = new Cleanup(cleanupTasks({ config, store, rates, revocationList, clock, count }), log);
  const onStorageFull = createRoomMaking((name) => cleanup.run(name), clock);
  const server = createPublicServer({ config, handlers, clock, random, log, metrics, onStorageFull, tls });
  const replacements: Replacements = {
    proxySecret: (secret) => server.replaceProxySecret(secret),
    powSecret: (secret) => challenges.replaceKey(Buffer.from(secret)),
    pkiCaPassword: (password) => authority.replacePassword(password),
  };

  return {
    cleanup,
    reload: createReload(config, { replacements, listenerTls, log }),
    listen: async (place = publicPlace(config, 0)) => {
      await metrics?.listen();
      await authority.watch();
      const address = await server.listen(place);
      cleanup.start();
      void authority.checkKey();
      void logDoubts({ config, store, clock, log, isOpen: isProduction(config) || isExposed(place) });
      return address;
    },
    close: async () => {
      await Promise.all([server.stop(), metrics?.stop()]);
      await cleanup.stop();
      await authority.close();
      await store.close();
    },
  };
}

/** The metrics and their listener, which are loaded only where a setting asks for them. */
async function openMetrics(
  config: Config,
  { clock, random, log }: AppParts,
  gauged: { store: Store; passwordQueue: WorkQueue; connectionsOpen: () => number },
) {
  const { createMetrics, measureEventLoopDelay } = await import('./ops/metrics.ts');
  const eventLoopDelay = measureEventLoopDelay();
  const readers = gaugeReaders({ ...gauged, eventLoopDelay, clock });
  const metrics = createMetrics({ routes: ROUTES.map((route) => route.path), readers });
  const server = createMetricsServer({ config, listenOn: config.metricsListen, metrics, clock, random, log });
  return {
    ...metrics,
    listen: server.listen,
    stop: async () => {
      await server.stop();
      eventLoopDelay.stop();
    },
  };
}

type ReplaceableSecret = 'proxySecret' | 'powSecret' | 'pkiCaPassword';

/** How each takes effect; false when it can't. */
type Replacements = Readonly<Record<ReplaceableSecret, (secret: string) => void | Promise<boolean>>>;

function createReload(
  config: Config,
  { replacements, listenerTls, log }: { replacements: Replacements; listenerTls: ListenerTls | undefined; log: Log },
): App['reload'] {
  const keys = Object.keys(replacements) as ReplaceableSecret[];
  const inForce = new Map(keys.map((key) => [key, config[key]]));

  function kept(message: string): false {
    log({ level: 'error', logger: 'config', event: 'setting not replaced', outcome: 'failure', details: { message } });
    return false;
  }

  async function replaceSecret(key: ReplaceableSecret, secret: string): Promise<boolean> {
    const { name } = SETTINGS[key];
    if (secret === inForce.get(key)) return false;
    // A file that has gone must not open what the secret in it has closed.
    if (secret === '') return kept(`${name} is no longer set; the one before stays until the next start`);
    const isTaken = await replacements[key](secret);
    if (isTaken === false) return kept(`${name} does not open the stored key; the one before stays`);
    inForce.set(key, secret);
    return true;
  }

  function replaceCertificate(): boolean {
    try {
      return listenerTls?.tls.replaceCertificate(listenerTls.readCertificate()) ?? false;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return kept(`${error.message}; the certificate before stays`);
    }
  }

  return async (next) => {
    const changed: string[] = [];
    if (replaceCertificate()) changed.push(SETTINGS.tlsCertPath.name);
    if (next === undefined) return changed;
    for (const key of keys) if (await replaceSecret(key, next[key])) changed.push(SETTINGS[key].name);
    return changed;
  };
}

/** A failing storage is others' to report. */
async function logDoubts(parts: {
  config: Config;
  store: Store;
  clock: Clock;
  log: Log;
  isOpen: boolean;
}): Promise<void> {
  const { config, store, clock, log, isOpen } = parts;
  const nowSeconds = unixSeconds(clock);
  try {
    const { valid, revoked, expired } = await store.certificates.countByStatus(nowSeconds);
    const admin = isOpen ? adminDoubt(config, valid + revoked + expired) : undefined;
    if (admin !== undefined) {
      log({ level: admin.level, logger: 'pki', event: 'no admin', details: { message: admin.message } });
    }
    const authority = await store.authority.find();
    const expiry = authority === undefined ? undefined : authorityDoubt(authority.expiresAt, nowSeconds);
    if (expiry === undefined) return;
    const details = { message: `the certificate authority ${expiry.message}` };
    log({ level: expiry.level, logger: 'pki', event: 'CA runs out', details });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

/** An operator who runs several hosts gives them the same key; else one is made once and kept. */
async function challengeKey(config: Config, store: Store, random: RandomBytes): Promise<Uint8Array> {
  if (config.powSecret !== '') return Buffer.from(config.powSecret);
  return store.secrets.keep('proof-of-work', random(CHALLENGE_KEY_BYTES));
}

function antifloodOptions(config: Config): AntifloodOptions {
  return {
    baseBits: config.powDifficultyBits,
    thresholdCount: config.antifloodThreshold,
    windowMs: config.antifloodWindowSeconds * 1000,
    stepBits: config.antifloodStepBits,
    maxBits: config.antifloodMaxBits,
    decayMs: config.antifloodDecaySeconds * 1000,
    maxEntries: config.antifloodMaxEntries,
  };
}
