// `pasted invite`. A code is shown once; the database has its digest.

import { DAY_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { randomBytes, sha256 } from '../crypto/digest.ts';
import { newId } from '../pastes/intake.ts';
import type { Invitation } from '../store/store.ts';
import { noteOf, spanSeconds, wholeNumber, wrongValue } from './arguments.ts';
import { CommandError, UsageError } from './failures.ts';
import { inSession } from './session.ts';
import { alignColumns, type Given, report, type Run } from './terminal.ts';

const USES = { minimum: 1, maximum: 1000, fallback: 1 };

export const create: Run = (terminal, given) => {
  const { validSeconds, usesLeft, note } = readWanted(given);
  return inSession(terminal, async ({ store }) => {
    // In the alphabet of paste ids, since people copy it.
    const code = newId(randomBytes);
    const createdAt = unixSeconds(terminal.clock);
    const invitation = { note, createdAt, expiresAt: createdAt + validSeconds, usesLeft };
    const codeSha256 = sha256(Buffer.from(code));
    const id = await store.governing.createInvitation({ ...invitation, codeSha256 });
    const lines = [
      `code     ${code}`,
      `id       ${id}`,
      `expires  ${isoSeconds(invitation.expiresAt)}`,
      `uses     ${usesLeft}`,
      'The code is not shown again. Whoever is invited registers with: sh pastec register --invite CODE',
    ];
    report(terminal.stdout, given, { ...present({ ...invitation, id }), code }, `${lines.join('\n')}\n`);
  });
};

function readWanted(given: Given) {
  const text = given.values.get('--for') ?? '7d';
  const validSeconds = spanSeconds(text);
  const isWithin = validSeconds >= MINUTE_SECONDS && validSeconds <= 365 * DAY_SECONDS;
  if (!isWithin) throw wrongValue('--for', 'a time from 1m to 365d, such as 12h', text);
  return { validSeconds, usesLeft: wholeNumber(given, '--uses', USES), note: noteOf(given) };
}

export const list: Run = (terminal, given) =>
  inSession(terminal, async ({ store }) => {
    const invitations = await store.governing.listInvitations();
    const nowSeconds = unixSeconds(terminal.clock);
    // The note comes last, since it may have any width.
    const rows = invitations.map(({ id, note, expiresAt, usesLeft }) => {
      return [String(id), String(usesLeft), isoSeconds(expiresAt) + (expiresAt <= nowSeconds ? ' (over)' : ''), note];
    });
    const table = alignColumns([['ID', 'USES LEFT', 'EXPIRES', 'NOTE'], ...rows]);
    report(terminal.stdout, given, { invitations: invitations.map(present), count: rows.length }, table);
  });

export const withdraw: Run = (terminal, given) => {
  const [text = ''] = given.operands;
  const id = /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  if (id === undefined) throw new UsageError(`not the id of an invitation: ${JSON.stringify(text)}; one is a number`);
  return inSession(terminal, async ({ store }) => {
    const wasThere = await store.governing.withdrawInvitation(id);
    if (!wasThere) throw new CommandError(`there is no invitation ${id}: \`pasted invite list\` shows those there are`);
    report(terminal.stdout, given, { id }, `Withdrew invitation ${id}. Whoever registered with it stays registered.\n`);
  });
};

function present({ id, note, createdAt, expiresAt, usesLeft }: Invitation): object {
  return { id, note, created_at: createdAt, expires_at: expiresAt, uses_left: usesLeft };
}
