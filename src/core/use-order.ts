// Entries in the order of their last use, each moved or taken off in O(1). A Map keeps an order too, but finding its
// first entry steps over all those deleted before it, and every use would delete one.

/** An entry belongs to one order at most; these fields are the order's to set. */
export interface Used<Entry> {
  older: Entry | undefined;
  newer: Entry | undefined;
}

export class UseOrder<Entry extends Used<Entry>> {
  #oldest: Entry | undefined;
  #newest: Entry | undefined;

  /** The one whose last use is the longest ago. */
  get oldest(): Entry | undefined {
    return this.#oldest;
  }

  /** Used now: an entry that is not in the order. */
  append(entry: Entry): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  remove(entry: Entry): void {
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
  }
}
