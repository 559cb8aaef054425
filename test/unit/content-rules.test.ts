// service/content-rules.ts on a storage that says how much room there is. The checks as a client meets them, and their
// order: test/api/content-checks.test.ts, storage-quota.test.ts and check-order.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { ANONYMOUS } from '../../src/core/tiers.ts';
import { createContentRules, type Offer } from '../../src/service/content-rules.ts';
import type { Passwords } from '../../src/service/passwords.ts';
import type { Store } from '../../src/store/store.ts';
import { testConfig } from '../support/test-config.ts';

const CONTENT = Buffer.from('ten bytes!');

interface Circumstances {
  /** For so many bytes the disk has room. */
  readonly roomBytes?: number;
  readonly storedBytes?: number;
  readonly config?: Partial<Config>;
  readonly offer?: Partial<Offer>;
}

/** What comes of an offer, and for how many bytes the disk was asked. */
async function offered(options: Circumstances) {
  const { roomBytes = Infinity, storedBytes = 0 } = options;
  const askedBytes: number[] = [];
  const store = {
    hasRoomFor: (bytes: number) => {
      askedBytes.push(bytes);
      return bytes <= roomBytes;
    },
    pastes: { usage: async () => ({ bytes: storedBytes }) },
  } as unknown as Store;
  const passwords = { requireAcceptable: () => undefined } as unknown as Passwords;
  const config = testConfig(options.config ?? {});
  const rules = createContentRules({ config, store, passwords, newContentId: () => 'content' });
  const offer: Offer = {
    caller: ANONYMOUS,
    source: async (sink) => void (await sink(CONTENT)),
    isJson: false,
    contentType: undefined,
    declaredBytes: CONTENT.length,
    password: undefined,
    ...options.offer,
  };
  const outcome = await rules.receive(offer, async ({ bytes }) => bytes).catch((error: unknown) => {
    if (error instanceof Refusal) return error.refusal;
    throw error;
  });
  return { outcome, askedBytes };
}

test('receive: a disk without room for what is declared is told before any of it is taken', async () => {
  assert.deepEqual(await offered({ roomBytes: 10 }), { outcome: 10, askedBytes: [10] });
  assert.deepEqual(await offered({ roomBytes: 9 }), { outcome: 'storageFull', askedBytes: [10] });
});

test('receive: what is not declared, and the length of a JSON document, ask for nothing in advance', async () => {
  assert.deepEqual(await offered({ offer: { declaredBytes: undefined } }), { outcome: 10, askedBytes: [0] });
  const source: Offer['source'] = async (sink) => void (await sink(Buffer.from('{"content":"abc"}')));
  assert.deepEqual(await offered({ offer: { isJson: true, source } }), { outcome: 3, askedBytes: [0] });
});

test('receive: the quota counts what is stored without what is replaced, and what is declared', async () => {
  const within = async (storedBytes: number, replacedBytes: number): Promise<unknown> =>
    (await offered({ storedBytes, config: { maxStorageBytes: 100 }, offer: { replacedBytes } })).outcome;
  assert.deepEqual([await within(89, 0), await within(90, 0), await within(91, 0)], [10, 10, 'storageFull']);
  assert.deepEqual([await within(95, 5), await within(96, 5)], [10, 'storageFull']);
  assert.equal((await offered({ storedBytes: 1e9, config: { maxStorageBytes: 0 } })).outcome, 10);
});
