// ops/log.ts: readers that go away or do not keep up, and files on a disk that gets full.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { outputTo } from '../../src/ops/log.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { fillDisk } from '../support/small-node.ts';

/** A stream whose reader takes one piece whenever the test says so. */
function slowStream() {
  const taken: string[] = [];
  let takeNext: (() => void) | undefined;
  const stream = new Writable({
    highWaterMark: 1024,
    write: (chunk: Buffer, _encoding, done) => {
      takeNext = () => {
        takeNext = undefined;
        taken.push(chunk.toString());
        done();
      };
    },
  });
  const takeAll = async (): Promise<void> => {
    while (takeNext !== undefined) {
      takeNext();
      await new Promise(setImmediate);
    }
  };
  return { stream, taken, takeAll };
}

test('outputTo: takes text in order, more than the stream likes to hold', async () => {
  const { stream, taken, takeAll } = slowStream();
  const output = outputTo(stream);
  const texts = Array.from({ length: 10 }, (_, index) => `${index}${'x'.repeat(1000)}`);
  for (const text of texts) assert.equal(output.write(text), true);
  await takeAll();
  assert.deepEqual(taken, texts);
});

test('outputTo: takes no more while 4 MiB wait for the reader, and goes on afterwards', async () => {
  const { stream, takeAll } = slowStream();
  const output = outputTo(stream);
  const piece = 'x'.repeat(1024 * 1024);
  let taken = 0;
  while (taken < 100 && output.write(piece)) taken += 1;
  assert.equal(taken, 5);
  await takeAll();
  assert.equal(output.write('again'), true);
});

test('outputTo: a reader that went away loses text and nothing else', async () => {
  const stream = new Writable({
    autoDestroy: false,
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  });
  const output = outputTo(stream);
  assert.equal(output.write('first'), true);
  await once(stream, 'error');
  assert.equal(output.write('second'), false);
  await output.drain();
});

test('outputTo: after another error it goes on trying', async () => {
  let isFull = true;
  const taken: string[] = [];
  const stream = {
    writableLength: 0,
    listeners: [] as ((error: NodeJS.ErrnoException) => void)[],
    on(_event: 'error', listener: (error: NodeJS.ErrnoException) => void) {
      this.listeners.push(listener);
    },
    write(text: string): boolean {
      if (isFull) for (const listener of this.listeners) listener(Object.assign(new Error('full'), { code: 'ENOSPC' }));
      else taken.push(text);
      return true;
    },
  };
  const output = outputTo(stream as unknown as Writable);
  output.write('lost');
  isFull = false;
  assert.equal(output.write('kept'), true);
  assert.deepEqual(taken, ['kept']);
});

test('writeWhole: waits for a slow reader, and has given all of it then', async () => {
  const { stream, taken, takeAll } = slowStream();
  const output = outputTo(stream);
  let isWritten = false;
  const written = output.writeWhole(new Uint8Array(8 * 1024 * 1024).fill(0x61)).then((isWhole) => {
    isWritten = true;
    return isWhole;
  });
  await new Promise(setImmediate);
  assert.equal(isWritten, false);
  await takeAll();
  assert.equal(await written, true);
  assert.equal(taken.join('').length, 8 * 1024 * 1024);
});

test('writeWhole: false when the reader went away, before or meanwhile, and when the disk is full', async () => {
  for (const code of ['EPIPE', 'ENOSPC']) {
    const stream = new Writable({
      autoDestroy: false,
      write: (_chunk, _encoding, done) => done(Object.assign(new Error(`write ${code}`), { code })),
    });
    const output = outputTo(stream);
    assert.equal(await output.writeWhole(new Uint8Array(1)), false, code);
    assert.equal(await output.writeWhole(new Uint8Array(1)), false, code);
  }
});

test('drain: resolves at once when nothing waits, else when all has been taken', async () => {
  const { stream, taken, takeAll } = slowStream();
  const output = outputTo(stream);
  await output.drain();
  output.write('one');
  output.write('two');
  let isDrained = false;
  const drained = output.drain().then(() => {
    isDrained = true;
  });
  await new Promise(setImmediate);
  assert.equal(isDrained, false);
  await takeAll();
  await drained;
  assert.deepEqual(taken.slice(0, 2), ['one', 'two']);
});

test('drain: gives up after a second on a reader that has stopped reading', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const output = outputTo(slowStream().stream);
  output.write('never read');
  let isDrained = false;
  const drained = output.drain().then(() => {
    isDrained = true;
  });
  t.mock.timers.tick(999);
  await new Promise(setImmediate);
  assert.equal(isDrained, false);
  t.mock.timers.tick(1);
  await drained;
});

test('outputTo: what a full disk cut off is told, ends its line, and what has room again is whole', async (t) => {
  const folder = smallFileSystem(t, 1);
  if (folder === undefined) return t.skip('this user may not mount a file system');
  const [path, filler] = [join(folder, 'log'), join(folder, 'filler')];
  const fd = openSync(path, 'a');
  t.after(() => closeSync(fd));
  const output = outputTo(Object.assign(new Writable(), { fd }));
  assert.equal(output.write('first\n'), true);
  fillDisk(filler);
  assert.equal(output.write(`${'x'.repeat(10_000)}\n`), false);
  assert.equal(output.write('second\n'), false);
  assert.equal(await output.writeWhole(Buffer.from('third\n')), false);
  rmSync(filler);
  assert.equal(output.write('fourth\n'), true);
  assert.equal(output.write('fifth\n'), true);
  const lines = readFileSync(path, 'utf8').split('\n');
  assert.deepEqual(lines.with(1, 'x'), ['first', 'x', 'fourth', 'fifth', '']);
  assert.match(lines[1]!, /^x{1,9999}$/);
  assert.equal(output.whyLost(), 'ENOSPC');
});
