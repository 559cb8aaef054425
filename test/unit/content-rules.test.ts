// pastes/intake.ts on a storage that says how much room there is. The checks as a client meets them, and their
// order: test/api/content-checks.test.ts, storage-quota.test.ts and check-order.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ANONYMOUS, type Caller } from '../../src/core/callers.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { createContentRules, type Offer } from '../../src/pastes/intake.ts';
import type { Passwords } from '../../src/pastes/passwords.ts';
import type { Store } from '../../src/store/store.ts';
import { testConfig } from '../support/test-config.ts';

const CONTENT = Buffer.from('ten bytes!');
const TOO_LONG = 'too long';
const UNTRUSTED: Caller = { tier: 'untrusted', fingerprint: 'a'.repeat(40) };
const TRUSTED: Caller = { tier: 'trusted', fingerprint: 'b'.repeat(40) };

interface Circumstances {
  /** For so many bytes the disk has room. */
  readonly roomBytes?: number;
  readonly storedBytes?: number;
  readonly databaseBytes?: number;
  readonly config?: Partial<Config>;
  readonly offer?: Partial<Offer>;
}

const PASSWORDS = {
  requireAcceptable: (password) => {
    if (password === TOO_LONG) throw new Refusal('passwordTooLong');
  },
} as Pick<Passwords, 'requireAcceptable'> as Passwords;

/** What comes of an offer, and for how many bytes the disk was asked. */
async function offered(options: Circumstances) {
  const { roomBytes = Infinity, storedBytes = 0, databaseBytes = 0 } = options;
  const askedBytes: number[] = [];
  const store = {
    hasRoomFor: (bytes: number) => {
      askedBytes.push(bytes);
      return bytes <= roomBytes;
    },
    pastes: { usage: async () => ({ bytes: storedBytes, databaseBytes }) },
  } as unknown as Store;
  const config = testConfig(options.config ?? {});
  const rules = createContentRules({ config, store, passwords: PASSWORDS, newContentId: () => 'content' });
  const offer: Offer = {
    caller: ANONYMOUS,
    source: async (sink) => void (await sink(CONTENT)),
    isJson: false,
    contentType: undefined,
    declaredBytes: CONTENT.length,
    password: undefined,
    ...options.offer,
  };
  let fields: Refusal['fields'] = {};
  const outcome = await rules.receive(offer, async ({ bytes }) => bytes).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
    fields = error.fields;
    return error.refusal;
  });
  return { outcome, askedBytes, fields };
}

/** What comes of that content, with the fields of its refusal. */
async function judged(content: Uint8Array, config: Partial<Config>, offer: Partial<Offer> = {}): Promise<unknown> {
  const source: Offer['source'] = async (sink) => void (await sink(content));
  const { outcome, fields } = await offered({ config, offer: { source, declaredBytes: undefined, ...offer } });
  return typeof outcome === 'number' ? outcome : { refusal: outcome, ...fields };
}

test('receive: a disk without room for what is declared is told before any of it is taken', async () => {
  assert.deepEqual(await offered({ roomBytes: 10 }), { outcome: 10, askedBytes: [10], fields: {} });
  assert.deepEqual(await offered({ roomBytes: 9 }), { outcome: 'storageFull', askedBytes: [10], fields: {} });
});

test('receive: what is not declared, and the length of a JSON document, ask for nothing in advance', async () => {
  const undeclared = await offered({ offer: { declaredBytes: undefined } });
  assert.deepEqual(undeclared, { outcome: 10, askedBytes: [0], fields: {} });
  const source: Offer['source'] = async (sink) => void (await sink(Buffer.from('{"content":"abc"}')));
  assert.deepEqual(await offered({ offer: { isJson: true, source } }), { outcome: 3, askedBytes: [0], fields: {} });
});

test('receive: the quota counts what is stored without what is replaced, and what is declared', async () => {
  const within = async (storedBytes: number, replacedBytes?: number): Promise<unknown> => {
    const offer = replacedBytes === undefined ? {} : { replacedBytes };
    return (await offered({ storedBytes, config: { maxStorageBytes: 100 }, offer })).outcome;
  };
  assert.deepEqual([await within(89, 0), await within(90, 0), await within(91, 0)], [10, 10, 'storageFull']);
  assert.deepEqual([await within(90), await within(91)], [10, 'storageFull']);
  assert.deepEqual([await within(95, 5), await within(96, 5)], [10, 'storageFull']);
  assert.equal((await offered({ storedBytes: 1e9, config: { maxStorageBytes: 0 } })).outcome, 10);
});

