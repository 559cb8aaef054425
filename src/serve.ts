// `pasted serve`: the life of the service, from its settings to its last log line. How it is put together is
// assembly.ts.

import type { App, AppParts, ListenerTls } from './assembly.ts';
import { ConfigError, isProduction, loadConfig, startWarnings } from './config/load.ts';
import { type Config, SETTINGS } from './config/settings.ts';
import type { Log } from './core/events.ts';
import { randomBytes } from './crypto/digest.ts';
import { isExposed, ListeningError, type ListeningPlace, placeName, publicPlace } from './http/listening.ts';
import type { Run } from './operator/commands.ts';
import { CommandError, EXIT, holderOfPort, type Terminal } from './operator/terminal.ts';
import { createLog, type LogWriter } from './ops/log.ts';
import { openStore } from './store/open.ts';
import { VERSION } from './version.ts';

export type ServedApp = Pick<App, 'listen' | 'reload' | 'close'>;
export type CreateApp = (config: Config, parts: AppParts) => Promise<ServedApp>;

/** The assembly is loaded only when the settings have been found sound. */
export const run: Run = (terminal) => serve(terminal, createApp);

/** Resolves with the exit code when the service has stopped. Throws what failures.ts explains. */
export async function serve(terminal: Terminal, createApp: CreateApp): Promise<number> {
  // The database holds what others entrusted to it, and SQLite would make its files readable to all.
  terminal.restrictNewFiles();
  const reloads = reloadOnSignal(terminal);
  const { clock, cores } = terminal;
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const place = publicPlace(config, terminal.inheritedSockets);
  const format = isProduction(config) ? 'json' : 'text';
  const write = (text: string): boolean => terminal.stdout.write(text);
  const { log, flush } = createLog({ format, forJournal: terminal.writesToJournal, write, clock });
  logFatalErrors(terminal, { log, flush });
  const stopSignal = nextStopSignal(terminal, { log, flush });
  try {
    for (const message of [...warnings, ...startWarnings(config, isExposed(place))]) {
      log({ level: 'warning', logger: 'config', event: 'setting doubtful', details: { message } });
    }
    const app = await createApp(config, { clock, cores, random: randomBytes, log });
    try {
      const { url } = await listen(app, place);
      log({ level: 'info', logger: 'main', event: 'listening', details: { url, version: VERSION } });
      reloads.begin(app, log);
      log({ level: 'info', logger: 'main', event: 'stopping', details: { signal: await stopSignal } });
    } finally {
      reloads.end();
      await app.close();
    }
    log({ level: 'info', logger: 'main', event: 'stopped' });
    return EXIT.success;
  } finally {
    flush();
  }
}

/** Under npm, a signal to the process group arrives once from each process that passes it on: copies, no impatience. */
const SIGNAL_COPIES_MS = 250;

/**
 * Resolves with the first signal. A later one means that whoever sent it does not want to wait, but for SIGHUP: the
 * shell sends it when its terminal is closed, and the kernel when the shell has gone.
 */
function nextStopSignal(terminal: Terminal, { log, flush }: LogWriter): Promise<string> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    terminal.onStopSignal((signal) => {
      const nowMs = terminal.clock.monotonicMs();
      firstMs ??= nowMs;
      resolve(signal);
      if (signal === 'SIGHUP' || nowMs - firstMs < SIGNAL_COPIES_MS) return;
      log({ level: 'warning', logger: 'main', event: 'stopped at once', details: { signal } });
      flush();
      terminal.exit(EXIT.failure);
    });
  });
}

interface Reloads {
  /** Carries out what was asked for before, and then whenever it is asked for. */
  begin(app: ServedApp, log: Log): void;
  end(): void;
}

/** One reload at a time, and one more for all the signals that come meanwhile. None of them ends the process. */
function reloadOnSignal(terminal: Terminal): Reloads {
  let reload: (() => Promise<void>) | undefined;
  let isAsked = false;
  let isBusy = false;

  async function work(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    while (isAsked && reload !== undefined) {
      isAsked = false;
      await reload();
    }
    isBusy = false;
  }

  terminal.onReloadSignal(() => {
    isAsked = true;
    void work();
  });
  return {
    begin: (app, log) => {
      reload = () => reloadSettings(terminal, app, log);
      void work();
    },
    end: () => {
      reload = undefined;
    },
  };
}

/** The environment stays as it is; the files that it names may have changed. Never rejects. */
async function reloadSettings(terminal: Terminal, app: ServedApp, log: Log): Promise<void> {
  const failed = (reason: string): void => {
    log({ level: 'error', logger: 'main', event: 'reloading failed', outcome: 'failure', details: { reason } });
  };
  try {
    const changed = await app.reload(readSettings(terminal, failed));
    log({ level: 'info', logger: 'main', event: 'reloaded', details: { changed: changed.join(' ') || 'nothing' } });
  } catch (error) {
    failed(error instanceof Error ? error.message : String(error));
  }
}

function readSettings({ environment, readFile }: Terminal, failed: (reason: string) => void): Config | undefined {
  try {
    return loadConfig(environment, readFile).config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) failed(problem);
    return undefined;
  }
}

