// `pasted serve`: the life of the service, from its settings to its last log line. assembly.ts puts it together.

import type { App, AppParts } from './assembly.ts';
import { ConfigError, isProduction, loadConfig, startWarnings } from './config/load.ts';
import { type Config, SETTINGS, VERSION } from './config/settings.ts';
import type { Log } from './core/events.ts';
import { randomBytes } from './crypto/digest.ts';
import { isExposed, ListeningError, type ListeningPlace, placeName, publicPlace } from './http/listening.ts';
import { CommandError, EXIT, holderOfPort, type Terminal } from './operator/terminal.ts';
import { createLog, type LogWriter } from './ops/log.ts';
import { openStore } from './store/open.ts';

export type ServedApp = Pick<App, 'listen' | 'reload' | 'close'>;
export type CreateApp = (config: Config, parts: AppParts) => Promise<ServedApp>;

export const run = (terminal: Terminal): Promise<number> => serve(terminal, createApp);

/** Resolves with the exit code when the service has stopped. Throws what operator/terminal.ts explains. */
export async function serve(terminal: Terminal, createApp: CreateApp): Promise<number> {
  // SQLite would make the files of the database readable to all.
  terminal.restrictNewFiles();
  const reloads = reloadOnSignal(terminal);
  const { clock, cores } = terminal;
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const place = publicPlace(config, terminal.inheritedSockets);
  const format = isProduction(config) ? 'json' : 'text';
  const { write } = terminal.stdout;
  const { log, flush } = createLog({ format, forJournal: terminal.writesToJournal, write, clock });
  // The stack is on standard error (main.ts); the log says what happened and when.
  terminal.onFatalError((error) => {
    const details = { reason: messageOf(error) };
    log({ level: 'error', logger: 'main', event: 'uncaught error', outcome: 'failure', details });
    flush();
  });
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

/** Under npm, each process that passes a signal of the process group on sends a copy: that is no impatience. */
const SIGNAL_COPIES_MS = 250;

/** Resolves with the first. A later one ends the process at once, but for SIGHUP: shell and kernel both send that. */
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

/**
 * One reload at a time, and one more for all the signals that come meanwhile. It takes signals at once, since SIGHUP
 * must not end the process: what is asked for before `begin` is done then.
 */
function reloadOnSignal(terminal: Terminal) {
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
    begin: (app: ServedApp, log: Log) => {
      reload = () => reloadSettings(terminal, app, log);
      void work();
    },
    end: () => {
      reload = undefined;
    },
  };
}

/** Reads the files again that the environment names; the certificate even if settings can't be used. Never rejects. */
async function reloadSettings(terminal: Terminal, app: ServedApp, log: Log): Promise<void> {
  const failed = (reason: string): void => {
    log({ level: 'error', logger: 'main', event: 'reloading failed', outcome: 'failure', details: { reason } });
  };
  try {
    const changed = await app.reload(readSettings(terminal, failed));
    log({ level: 'info', logger: 'main', event: 'reloaded', details: { changed: changed.join(' ') || 'nothing' } });
  } catch (error) {
    failed(messageOf(error));
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function listen(app: ServedApp, place: ListeningPlace): Promise<{ url: string }> {
  try {
    return await app.listen(place);
  } catch (error) {
    if (!(error instanceof ListeningError)) throw error;
    const reason = reasonsFor(error, error.place === place)[error.code];
    if (reason === undefined) throw error;
    throw new CommandError(`cannot listen on ${placeName(error.place)}: ${reason}`);
  }
}

type Reasons = Readonly<Record<string, string>>;

/** Why listening fails, by the system's code, as far as whoever runs the service can mend it. */
function reasonsFor({ place, code }: ListeningError, isPublic: boolean): Reasons {
  const { host, port, listenOn, metricsListen } = SETTINGS;
  if ('fd' in place) return INHERITED;
  if ('path' in place) return socketReasons(isPublic ? listenOn.name : metricsListen.name);
  const holder = code === 'EADDRINUSE' ? holderOfPort(place.port) : undefined;
  const [hostName, portName] = isPublic ? [host.name, port.name] : [metricsListen.name, metricsListen.name];
  return addressReasons(hostName, portName, holder);
}

/** A file, a datagram socket, or a connection that Accept=yes has taken already. */
const INHERITED: Reasons = {
  EINVAL: 'it is no stream socket that takes connections; the socket unit needs ListenStream= and Accept=no',
};

/** `host` and `port` are the settings to change, `holder` is who has the port, if it can be seen. */
function addressReasons(host: string, port: string, holder: string | undefined): Reasons {
  const byWhom = holder === undefined ? ' (root can see by which process: ss -ltnp)' : ` by ${holder}`;
  return {
    EADDRINUSE: `the port is in use${byWhom}; choose another ${port}`,
    EACCES: `not permitted below port 1024; choose another ${port}, or give this user the right to use it`,
    EADDRNOTAVAIL: `this host has no such address; choose another ${host}`,
    ENOTFOUND: `there is no host of that name; choose another ${host}`,
    EAI_AGAIN: `the name could not be resolved; choose an address as ${host}`,
  };
}

function socketReasons(setting: string): Reasons {
  const noFolder = `there is no such folder; make it, or choose another ${setting}`;
  // sun_path of unix(7) holds 107 bytes, which are fewer characters when these are not ASCII.
  const tooLong = `the path is too long for a socket; choose another ${setting}`;
  return {
    EADDRINUSE: `another process listens there, or it is a file; choose another ${setting}`,
    ENOENT: noFolder,
    ENOTDIR: noFolder,
    EACCES: `this user may not make a socket there; choose another ${setting}`,
    EROFS: `nothing can be made there; choose another ${setting}, under systemd in a RuntimeDirectory=`,
    EINVAL: tooLong,
    ENAMETOOLONG: tooLong,
  };
}

/**
 * Opens the store and puts everything together; nothing listens yet. The assembly is loaded while the store opens: its
 * writer thread has as much to load as all the rest. Rejects when the database or the TLS certificate is refused.
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { clock, log } = parts;
  // Only a listener that speaks TLS loads what that takes.
  const tls = config.tlsCertPath === '' ? undefined : new (await import('./http/tls.ts')).Tls(config, parts);
  const opening = openStore({ path: config.databasePath, clock, log });
  const [store, { assemble }] = await Promise.all([opening, import('./assembly.ts')]);
  try {
    return await assemble(config, parts, { store, tls });
  } catch (error) {
    await store.close();
    throw error;
  }
}
