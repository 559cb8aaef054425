// Own pastes when the store decides otherwise than what was read a moment before, as it does when requests race. Over
// real sockets: update-paste.test.ts, delete-paste.test.ts and list-pastes.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import type { Count } from '../../src/core/events.ts';
import { type RateStanding, Refusal } from '../../src/core/refusals.ts';
import { createAudit } from '../../src/pastes/identity.ts';
import type { ContentRules } from '../../src/pastes/intake.ts';
import type { Passwords } from '../../src/pastes/passwords.ts';
import { type Amendment, createOwnPastes } from '../../src/pastes/pastes.ts';
import type {
  DeletionOutcome, Paste, PasteChanges, PasteFilter, PasteStore, Store, UpdateOutcome,
} from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { asFound, CREATED_AT, inlinePaste } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const OWNER = 'a'.repeat(40);
const CALLER: Caller = { tier: 'untrusted', fingerprint: OWNER };
const ADMIN: Caller = { tier: 'admin', fingerprint: 'b'.repeat(40) };
const PASTE: Paste = asFound(inlinePaste(Buffer.from('content'), { owner: OWNER }));
const RATE: RateStanding = { limit: 3, remaining: 2, resetAtSeconds: CREATED_AT + 60 };
const EVERYTHING: Omit<PasteFilter, 'owner'> = { typeGlob: null, after: 0, before: Infinity };

const AMENDMENT: Amendment = {
  caller: CALLER,
  source: async () => {},
  declaredBytes: 0,
  isJson: false,
  contentType: undefined,
  password: undefined,
  clientAddress: '192.0.2.1',
  hasContent: false,
  removesPassword: false,
  requestedTtlSeconds: 60,
};

/** Own pastes over a store that does as it is told; content is taken in by `receive`, or not at all. */
function ownPastesOver(pastes: Partial<PasteStore>, settings: Partial<Config> = {}, receive?: ContentRules['receive']) {
  const config = testConfig(settings);
  const clock = movableClock();
  const unused = (): never => assert.fail('not asked for');
  const rules: ContentRules = { requireDeclaredSize: () => {}, receive: receive ?? unused };
  const passwords: Passwords = { requireAcceptable: () => {}, hash: async (password) => `hash of ${password}`, unlock: unused };
  const logged: string[] = [];
  const counted: string[] = [];
  const countCreation = (clientAddress: string, caller: Caller): RateStanding => {
    assert.deepEqual([clientAddress, caller], [AMENDMENT.clientAddress, AMENDMENT.caller]);
    counted.push('creation');
    return RATE;
  };
  return {
    ...createOwnPastes({
      config,
      store: { pastes: { find: async () => PASTE, ...pastes } } as unknown as Store,
      rules,
      passwords,
      rates: { countCreation, countLookup: (...who) => void counted.push(`lookup ${who[0]} ${who[1].tier}`), sweep: unused },
      audit: createAudit({ clock, log: ({ event }) => logged.push(event) }),
      clock,
      count: ((...labels: readonly string[]) => void counted.push(labels.join(' '))) as Count,
    }),
    logged,
    counted,
  };
}

function refused(name: string): (error: unknown) => boolean {
  return (error) => error instanceof Refusal && error.refusal === name;
}

test('update: what the store decides at the end counts, whatever was found at the start', async () => {
  const outcomes = [
    [{ kind: 'notFound' }, 'pasteNotFound'],
    [{ kind: 'notOwner' }, 'permissionDenied'],
    [{ kind: 'burnAfterRead' }, 'burnNotUpdatable'],
    [{ kind: 'duplicate', count: 3, retryAfterSeconds: 5 }, 'duplicateContent'],
    [{ kind: 'storageFull' }, 'storageFull'],
  ] as const satisfies readonly (readonly [UpdateOutcome, string])[];
  for (const [outcome, name] of outcomes) {
    await assert.rejects(ownPastesOver({ update: async () => outcome }).update('id', AMENDMENT), refused(name));
  }
});

