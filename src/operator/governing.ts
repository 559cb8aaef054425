// `pasted paste` and `pasted invite`: what the operator decides about pastes, their content and who may register.
// A running service notices by itself what is removed here (store/open.ts).

import { setTimeout } from 'node:timers/promises';
import { Refusal } from '../core/refusals.ts';
import { DAY_SECONDS, isoSeconds, MINUTE_SECONDS, showCount, unixSeconds } from '../core/time.ts';
import { randomBytes, sha256 } from '../crypto/digest.ts';
import { isWellFormedId } from '../http/servers.ts';
import type { Requester } from '../pastes/identity.ts';
import { newId } from '../pastes/intake.ts';
import { AUDITED_ID_CHARACTERS } from '../pastes/owned.ts';
import { OPERATOR_NAME } from '../store/pastes.ts';
import type { Invitation } from '../store/store.ts';
import { noteOf, spanSeconds, wholeNumber, wrongValue } from './arguments.ts';
import { CommandError, UsageError } from './failures.ts';
import { inSession, type OperatorSession } from './session.ts';
import { alignColumns, printWarnings, report, type Run } from './terminal.ts';

const BY_OPERATOR: Requester = { fingerprint: OPERATOR_NAME, clientAddress: null };

export const show: Run = (terminal, given) => inSession(terminal, async (session) => {
  const paste = await findPaste(session, given.operands[0]!);
  const json = {
    id: paste.id, owner: paste.owner, mime_type: paste.mimeType, size: paste.size, sha256: paste.sha256,
    created_at: paste.createdAt, expires_at: paste.expiresAt, burn_after_read: paste.burnAfterRead,
    password_protected: paste.passwordHash !== null,
  };
  const rows = Object.entries(json).map(([name, value]) => {
    const isMoment = typeof value === 'number' && name.endsWith('_at');
    return [name.replaceAll('_', ' '), isMoment ? isoSeconds(value) : String(value ?? '-')];
  });
  report(terminal.stdout, given, json, alignColumns(rows));
});

/** Gives a paste without its content, even one that has expired. */
async function findPaste({ store }: OperatorSession, id: string) {
  requireId(id);
  const paste = await store.read.findPaste(id, -Infinity, 0);
  if (paste === undefined) throw new Refusal('pasteNotFound');
  return paste;
}

function requireId(id: string, other = ''): void {
  if (isWellFormedId(id)) return;
  throw new UsageError(`not the id of a paste${other}: ${JSON.stringify(id)}; an id has 6 to 64 letters and digits`);
}

export const remove: Run = (terminal, given) => inSession(terminal, async (session) => {
  const ids = [...new Set(given.operands)];
  for (const id of ids) requireId(id);
  const missing = await takeDown(session, ids, null);
  const removed = ids.length - missing.length;
  const text = `Removed ${removed} of ${showCount(ids.length, 'paste')}.\n`;
  report(terminal.stdout, given, { removed, not_found: missing }, text);
  if (missing.length > 0) throw new CommandError(`paste not found: ${missing.join(', ')}`);
});

const STEP_PASTES = 1000;

/** Longer than the service may answer from memory after another process has removed a paste (store/open.ts). */
const NOTICED_MS = 20;

/** Returns the ids that were not there. Each other paste is removed with its audit entry, or stays without one. */
async function takeDown({ store, audit }: OperatorSession, ids: readonly string[], content: string | null) {
  const missing: string[] = [];
  for (let start = 0; start < ids.length; start += STEP_PASTES) {
    await Promise.all(ids.slice(start, start + STEP_PASTES).map(async (id) => {
      const paste = id.slice(0, AUDITED_ID_CHARACTERS);
      const removed = audit.event('paste_deleted', 'success', BY_OPERATOR, { paste });
      if (!(await store.run('takeDown', { id, content, removed }))) missing.push(id);
    }));
  }
  if (missing.length < ids.length) await setTimeout(NOTICED_MS);
  return missing;
}

const SHA256 = /^[0-9a-f]{64}$/i;

/** The ban comes first: what was stored before it is found then, and nothing is stored after it. */
export const ban: Run = (terminal, given) => inSession(terminal, async (session) => {
  const { store, audit } = session;
  const [named = ''] = given.operands;
  const isDigest = SHA256.test(named);
  if (!isDigest) requireId(named, ', nor a SHA-256 of content');
  const sha256 = isDigest ? named.toLowerCase() : (await findPaste(session, named)).sha256;
  const digest = Buffer.from(sha256, 'hex');
  const note = noteOf(given);
  const paste = isDigest ? {} : { paste: named.slice(0, AUDITED_ID_CHARACTERS) };
  const banned = audit.event('content_banned', 'success', BY_OPERATOR, { sha256, ...paste });
  const isNew = await store.run('banContent', { sha256: digest, note, createdAt: unixSeconds(terminal.clock), banned });
  let removed = 0;
  for await (const ids of store.findContent(digest)) {
    removed += ids.length - (await takeDown(session, ids, sha256)).length;
  }
  const how = isNew ? 'is refused from now on' : `was refused already${note && ', and has the new note'}`;
  const text = `Content ${sha256} ${how}; removed ${showCount(removed, 'paste')}.\n`;
  report(terminal.stdout, given, { sha256, is_new: isNew, removed }, text);
});

