// What work costs, for tests that bound it: time on the processor, which a busy machine does not stretch as it does the
// time on the wall.

/** Milliseconds of processor time that this process spent during the work, its other threads' included. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const spent = process.cpuUsage(before);
  return (spent.user + spent.system) / 1000;
}
