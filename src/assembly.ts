// Puts the parts together, in production and in tests. Time, randomness, the log and the store are handed in.

import { LazyAuthority } from './authority/open.ts';
import { ConfigError, isProduction } from './config/load.ts';
import { type Config, SETTINGS } from './config/settings.ts';
import { countNothing, expected, type Log } from './core/events.ts';
import { createDeleteTokens } from './crypto/passwords.ts';
import { pasteHandlers } from './http/handlers/pastes.ts';
import { serviceHandlers } from './http/handlers/service.ts';
import { isExposed, type ListeningPlace } from './http/engine/listening.ts';
import { Forwarding } from './http/forwarded.ts';
import { createHttpServer } from './http/servers.ts';
import type { Tls } from './http/tls.ts';
import { Antiflood } from './limits/windows.ts';
import { WorkQueue } from './limits/work-queue.ts';
import { Cleanup } from './ops/cleanup.ts';
import { Challenges, createRates, Passwords } from './pastes/admission.ts';
import { createAudit, Identity } from './pastes/identity.ts';
import type { Parts } from './pastes/parts.ts';
import { cleanupTasks, createRoomMaking } from './pastes/upkeep.ts';
import { settledWithin, type Store, type StoreOptions } from './store/open.ts';

export interface AppParts extends Pick<Parts, 'clock' | 'random' | 'newUuid' | 'log'> {
  readonly cores: number;
  /** How long a password check takes here; measured at start when not given. */
  readonly passwordCheckMs?: number;
  readonly thread?: StoreOptions['thread'];
}

export type App = Awaited<ReturnType<typeof assemble>>;

/** node's default pool has four threads; one must stay free for files and DNS (UV_THREADPOOL_SIZE). */
const MAX_PASSWORD_CHECKS = 3;

/** At 0.1 s a check, these allow as long a wait as a person bears. */
const PASSWORD_CHECKS_WAITING = 32;
const PASSWORD_WAIT_MS = 5000;

/** As long as the output of the HMAC that the keys are for. */
const HMAC_KEY_BYTES = 32;

/** Nothing listens yet. The store belongs to the app once this has resolved, and is closed with it. */
export async function assemble(config: Config, host: AppParts, { store, tls }: { store: Store; tls: Tls | undefined }) {
  const { clock, random, newUuid, log } = host;
  const trust = new Forwarding(config, random);
  await trust.replaceProxySecret(config.proxySecret);
  const queue = passwordQueue(host);
  const metrics = config.metricsListen === ''
    ? undefined
    : (await import('./http/metrics-listener.ts')).createMetricsListener(
      { config, trust, store, queue, clock, newUuid, log }, () => server.connectionsOpen(),
    );
  const parts = await createParts(config, host, { store, queue, count: metrics?.count ?? countNothing });
  const authority = new LazyAuthority({ ...parts, tls });
  const service = serviceHandlers(parts, () => authority.whyUnavailable(), () => server.isStopping());
  const handlers = { ...service, ...pasteHandlers(parts), ...authority.handlers };
  let isOpen = isProduction(config);
  const renewList = () => authority.renewRevocationList();
  const cleanup = new Cleanup(cleanupTasks(parts, () => isOpen, renewList, () => tls?.warnOfExpiry()), log);
  const onStorageFull = createRoomMaking((name) => cleanup.run(name), clock);
  const server = createHttpServer({ config, trust, handlers, clock, newUuid, log, metrics, onStorageFull, tls });
  const reload = createReload(config, tls, log, {
    proxySecret: (secret) => trust.replaceProxySecret(secret),
    powSecret: (secret) => parts.challenges.replaceKey(Buffer.from(secret)),
    pkiCaPassword: (password) => authority.replacePassword(password),
  });

  return {
    /** The background tasks, for tests that want one now. */
    cleanup,
    /** Also tries the stored key again: the operator may have given it the password that is in force already. */
    reload: (next: Config | undefined) => reload(next).finally(() => authority.checkKey()),
    /** Begins to accept connections. Rejects with ListeningError. */
    listen: async (place: ListeningPlace) => {
      await metrics?.listen();
      await authority.begin();
      const address = await server.listen(place);
      isOpen ||= isExposed(place);
      cleanup.start();
      void parts.passwords.measure();
      void authority.checkKey();
      return address;
    },
    ended: store.ended,
    /** Lets requests finish within the grace. Cleanup has 250 ms to finish, and goes on at the next start. */
    close: async () => {
      await Promise.all([server.stop(), metrics?.stop(), settledWithin(cleanup.stop(), 250)]);
      await authority.close();
      await store.close();
    },
  };
}

