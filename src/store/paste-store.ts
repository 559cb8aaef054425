// PasteStore over the writer, the reader and what is kept of small pastes. The SQL is in pastes.ts.

import type { ContentKeeper } from './content-store.ts';
import { READ_ALONG_BYTES } from './hot-pastes.ts';
import type { HotPastes } from './hot-pastes.ts';
import { createParcels } from './parcels.ts';
import type { Parcels } from './parcels.ts';
import type { Reader } from './reader.ts';
import { INLINE_BYTES } from './store.ts';
import type { ChangedContent, PasteStore, PasteWithContent } from './store.ts';
import type { Touches } from './touches.ts';
import type { Cargo, Writer } from './writer.ts';

export interface PasteStoreParts {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly keeper: ContentKeeper;
  readonly touches: Touches;
  readonly hot: HotPastes;
}

export function createPasteStore({ reader, writer, keeper, touches, hot }: PasteStoreParts): PasteStore {
  const parcels = createParcels();
  /** What had expired by then has been removed, and still is when the clock is set back. */
  let removedUntilSeconds = -Infinity;

  function find(id: string, nowSeconds: number, mostContentBytes: number): PasteWithContent | undefined {
    if (nowSeconds < removedUntilSeconds) {
      hot.clear();
      removedUntilSeconds = nowSeconds;
    }
    const kept = hot.find(id, nowSeconds);
    if (kept !== undefined) return kept;
    const found = reader.look((lookups) => lookups.find(id, nowSeconds, mostContentBytes));
    if (found !== undefined) hot.keep(found);
    return found;
  }

  return {
    find: (id, nowSeconds) => find(id, nowSeconds, READ_ALONG_BYTES),
    findWithContent: (id, nowSeconds) => find(id, nowSeconds, INLINE_BYTES),
    create(paste, terms) {
      const { wrapped, cargo } = wrapContent(paste, parcels);
      return writer.run('createPaste', { paste: wrapped, terms }, cargo);
    },
    async update(id, owner, changes, terms) {
      const { wrapped, cargo } = wrapContent(changes.content, parcels);
      const update = { id, owner, changes: { ...changes, content: wrapped }, terms };
      const { outcome, orphanedContentIds } = await hot.around(id, () => writer.run('updatePaste', update, cargo));
      void keeper.release(orphanedContentIds);
      return outcome;
    },
    async remove(id, by, nowSeconds, asAdmin) {
      const deletion = { id, by, nowSeconds, asAdmin };
      const { outcome, orphanedContentIds } = await hot.around(id, () => writer.run('deletePaste', deletion));
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
      if (removal.count > 0) removedUntilSeconds = Math.max(removedUntilSeconds, nowSeconds);
      await keeper.release(removal.orphanedContentIds);
      return removal.count;
    },
    async usage() {
      return reader.look((lookups) => lookups.usage());
    },
  };
}

function wrapContent<Stored extends ChangedContent | undefined>(
  stored: Stored,
  parcels: Parcels,
): { wrapped: Stored; cargo: Cargo } {
  if (stored === undefined) return { wrapped: stored, cargo: { bytes: 0 } };
  const content = stored.content && parcels.wrap(stored.content);
  const cargo = { bytes: content?.length ?? 0 };
  return { wrapped: { ...stored, sha256: parcels.wrap(stored.sha256), content }, cargo };
}