test('update: hands over only what is asked for, and the terms of storing', async () => {
  const calls: unknown[] = [];
  const update: PasteStore['update'] = async (...args) => {
    calls.push(args);
    return { kind: 'updated', paste: PASTE };
  };
  const own = ownPastesOver({ update }, { duplicateMax: 2, duplicateWindowSeconds: 7, maxStorageBytes: 9, maxExpirySeconds: 50 });
  assert.deepEqual(await own.update('id', AMENDMENT), { paste: PASTE, rate: null });
  await own.update('id', { ...AMENDMENT, requestedTtlSeconds: undefined, removesPassword: true });
  assert.deepEqual(own.counted, []);
  const withPassword = await own.update('id', { ...AMENDMENT, requestedTtlSeconds: undefined, password: 'p' });
  assert.deepEqual([withPassword.rate, own.counted], [RATE, ['creation']], 'hashing a password counts');
  const terms = { duplicates: { max: 2, windowSeconds: 7 }, maxStoredBytes: 9, nowSeconds: CREATED_AT };
  assert.deepEqual(calls, [
    ['id', OWNER, { passwordHash: undefined, expiresAt: CREATED_AT + 50 }, terms],
    ['id', OWNER, { passwordHash: null, expiresAt: undefined }, terms],
    ['id', OWNER, { passwordHash: 'hash of p', expiresAt: undefined }, terms],
  ]);
});

test('update: content counts as a creation, and may have the room of what it replaces', async () => {
  const received = {
    bytes: 9, isText: false, entropyBits: undefined, sha256: Buffer.alloc(32), content: Buffer.from('replacing'),
    contentId: null,
  };
  const written: PasteChanges[] = [];
  const update: PasteStore['update'] = async (_id, _owner, changes) => {
    written.push(changes);
    return { kind: 'updated', paste: PASTE };
  };
  const { sha256, content, contentId } = received;
  for (const [isJson, mimeType] of [[false, 'image/png'], [true, 'application/octet-stream']] as const) {
    const own = ownPastesOver({ update }, { duplicateMax: 1 }, async (offer, keep) => {
      assert.equal(offer.replacedBytes, PASTE.size);
      return keep(received);
    });
    const amendment = { ...AMENDMENT, hasContent: true, isJson, contentType: 'image/png', password: 'p' };
    const updated = await own.update('id', { ...amendment, requestedTtlSeconds: undefined });
    assert.deepEqual(updated, { paste: PASTE, rate: RATE });
    assert.deepEqual(own.counted, ['creation', 'duplicateChecks accepted']);
    const changed = { mimeType, size: 9, sha256, contentId, content };
    assert.deepEqual(written.pop(), { passwordHash: 'hash of p', expiresAt: undefined, content: changed });
  }
  const refusing: PasteStore['update'] = async () => ({ kind: 'duplicate', count: 3, retryAfterSeconds: 5 });
  const again = ownPastesOver({ update: refusing }, { duplicateMax: 1 }, async (_, keep) => keep(received));
  await assert.rejects(again.update('id', { ...AMENDMENT, hasContent: true }), {
    refusal: 'duplicateContent', terms: { retryAfterSeconds: 5, rate: RATE },
  });
  assert.deepEqual(again.counted, ['creation', 'duplicateChecks refused']);
});

test('update: refuses what can be refused before it asks the store to write', async () => {
  const counted: string[] = [];
  const amend = async (paste: Paste | undefined, given: Partial<Amendment>): Promise<unknown> => {
    const own = ownPastesOver({ find: async () => paste });
    return own.update('id', { ...AMENDMENT, ...given }).finally(() => counted.push(...own.counted));
  };
  await assert.rejects(amend(PASTE, { caller: ANONYMOUS }), refused('identityRequired'));
  await assert.rejects(amend(PASTE, { requestedTtlSeconds: undefined }), refused('nothingToUpdate'));
  await assert.rejects(amend(PASTE, { password: 'p', removesPassword: true }), refused('requestMalformed'));
  await assert.rejects(amend(undefined, {}), refused('pasteNotFound'));
  await assert.rejects(amend({ ...PASTE, owner: null }, {}), refused('permissionDenied'));
  await assert.rejects(amend(PASTE, { caller: ADMIN }), refused('permissionDenied'));
  await assert.rejects(amend({ ...PASTE, burnAfterRead: true }, {}), refused('burnNotUpdatable'));
  assert.deepEqual(counted, ['untrusted', 'untrusted', 'admin'].map((tier) => `lookup 192.0.2.1 ${tier}`), 'what tells of another\'s');
});

