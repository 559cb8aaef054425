// Puts the parts together: the one assembly, in production and in tests. Time, randomness, the log and the store are
// handed in; everything below this file uses what it was given. Who opens the store is serve.ts.

import { LazyAuthority } from './authority/open.ts';
import { ConfigError, isProduction } from './config/load.ts';
import { type Config, SETTINGS } from './config/settings.ts';
import { countNothing, type Log } from './core/events.ts';
import type { Clock, RandomBytes } from './core/time.ts';
import { pasteHandlers } from './http/handlers/pastes.ts';
import { serviceHandlers } from './http/handlers/service.ts';
import { isExposed, type ListeningPlace, publicPlace } from './http/listening.ts';
import { ROUTES } from './http/routes.ts';
import { createMetricsServer, createPublicServer, type ListeningAddress } from './http/servers.ts';
import type { ServerCertificate, Tls } from './http/tls.ts';
import { Antiflood, type AntifloodOptions } from './limits/windows.ts';
import { WorkQueue } from './limits/work-queue.ts';
import { Cleanup } from './ops/cleanup.ts';
import { Challenges, Passwords, Rates } from './pastes/admission.ts';
import { createAudit, Identity } from './pastes/identity.ts';
import type { Parts } from './pastes/parts.ts';
import { cleanupTasks, createRoomMaking, gaugeReaders, logDoubts } from './pastes/upkeep.ts';
import type { Store } from './store/open.ts';

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
const MAX_PASSWORD_CHECKS = 3;

/** At 0.1 s a check, this is as long a wait as a person bears. */
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
  const queue = passwordQueue(host);
  const metrics = config.metricsListen === ''
    ? undefined
    : await openMetrics({ config, store, queue, clock, random, log }, () => server.connectionsOpen());
  const parts = await createParts(config, host, { store, queue, count: metrics?.count ?? countNothing });
  const authority = new LazyAuthority({ ...parts, tls });
  const state = { whyUnavailable: () => authority.whyUnavailable(), isStopping: () => server.isStopping() };
  const handlers = { ...serviceHandlers(parts, state), ...pasteHandlers(parts), ...authority.handlers };
  const cleanup = new Cleanup(cleanupTasks(parts, () => authority.renewRevocationList()), log);
  const onStorageFull = createRoomMaking((name) => cleanup.run(name), clock);
  const server = createPublicServer({ config, handlers, clock, random, log, metrics, onStorageFull, tls });
  const reloading = createReloading(config, listenerTls, log, {
    proxySecret: (secret) => server.replaceProxySecret(secret),
    powSecret: (secret) => parts.challenges.replaceKey(Buffer.from(secret)),
    pkiCaPassword: (password) => authority.replacePassword(password),
  });

  return {
    cleanup,
    reload: (next) => reload(reloading, next),
    listen: async (place = publicPlace(config, 0)) => {
      await metrics?.listen();
      await authority.watch();
      const address = await server.listen(place);
      cleanup.start();
      void authority.checkKey();
      void logDoubts(parts, isProduction(config) || isExposed(place));
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

function passwordQueue({ cores, clock }: AppParts): WorkQueue {
  return new WorkQueue({
    concurrency: Math.max(1, Math.min(cores - 1, MAX_PASSWORD_CHECKS)),
    maxWaiting: PASSWORD_CHECKS_WAITING,
    maxWaitMs: PASSWORD_WAIT_MS,
    clock,
  });
}

/** The metrics and their listener, which are loaded only where a setting asks for them. */
async function openMetrics(
  parts: Pick<Parts, 'config' | 'store' | 'queue' | 'clock' | 'random' | 'log'>,
  connectionsOpen: () => number,
) {
  const { config, clock, random, log } = parts;
  const { createMetrics, measureEventLoopDelay } = await import('./ops/metrics.ts');
  const eventLoopDelay = measureEventLoopDelay();
  const readers = gaugeReaders(parts, eventLoopDelay, connectionsOpen);
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

async function createParts(
  config: Config,
  { clock, random, log, passwordCheckMs }: AppParts,
  { store, queue, count }: Pick<Parts, 'store' | 'queue' | 'count'>,
): Promise<Parts> {
  const antiflood = new Antiflood(antifloodOptions(config));
  const key = await challengeKey(config, store, random);
  const audit = createAudit({ clock, log });
  return {
    config, store, clock, random, log, count, queue, antiflood, audit,
    passwords: new Passwords({ queue, clock, random, checkMs: passwordCheckMs }),
    challenges: new Challenges({ config, key, antiflood, store, clock, random, count }),
    rates: new Rates({ config, clock, count }),
    identity: new Identity({ store, audit, clock }),
  };
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

type ReplaceableSecret = 'proxySecret' | 'powSecret' | 'pkiCaPassword';

/** How each secret takes effect; false when it can't. */
type Replacements = Readonly<Record<ReplaceableSecret, (secret: string) => void | Promise<boolean>>>;

type Reloading = ReturnType<typeof createReloading>;

function createReloading(
  config: Config,
  listenerTls: ListenerTls | undefined,
  log: Log,
  replacements: Replacements,
) {
  const keys = Object.keys(replacements) as ReplaceableSecret[];
  return { listenerTls, log, replacements, keys, inForce: new Map(keys.map((key) => [key, config[key]])) };
}

async function reload(reloading: Reloading, next: Config | undefined): Promise<readonly string[]> {
  const changed: string[] = [];
  if (replaceCertificate(reloading)) changed.push(SETTINGS.tlsCertPath.name);
  if (next === undefined) return changed;
  for (const key of reloading.keys) {
    if (await replaceSecret(reloading, key, next[key])) changed.push(SETTINGS[key].name);
  }
  return changed;
}

async function replaceSecret(reloading: Reloading, key: ReplaceableSecret, secret: string): Promise<boolean> {
  const { log, replacements, inForce } = reloading;
  const { name } = SETTINGS[key];
  if (secret === inForce.get(key)) return false;
  // A file that has gone must not open what the secret in it has closed.
  if (secret === '') return kept(log, `${name} is no longer set; the one before stays until the next start`);
  const isTaken = await replacements[key](secret);
  if (isTaken === false) return kept(log, `${name} does not open the stored key; the one before stays`);
  inForce.set(key, secret);
  return true;
}

function replaceCertificate({ listenerTls, log }: Reloading): boolean {
  try {
    return listenerTls?.tls.replaceCertificate(listenerTls.readCertificate()) ?? false;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return kept(log, `${error.message}; the certificate before stays`);
  }
}

function kept(log: Log, message: string): false {
  log({ level: 'error', logger: 'config', event: 'setting not replaced', outcome: 'failure', details: { message } });
  return false;
}
