// What the API says about its values, after the contract's "Resources and their fields". Below, the client script.

import { readFileSync } from 'node:fs';
import { SETTINGS } from '../config/settings.ts';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import { isoSeconds } from '../core/time.ts';
import type { IssuedChallenge } from '../pastes/admission.ts';
import type { AuditEntry, ListedPaste, Paste } from '../store/store.ts';

export function presentCreated(paste: Omit<Paste, 'sha256'>, expiryWasAsked: boolean): object {
  return {
    id: paste.id, url: `/${paste.id}`, raw: `/${paste.id}/raw`, mime_type: paste.mimeType, created_at: paste.createdAt,
    ...(paste.owner === null ? {} : { owner: shortOwner(paste.owner) }),
    ...(paste.burnAfterRead ? { burn_after_read: true } : {}),
    ...(expiryWasAsked ? { expires_at: paste.expiresAt } : {}),
    ...(paste.passwordHash === null ? {} : { password_protected: true }),
  };
}

export function presentMetadata({ id, mimeType, size, createdAt, expiresAt, passwordHash }: Paste): object {
  const metadata = { id, mime_type: mimeType, size, created_at: createdAt, raw: `/${id}/raw`, expires_at: expiresAt };
  return passwordHash === null ? metadata : { ...metadata, password_protected: true };
}

/** The answer to GET /register/challenge; with `baseBits` to GET /challenge: how the difficulty came about. */
export function presentChallenge(challenge: IssuedChallenge | null, baseBits?: number): object {
  if (challenge === null) return { enabled: false, difficulty: 0 };
  const { difficultyBits, nonce, expiresAt, token } = challenge;
  const answer = { enabled: true, difficulty: difficultyBits, nonce, expires: expiresAt, token };
  if (baseBits === undefined) return answer;
  return { ...answer, base_difficulty: baseBits, elevated: difficultyBits > baseBits };
}

/** Why nothing can be issued, in words for callers; undefined when something can. `isValid` refers to the CA. */
export function whyUnavailable(hasPassword: boolean, isKeyLocked: boolean, isValid: boolean): string | undefined {
  const { name } = SETTINGS.pkiCaPassword;
  const fault = isKeyLocked ? `${name} does not open the CA key` : !isValid && 'the CA is not valid now';
  const why = hasPassword ? fault : `${name} is not set here`;
  return why ? `no certificates can be issued: ${why}; tell the operator` : undefined;
}

/** Said instead where SERVICE_REGISTER closes registration. */
export const REGISTRATION_CLOSED = 'nobody can register: ask the operator for a certificate';

export const INVITATION_NEEDED = 'ask the operator for an invitation, and send its code as X-Invite';

/** `nonce difficulty expires token` for shells; dashes where there is nothing to solve. */
export function challengeLine(challenge: IssuedChallenge | null): string {
  if (challenge === null) return '- 0 - -';
  const { nonce, difficultyBits, expiresAt, token } = challenge;
  return `${nonce} ${difficultyBits} ${expiresAt} ${token}`;
}

/** As much of an owner's fingerprint as is shown to anyone but the owner's own tools. */
export function shortOwner(owner: string): string {
  return owner.slice(0, 12);
}

/** The members of a listed paste, all of them always. Only the admin sees anonymous pastes, which have no owner. */
const LISTED: Readonly<Record<string, (paste: ListedPaste) => string | number | boolean | null>> = {
  id: ({ id }) => id,
  size: ({ size }) => size,
  mime_type: ({ mimeType }) => mimeType,
  created_at: ({ createdAt }) => isoSeconds(createdAt),
  expires_at: ({ expiresAt }) => isoSeconds(expiresAt),
  burn_after_read: ({ burnAfterRead }) => burnAfterRead,
  password_protected: ({ hasPassword }) => hasPassword,
  owner: ({ owner }) => (owner === null ? null : shortOwner(owner)),
};

export function presentListItem(paste: ListedPaste): object {
  return Object.fromEntries(Object.entries(LISTED).map(([name, valueOf]) => [name, valueOf(paste)]));
}

/** For shells: a header line and a line per paste, with tabs between values. No value can hold a tab. */
export function listText(pastes: readonly ListedPaste[]): string {
  const lines = pastes.map((paste) => Object.values(LISTED).map((valueOf) => valueOf(paste) ?? '-').join('\t'));
  return [Object.keys(LISTED).join('\t'), ...lines].join('\n');
}

export function presentAuditEntry({ id, time, event, outcome, clientId, clientIp, details }: AuditEntry): object {
  return { id, time: isoSeconds(time), event, outcome, client_id: clientId, client_ip: clientIp, details };
}

/** A URL without anything that ends a single-quoted string in any shell. */
const SAFE_URL = /^https?:\/\/[A-Za-z0-9.:_[\]-]+(?:\/[A-Za-z0-9._~-]+)*$/;

export function readClientScript(): string {
  return readFileSync(new URL('../client/pastec', import.meta.url), 'utf8');
}

/** The script with the server's address in its one place, or unchanged if the address is not safe between quotes. */
export function addressedScript(script: string, serverUrl: string): string {
  if (!SAFE_URL.test(serverUrl)) return script;
  return script.replace("server_default=''", `server_default='${serverUrl}'`);
}

/** For a shell: a publicUrl has nothing in it that means something to one. */
export function clientDownload(publicUrl: string): string {
  return `curl -fsS ${publicUrl}/client -o pastec`;
}

/** The client refuses to register over http unless told to: the certificate would not count there. */
export function registerCommand(publicUrl: string): string {
  return publicUrl.startsWith('https:') ? 'sh pastec register' : 'sh pastec register --allow-http';
}

/** Adds a hint if the error is one of these refusals: on the same line and without quotes, for shells that use sed. */
export function hinting(error: unknown, refusals: readonly RefusalName[], more: string): unknown {
  if (!(error instanceof Refusal && refusals.includes(error.refusal))) return error;
  const hint = [error.fields['hint'], more].filter(Boolean).join('; ');
  return new Refusal(error.refusal, { ...error.fields, hint }, error.terms);
}

/** Also names the command by which the client does the work. */
export function hintingClient(error: unknown, publicUrl: string, command: string): unknown {
  return hinting(error, ['powRequired'], `or let the client do the work: ${clientDownload(publicUrl)} && ${command}`);
}
