#!/usr/bin/env node
// The process edge: arguments, environment, signals, exit codes. Nothing else reads process.*. It imports nothing
// statically and uses no recent syntax, so that an older Node can run it far enough to be told what is needed.

import type { Terminal } from './commands/terminal.ts';

const NEEDED_MAJOR = 24;

if (Number.parseInt(process.versions.node, 10) >= NEEDED_MAJOR) {
  void start();
} else {
  process.stderr.write(`pasted needs Node.js ${NEEDED_MAJOR} or later, and this is Node.js ${process.versions.node}\n`);
  process.exitCode = 1;
}

async function start(): Promise<void> {
  const { readFileSync } = await import('node:fs');
  const { availableParallelism } = await import('node:os');
  const { outputTo } = await import('./commands/output.ts');
  const { runCommandLine } = await import('./commands/cli.ts');
  const stdout = outputTo(process.stdout);
  const stderr = outputTo(process.stderr);
  let fatalListener: ((error: unknown) => void) | undefined;

  async function end(code: number): Promise<void> {
    process.exitCode = code;
    await Promise.all([stdout.drain(), stderr.drain()]);
    process.exit();
  }

  // An unhandled rejection arrives here too: node makes it an uncaught exception.
  process.on('uncaughtException', (error) => {
    stderr.write(`pasted: ${error instanceof Error ? error.stack : String(error)}\n`);
    if (fatalListener) fatalListener(error);
    void end(1);
  });

  const terminal: Terminal = {
    arguments: process.argv.slice(2),
    environment: process.env,
    stdout,
    stderr,
    readFile: (path) => readFileSync(path, 'utf8'),
    clock: { unixMs: () => Date.now(), monotonicMs: () => performance.now() },
    cores: availableParallelism(),
    restrictNewFiles: () => {
      process.umask(0o077);
    },
    onStopSignal: (listener) => {
      process.on('SIGTERM', listener);
      process.on('SIGINT', listener);
    },
    onFatalError: (listener) => {
      fatalListener = listener;
    },
    exit: (code) => process.exit(code),
  };
  await end(await runCommandLine(terminal));
}
