// Which failures of SQLite are the storage's condition, and which are errors of this program. Used on both threads.

/** The low byte of an extended result code is the primary one. */
const PRIMARY = 0xff;

/** Primary result codes (https://sqlite.org/rescode.html). */
export const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_NOMEM = 7;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
export const SQLITE_CANTOPEN = 14;
const SQLITE_PROTOCOL = 15;
const SQLITE_NOTADB = 26;

/** Those that say what became of the disk, the file, its locks or the memory. */
const FAILURES: ReadonlyMap<number | undefined, StoreFailure> = new Map([
  [SQLITE_BUSY, 'unavailable'],
  [SQLITE_LOCKED, 'unavailable'],
  [SQLITE_NOMEM, 'unavailable'],
  [SQLITE_READONLY, 'unavailable'],
  [SQLITE_IOERR, 'unavailable'],
  [SQLITE_CORRUPT, 'unavailable'],
  [SQLITE_FULL, 'full'],
  [SQLITE_CANTOPEN, 'unavailable'],
  [SQLITE_PROTOCOL, 'unavailable'],
  [SQLITE_NOTADB, 'unavailable'],
]);

/** undefined for what is no failure of the storage, such as a violated constraint or a TypeError. */
export function failureOf(error: unknown): StoreFailure | undefined {
  return FAILURES.get(primaryCodeOf(error));
}

/** Whether what is in the file is not, or no longer, a database. */
export function isDamage(error: unknown): boolean {
  const code = primaryCodeOf(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** SQLITE_IOERR_SHMSIZE: how a full disk shows when there is no room for the index of the log. */
const SQLITE_IOERR_SHMSIZE = 4874;

export function isOutOfRoom(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE_FULL || extendedCodeOf(error) === SQLITE_IOERR_SHMSIZE;
}

/** undefined when the error did not come from SQLite. */
export function primaryCodeOf(error: unknown): number | undefined {
  const errcode = extendedCodeOf(error);
  return errcode === undefined ? undefined : errcode & PRIMARY;
}

function extendedCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode : undefined;
}

/** A StoreError with the error as its cause, or the error itself where nothing of the storage failed. */
export function asStoreError(error: unknown): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  return new StoreError(failure, `storage ${failure}: ${describe(error)}`, { cause: error });
}

/** SQLite's words hold names of tables and columns at most, never a value. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const errcode = extendedCodeOf(error);
  return errcode === undefined ? error.message : `${error.message} (SQLite ${errcode})`;
}

/**
 * `full`: no room for it now (disk or quota). `unavailable`: the storage fails at this moment. In both cases nothing of
 * the call was stored.
 */
export type StoreFailure = 'full' | 'unavailable';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.failure = failure;
  }
}

/**
 * The file is not one that this program may open: of a newer version, of another program, or damaged. It is left
 * untouched.
 */
export class DatabaseRefusedError extends Error {
  override readonly name = 'DatabaseRefusedError';
}

/** Another process has the database open. It is left untouched. */
export class DatabaseInUseError extends Error {
  override readonly name = 'DatabaseInUseError';
  /** The file that the other process has open as long as it has the database. */
  readonly lockPath: string | undefined;

  constructor(message: string, lockPath?: string) {
    super(message);
    this.lockPath = lockPath;
  }
}
