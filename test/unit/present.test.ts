// What the API says about pastes and audit entries: members, representations, and that lists in text can be taken
// apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listText, presentAuditEntry, presentCreated, presentListItem, presentMetadata } from '../../src/http/present.ts';
import type { ListedPaste, Paste } from '../../src/store/store.ts';
import { CREATED_AT } from '../support/store.ts';

const PASTE: Paste = {
  id: 'a'.repeat(26),
  owner: 'b'.repeat(40),
  mimeType: 'image/png',
  size: 7,
  sha256: '0'.repeat(64),
  createdAt: CREATED_AT,
  expiresAt: CREATED_AT + 60,
  burnAfterRead: true,
  passwordHash: 'a hash that nobody may see',
  contentId: 'c'.repeat(26),
};
const PLAIN: Paste = { ...PASTE, owner: null, burnAfterRead: false, passwordHash: null };
const LISTED: ListedPaste = { ...PASTE, hasPassword: true };
const LISTED_PLAIN: ListedPaste = { ...PLAIN, hasPassword: false };
const PATHS = { id: PASTE.id, raw: `/${PASTE.id}/raw` };

test('presentCreated: optional members only when they say something, the owner shortened', () => {
  const common = { ...PATHS, url: `/${PASTE.id}`, mime_type: 'image/png', created_at: CREATED_AT };
  assert.deepEqual(presentCreated(PLAIN, false), common);
  assert.deepEqual(presentCreated(PLAIN, true), { ...common, expires_at: CREATED_AT + 60 });
  const special = { owner: 'b'.repeat(12), burn_after_read: true, password_protected: true };
  assert.deepEqual(presentCreated(PASTE, false), { ...common, ...special });
});

test('presentMetadata: times in Unix seconds, no owner, the password only as a fact', () => {
  const common = { ...PATHS, mime_type: 'image/png', size: 7, created_at: CREATED_AT, expires_at: CREATED_AT + 60 };
  assert.deepEqual(presentMetadata(PLAIN), common);
  assert.deepEqual(presentMetadata(PASTE), { ...common, password_protected: true });
});

test('presentListItem: every member always, times in ISO 8601', () => {
  const common = {
    id: PASTE.id, size: 7, mime_type: 'image/png', created_at: '2026-01-31T12:00:00Z', expires_at: '2026-01-31T12:01:00Z',
  };
  const special = { burn_after_read: true, password_protected: true, owner: 'b'.repeat(12) };
  assert.deepEqual(presentListItem(LISTED), { ...common, ...special });
  const plain = { burn_after_read: false, password_protected: false, owner: null };
  assert.deepEqual(presentListItem(LISTED_PLAIN), { ...common, ...plain });
});

test('listText: a line of names, then one a paste, with a dash for no owner', () => {
  const names = 'id\tsize\tmime_type\tcreated_at\texpires_at\tburn_after_read\tpassword_protected\towner';
  assert.equal(listText([]), names);
  const times = '2026-01-31T12:00:00Z\t2026-01-31T12:01:00Z';
  assert.equal(listText([LISTED, LISTED_PLAIN]), [
    names,
    `${PASTE.id}\t7\timage/png\t${times}\ttrue\ttrue\t${'b'.repeat(12)}`,
    `${PASTE.id}\t7\timage/png\t${times}\tfalse\tfalse\t-`,
  ].join('\n'));
});

test('presentAuditEntry: as decided, details as they were recorded', () => {
  const details = { fingerprint: 'b'.repeat(40), expires_at: 5, owner: null, flag: true };
  const event = { event: 'cert_issued', outcome: 'success', details } as const;
  assert.deepEqual(presentAuditEntry({ id: 3, time: CREATED_AT, ...event, clientId: null, clientIp: '::1' }), {
    id: 3, time: '2026-01-31T12:00:00Z', ...event, client_id: null, client_ip: '::1',
  });
});
