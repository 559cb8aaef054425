// Carries out commands on the writing connection: many in one transaction, in which each has its whole effect or none.
// The table of commands, and the messages between the serving thread and the writer thread (thread.ts), are here too.

import type { DatabaseSync } from 'node:sqlite';
import { authorityCommands, certificateCommands } from './certificates.ts';
import { type Ballast, failureAt } from './database.ts';
import { governingCommands } from './governing.ts';
import { pasteCommands } from './pastes.ts';
import { contentCommands, recordCommands } from './records.ts';
import { schemaVersionOf } from './schema.ts';
import { describe, failureOf, isDamage, StoreError, type StoreFailure } from './store.ts';

/** Every command takes one value and answers one, both of which must survive a structured clone. */
export type Commands = ReturnType<typeof prepareCommands>;
export type CommandName = keyof Commands;

/** `Run` lacks these, as what keeps pastes and content in memory must learn of them. A count tells it of `takeDown`. */
type PasteCommandName = keyof (Omit<ReturnType<typeof pasteCommands>, 'takeDown'> & ReturnType<typeof contentCommands>);

export type Run = <Name extends Exclude<CommandName, PasteCommandName>>(
  name: Name, params: Parameters<Commands[Name]>[0],
) => Promise<ReturnType<Commands[Name]>>;

function prepareCommands(db: DatabaseSync, ballast: Ballast | undefined) {
  return {
    ...pasteCommands(db), ...contentCommands(db), ...recordCommands(db), ...certificateCommands(db),
    ...authorityCommands(db), ...governingCommands(db), ...upkeepCommands(db, ballast),
  };
}

/** Refused when the disk is short of room; commands that delete or revoke go on, with their audit entries. */
const NEEDS_ROOM: ReadonlySet<CommandName> = new Set([
  'createPaste', 'updatePaste', 'writeChunk', 'recordAudit', 'issueCertificate', 'createAuthority', 'createInvitation',
]);

/** Clearing takes as much of the log as writing: while the log can't be emptied, content without a paste may stay. */
const NEEDS_LOG: ReadonlySet<CommandName> = new Set([...NEEDS_ROOM, 'discardChunks']);

export type Command = Readonly<{ name: CommandName; params: unknown }>;

/** `batch`: in one transaction. `alone`: outside any. `close`: the last message; the thread ends by itself. */
export type Request =
  | { readonly kind: 'batch'; readonly commands: readonly Command[] }
  | { readonly kind: 'alone'; readonly command: Command }
  | { readonly kind: 'close' };

/** `failure` is null when the storage did not fail: then the error is one of the program. */
export type Answer =
  | { readonly done: true; readonly value: unknown }
  | { readonly done: false; readonly failure: StoreFailure | null; readonly error: unknown };

/** From a thread that could not do its task. Not an Error, since a clone loses the class. */
export interface ThreadRefusal {
  readonly kind: 'refused';
  readonly failure: StoreFailure | 'refused';
  readonly message: string;
}

export type FirstReport<Given> = { readonly kind: 'done'; readonly given: Given } | ThreadRefusal;

/** First whether the database is open; then `answers` in the order of the commands, once for each request. */
export type Report = FirstReport<null> | { readonly kind: 'answers'; readonly answers: readonly Answer[] };

const NO_ROOM: Answer = { done: false, failure: 'full', error: new Error('the disk is full') };

export class Executor {
  readonly #db: DatabaseSync;
  readonly #ballast: Ballast | undefined;
  readonly #commands: Commands;
  /** True while a commit that failed may be whole in the log. */
  #hasFailed = false;

  constructor(db: DatabaseSync, ballast?: Ballast) {
    this.#db = db;
    this.#ballast = ballast;
    this.#commands = prepareCommands(db, ballast);
  }

