// A part of a row as a process of its own, because the process that makes the load must neither measure nor judge. A
// part is a module that calls `runPart`; a row starts it with `startPart`.

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Part<Result> {
  /** Tells it to come to its end, and resolves with what it found. Rejects when it has failed. */
  end(): Promise<Result>;
  /** The same, for a part that ends by itself. */
  readonly result: Promise<Result>;
}

/** Resolves when it has begun. `options` must be plain data; the part dies with this process. */
export async function startPart<Options extends object, Result>(
  module: string,
  options: Options,
): Promise<Part<Result>> {
  const child: ChildProcess = fork(fileURLToPath(new URL(module, import.meta.url)), [JSON.stringify(options)], {
    execArgv: process.execArgv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`${module} ended with ${code ?? signal}`);
  });
  await Promise.race([once(child, 'message'), ended]);
  const answered = once(child, 'message').then(([message]) => message as { result: Result });
  const result = Promise.race([answered, ended]).then((message) => message.result);
  // The await of the caller reports a failure; until then it must not count as unhandled.
  result.catch(() => undefined);
  return {
    result,
    end: () => {
      if (child.connected) child.send('end');
      return result;
    },
  };
}

/** In the part: carries out its work with the options that it was given. `over` resolves when it is told to end. */
export async function runPart<Options, Result>(
  work: (options: Options, over: Promise<void>) => Promise<Result>,
): Promise<void> {
  // The row is gone, so nobody is left to tell the result.
  process.on('disconnect', () => process.exit(1));
  const over = new Promise<void>((resolve) => process.once('message', () => resolve()));
  process.send?.('begun');
  const result = await work(JSON.parse(process.argv[2] ?? '') as Options, over);
  process.send?.({ result }, () => process.exit(0));
}
