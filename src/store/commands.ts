// The table of everything that the writer thread can be asked, and how each waits its turn. A noun's file defines its
// own; a new command is one function there and one line here.

import type { DatabaseSync } from 'node:sqlite';
import { type Ballast, upkeepCommands, type UpkeepCommands } from './ballast.ts';
import {
  authorityCommands, type AuthorityCommands, certificateCommands, type CertificateCommands,
} from './certificates.ts';
import { contentCommands, type ContentCommands } from './contents.ts';
import type { StoreFailure } from './failures.ts';
import {
  pasteChangeCommands, type PasteChangeCommands, pasteCommands, type PasteCommands,
} from './pastes.ts';
import {
  auditCommands, type AuditCommands, challengeCommands, type ChallengeCommands, secretCommands,
  type SecretCommands, submissionCommands, type SubmissionCommands,
} from './records.ts';

/** Every command takes one value and answers one, both of which must survive a structured clone. */
export interface Commands
  extends
    PasteCommands,
    PasteChangeCommands,
    ContentCommands,
    ChallengeCommands,
    SubmissionCommands,
    SecretCommands,
    AuditCommands,
    CertificateCommands,
    AuthorityCommands,
    UpkeepCommands {}

export type CommandName = keyof Commands;

/**
 * `prompt`: small, and a request waits for it: first in every batch. `bulk`: large or in no hurry: has the rest of the
 * batch. `alone`: outside any transaction, between two batches.
 */
export type Lane = 'prompt' | 'bulk' | 'alone';

export const LANES: Readonly<Record<CommandName, Lane>> = {
  createPaste: 'prompt',
  burnPaste: 'prompt',
  removeExpired: 'bulk',
  touchPastes: 'bulk',
  writeChunk: 'bulk',
  discardChunks: 'bulk',
  removeExpiredChallenges: 'bulk',
  removeOldSubmissions: 'bulk',
  keepSecret: 'prompt',
  updatePaste: 'prompt',
  deletePaste: 'prompt',
  recordAudit: 'prompt',
  issueCertificate: 'prompt',
  revokeCertificate: 'prompt',
  grantAdmin: 'prompt',
  removeExpiredCertificates: 'bulk',
  createAuthority: 'prompt',
  keepCrl: 'prompt',
  removeOldAudit: 'bulk',
  probe: 'alone',
  truncateWal: 'alone',
  releasePages: 'alone',
  optimize: 'alone',
  restoreBallast: 'alone',
};

/**
 * The commands that a disk without room is closed to: each needs room that nothing gives back by itself. Not those that
 * delete or revoke, with their audit entries.
 */
export const NEEDS_ROOM: ReadonlySet<CommandName> = new Set([
  'createPaste', 'updatePaste', 'writeChunk', 'recordAudit', 'issueCertificate', 'createAuthority',
]);

export function prepareCommands(db: DatabaseSync, ballast?: Ballast): Commands {
  return {
    ...pasteCommands(db),
    ...pasteChangeCommands(db),
    ...contentCommands(db),
    ...challengeCommands(db),
    ...submissionCommands(db),
    ...secretCommands(db),
    ...auditCommands(db),
    ...certificateCommands(db),
    ...authorityCommands(db),
    ...upkeepCommands(db, ballast),
  };
}

// What the serving thread and the writer thread say to each other. Each request is answered once, in order.

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
