// What the serving thread and the writer thread say to each other. Each request is answered once, in order.

import type { CommandName } from './commands.ts';
import type { StoreFailure } from './store.ts';

/** What the thread is started with. */
export interface WriterSetup {
  readonly path: string;
  /** Whether room is held in reserve: by the server alone, which must know whether it was given up. */
  readonly keepsBallast: boolean;
}

export interface Command {
  readonly name: CommandName;
  readonly params: unknown;
}

/** `batch`: in one transaction. `alone`: outside any. `close`: the last message; the thread ends by itself. */
export type Request =
  | { readonly kind: 'batch'; readonly commands: readonly Command[] }
  | { readonly kind: 'alone'; readonly command: Command }
  | { readonly kind: 'close' };

/** `failure` is null when nothing of the storage failed: the error is one of the program. */
export type Answer =
  | { readonly done: true; readonly value: unknown }
  | { readonly done: false; readonly failure: StoreFailure | null; readonly error: unknown };

/** First `opened` or `refused`; then `answers` in the order of the commands, for every batch and command alone. */
export type Report =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly failure: StoreFailure | 'refused'; readonly message: string }
  | { readonly kind: 'answers'; readonly answers: readonly Answer[] };
