// `pasted serve`: the life of the service, from its settings to its last log line. How it is put together is app.ts.

import type { App, AppParts } from '../assembly.ts';
import { isProduction, startWarnings } from '../config/checks.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import type { Config } from '../config/settings.ts';
import type { Log } from '../core/log.ts';
import { randomBytes } from '../crypto/random.ts';
import { isExposed, publicPlace, type ListeningPlace } from '../http/listening-place.ts';
import { ListeningError } from '../http/listening.ts';
import { createLog, type LogWriter } from '../ops/log.ts';
import { VERSION } from '../version.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT } from './failures.ts';
import { listeningFailure } from './listening-failures.ts';
import type { Terminal } from './terminal.ts';

export type ServedApp = Pick<App, 'listen' | 'reload' | 'close'>;
export type CreateApp = (config: Config, parts: AppParts) => Promise<ServedApp>;

/** The assembly is loaded only when the settings have been found sound. */
export const run: Run = (terminal) =>
  serve(terminal, async (config, parts) => (await import('../app.ts')).createApp(config, parts));

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
