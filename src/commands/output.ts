// Standard output and standard error without surprises: a reader that went away or does not keep up neither ends the
// process nor fills its memory. What is written is not looked at.

import type { Output } from './terminal.ts';

/** As much as may wait for a slow reader. node queues what a pipe does not take at once, without a bound of its own. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;

/** How long the end of the process waits for a reader that has stopped reading. */
const DRAIN_MS = 1000;

/** process.stdout and process.stderr, as far as they are used: files, pipes and terminals alike. */
export interface OutputStream {
  readonly writableLength: number;
  write(written: string | Uint8Array, whenWritten?: (error?: Error | null) => void): boolean;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

export interface DrainableOutput extends Output {
  /** Resolves when all that was taken has been written, or when it is not worth while to wait on. */
  drain(): Promise<void>;
}

/** Without the listener for errors here, a closed pipe would be an uncaught error, whose report is an error again. */
export function outputTo(stream: OutputStream): DrainableOutput {
  let isClosed = false;
  let hasLost = false;
  stream.on('error', (error) => {
    hasLost = true;
    // A full disk may have room again; a reader that went away does not come back.
    if (error.code === 'EPIPE') isClosed = true;
  });

  return {
    write: (written) => {
      if (isClosed || stream.writableLength > MOST_WAITING_BYTES) return false;
      stream.write(written);
      return true;
    },
    writeWhole: (written) => new Promise((resolve) => {
      // A stream of Node's says nothing more of what is written to it after an error.
      if (hasLost) return resolve(false);
      stream.write(written, (error) => resolve(error === undefined || error === null));
    }),
    drain: () => new Promise((resolve) => {
      if (isClosed || stream.writableLength === 0) return resolve();
      const timer = setTimeout(resolve, DRAIN_MS);
      stream.write('', () => {
        clearTimeout(timer);
        resolve();
      });
    }),
  };
}
