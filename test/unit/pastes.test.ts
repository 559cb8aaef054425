// pastes/pastes.ts: what is handed over to be stored, and where content goes between being found and being held. Over
// real sockets: test/api/create-paste.test.ts, and read-paste.test.ts with burning and racing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import type { Count } from '../../src/core/events.ts';
import { type RateStanding, Refusal } from '../../src/core/refusals.ts';
import type { Passwords } from '../../src/pastes/passwords.ts';
import { createPastes, releaseContent, type Submission } from '../../src/pastes/pastes.ts';
import type {
  ContentReader, CreationOutcome, NewPaste, PasteWithContent, Store,
} from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';
import { CREATED_AT } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const PASTE = { id: 'a'.repeat(26), passwordHash: null, burnAfterRead: false, content: null, contentId: 'content' } as
  unknown as PasteWithContent;

/** Pastes over a storage that finds `paste` always and has its content from the given attempt on. */
function pastesOver(paste: PasteWithContent, options: { heldFrom: number; burn?: () => Promise<boolean> }) {
  const seen = { finds: 0, opens: 0, touches: 0, closes: 0 };
  const counted: string[] = [];
  const reader = { close: () => void (seen.closes += 1) } as ContentReader;
  const store = {
    pastes: {
      findWithContent: async () => {
        seen.finds += 1;
        return paste;
      },
      touch: () => void (seen.touches += 1),
      burn: options.burn,
    },
    contents: {
      open: () => {
        seen.opens += 1;
        return seen.opens >= options.heldFrom ? reader : undefined;
      },
    },
  } as unknown as Store;
  const passwords = { unlock: async (find: () => Promise<unknown>) => find() } as unknown as Passwords;
  const absent = undefined as never;
  const pastes = createPastes({
    config: testConfig(),
    store,
    passwords,
    clock: movableClock(),
    count: ((...labels: readonly string[]) => void counted.push(labels.join(' '))) as Count,
    rules: absent, challenges: absent, rates: absent, antiflood: absent, random: absent,
  });
  return { open: async () => pastes.open({ id: paste.id, password: undefined, clientAddress: '192.0.2.1' }), seen, counted, reader };
}

const notFound = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'pasteNotFound';

test('open: content that went meanwhile is looked up anew, three times in all', async () => {
  for (const heldFrom of [1, 2, 3]) {
    const { open, seen, counted, reader } = pastesOver(PASTE, { heldFrom });
    assert.equal((await open()).content, reader);
    assert.deepEqual(seen, { finds: heldFrom, opens: heldFrom, touches: 1, closes: 0 });
    assert.deepEqual(counted, ['pastesAccessed']);
  }
  const gone = pastesOver(PASTE, { heldFrom: 4 });
  await assert.rejects(gone.open(), notFound);
  assert.deepEqual(gone.seen, { finds: 3, opens: 3, touches: 0, closes: 0 });
  assert.deepEqual(gone.counted, []);
});

test('open: a paste with no content of either kind is not there', async () => {
  const { open, seen } = pastesOver({ ...PASTE, contentId: null }, { heldFrom: 1 });
  await assert.rejects(open(), notFound);
  assert.equal(seen.opens, 0);
});

test('open: content that is held for a burn is let go of when the burn is not ours, and when it fails', async () => {
  const burning = { ...PASTE, burnAfterRead: true };
  const ours = pastesOver(burning, { heldFrom: 1, burn: async () => true });
  assert.equal((await ours.open()).content, ours.reader);
  assert.deepEqual([ours.seen.closes, ours.seen.touches, ours.counted], [0, 0, ['pastesAccessed', 'pastesDeleted burned']]);
  const late = pastesOver(burning, { heldFrom: 1, burn: async () => false });
  await assert.rejects(late.open(), notFound);
  assert.deepEqual([late.seen.closes, late.counted], [1, []]);
  const failing = pastesOver(burning, { heldFrom: 1, burn: () => Promise.reject(new Error('disk')) });
  await assert.rejects(failing.open(), /disk/);
  assert.deepEqual([failing.seen.closes, failing.counted], [1, []]);
});

test('open: small content needs no holding, and is let go of without closing anything', async () => {
  const content = Buffer.from('content');
  const small = pastesOver({ ...PASTE, content }, { heldFrom: 1 });
  assert.equal((await small.open()).content, content);
  assert.deepEqual(small.seen, { finds: 1, opens: 0, touches: 1, closes: 0 });
  const burning = { ...PASTE, content, contentId: null, burnAfterRead: true };
  await assert.rejects(pastesOver(burning, { heldFrom: 1, burn: async () => false }).open(), notFound);
  releaseContent(content);
});

const CALLER: Caller = { tier: 'untrusted', fingerprint: 'b'.repeat(40) };
const RATE: RateStanding = { limit: 3, remaining: 2, resetAtSeconds: CREATED_AT + 60 };
const SPENT = { nonce: '0'.repeat(32), expiresAt: CREATED_AT + 5, spendableUntil: CREATED_AT + 9 };
const RECEIVED = {
  bytes: 7, entropyBits: undefined, sha256: Buffer.alloc(32), content: Buffer.from('content'), contentId: null,
};

const SUBMISSION: Submission = {
  caller: CALLER,
  source: async () => {},
  declaredBytes: 7,
  isJson: false,
  contentType: 'image/png',
  password: undefined,
  clientAddress: '192.0.2.1',
  work: { token: 'token', solution: 'solution' },
  burnAfterRead: true,
  requestedTtlSeconds: undefined,
};

