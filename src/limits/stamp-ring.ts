// Moments in the order in which they came, the oldest taken off as they run out: what both counters over a window are
// made of. Grows as it is filled and knows no bound itself.

const FIRST_CAPACITY = 4;

/**
 * The invariant: `length` moments from `#head` on, each no earlier than the one before. Every call is O(1),
 * amortised.
 */
export class StampRing {
  #stamps = new Float64Array(FIRST_CAPACITY);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The moment at that place, counted from the oldest; there must be one. */
  at(index: number): number {
    return this.#stamps[(this.#head + index) % this.#stamps.length]!;
  }

  push(stampMs: number): void {
    if (this.#length === this.#stamps.length) this.#grow();
    this.#stamps[(this.#head + this.#length) % this.#stamps.length] = stampMs;
    this.#length += 1;
  }

  dropOldest(): void {
    this.#head = (this.#head + 1) % this.#stamps.length;
    this.#length -= 1;
  }

  /** Drops what is `ageMs` old or older. */
  dropAged(ageMs: number, nowMs: number): void {
    while (this.#length > 0 && this.at(0) + ageMs <= nowMs) this.dropOldest();
  }

  #grow(): void {
    const grown = new Float64Array(this.#stamps.length * 2);
    for (let index = 0; index < this.#length; index += 1) grown[index] = this.at(index);
    this.#stamps = grown;
    this.#head = 0;
  }
}
