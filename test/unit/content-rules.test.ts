// How much room is asked for before content is taken in, on a storage that says how much there is. Everything else
// that content is checked for: test/api/content-checks.test.ts, storage-quota.test.ts and check-order.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ANONYMOUS } from '../../src/core/callers.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { Intake, type Offer } from '../../src/pastes/intake.ts';
import type { MoreContent } from '../../src/store/store.ts';
import type { Store } from '../../src/store/open.ts';
import { testConfig } from '../support/test-config.ts';

const CONTENT = Buffer.from('ten bytes!');

interface Circumstances {
  /** How many bytes the disk has room for. */
  readonly roomBytes?: number;
  readonly databaseBytes?: number;
  readonly config?: Partial<Config>;
  readonly replacedBytes?: number;
  readonly offer?: Partial<Offer>;
}

/** What comes of an offer, and the numbers of bytes that the disk was asked to have room for. */
async function offered(options: Circumstances) {
  const { roomBytes = Infinity, databaseBytes = 0 } = options;
  const askedBytes: number[] = [];
  const store = {
    hasRoomFor: (bytes: number) => {
      askedBytes.push(bytes);
      return bytes <= roomBytes;
    },
    read: {
      isFull: async ({ maxStoredBytes, contentBytes, unwrittenBytes }: MoreContent) => (
        contentBytes > maxStoredBytes || (unwrittenBytes > 0 && databaseBytes + unwrittenBytes > maxStoredBytes)
      ),
    },
  } as unknown as Store;
  const config = testConfig(options.config ?? {});
  const { replacedBytes = 0 } = options;
  const offer: Offer = {
    caller: ANONYMOUS,
    callerNow: () => ANONYMOUS,
    source: async (sink) => void (await sink(CONTENT)),
    isJson: false,
    contentType: undefined,
    declaredBytes: CONTENT.length,
    password: undefined,
    clientAddress: '192.0.2.1',
    requestedTtlSeconds: undefined,
    ...options.offer,
  };
  const intake = new Intake({ config, store, random: () => assert.fail('no chunk') }, offer);
  const outcome = await intake.receive(replacedBytes).then(({ size }) => size, (error: unknown) => {
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
  const undeclared = await offered({ offer: { declaredBytes: undefined } });
  assert.deepEqual(undeclared, { outcome: 10, askedBytes: [0] });
  const source: Offer['source'] = async (sink) => void (await sink(Buffer.from('{"content":"abc"}')));
  assert.deepEqual(await offered({ offer: { isJson: true, source } }), { outcome: 3, askedBytes: [0] });
});

test('receive: the quota counts what the database takes, and room beside what is replaced unless both are in a row', async () => {
  const within = async (databaseBytes: number, declaredBytes: number, replacedBytes = 0): Promise<unknown> => {
    const config = { maxStorageBytes: 1_000_000 };
    return (await offered({ databaseBytes, config, offer: { declaredBytes }, replacedBytes })).outcome;
  };
  assert.deepEqual([await within(999_990, 10), await within(999_991, 10)], [10, 'storageFull']);
  assert.deepEqual([await within(1_000_000, 10, 10), await within(1_000_000, 10, 9)], [10, 'storageFull']);
  assert.deepEqual([await within(1_000_000, 65_536, 70_000), await within(1_000_000, 65_537, 70_000)], [10, 'storageFull']);
  assert.equal(await within(934_463, 65_537, 70_000), 10);
});
