// `pasted serve`: the life of the service, from its settings to its last log line. assembly.ts puts it together.

import type { App, AppParts } from './assembly.ts';
import { ConfigError, isProduction, loadConfig, startWarnings } from './config/load.ts';
import { type Config, isCluster, VERSION } from './config/settings.ts';
import { expected, type Log } from './core/events.ts';
import { newUuid, randomBytes } from './crypto/digest.ts';
import { isExposed, ListeningError, publicPlace } from './http/engine/listening.ts';
import type { Terminal } from './operator/terminal.ts';
import { createLog } from './ops/log.ts';
import { openStore, type Store } from './store/open.ts';
import { describe } from './store/store.ts';

type ServedApp = Pick<App, 'listen' | 'reload' | 'ended' | 'close'>;
export type CreateApp = (config: Config, parts: AppParts) => Promise<ServedApp>;

export const run = (terminal: Terminal): Promise<number> => serve(terminal, createApp);

/** Resolves with the exit code when the service has stopped. Throws what operator/failures.ts explains. */
export async function serve(terminal: Terminal, createApp: CreateApp): Promise<number> {
  // Otherwise SQLite would make the files of the database readable to all.
  terminal.restrictNewFiles();
  const reloads = reloadOnSignal(terminal);
  const { clock, cores, thread } = terminal;
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const place = publicPlace(config, terminal.inheritedSockets);
  const format = isProduction(config) ? 'json' : 'text';
  const { write } = terminal.stdout;
  const { log, flush } = createLog({ format, forJournal: terminal.writesToJournal, write, clock });
  // The stack is on standard error (main.ts); the log says what happened and when.
  terminal.onFatalError((error) => {
    const details = { reason: describe(error) };
    log({ level: 'error', logger: 'main', event: 'uncaught error', outcome: 'failure', details });
    flush();
  });
  const stopSignal = nextStopSignal(terminal, { log, flush });
  using ending = new DisposableStack();
  ending.defer(flush);
  for (const message of [...warnings, ...startWarnings(config, isExposed(place))]) {
    log({ level: 'warning', logger: 'config', event: 'setting doubtful', details: { message } });
  }
  const creating = createApp(config, { clock, cores, random: randomBytes, newUuid, log, thread });
  const app = await (isCluster(config) ? Promise.race([creating, stopSignal]) : creating);
  const stopped = (code: number): number => (log({ level: 'info', logger: 'main', event: 'stopped' }), code);
  if (typeof app === 'string') return stopped(0); // It was still starting: nothing listens, and there is no lease.
  let cause: { signal: string } | { reason: string };
  try {
    const { url } = await app.listen(place).catch(async (error: unknown) => {
      const failure = expected(ListeningError, error);
      const { listeningFailure } = await import('./operator/failures.ts');
      throw listeningFailure(failure, failure.place === place);
    });
    log({ level: 'info', logger: 'main', event: 'listening', details: { url, version: VERSION } });
    void reloads.begin(app, log);
    await terminal.boundYoungGeneration();
    cause = await Promise.race([
      stopSignal.then((signal) => ({ signal })), app.ended.then(() => ({ reason: 'writer thread ended' })),
    ]);
    log({ level: 'info', logger: 'main', event: 'stopping', details: cause });
  } finally {
    reloads.end();
    await app.close();
  }
  return stopped('signal' in cause ? 0 : 1);
}

/** Under npm, each process that passes on a signal which its whole group got sends a copy: no sign of impatience. */
const SIGNAL_COPIES_MS = 250;

/** Resolves with the first. A later one ends the process at once, except for SIGHUP: shell and kernel both send it. */
function nextStopSignal(terminal: Terminal, { log, flush }: ReturnType<typeof createLog>): Promise<string> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    terminal.onStopSignal((signal) => {
      const nowMs = terminal.clock.monotonicMs();
      firstMs ??= nowMs;
      resolve(signal);
      if (signal === 'SIGHUP' || nowMs - firstMs < SIGNAL_COPIES_MS) return;
      log({ level: 'warning', logger: 'main', event: 'stopped at once', details: { signal } });
      flush();
      terminal.exit(1);
    });
  });
}

/** One reload at a time, then one more for all signals that came during it. `begin` reloads for signals before it. */
function reloadOnSignal(terminal: Terminal) {
  let asked = Promise.withResolvers<void>();
  let isOver = false;
  // Listens from now on: without a listener, SIGHUP ends the process.
  terminal.onReloadSignal(() => asked.resolve());
  return {
    begin: async (app: ServedApp, log: Log): Promise<void> => {
      for (;;) {
        await asked.promise;
        if (isOver) return;
        asked = Promise.withResolvers();
        await reloadSettings(terminal, app, log);
      }
    },
    end: (): void => void (isOver = true),
  };
}

/** Reads again the files that the environment names; the certificate even if settings can't be used. Never rejects. */
async function reloadSettings(terminal: Terminal, app: ServedApp, log: Log): Promise<void> {
  const failed = (reason: string): void => {
    log({ level: 'error', logger: 'main', event: 'reloading failed', outcome: 'failure', details: { reason } });
  };
  try {
    const changed = await app.reload(readSettings(terminal, failed));
    log({ level: 'info', logger: 'main', event: 'reloaded', details: { changed: changed.join(' ') || 'nothing' } });
  } catch (error) {
    failed(describe(error));
  }
}

function readSettings({ environment, readFile }: Terminal, failed: (reason: string) => void): Config | undefined {
  try {
    return loadConfig(environment, readFile).config;
  } catch (error) {
    for (const problem of expected(ConfigError, error).problems) failed(problem);
    return undefined;
  }
}

/** Nothing listens yet. Rejects when the database or the TLS certificate is refused. */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  // The code for TLS is loaded only for a listener that speaks TLS.
  const tls = config.tlsCertPath === '' ? undefined : new (await import('./http/tls.ts')).Tls({ config, ...parts });
  const opening = isCluster(config) ? openCluster(config, parts) : openStore({ ...parts, path: config.databasePath });
  const [store, { assemble }] = await Promise.all([opening, import('./assembly.ts')]);
  try {
    return await assemble(withinLimits(config), parts, { store, tls });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The nodes of a cluster write, so there is nothing for the writer thread to do. */
async function openCluster(config: Config, { clock, newUuid: newId, log, thread }: AppParts): Promise<Store> {
  await thread?.terminate();
  const { openClusterStore } = await import('./cluster/open.ts');
  return openClusterStore({ config, clock, log, newId });
}

/** A cluster limits the size of pastes further, since each chunk of content goes to all nodes, in hexadecimal. */
function withinLimits(config: Config): Config {
  if (!isCluster(config)) return config;
  const within = (bytes: number): number => Math.min(bytes, config.clusterMaxBytes);
  return { ...config, maxAnonBytes: within(config.maxAnonBytes), maxAuthBytes: within(config.maxAuthBytes) };
}
