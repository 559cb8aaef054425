// What happens when other requests remove or burn content after it was found and before it is held. Over real sockets:
// test/api/read-paste.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompactBytes } from '../../src/core/content.ts';
import type { Count } from '../../src/core/events.ts';
import { Refusal } from '../../src/core/refusals.ts';
import type { Passwords } from '../../src/pastes/admission.ts';
import { openPaste } from '../../src/pastes/pastes.ts';
import type { ContentReader } from '../../src/store/content.ts';
import type { Store } from '../../src/store/open.ts';
import type { PasteWithContent } from '../../src/store/store.ts';
import { movableClock } from '../support/clock.ts';

const PASTE = { id: 'a'.repeat(26), passwordHash: null, burnAfterRead: false, content: null, contentId: 'content' } as
  unknown as PasteWithContent;

/** Pastes over a storage that always finds `paste`, and has its content from attempt `heldFrom` on. */
function pastesOver(
  paste: PasteWithContent,
  options: { heldFrom: number; burn?: () => Promise<boolean>; read?: ContentReader['read'] },
) {
  const seen = { finds: 0, opens: 0, touches: 0, closes: 0 };
  const counted: string[] = [];
  const read = options.read ?? async function* () {};
  const reader = { close: () => void (seen.closes += 1), read } as unknown as ContentReader;
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
  const count = ((...labels: readonly string[]) => void counted.push(labels.join(' '))) as Count;
  const open = async (): Promise<CompactBytes | ContentReader> => {
    const lookup = { id: paste.id, password: undefined, clientAddress: '192.0.2.1', requireAsked: () => {} };
    const opened = await openPaste({ store, passwords, clock: movableClock(), count }, lookup);
    return opened.kind === 'small' ? opened.content : opened.reader;
  };
  return { open, seen, counted, reader };
}

const notFound = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'pasteNotFound';

test('open: content that went meanwhile is looked up anew, three times in all', async () => {
  for (const heldFrom of [1, 2, 3]) {
    const { open, seen, counted, reader } = pastesOver(PASTE, { heldFrom });
    assert.equal(await open(), reader);
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
  assert.equal(await ours.open(), ours.reader);
  assert.deepEqual([ours.seen.closes, ours.seen.touches, ours.counted], [0, 0, ['pastesAccessed', 'pastesDeleted burned']]);
  const late = pastesOver(burning, { heldFrom: 1, burn: async () => false });
  await assert.rejects(late.open(), notFound);
  assert.deepEqual([late.seen.closes, late.counted], [1, []]);
  const failing = pastesOver(burning, { heldFrom: 1, burn: () => Promise.reject(new Error('disk')) });
  await assert.rejects(failing.open(), /disk/);
  assert.deepEqual([failing.seen.closes, failing.counted], [1, []]);
});

test('open: content that cannot be read does not burn, and is let go of', async () => {
  let burns = 0;
  const unreadable = pastesOver({ ...PASTE, burnAfterRead: true }, {
    heldFrom: 1,
    burn: async () => (burns += 1) > 0,
    read: async function* (start, end) {
      if (start === 0 && end > 0) yield await Promise.reject(new Error('disk'));
    },
  });
  await assert.rejects(unreadable.open(), /disk/);
  assert.deepEqual([burns, unreadable.seen.closes, unreadable.counted], [0, 1, []]);
});
