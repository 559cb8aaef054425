// PasteStore over the writer and the reader. The SQL is in pastes.ts.

import type { ContentKeeper } from './content-store.ts';
import { copyOf } from './content-store.ts';
import type { Reader } from './reader.ts';
import type { ChangedContent, PasteStore } from './store.ts';
import type { Touches } from './touches.ts';
import type { Cargo, Writer } from './writer.ts';

export function createPasteStore(reader: Reader, writer: Writer, keeper: ContentKeeper, touches: Touches): PasteStore {
  return {
    async find(id, nowSeconds) {
      return reader.look((lookups) => lookups.find(id, nowSeconds));
    },
    async findWithContent(id, nowSeconds) {
      return reader.look((lookups) => lookups.findWithContent(id, nowSeconds));
    },
    create(paste, terms) {
      const { owned, cargo } = ownedContent(paste);
      return writer.run('createPaste', { paste: owned, terms }, cargo);
    },
    async update(id, owner, changes, terms) {
      const { owned, cargo } = ownedContent(changes.content);
      const { outcome, orphanedContentIds } =
        await writer.run('updatePaste', { id, owner, changes: { ...changes, content: owned }, terms }, cargo);
      void keeper.release(orphanedContentIds);
      return outcome;
    },
    async remove(id, by, nowSeconds, asAdmin) {
      const { outcome, orphanedContentIds } = await writer.run('deletePaste', { id, by, nowSeconds, asAdmin });
      void keeper.release(orphanedContentIds);
      return outcome;
    },
    async list(filter, page, nowSeconds) {
      return reader.look((lookups) => lookups.listPastes(filter, page, nowSeconds));
    },
    async burn(id, passwordHash, nowSeconds) {
      const removal = await writer.run('burnPaste', { id, passwordHash, nowSeconds });
      void keeper.release(removal.orphanedContentIds);
      return removal.count === 1;
    },
    touch: (id, nowSeconds) => touches.note(id, nowSeconds),
    async removeExpired(nowSeconds, limit) {
      const removal = await writer.run('removeExpired', { nowSeconds, limit });
      await keeper.release(removal.orphanedContentIds);
      return removal.count;
    },
    async usage() {
      return reader.look((lookups) => lookups.usage());
    },
  };
}

/** Buffers of its own go over to the writer thread; a view would take whatever else is in its buffer with it. */
function ownedContent<Stored extends ChangedContent | undefined>(stored: Stored): { owned: Stored; cargo: Cargo } {
  if (stored === undefined) return { owned: stored, cargo: { bytes: 0 } };
  const content = stored.content && copyOf(stored.content);
  const cargo = { bytes: content?.length ?? 0, transfer: content ? [content.buffer] : [] };
  return { owned: { ...stored, sha256: copyOf(stored.sha256), content }, cargo };
}