test('receive: the quota counts what the database takes, and room beside what is replaced unless both are in a row', async () => {
  const within = async (databaseBytes: number, declaredBytes: number, replacedBytes = 0): Promise<unknown> => {
    const config = { maxStorageBytes: 1_000_000 };
    return (await offered({ databaseBytes, config, offer: { declaredBytes, replacedBytes } })).outcome;
  };
  assert.deepEqual([await within(999_990, 10), await within(999_991, 10)], [10, 'storageFull']);
  assert.deepEqual([await within(1_000_000, 10, 10), await within(1_000_000, 10, 9)], [10, 'storageFull']);
  assert.deepEqual([await within(1_000_000, 65_536, 70_000), await within(1_000_000, 65_537, 70_000)], [10, 'storageFull']);
  assert.equal(await within(934_463, 65_537, 70_000), 10);
});

test('requireDeclaredSize: by the tier\'s largest, a raw body alone, and nothing where nothing is declared', () => {
  const declaring = (declaredBytes: number | undefined, changes: Partial<Offer> = {}, maxAnonBytes = 10): void => {
    const config = testConfig({ maxAnonBytes, maxAuthBytes: 20 });
    const rules = createContentRules({ config, store: {} as Store, passwords: PASSWORDS, newContentId: () => 'new' });
    const raw = { isJson: false, source: async () => {}, contentType: undefined, password: undefined };
    rules.requireDeclaredSize({ caller: ANONYMOUS, ...raw, declaredBytes, ...changes });
  };
  const admin: Caller = { ...TRUSTED, tier: 'admin' };
  for (const [caller, maxSize] of [[ANONYMOUS, 10], [UNTRUSTED, 10], [TRUSTED, 20], [admin, 20]] as const) {
    declaring(maxSize - 1, { caller });
    declaring(maxSize, { caller });
    const fields = { size: maxSize + 1, maxSize, authenticated: caller !== ANONYMOUS };
    assert.throws(() => declaring(maxSize + 1, { caller }), { refusal: 'pasteTooLarge', fields });
  }
  declaring(1000, { isJson: true });
  declaring(undefined, {}, 0);
});

test('receive: what arrives is held to the tier\'s largest; a password that is too long is told before', async () => {
  const config = { maxAnonBytes: 9, maxAuthBytes: 10 };
  const tooLarge = { refusal: 'pasteTooLarge', size: 10, maxSize: 9, authenticated: false };
  assert.deepEqual(await judged(CONTENT, config), tooLarge);
  assert.deepEqual(await judged(CONTENT, config, { password: TOO_LONG }), { refusal: 'passwordTooLong' });
  assert.equal(await judged(CONTENT, config, { caller: TRUSTED }), 10);
  assert.deepEqual(await judged(CONTENT, {}, { password: TOO_LONG }), { refusal: 'passwordTooLong' });
});

test('receive: no content is refused before its password, and too little of it after', async () => {
  const config = { minBytes: 10 };
  const offer = { password: TOO_LONG };
  const short = CONTENT.subarray(0, 9);
  assert.deepEqual(await judged(CONTENT.subarray(0, 0), config, offer), { refusal: 'noContent' });
  assert.equal(await judged(CONTENT.subarray(0, 1), {}), 1);
  assert.deepEqual(await judged(short, config, offer), { refusal: 'passwordTooLong' });
  assert.deepEqual(await judged(short, config), { refusal: 'pasteTooSmall', size: 9, minSize: 10 });
  assert.equal(await judged(CONTENT, config), 10);
});

test('receive: text is refused only where binary content is required', async () => {
  const binary = Uint8Array.of(0xff, 0xfe);
  const refusal = { refusal: 'textRefused', hint: 'compress or encrypt the content first', detected: 'text/plain' };
  assert.deepEqual(await judged(CONTENT, { requireBinary: true }), refusal);
  assert.deepEqual([await judged(binary, { requireBinary: true }), await judged(CONTENT, {})], [2, 10]);
});

test('receive: entropy is asked for from a size on, and told to three places, rounded down', async () => {
  // A byte in four of one kind and three in four of another: 0.25 * 2 + 0.75 * log2(4 / 3), 0.8112... bits a byte.
  const content = Buffer.from('abbb');
  const refusal = {
    refusal: 'entropyTooLow', hint: 'compress or encrypt the content first', entropy: 0.811, minEntropy: 0.812,
  };
  assert.deepEqual(await judged(content, { minEntropyBits: 0.812, minEntropyBytes: 4 }), refusal);
  assert.deepEqual(await judged(content, { minEntropyBits: 0.812, minEntropyBytes: 3 }), refusal);
  assert.equal(await judged(content, { minEntropyBits: 0.812, minEntropyBytes: 5 }), 4);
  assert.equal(await judged(content, { minEntropyBits: 0.811, minEntropyBytes: 4 }), 4);
  assert.equal(await judged(content, { minEntropyBits: 0, minEntropyBytes: 0 }), 4);
  assert.equal(await judged(Buffer.from('ab'), { minEntropyBits: 1, minEntropyBytes: 0 }), 2);
});
