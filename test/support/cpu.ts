// What work costs, for tests that limit it: processor time, which a busy machine does not stretch as it stretches time
// on the wall clock.

/** Milliseconds of processor time that this process spent during the work, its other threads' included. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const spent = process.cpuUsage(before);
  return (spent.user + spent.system) / 1000;
}

/**
 * Milliseconds of processor time that this thread spent during the work, and the most of it in one turn of its event
 * loop, with garbage collection and compilation.
 */
export async function turnsOf(work: () => Promise<void>): Promise<{ totalMs: number; longestMs: number }> {
  const begun = process.threadCpuUsage();
  let before = begun;
  let longest = 0;
  let isOver = false;
  const look = (): void => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - before.user - before.system);
    before = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  const ended = process.threadCpuUsage();
  return { totalMs: (ended.user + ended.system - begun.user - begun.system) / 1000, longestMs: longest / 1000 };
}
