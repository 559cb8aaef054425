// Entries in the order of their last use, each moved or taken off in O(1). A Map keeps an order too, but finding its
// first entry steps over all those deleted before it, and a use would be a deletion.

/** An entry belongs to one order at most; these are the order's to set. */
export interface Used<Entry> {
  older: Entry | undefined;
  newer: Entry | undefined;
}

export interface UseOrder<Entry> {
  /** The one whose last use is the longest ago. */
  oldest(): Entry | undefined;
  /** Used now: an entry that is not in the order. */
  append(entry: Entry): void;
  remove(entry: Entry): void;
}

export function createUseOrder<Entry extends Used<Entry>>(): UseOrder<Entry> {
  let oldest: Entry | undefined;
  let newest: Entry | undefined;
  return {
    oldest: () => oldest,
    append(entry) {
      entry.older = newest;
      entry.newer = undefined;
      if (newest === undefined) oldest = entry;
      else newest.newer = entry;
      newest = entry;
    },
    remove(entry) {
      if (entry.older === undefined) oldest = entry.newer;
      else entry.older.newer = entry.newer;
      if (entry.newer === undefined) newest = entry.older;
      else entry.newer.older = entry.older;
    },
  };
}
