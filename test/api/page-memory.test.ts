// What pages cost the server when their readers take nothing: a page is made as it is sent, and is never whole there.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { KIB, MIB } from '../../src/core/time.ts';
import { startApp } from '../support/app.ts';
import { BROWSERS } from '../support/browser.ts';
import { collectGarbage } from '../support/heap.ts';
import { startServing } from '../support/main-process.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { stalled } from '../support/stalled.ts';

const READERS = 24;

/** Each byte is shown as a mark of ten characters with its entities, so that a page is more than the kernel holds. */
const CONTENT = '\u0001'.repeat(512 * KIB);

/** Far less than the pages of all readers have together. */
const MAX_GROWTH_BYTES = 64 * MIB;

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * KIB;
}

/** The processor time that the server has used, in ticks: whether it does anything at all. */
function ticks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /, '').split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

test('pages that nobody reads: the memory of the server stays bounded, and who reads then gets all', async (t) => {
  if (!existsSync('/proc/self/status')) return t.skip('there is no /proc');
  // However long it takes here, none of them is cut off for its slowness.
  const environment = { SERVICE_POW_DIFFICULTY: '0', SERVICE_MIN_TRANSFER_RATE: '0' };
  const { url, port, child } = await startServing(t, { environment });
  const pid = child.pid!;
  const stored = await fetch(url, { method: 'POST', body: CONTENT });
  const { id } = await stored.json() as { id: string };
  const asked = head(`GET /${id} HTTP/1.1`, `Accept: ${BROWSERS.chrome}`);
  const first = await openRaw(t, port);
  first.send(asked);
  const pageBytes = (await first.next()).body.length;
  const before = residentBytes(pid);
  assert.ok(READERS * pageBytes > 2.5 * MAX_GROWTH_BYTES, `${pageBytes} bytes a page`);
  const readers = await Promise.all(Array.from({ length: READERS }, async () => {
    const reader = await openRaw(t, port);
    reader.send(asked);
    // From its first bytes on the page is being sent.
    await once(reader.socket, 'data');
    reader.socket.pause();
    return reader;
  }));
  await stalled(() => ticks(pid));
  const growth = residentBytes(pid) - before;
  t.diagnostic(`${READERS} readers of ${pageBytes} bytes: ${Math.round(growth / MIB)} MiB`);
  assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes`);
  const last = readers.at(-1)!;
  last.socket.resume();
  assert.match((await last.next()).body.subarray(-20).toString(), /<\/html>\n$/);
  for (const { socket } of readers) socket.destroy();
});

test('pages of small texts: those that are kept take 8 MiB at most, and each is right before and after', async (t) => {
  /** What is left when nothing more can be collected: some is let go only in a later turn of the event loop. */
  const usedBytes = async (): Promise<number> => {
    let used = Infinity;
    for (let turn = 0; turn < 20; turn += 1) {
      await setTimeout(10);
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      used = Math.min(used, heapUsed + external);
    }
    return used;
  };
  const { request, store } = await startApp(t);
  const page = async (id: string) => (await request(`/${id}`, { headers: { Accept: BROWSERS.chrome } })).text();
  const first = await store('first');
  const shown = await page(first);
  const ids: string[] = [];
  for (let count = 0; count < 600; count += 1) ids.push(await store(`number ${count} ${'\u0001'.repeat(4000)}`));
  const before = await usedBytes();
  let pageBytes = 0;
  for (const [index, id] of ids.entries()) {
    const text = await page(id);
    assert.ok(text.includes(`number ${index} `), id);
    pageBytes += text.length;
  }
  const growth = await usedBytes() - before;
  t.diagnostic(`${ids.length} pages of ${Math.round(pageBytes / MIB)} MiB: ${Math.round(growth / MIB)} MiB`);
  assert.ok(pageBytes > 24 * MIB && growth < 16 * MIB, `${growth} of ${pageBytes} bytes`);
  assert.equal(await page(first), shown);
});