/** The stack goes to standard error (main.ts); whoever collects the log needs to know what happened and when. */
function logFatalErrors(terminal: Terminal, { log, flush }: LogWriter): void {
  terminal.onFatalError((error) => {
    const reason = error instanceof Error ? error.message : String(error);
    log({ level: 'error', logger: 'main', event: 'uncaught error', outcome: 'failure', details: { reason } });
    flush();
  });
}

async function listen(app: ServedApp, place: ListeningPlace): Promise<{ url: string }> {
  try {
    return await app.listen(place);
  } catch (error) {
    if (!(error instanceof ListeningError)) throw error;
    const failure = listeningFailure(error, error.place === place);
    if (failure === undefined) throw error;
    throw new CommandError(failure);
  }
}

// Why listening fails, by the place and the system's code, as far as whoever runs the service can mend it.

type Reasons = ReadonlyMap<string, string>;

const UNKNOWN_HOLDER = ' (root can see by which process: ss -ltnp)';

/** `host` and `port` are the settings that they come from. */
function addressReasons(host: string, port: string): Reasons {
  return new Map([
    ['EADDRINUSE', `the port is in use${UNKNOWN_HOLDER}; choose another ${port}`],
    ['EACCES', `not permitted below port 1024; choose another ${port}, or give this user the right to use it`],
    ['EADDRNOTAVAIL', `this host has no such address; choose another ${host}`],
    ['ENOTFOUND', `there is no host of that name; choose another ${host}`],
    ['EAI_AGAIN', `the name could not be resolved; choose an address as ${host}`],
  ]);
}

function socketReasons(setting: string): Reasons {
  const noFolder = `there is no such folder; make it, or choose another ${setting}`;
  return new Map([
    ['EADDRINUSE', `another process listens there, or it is a file; choose another ${setting}`],
    ['ENOENT', noFolder],
    ['ENOTDIR', noFolder],
    ['EACCES', `this user may not make a socket there; choose another ${setting}`],
    ['EROFS', `nothing can be made there; choose another ${setting}, under systemd in a RuntimeDirectory=`],
    // sun_path of unix(7) holds 107 bytes, which are fewer characters when these are not ASCII.
    ['EINVAL', `the path is too long for a socket; choose another ${setting}`],
    ['ENAMETOOLONG', `the path is too long for a socket; choose another ${setting}`],
  ]);
}

const ADDRESS = addressReasons(SETTINGS.host.name, SETTINGS.port.name);
const SOCKET = socketReasons(SETTINGS.listenOn.name);
const METRICS_ADDRESS = addressReasons(SETTINGS.metricsListen.name, SETTINGS.metricsListen.name);
const METRICS_SOCKET = socketReasons(SETTINGS.metricsListen.name);

/** A file, a datagram socket, or a connection that Accept=yes has taken already. */
const INHERITED: Reasons = new Map([
  ['EINVAL', 'it is no stream socket that takes connections; the socket unit needs ListenStream= and Accept=no'],
]);

function reasonsFor(place: ListeningPlace, isPublic: boolean): Reasons {
  if ('fd' in place) return INHERITED;
  if ('path' in place) return isPublic ? SOCKET : METRICS_SOCKET;
  return isPublic ? ADDRESS : METRICS_ADDRESS;
}

/** One line; undefined when nobody can do anything about it. Places that are not public are those of metrics. */
export function listeningFailure({ place, code }: ListeningError, isPublic: boolean): string | undefined {
  const reason = reasonsFor(place, isPublic).get(code);
  if (reason === undefined) return undefined;
  const holder = code === 'EADDRINUSE' && 'port' in place ? holderOfPort(place.port) : undefined;
  const words = holder === undefined ? reason : reason.replace(UNKNOWN_HOLDER, () => ` by ${holder}`);
  return `cannot listen on ${placeName(place)}: ${words}`;
}

// Starts the service: its certificate, its store, and beside the opening of that, everything else. What it consists of
// is assembly.ts. This file loads little by itself: the store's writer thread has as much to load as all the rest, and
// both happen at once only if it begins first.

/**
 * Opens the store and puts everything together; nothing listens yet. Rejects when the database or the TLS certificate
 * is refused. What fails after the store is open closes it again.
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { clock, log } = parts;
  const listenerTls = config.tlsCertPath === '' ? undefined : await readTls(config, parts);
  const opening = openStore({ path: config.databasePath, clock, log });
  const [store, { assemble }] = await Promise.all([opening, import('./assembly.ts')]);
  try {
    return await assemble(config, parts, { store, listenerTls });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Only a listener that speaks TLS loads what that takes. */
async function readTls(config: Config, { clock, log }: AppParts): Promise<ListenerTls> {
  const { Tls } = await import('./http/tls.ts');
  const { readServerCertificate } = await import('./http/tls.ts');
  const readCertificate = () => readServerCertificate(config);
  return { tls: new Tls(readCertificate(), { clock, log }), readCertificate };
}