export const unban: Run = (terminal, given) => inSession(terminal, async ({ store, audit }) => {
  const sha256 = given.operands[0]!.toLowerCase();
  if (!SHA256.test(sha256)) throw new UsageError('a SHA-256 has 64 hexadecimal digits: `pasted paste bans` shows them');
  const unbanned = audit.event('content_unbanned', 'success', BY_OPERATOR, { sha256 });
  const wasBanned = await store.run('unbanContent', { sha256: Buffer.from(sha256, 'hex'), unbanned });
  if (!wasBanned) throw new CommandError(`content ${sha256} is not banned`);
  report(terminal.stdout, given, { sha256 }, `Content ${sha256} is taken again.\n`);
});

export const listBans: Run = (terminal, given) => inSession(terminal, async ({ store }) => {
  const bans = await store.read.listBans();
  const rows = bans.map(({ sha256, createdAt, note }) => [sha256, isoSeconds(createdAt), note || '-']);
  const json = { bans: bans.map(({ sha256, createdAt, note }) => ({ sha256, created_at: createdAt, note })) };
  report(terminal.stdout, given, json, alignColumns([['SHA-256', 'BANNED', 'NOTE'], ...rows]));
});

export const invite: Run = (terminal, given) => {
  const text = given.options.get('--for') ?? '7d';
  const validSeconds = spanSeconds(text);
  const isWithin = validSeconds >= MINUTE_SECONDS && validSeconds <= 365 * DAY_SECONDS;
  if (!isWithin) throw wrongValue('--for', 'a time from 1m to 365d, such as 12h', text);
  const usesLeft = wholeNumber(given, '--uses', { minimum: 1, maximum: 1000, fallback: 1 });
  const note = noteOf(given);
  return inSession(terminal, async ({ store, config }) => {
    if (config.registerBy === 'off') printWarnings(terminal, ['with SERVICE_REGISTER=off nobody can use the code']);
    // In the alphabet of paste ids, since people copy it.
    const code = newId(randomBytes);
    const createdAt = unixSeconds(terminal.clock);
    const invitation = { note, createdAt, expiresAt: createdAt + validSeconds, usesLeft };
    const id = await store.run('createInvitation', { ...invitation, codeSha256: sha256(Buffer.from(code)) });
    const lines = [
      `code     ${code}`,
      `id       ${id}`,
      `expires  ${isoSeconds(invitation.expiresAt)}`,
      `uses     ${usesLeft}`,
      'The code is not shown again. Whoever is invited registers with: sh pastec register --invite CODE',
    ];
    report(terminal.stdout, given, { ...presentInvitation({ ...invitation, id }), code }, `${lines.join('\n')}\n`);
    if (await terminal.stdout.writeWhole(Buffer.alloc(0))) return;
    await store.run('withdrawInvitation', id);
    throw new CommandError(`invitation ${id} is withdrawn: standard output did not take its code`);
  });
};

export const listInvitations: Run = (terminal, given) => inSession(terminal, async ({ store }) => {
  const invitations = await store.read.listInvitations();
  const nowSeconds = unixSeconds(terminal.clock);
  const rows = invitations.map(({ id, note, expiresAt, usesLeft }) => {
    return [String(id), String(usesLeft), isoSeconds(expiresAt) + (expiresAt <= nowSeconds ? ' (over)' : ''), note];
  });
  const table = alignColumns([['ID', 'USES LEFT', 'EXPIRES', 'NOTE'], ...rows]);
  report(terminal.stdout, given, { invitations: invitations.map(presentInvitation), count: rows.length }, table);
});

export const withdraw: Run = (terminal, given) => {
  const [text = ''] = given.operands;
  const id = /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  if (id === undefined) throw new UsageError(`not the id of an invitation: ${JSON.stringify(text)}; one is a number`);
  return inSession(terminal, async ({ store }) => {
    const wasThere = await store.run('withdrawInvitation', id);
    if (!wasThere) throw new CommandError(`there is no invitation ${id}: \`pasted invite list\` shows those there are`);
    report(terminal.stdout, given, { id }, `Withdrew invitation ${id}. Whoever registered with it stays registered.\n`);
  });
};

function presentInvitation({ id, note, createdAt, expiresAt, usesLeft }: Invitation): object {
  return { id, note, created_at: createdAt, expires_at: expiresAt, uses_left: usesLeft };
}
