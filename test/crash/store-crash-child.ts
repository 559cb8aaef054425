// The process that store-crash.test.ts kills. Loaded, it waits for a line with the database's path and a round number;
// then it writes from many sides at once, and says on standard output what has become durable, a line each, until it is
// killed:
//   created ID SIZE    the paste is stored
//   burning ID         its burning has been asked for, and may or may not come about
//   burned ID          it has been burned

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { openStore, type Store } from '../../src/store/open.ts';
import { CHUNK_BYTES, INLINE_BYTES } from '../../src/store/store.ts';
import { CREATED_AT, patternedBytes, storePaste, uploadContent } from '../support/store.ts';

const SMALL_WRITERS = 16;
const LARGE_WRITERS = 2;

/** One write, so that a kill does not cut a line in two or leave it in a buffer of this process. */
function say(...words: (string | number)[]): void {
  process.stdout.write(`${words.join(' ')}\n`);
}

async function writeForEver(store: Store, label: string, sizes: () => number): Promise<never> {
  for (let count = 0; ; count += 1) {
    const size = sizes();
    const id = `${label}n${count}`.padEnd(6, '0');
    await storePaste(store, patternedBytes(size, size), { id, burnAfterRead: count % 3 === 0 });
    say('created', id, size);
    if (count % 3 !== 0) continue;
    say('burning', id);
    if (await store.pastes.burn(id, null, CREATED_AT)) say('burned', id);
  }
}

/** Uploads that never become pastes: what a crash leaves of these must be swept. */
async function uploadForEver(store: Store): Promise<never> {
  for (;;) await uploadContent(store, patternedBytes(3 * CHUNK_BYTES));
}

say('ready');
const [line] = await once(process.stdin, 'data');
const { path, round } = JSON.parse(String(line));
const clock = { unixMs: () => CREATED_AT * 1000, monotonicMs: () => performance.now() };
const store = await openStore({ path, clock, log: () => {} });
const writers: Promise<never>[] = [uploadForEver(store)];
for (let index = 0; index < SMALL_WRITERS; index += 1) {
  writers.push(writeForEver(store, `r${round}s${index}`, () => randomInt(1, 3000)));
}
for (let index = 0; index < LARGE_WRITERS; index += 1) {
  writers.push(writeForEver(store, `r${round}l${index}`, () => INLINE_BYTES + randomInt(1, 3 * CHUNK_BYTES)));
}
await Promise.all(writers);
