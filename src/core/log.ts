// The shape in which the parts hand over what happened. How it is written down is ops/log.ts.

export type LogLevel = 'info' | 'warning' | 'error';
export type LogDetails = Readonly<Record<string, string | number | boolean | null>>;

/** One event. Never in it: passwords, secrets, tokens, keys, content, or the id of a paste (it is a capability). */
export interface LogEntry {
  readonly level: LogLevel;
  /** The part that speaks: `http`, `store`, `cleanup`, `audit`, `config`, `main`. */
  readonly logger: string;
  /** What happened, a fixed word or phrase of that part. */
  readonly event: string;
  readonly outcome?: 'success' | 'failure';
  /** The fingerprint of the caller, where there is one. */
  readonly clientId?: string;
  readonly clientIp?: string;
  readonly details?: LogDetails;
}

export type Log = (entry: LogEntry) => void;