export function passwordQueue({ cores, clock }: Pick<AppParts, 'cores' | 'clock'>): WorkQueue {
  return new WorkQueue({
    concurrency: Math.max(1, Math.min(cores - 1, MAX_PASSWORD_CHECKS)),
    maxWaiting: PASSWORD_CHECKS_WAITING, maxWaitMs: PASSWORD_WAIT_MS, clock,
  });
}

async function createParts(
  config: Config, { clock, random, newUuid, log, passwordCheckMs }: AppParts,
  { store, queue, count }: Pick<Parts, 'store' | 'queue' | 'count'>,
): Promise<Parts> {
  const antiflood = new Antiflood(config);
  // An operator who runs several hosts gives them the same key; else one is made once and kept.
  const key = config.powSecret === ''
    ? await store.keepSecret('proof-of-work', random(HMAC_KEY_BYTES))
    : Buffer.from(config.powSecret);
  const audit = createAudit({ clock, log });
  store.followSpent((spent) => antiflood.record(clock.monotonicMs(), spent));
  return {
    config, store, clock, random, newUuid, log, count, queue, antiflood, audit,
    passwords: new Passwords({ queue, clock, random, checkMs: passwordCheckMs }),
    deleteTokens: createDeleteTokens(await store.keepSecret('delete-tokens', random(HMAC_KEY_BYTES))),
    challenges: new Challenges({ config, key, antiflood, store, clock, random, count }),
    rates: createRates({ config, clock, count }),
    identity: new Identity({ store, audit, clock }),
  };
}

type ReplaceableSecret = 'proxySecret' | 'powSecret' | 'pkiCaPassword';

/** How each secret takes effect; false when it can't. */
type Replace = Readonly<Record<ReplaceableSecret, (secret: string) => void | Promise<boolean | void>>>;

/** Takes the secrets of `next`, and reads the TLS certificate again. Returns the names of the settings that changed. */
function createReload(config: Config, tls: Tls | undefined, log: Log, replace: Replace) {
  const inForce = { ...config };
  const isReplaced = async (key: ReplaceableSecret, secret: string): Promise<boolean> => {
    if (secret === inForce[key]) return false;
    const { name } = SETTINGS[key];
    // When a secret's file is gone, what the secret protected must not be open to all.
    if (secret === '') return kept(log, `${name} is no longer set; the one before stays until the next start`);
    const why = await Promise.resolve(replace[key](secret)).then(
      (isTaken) => isTaken === false && 'does not open the stored key',
      (error: Error) => `could not be tried: ${error.message}`,
    );
    if (why) return kept(log, `${name} ${why}; the one before stays`);
    inForce[key] = secret;
    return true;
  };
  return async (next: Config | undefined): Promise<readonly string[]> => {
    const changed = rereadCertificate(tls, log) ? [SETTINGS.tlsCertPath.name] : [];
    if (next === undefined) return changed;
    for (const key of Object.keys(replace) as ReplaceableSecret[]) {
      if (await isReplaced(key, next[key])) changed.push(SETTINGS[key].name);
    }
    return changed;
  };
}

function rereadCertificate(tls: Tls | undefined, log: Log): boolean {
  try {
    return tls?.rereadCertificate() ?? false;
  } catch (error) {
    return kept(log, `${expected(ConfigError, error).message}; the certificate before stays`);
  }
}

function kept(log: Log, message: string): false {
  log({ level: 'error', logger: 'config', event: 'setting not replaced', outcome: 'failure', details: { message } });
  return false;
}
