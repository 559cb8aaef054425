// The room in reserve of store/database.ts: when it is made, given up and made again.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { deflateRawSync, zstdCompressSync } from 'node:zlib';
import { KIB, MIB } from '../../src/core/time.ts';
import {
  BALLAST_BYTES, createBallast, failureAt, FREE_RESERVE_BYTES, freeBytes, hasRoomFor, WAL_LIMIT_BYTES,
} from '../../src/store/database.ts';
import { showBytes } from '../../src/operator/terminal.ts';
import { temporaryFolder } from '../support/store.ts';

const BLOCK_BYTES = 4096;

/** An error as node throws it. Node has no name for EDQUOT, which a quota gives. */
function systemError(name: 'EDQUOT' | 'EIO' | 'ENOSPC' | 'EROFS'): Error {
  const code = name === 'EDQUOT' ? 'UNKNOWN' : name;
  return Object.assign(new Error(`${code}: in words, write`), { code, errno: -constants.errno[name], syscall: 'write' });
}

/** A ballast on a disk with as many free bytes as the test says. Below 0, asking how many are free fails. */
function openBallast(t: TestContext) {
  const path = join(temporaryFolder(t), 'pasted.db');
  const freeAtFirst = BALLAST_BYTES + FREE_RESERVE_BYTES + BLOCK_BYTES;
  const disk = {
    freeBytes: freeAtFirst, bestBytes: BLOCK_BYTES, blocks: 2 ** 30, writable: Infinity, refusal: systemError('ENOSPC'),
  };
  t.mock.method(fs, 'statfsSync', () => {
    if (disk.freeBytes < 0) throw Object.assign(new Error('EIO: i/o error, statfs'), { code: 'EIO' });
    return { blocks: disk.blocks, bavail: disk.freeBytes / BLOCK_BYTES, bsize: disk.bestBytes, frsize: BLOCK_BYTES };
  });
  const write = fs.writeSync;
  t.mock.method(fs, 'writeSync', (file: number, bytes: Uint8Array) => {
    disk.writable -= bytes.length;
    if (disk.writable < 0) throw disk.refusal;
    return write(file, bytes);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return { ballast: createBallast(path), path, file: `${path}-ballast`, disk };
}

test('ballast: takes room on the disk until it is given up, and nothing is stored until it is whole again', (t) => {
  const { ballast, file, disk } = openBallast(t);
  assert.equal(ballast.giveUp(), false, 'there was none');
  assert.equal(ballast.isDiskShort(), true);
  assert.equal(ballast.restore(), true);
  const { size, blocks } = statSync(file);
  assert.deepEqual([size, blocks * 512 >= size, ballast.isDiskShort()], [BALLAST_BYTES, true, false]);
  // A ballast that is whole is not written again.
  disk.writable = 0;
  assert.deepEqual([ballast.restore(), statSync(file).size], [true, BALLAST_BYTES]);
  assert.deepEqual([ballast.giveUp(), existsSync(file), ballast.isDiskShort()], [true, false, true]);
});

test('ballast: writes no more than itself, but for one that was given up', (t) => {
  const { ballast, disk } = openBallast(t);
  disk.writable = BALLAST_BYTES;
  assert.deepEqual([ballast.restore(), disk.writable], [true, 0]);
  ballast.giveUp();
  disk.writable = BALLAST_BYTES + FREE_RESERVE_BYTES;
  assert.deepEqual([ballast.restore(), disk.writable], [true, 0]);
});

test('freeBytes: in the blocks that the system counts by, which some file systems give beside larger ones', (t) => {
  const { path, disk } = openBallast(t);
  disk.freeBytes = 10 * BLOCK_BYTES;
  disk.bestBytes = 256 * BLOCK_BYTES;
  assert.equal(freeBytes(path), 10 * BLOCK_BYTES);
});

test('freeBytes: without bound where blocks are not counted, as on ramfs; more may be stored there', (t) => {
  const { ballast, path, disk } = openBallast(t);
  Object.assign(disk, { blocks: 0, freeBytes: 0 });
  assert.deepEqual([freeBytes(path), ballast.restore(), ballast.isDiskShort()], [Infinity, true, false]);
  assert.equal(showBytes(freeBytes(path)), 'any number of bytes');
});

test('ballast: nothing of it can be compressed, as by file systems that do', (t) => {
  const { ballast, file } = openBallast(t);
  assert.equal(ballast.restore(), true);
  // btrfs compresses this much at a time.
  const bytes = readFileSync(file).subarray(-128 * KIB);
  assert.ok(deflateRawSync(bytes).length >= bytes.length);
  assert.ok(zstdCompressSync(bytes).length >= bytes.length);
});

test('ballast: is made only where the reserve stays free beside it', (t) => {
  const { ballast, file, disk } = openBallast(t);
  ballast.giveUp();
  disk.freeBytes = BALLAST_BYTES + FREE_RESERVE_BYTES;
  assert.deepEqual([ballast.restore(), existsSync(file), ballast.isDiskShort()], [false, false, true]);
  disk.freeBytes += BLOCK_BYTES;
  assert.deepEqual([ballast.restore(), ballast.isDiskShort()], [true, false]);
  disk.freeBytes = 0;
  assert.deepEqual([ballast.restore(), existsSync(file)], [false, true], 'it is whole, and nothing may be stored');
  disk.freeBytes = FREE_RESERVE_BYTES + BLOCK_BYTES;
  assert.deepEqual([ballast.restore(), ballast.isDiskShort()], [true, false], 'one that is whole needs no room');
});

test('ballast: where there was never room for it, more may be stored as long as the reserve is free', (t) => {
  const { ballast, file, disk } = openBallast(t);
  disk.freeBytes = FREE_RESERVE_BYTES + BLOCK_BYTES;
  assert.deepEqual([ballast.restore(), existsSync(file), ballast.isDiskShort()], [true, false, false]);
  disk.freeBytes -= BLOCK_BYTES;
  assert.deepEqual([ballast.restore(), ballast.isDiskShort()], [false, true]);
});

test('ballast: what fills up while it is written is given back, and the disk stays short', (t) => {
  const { ballast, file, disk } = openBallast(t);
  ballast.giveUp();
  for (const [writable, refusal] of [[BALLAST_BYTES, 'ENOSPC'], [BALLAST_BYTES + FREE_RESERVE_BYTES - 1, 'EDQUOT']] as const) {
    Object.assign(disk, { writable, refusal: systemError(refusal) });
    assert.deepEqual([ballast.restore(), existsSync(file), ballast.isDiskShort()], [false, false, true], refusal);
  }
  disk.writable = BALLAST_BYTES + FREE_RESERVE_BYTES;
  assert.deepEqual([ballast.restore(), ballast.isDiskShort(), statSync(file).size], [true, false, BALLAST_BYTES]);
});

test('ballast: one that a command gave up at a quota, which the disk does not tell of, is missed before anything is stored', (t) => {
  const { ballast, file, disk } = openBallast(t);
  ballast.restore();
  rmSync(file);
  for (const refusal of ['EDQUOT', 'ENOSPC'] as const) {
    Object.assign(disk, { writable: MIB, refusal: systemError(refusal) });
    assert.deepEqual([ballast.restore(), ballast.isDiskShort()], [false, true], refusal);
  }
  disk.writable = Infinity;
  assert.deepEqual([ballast.restore(), ballast.isDiskShort(), existsSync(file)], [true, false, true]);
  // If the ballast cannot be made for another reason than a lack of room, storing goes on.
  rmSync(file);
  Object.assign(disk, { writable: 0, refusal: systemError('EROFS') });
  assert.deepEqual([ballast.restore(), ballast.isDiskShort()], [true, false]);
});

test('ballast: one that cannot be removed is given up without room: the disk stays short, and the next time it may go', (t) => {
  const { ballast, file, disk } = openBallast(t);
  ballast.restore();
  const remove = t.mock.method(fs, 'rmSync', () => {
    throw systemError('EDQUOT');
  });
  syncBuiltinESMExports();
  assert.deepEqual([ballast.giveUp(), ballast.isDiskShort(), existsSync(file)], [false, true, true]);
  // The file is still there, but that does not show that there is room beside it.
  Object.assign(disk, { writable: MIB, refusal: systemError('EDQUOT') });
  assert.deepEqual([ballast.restore(), ballast.isDiskShort(), existsSync(file)], [false, true, true]);
  remove.mock.restore();
  syncBuiltinESMExports();
  assert.deepEqual([ballast.giveUp(), existsSync(file)], [true, false]);
});

test('failureAt: an I/O error is a full disk where nothing more can be written, as beyond a quota, and leaves no file', (t) => {
  const { path, disk } = openBallast(t);
  const sqlite = (errcode: number) => Object.assign(new Error('disk I/O error'), { errcode });
  disk.writable = 0;
  // Codes of a write, a sync, a truncation, of sizing and of opening the log's index, and of a log that cannot be made.
  for (const errcode of [778, 1034, 1546, 4874, 4618, 14]) {
    for (const [name, failure] of [['EDQUOT', 'full'], ['ENOSPC', 'full'], ['EIO', 'unavailable'], ['EROFS', 'unavailable']] as const) {
      disk.refusal = systemError(name);
      assert.equal(failureAt(path, sqlite(errcode)), failure, `${errcode} ${name}`);
    }
  }
  disk.refusal = systemError('EDQUOT');
  assert.deepEqual([13, 5, 11, 19].map((code) => failureAt(path, sqlite(code))), ['full', 'unavailable', 'unavailable', undefined]);
  assert.equal(failureAt(null, sqlite(778)), 'unavailable', 'in memory');
  disk.writable = Infinity;
  assert.equal(failureAt(path, sqlite(778)), 'unavailable');
  assert.deepEqual(readdirSync(dirname(path)), []);
});

test('ballast: what a log has beyond its limit is not free, as it takes as much when it moves into the database', (t) => {
  const { ballast, path, disk } = openBallast(t);
  for (const [logBytes, isLong] of [
    [0, false], [WAL_LIMIT_BYTES, false], [2 * WAL_LIMIT_BYTES, false], [2 * WAL_LIMIT_BYTES + BLOCK_BYTES, true],
    [5 * WAL_LIMIT_BYTES, true],
  ] as const) {
    writeFileSync(`${path}-wal`, '');
    truncateSync(`${path}-wal`, logBytes);
    const wanted = FREE_RESERVE_BYTES + Math.max(0, logBytes - WAL_LIMIT_BYTES);
    for (const [more, isShort] of [[0, true], [1, false], [BLOCK_BYTES, false]] as const) {
      disk.freeBytes = wanted + more;
      assert.deepEqual([ballast.isDiskShort(), hasRoomFor(path, 0), ballast.isLogLong()], [isShort, !isShort, isLong]);
    }
  }
});

test('ballast: a disk is short at the reserve, and not where nobody can say how much is free', (t) => {
  const { ballast, path, disk } = openBallast(t);
  for (const [freeBytes, isShort] of [
    [FREE_RESERVE_BYTES - BLOCK_BYTES, true], [FREE_RESERVE_BYTES, true], [FREE_RESERVE_BYTES + 1, false],
    [FREE_RESERVE_BYTES + BLOCK_BYTES, false], [-1, false],
  ] as const) {
    disk.freeBytes = freeBytes;
    assert.equal(ballast.isDiskShort(), isShort, String(freeBytes));
    assert.equal(ballast.restore(), !isShort, String(freeBytes));
    assert.equal(hasRoomFor(path, 0), !isShort, String(freeBytes));
    disk.freeBytes += 10 * BLOCK_BYTES * Math.sign(freeBytes);
    assert.equal(hasRoomFor(path, 10 * BLOCK_BYTES), !isShort, String(freeBytes));
  }
});
