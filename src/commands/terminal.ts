// What a command may see and do of the process that it runs in. main.ts makes it of the real one, tests of values.

import type { Environment, ReadFile } from '../config/sources.ts';
import type { Clock } from '../core/time.ts';

/** Where text goes, and bytes that another program is to read. */
export interface Output {
  /** False when it could not take them, which are then lost: nobody reads, or not fast enough. Never waits. */
  write(written: string | Uint8Array): boolean;
  /** Waits for a slow reader, however long. Resolves with false when it was not taken whole: nobody reads any more. */
  writeWhole(written: Uint8Array): Promise<boolean>;
}

/** process.stdin, as far as it is used. */
export interface Input extends AsyncIterable<Uint8Array> {
  /** It is a person at a keyboard. */
  readonly isTTY?: boolean;
  /** Whoever reads it gets this error. */
  destroy(error: Error): unknown;
}

/** What the process runs on, as it calls itself: for whoever looks into a fault. */
export interface Runtime {
  readonly node: string;
  readonly sqlite: string;
  readonly openssl: string;
  /** System and processor, such as `linux-x64`. */
  readonly platform: string;
}

export interface Terminal {
  /** What follows `pasted` on the command line. */
  readonly arguments: readonly string[];
  readonly environment: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly readFile: ReadFile;
  /** Standard input, which nothing reads before this is called. */
  readonly stdin: () => Input;
  readonly clock: Clock;
  /** Sockets that systemd handed to this very process (sd_listen_fds(3)), from descriptor 3 on. */
  readonly inheritedSockets: number;
  /** Standard output is a screen with a person before it. */
  readonly writesToScreen: boolean;
  /** Standard output is a file that its group or others may read. */
  readonly writesForOthers: () => boolean;
  /** Standard output goes to the journal (JOURNAL_STREAM of systemd.exec(5)), which takes priorities. */
  readonly writesToJournal: boolean;
  readonly runtime: Runtime;
  /** Processors of this host. */
  readonly cores: number;
  /** Files made from now on are for their owner alone. */
  restrictNewFiles(): void;
  /** Called for SIGTERM and SIGINT, and for SIGHUP on a terminal, each time, instead of ending the process. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Called for SIGHUP without a terminal, each time. Without a listener it ends the process, as by default. */
  onReloadSignal(listener: () => void): void;
  /** Called for an error that nothing caught, once it is on standard error; the process ends with 1 afterwards. */
  onFatalError(listener: (error: unknown) => void): void;
  /** Ends the process now, whatever still runs. */
  exit(code: number): void;
  /** Ends the process by a signal that it has caught, as if it had not: at once, threads and all. */
  endBy(signal: string): void;
}