test('remove: only the admin hands an audit entry over, and it is announced when it was written', async () => {
  const calls: unknown[] = [];
  const removing = (outcome: DeletionOutcome): PasteStore['remove'] => async (...args) => {
    calls.push(args);
    return outcome;
  };
  const own = ownPastesOver({ remove: removing({ kind: 'deleted', audited: null }) });
  await own.remove(PASTE.id, CALLER, '192.0.2.1');
  assert.deepEqual(calls, [[PASTE.id, OWNER, CREATED_AT, null]]);
  assert.deepEqual(own.logged, []);

  const entry = {
    time: CREATED_AT, event: 'paste_deleted', outcome: 'success', clientId: ADMIN.fingerprint, clientIp: '192.0.2.1',
    details: { paste: PASTE.id.slice(0, 8) },
  } as const;
  const admins = ownPastesOver({ remove: removing({ kind: 'deleted', audited: entry }) });
  await admins.remove(PASTE.id, ADMIN, '192.0.2.1');
  assert.deepEqual(calls.at(-1), [PASTE.id, ADMIN.fingerprint, CREATED_AT, entry]);
  assert.deepEqual(admins.logged, ['paste_deleted']);

  for (const [kind, name] of [['notFound', 'pasteNotFound'], ['notOwner', 'permissionDenied']] as const) {
    const failing = ownPastesOver({ remove: removing({ kind }) });
    await assert.rejects(failing.remove(PASTE.id, ADMIN, '192.0.2.1'), refused(name));
    assert.deepEqual(failing.logged, []);
  }
  await assert.rejects(own.remove(PASTE.id, ANONYMOUS, '192.0.2.1'), refused('identityRequired'));
  assert.deepEqual(own.counted, ['pastesDeleted deleted']);
});

test('remove: what is refused counts as a lookup and is not brought to the writer', async () => {
  for (const [found, caller, name] of [
    [undefined, CALLER, 'pasteNotFound'], [undefined, ADMIN, 'pasteNotFound'],
    [{ ...PASTE, owner: null }, CALLER, 'permissionDenied'],
  ] as const) {
    const own = ownPastesOver({ find: async () => found, remove: () => assert.fail('nothing to remove') });
    await assert.rejects(own.remove(PASTE.id, caller, '192.0.2.1'), refused(name));
    assert.deepEqual(own.counted, [`lookup 192.0.2.1 ${caller.tier}`]);
  }
});

test('list: one\'s own, or everyone\'s for the admin', async () => {
  const filters: unknown[] = [];
  const listed = { ...PASTE, hasPassword: false };
  const listing: PasteStore['list'] = async (filter, page, nowSeconds) => {
    filters.push([filter.owner, page, nowSeconds]);
    return { items: [listed], total: 1 };
  };
  const { list: listWanted, counted } = ownPastesOver({ list: listing });
  const page = { limit: 1, offset: 2 };
  const list = (caller: Caller, all: boolean) =>
    listWanted({ caller, clientAddress: '192.0.2.1', filter: EVERYTHING, page, all });
  for (const [caller, all] of [[CALLER, false], [ADMIN, false], [ADMIN, true]] as const) {
    assert.deepEqual(await list(caller, all), { items: [listed], total: 1 });
  }
  assert.deepEqual(filters, [OWNER, ADMIN.fingerprint, null].map((owner) => [owner, page, CREATED_AT]));
  for (const tier of ['untrusted', 'trusted'] as const) {
    await assert.rejects(list({ tier, fingerprint: OWNER }, true), refused('adminRequired'));
  }
  for (const all of [true, false]) await assert.rejects(list(ANONYMOUS, all), refused('identityRequired'));
  assert.deepEqual(counted, ['untrusted', 'admin', 'admin'].map((tier) => `lookup 192.0.2.1 ${tier}`));
});
