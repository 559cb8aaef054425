// What a command may see and do of the process that it runs in. main.ts makes it of the real one, tests of values.

import type { Environment, ReadFile } from '../config/sources.ts';
import type { Clock } from '../core/time.ts';

/** Where text goes, and bytes that another program is to read. */
export interface Output {
  /** False when it could not take them, which are then lost: nobody reads, or not fast enough. Never waits. */
  write(written: string | Uint8Array): boolean;
}

export interface Terminal {
  /** What follows `pasted` on the command line. */
  readonly arguments: readonly string[];
  readonly environment: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly readFile: ReadFile;
  readonly clock: Clock;
  /** Processors of this host. */
  readonly cores: number;
  /** Files made from now on are for their owner alone. */
  restrictNewFiles(): void;
  /** Called for SIGTERM and SIGINT, each time, instead of ending the process. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Called for an error that nothing caught, once it is on standard error; the process ends with 1 afterwards. */
  onFatalError(listener: (error: unknown) => void): void;
  /** Ends the process now, whatever still runs. */
  exit(code: number): void;
}
