// What work costs, for tests that bound it: time on the processor, which a busy machine does not stretch as it does the
// time on the wall.

/** Milliseconds of processor time that this process spent during the work, its other threads' included. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const spent = process.cpuUsage(before);
  return (spent.user + spent.system) / 1000;
}

/** The most milliseconds of processor time that this thread spent in one turn of its event loop during the work. */
export async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - before.user - before.system);
    before = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  return longest / 1000;
}