  /** One answer for each command. What is answered as done is durable by then. */
  carryOut(batch: readonly Command[]): Answer[] {
    if (this.#hasFailed) this.#overwriteFailed();
    return this.#ballast?.isDiskShort() === true ? this.#carryOutSparingly(batch) : this.#attempt(batch);
  }

  carryOutAlone(command: Command): Answer {
    if (this.#hasFailed) this.#overwriteFailed();
    try {
      return this.#run(command);
    } catch (error) {
      const failure = failureAt(this.#db.location(), error);
      return this.#makesRoomAfter(failure) ? this.carryOutAlone(command) : failed(error, failure);
    }
  }

  #makesRoomAfter(failure: StoreFailure | undefined): boolean {
    return failure === 'full' && this.#ballast?.giveUp() === true;
  }

  /** Refuses commands that need room: what is left is for removing content. */
  #carryOutSparingly(batch: readonly Command[]): Answer[] {
    const refused = this.#ballast!.isLogLong() ? NEEDS_LOG : NEEDS_ROOM;
    const answers = this.#attempt(batch.filter(({ name }) => !refused.has(name)));
    return batch.map(({ name }) => (refused.has(name) ? NO_ROOM : answers.shift()!));
  }

  #attempt(batch: readonly Command[]): Answer[] {
    const answers: Answer[] = [];
    if (batch.length === 0) return answers;
    try {
      this.#inTransaction(batch, answers);
      return answers;
    } catch (error) {
      const failure = failureAt(this.#db.location(), error);
      if (this.#makesRoomAfter(failure)) return this.#carryOutSparingly(batch);
      const at = answers.length;
      // A command that throws fails alone: the others run again. Savepoints would make writing chunks a seventh slower.
      if ((failure === undefined || isDamage(error)) && at < batch.length) {
        return this.#attempt(batch.toSpliced(at, 1)).toSpliced(at, 0, failed(error, failure));
      }
      // One command that is too large must not fail the others: each gets a transaction of its own.
      const separable = batch.length > 1 && failure === 'full';
      return separable ? batch.flatMap((command) => this.#attempt([command])) : batch.map(() => failed(error, failure));
    }
  }

  /** Adds the answers as they come. If it throws, no command had any effect, and the first without an answer threw. */
  #inTransaction(batch: readonly Command[], answers: Answer[]): void {
    const db = this.#db;
    if (db.isTransaction) db.exec('ROLLBACK');
    db.exec('BEGIN IMMEDIATE');
    try {
      for (const command of batch) answers.push(this.#run(command));
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      if (failureOf(error) !== undefined && answers.length === batch.length) this.#overwriteFailed();
      throw error;
    }
  }

  #overwriteFailed(): void {
    this.#hasFailed = true;
    try {
      // A commit that failed in fsync is whole in the log, and recovery after a crash would take it for one that
      // succeeded (https://sqlite.org/walformat.html#recovery). A commit of nothing overwrites it.
      this.#commands.probe(null);
      this.#hasFailed = false;
    } catch {
      // Tried again before the next command: one for the room in reserve comes every ten seconds.
    }
  }

  #run({ name, params }: Command): Answer {
    // The writer's types hold name and params together; a message does not.
    return { done: true, value: (this.#commands[name] as (params: unknown) => unknown)(params) };
  }
}

/** A cloned error loses its class and SQLite's code, so the code goes into the message. */
function failed(error: unknown, judged?: StoreFailure): Answer {
  const failure = error instanceof StoreError ? error.failure : (judged ?? null);
  return { done: false, failure, error: failure === null ? error : new Error(describe(error)) };
}

/** All writes wait meanwhile. If a backup or a check reads for longer, truncating is tried again later. */
const TRUNCATE_WAIT_MS = 200;

/** Run between transactions, since a checkpoint can't be inside one. Each is a bounded step. */
export function upkeepCommands(db: DatabaseSync, ballast?: Ballast) {
  const version = schemaVersionOf(db);
  const freePages = db.prepare('PRAGMA freelist_count');
  const truncate = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  const usualWaitMs = Number(db.prepare('PRAGMA busy_timeout').get()!['timeout']);
  const waitAtMost = (milliseconds: number): void => db.exec(`PRAGMA busy_timeout = ${milliseconds}`);
  return {
    /** Moves the log into the database and empties it: then removed content is gone. False: a reader was in the way. */
    truncateWal: (_: null): boolean => {
      waitAtMost(Math.min(TRUNCATE_WAIT_MS, usualWaitMs));
      try {
        return truncate.all()[0]?.['busy'] === 0;
      } finally {
        waitAtMost(usualWaitMs);
      }
    },
    /** Gives at most `pages` free pages back to the file system; answers how many are left. */
    releasePages: (pages: number): number => {
      // A PRAGMA takes no parameters.
      db.exec(`PRAGMA incremental_vacuum(${Math.max(1, Math.trunc(pages))})`);
      return Number(freePages.get()!['freelist_count']);
    },
    optimize: (_: null) => db.exec('PRAGMA optimize'),
    /** Restores the room in reserve if the disk has it. Says if more may be stored; always true if none is kept. */
    restoreBallast: (_: null) => ballast?.restore() ?? true,
    /** Changes nothing, and still goes through the log to the disk; an UPDATE of no rows writes no page of the log. */
    probe: (_: null) => db.exec(`PRAGMA user_version = ${version}`),
  };
}