/** Pastes over a storage that answers a creation as told; `steps` has what was asked for, in order. */
function creatingPastes(outcome: CreationOutcome, settings: Partial<Config> = {}, isText = false) {
  const steps: unknown[] = [];
  const kept: unknown[] = [];
  const create = async (paste: NewPaste, terms: unknown): Promise<CreationOutcome> => {
    kept.push(paste, terms);
    return outcome;
  };
  const received = { ...RECEIVED, isText };
  const absent = undefined as never;
  const pastes = createPastes({
    config: testConfig({ expiryUntrustedSeconds: 100, expiryAnonSeconds: 50, maxExpirySeconds: 1000, ...settings }),
    store: { pastes: { create } } as unknown as Store,
    rules: {
      requireDeclaredSize: () => void steps.push('size'),
      receive: async (_, keep) => {
        steps.push('content');
        return keep(received);
      },
    },
    passwords: { requireAcceptable: absent, hash: async (password) => `hash of ${password}`, unlock: absent },
    challenges: {
      issue: absent, difficultyBits: absent, pasteBaseBits: 0, replaceKey: absent,
      require: async (purpose, work) => {
        steps.push([purpose, work]);
        return SPENT;
      },
      notSpent: ({ kind }, hint) => new Refusal(kind === 'challengeUsed' ? 'powAlreadyUsed' : 'powExpired', { hint }),
    },
    rates: {
      countLookup: absent, sweep: absent,
      countCreation: (...who) => {
        steps.push(who);
        return RATE;
      },
    },
    antiflood: { difficultyBits: absent, record: (nowMs, token) => void steps.push([nowMs, token]) },
    clock: movableClock(),
    random: (size) => new Uint8Array(size),
    count: ((...labels: readonly string[]) => void steps.push(labels.join(' '))) as Count,
  });
  return { create: (changes: Partial<Submission> = {}) => pastes.create({ ...SUBMISSION, ...changes }), steps, kept };
}

test('create: the decided order; the paste and its terms as the store gets them', async () => {
  const terms = { duplicateMax: 2, duplicateWindowSeconds: 7, maxStorageBytes: 9 };
  const { create, steps, kept } = creatingPastes({ kind: 'stored' }, terms);
  const paste = {
    id: 'a'.repeat(26),
    owner: CALLER.fingerprint,
    mimeType: 'image/png',
    size: 7,
    sha256: RECEIVED.sha256,
    createdAt: CREATED_AT,
    expiresAt: CREATED_AT + 100,
    burnAfterRead: true,
    passwordHash: null,
    contentId: null,
    content: RECEIVED.content,
  };
  assert.deepEqual(await create(), { paste, rate: RATE });
  assert.deepEqual(kept, [paste, { duplicates: { max: 2, windowSeconds: 7 }, maxStoredBytes: 9, spend: SPENT }]);
  assert.deepEqual(steps, [
    'size', ['paste', SUBMISSION.work], [SUBMISSION.clientAddress, CALLER], [1000, SPENT], 'content',
    'duplicateChecks accepted', 'pastesCreated',
  ]);
});

test('create: without the limits none are among the terms, and nothing is counted for them', async () => {
  const { create, steps, kept } = creatingPastes({ kind: 'stored' }, { duplicateMax: 0, maxStorageBytes: 0 });
  await create({ caller: ANONYMOUS, password: 'p', burnAfterRead: false });
  const { owner, expiresAt, passwordHash, burnAfterRead } = kept[0] as NewPaste;
  assert.deepEqual([owner, expiresAt, passwordHash, burnAfterRead], [null, CREATED_AT + 50, 'hash of p', false]);
  assert.deepEqual(kept[1], { duplicates: null, maxStoredBytes: null, spend: SPENT });
  assert.deepEqual(steps.slice(-2), ['content', 'pastesCreated']);
});

test('create: the media type of JSON is not that of what it holds', async () => {
  for (const [isText, expected] of [[true, 'text/plain'], [false, 'application/octet-stream']] as const) {
    const { create, kept } = creatingPastes({ kind: 'stored' }, {}, isText);
    await create({ isJson: true });
    assert.equal((kept[0] as NewPaste).mimeType, expected);
  }
});

test('create: what the store decides at the end is refused as what it is, and counts no paste', async () => {
  const full = creatingPastes({ kind: 'storageFull' });
  await assert.rejects(full.create(), { refusal: 'storageFull', terms: {} });
  const used = creatingPastes({ kind: 'challengeUsed' });
  await assert.rejects(used.create(), { refusal: 'powAlreadyUsed', fields: { hint: 'paste' } });
  const late = creatingPastes({ kind: 'challengeExpired' });
  await assert.rejects(late.create(), { refusal: 'powExpired', fields: { hint: 'paste' } });
  const limits = { duplicateMax: 3, duplicateWindowSeconds: 7 };
  const again = creatingPastes({ kind: 'duplicate', count: 3, retryAfterSeconds: 5 }, limits);
  await assert.rejects(again.create(), {
    refusal: 'duplicateContent', fields: { count: 3, windowSeconds: 7 }, terms: { retryAfterSeconds: 5, rate: RATE },
  });
  assert.deepEqual([full, used, late, again].map(({ steps }) => steps.slice(5)), [[], [], [], ['duplicateChecks refused']]);
});
