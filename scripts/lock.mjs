// A lock file that keeps two processes from doing the same expensive work at once. It saves work and does not guard
// correctness: two may hold it, so all work under it must end in a rename of its own folder. Runs on Node 18 and up.

import { rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const beatMs = 500;
const silentMs = 3000;
const pollMs = 100;

/**
 * Waits for the lock at `path`, does `work`, gives the lock up and returns what `work` resolved to. `onWait` is called
 * once when another process holds the lock.
 */
export async function withLock(path, onWait, work) {
  await acquire(path, onWait);
  const beat = setInterval(() => touch(path), beatMs).unref();
  try {
    return await work();
  } finally {
    clearInterval(beat);
    rmSync(path, { force: true });
  }
}

// The holder touches the file while it lives, so a file that stays untouched belongs to no one. Process ids would not
// tell, because they are reused after a reboot, and in a container at once. The waiter measures the silence with its
// own clock, never the file system's.
async function acquire(path, onWait) {
  let lastBeat;
  let lastBeatSeenAt;
  while (!create(path)) {
    if (lastBeatSeenAt === undefined) onWait();
    const beat = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    const now = performance.now();
    if (lastBeatSeenAt === undefined || beat !== lastBeat) {
      lastBeat = beat;
      lastBeatSeenAt = now;
    } else if (now - lastBeatSeenAt > silentMs) {
      rmSync(path, { force: true });
    }
    await sleep(pollMs);
  }
}

function create(path) {
  try {
    writeFileSync(path, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function touch(path) {
  try {
    utimesSync(path, new Date(), new Date());
  } catch (error) {
    // A process that was stopped for longer than `silentMs` finds its lock taken over and perhaps given up again.
    if (error.code !== 'ENOENT') throw error;
  }
}
