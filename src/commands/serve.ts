// `pasted serve`: the life of the service, from its settings to its last log line. What it consists of is app.ts.

import type { App, AppParts } from '../app.ts';
import { isProduction, productionWarnings } from '../config/checks.ts';
import { loadConfig } from '../config/load.ts';
import { SETTINGS, type Config } from '../config/settings.ts';
import { randomBytes } from '../crypto/random.ts';
import { createLog, type LogWriter } from '../ops/log.ts';
import { VERSION } from '../version.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT } from './failures.ts';
import type { Terminal } from './terminal.ts';

export type ServedApp = Pick<App, 'listen' | 'close'>;
export type CreateApp = (config: Config, parts: AppParts) => Promise<ServedApp>;

/** The assembly is loaded only when the settings have been found sound. */
export const run: Run = (terminal) =>
  serve(terminal, async (config, parts) => (await import('../app.ts')).createApp(config, parts));

/** Resolves with the exit code when the service has stopped. Throws what failures.ts explains. */
export async function serve(terminal: Terminal, createApp: CreateApp): Promise<number> {
  // The database holds what others entrusted to it, and SQLite would make its files readable to all.
  terminal.restrictNewFiles();
  const { clock, cores } = terminal;
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const format = isProduction(config) ? 'json' : 'text';
  const { log, flush } = createLog({ format, write: (text) => terminal.stdout.write(text), clock });
  logFatalErrors(terminal, { log, flush });
  const stopSignal = nextStopSignal(terminal, { log, flush });
  try {
    for (const message of [...warnings, ...productionWarnings(config)]) {
      log({ level: 'warning', logger: 'config', event: 'setting doubtful', details: { message } });
    }
    const app = await createApp(config, { clock, cores, random: randomBytes, log });
    try {
      const { url } = await listen(app, config);
      log({ level: 'info', logger: 'main', event: 'listening', details: { url, version: VERSION } });
      log({ level: 'info', logger: 'main', event: 'stopping', details: { signal: await stopSignal } });
    } finally {
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

/** Resolves with the first signal. A later one means that whoever sent it does not want to wait. */
function nextStopSignal(terminal: Terminal, { log, flush }: LogWriter): Promise<string> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    terminal.onStopSignal((signal) => {
      const nowMs = terminal.clock.monotonicMs();
      firstMs ??= nowMs;
      resolve(signal);
      if (nowMs - firstMs < SIGNAL_COPIES_MS) return;
      log({ level: 'warning', logger: 'main', event: 'stopped at once', details: { signal } });
      flush();
      terminal.exit(EXIT.failure);
    });
  });
}

/** The stack goes to standard error (main.ts); whoever collects the log needs to know what happened and when. */
function logFatalErrors(terminal: Terminal, { log, flush }: LogWriter): void {
  terminal.onFatalError((error) => {
    const reason = error instanceof Error ? error.message : String(error);
    log({ level: 'error', logger: 'main', event: 'uncaught error', outcome: 'failure', details: { reason } });
    flush();
  });
}

/** Why listening fails, by the system's code, as far as the settings can mend it. */
const LISTEN_FAILURES: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', `the port is in use; choose another ${SETTINGS.port.name}`],
  ['EACCES', `not permitted; choose a ${SETTINGS.port.name} above 1023, or give this user the right to use it`],
  ['EADDRNOTAVAIL', `this host has no such address; choose another ${SETTINGS.host.name}`],
  ['ENOTFOUND', `there is no host of that name; choose another ${SETTINGS.host.name}`],
  ['EAI_AGAIN', `the name could not be resolved; choose an address as ${SETTINGS.host.name}`],
]);

async function listen(app: ServedApp, config: Config): Promise<{ url: string }> {
  try {
    return await app.listen();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reason = LISTEN_FAILURES.get(code);
    if (reason === undefined) throw error;
    throw new CommandError(`cannot listen on ${config.host} port ${config.port}: ${reason}`);
  }
}
