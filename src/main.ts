#!/usr/bin/env node
// The edge of the process: arguments, environment, signals, exit codes. Nothing else reads process.*. It imports
// nothing statically and uses no recent syntax, so that an older Node runs it far enough to say what is needed.

import type { Terminal } from './operator/terminal.ts';

const NEEDED_MAJOR = 24;

if (Number.parseInt(process.versions.node, 10) >= NEEDED_MAJOR) {
  void start();
} else {
  process.stderr.write(`pasted needs Node.js ${NEEDED_MAJOR} or later, and this is Node.js ${process.versions.node}\n`);
  process.exitCode = 1;
}

async function start(): Promise<void> {
  // `pasted serve` loads only what it runs: no table of commands, and the words for failures only when it fails.
  const words = process.argv.slice(2);
  const serves = words.length === 0 || words.join(' ') === 'serve';
  const { outputTo } = await import('./ops/log.ts');
  const [stdout, stderr] = [outputTo(process.stdout), outputTo(process.stderr)];
  let fatalListener: ((error: unknown) => void) | undefined;

  async function end(code: number): Promise<void> {
    process.exitCode = code;
    await Promise.all([stdout.drain(), stderr.drain()]);
    process.exit();
  }

  // An unhandled rejection arrives here too: node makes it an uncaught exception.
  process.on('uncaughtException', (error) => {
    stderr.write(`pasted: ${error instanceof Error ? error.stack : String(error)}\n`);
    fatalListener?.(error);
    void end(1);
  });

  const thread = serves ? (await import('./store/writer.ts')).startThread('store writer') : undefined;
  const onFatalError = (listener: (error: unknown) => void) => void (fatalListener = listener);
  const terminal = await makeTerminal({ stdout, stderr, thread, onFatalError });
  const ended = serves
    ? (await import('./serve.ts')).run(terminal).catch(async (error: unknown) => (
      (await import('./operator/failures.ts')).exitCodeOf(terminal, error)
    ))
    : (await import('./operator/arguments.ts')).runCommandLine(terminal);
  await end(await ended);
}

async function makeTerminal(parts: Pick<Terminal, 'stdout' | 'stderr' | 'thread' | 'onFatalError'>): Promise<Terminal> {
  const { fstatSync } = await import('node:fs');
  const { availableParallelism } = await import('node:os');
  const { isatty } = await import('node:tty');
  const { readSmallFile } = await import('./config/load.ts');
  // Closing a terminal must leave nothing running that was started on it.
  const isOnTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  // systemd.exec(5): JOURNAL_STREAM names device and inode; a child inherits it though its output was redirected.
  const { dev, ino } = fstatSync(1, { bigint: true });
  // Only a Node that was built without SQLite or OpenSSL does not name a version, and such a Node can't serve.
  const { node, sqlite = 'none', openssl = 'none' } = process.versions;
  return {
    ...parts,
    arguments: process.argv.slice(2),
    environment: process.env,
    readFile: readSmallFile,
    stdin: () => process.stdin,
    clock: { unixMs: () => Date.now(), monotonicMs: () => performance.now() },
    inheritedSockets: inheritedSockets(),
    writesToScreen: Boolean(process.stdout.isTTY),
    writesForOthers: () => {
      const output = fstatSync(1);
      return output.isFile() && (output.mode & 0o044) !== 0;
    },
    writesToJournal: process.env['JOURNAL_STREAM'] === `${dev}:${ino}`,
    runtime: { node, sqlite, openssl, platform: `${process.platform}-${process.arch}` },
    cores: availableParallelism(),
    boundYoungGeneration,
    restrictNewFiles: () => void process.umask(0o077),
    onStopSignal: (listener) => {
      for (const signal of ['SIGTERM', 'SIGINT', ...(isOnTerminal ? ['SIGHUP'] : [])]) process.on(signal, listener);
    },
    onReloadSignal: (listener) => {
      if (!isOnTerminal) process.on('SIGHUP', listener);
    },
    exit: (code) => process.exit(code),
    endBy: (signal) => {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    },
  };
}

/** sd_listen_fds(3): the variables count only for the process that they name, but its children inherit them too. */
function inheritedSockets(): number {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = process.env;
  return pid === String(process.pid) && /^[1-9]\d{0,3}$/.test(count ?? '') ? Number(count) : 0;
}

/** Both halves of the young generation. V8 would allow 64 MiB under load; this makes pauses shorter, nothing slower. */
const YOUNG_BYTES = 16 * 1024 * 1024;

/** V8 lets the young generation grow by this factor at most; its greatest size can only be set before the start. */
async function boundYoungGeneration(): Promise<void> {
  const { getHeapSpaceStatistics, setFlagsFromString } = await import('node:v8');
  let factor = 2;
  new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    const wanted = young !== undefined && 2 * young.space_size > YOUNG_BYTES ? 1 : 2;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  }).observe({ entryTypes: ['gc'] });
}
