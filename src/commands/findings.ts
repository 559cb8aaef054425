// What `pasted check` finds out, one line each. Does not look at anything itself.

/** `warn`: works, and someone should look. `fail`: does not work, or will not be safe. */
export type Level = 'ok' | 'warn' | 'fail';

export interface Finding {
  readonly level: Level;
  /** What was looked at, a word or two. */
  readonly name: string;
  /** In one line; never a secret. */
  readonly text: string;
}

export const ok = (name: string, text: string): Finding => ({ level: 'ok', name, text });
export const warn = (name: string, text: string): Finding => ({ level: 'warn', name, text });
export const fail = (name: string, text: string): Finding => ({ level: 'fail', name, text });
