// The table of everything that the writer thread can be asked, and how each waits its turn. A noun's file defines its
// own; a new command is one function there and one line here.

import type { DatabaseSync } from 'node:sqlite';

import { auditCommands } from './audit.ts';
import type { AuditCommands } from './audit.ts';
import { authorityCommands } from './authority.ts';
import type { AuthorityCommands } from './authority.ts';
import type { Ballast } from './ballast.ts';
import { certificateCommands } from './certificates.ts';
import type { CertificateCommands } from './certificates.ts';
import { challengeCommands } from './challenges.ts';
import type { ChallengeCommands } from './challenges.ts';
import { contentCommands } from './contents.ts';
import type { ContentCommands } from './contents.ts';
import { pasteChangeCommands } from './paste-changes.ts';
import type { PasteChangeCommands } from './paste-changes.ts';
import { pasteCommands } from './pastes.ts';
import type { PasteCommands } from './pastes.ts';
import { secretCommands } from './secrets.ts';
import type { SecretCommands } from './secrets.ts';
import { submissionCommands } from './submissions.ts';
import type { SubmissionCommands } from './submissions.ts';
import { upkeepCommands } from './upkeep.ts';
import type { UpkeepCommands } from './upkeep.ts';

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
