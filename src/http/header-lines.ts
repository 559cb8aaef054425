// The header lines of a request, as they came: one pass over what node:http calls rawHeaders. node's own joined form is
// not used, since it hides which lines were given twice. What a value means is for its reader.

import { Refusal } from '../core/refusals.ts';
import type { RequestHeaders } from './request.ts';

const NONE: readonly string[] = Object.freeze([]);

export class HeaderLines implements RequestHeaders {
  /** Names in lower case and values in turn. */
  readonly #lines: readonly string[];

  /** @param rawHeaders names and values in turn, one character a byte; the names are put in lower case in place. */
  constructor(rawHeaders: string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) rawHeaders[index] = rawHeaders[index]!.toLowerCase();
    this.#lines = rawHeaders;
  }

  get count(): number {
    return this.#lines.length / 2;
  }

  single(name: string): string | undefined {
    const first = this.#find(name, 0);
    if (first === -1) return undefined;
    if (this.#find(name, first + 2) !== -1) throw new Refusal('headerRepeated', { header: name });
    return this.#lines[first + 1];
  }

  /** The value when there is exactly one such line; undefined for none and for several alike. */
  only(name: string): string | undefined {
    const first = this.#find(name, 0);
    return first === -1 || this.#find(name, first + 2) !== -1 ? undefined : this.#lines[first + 1];
  }

  all(name: string): readonly string[] {
    let index = this.#find(name, 0);
    if (index === -1) return NONE;
    const values: string[] = [];
    for (; index !== -1; index = this.#find(name, index + 2)) values.push(this.#lines[index + 1]!);
    return values;
  }

  #find(name: string, from: number): number {
    const lines = this.#lines;
    for (let index = from; index < lines.length; index += 2) if (lines[index] === name) return index;
    return -1;
  }
}
