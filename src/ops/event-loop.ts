// How long the event loop was held up, as node measures it. One histogram for the life of the process.

import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

export interface EventLoopDelay {
  /** Seconds beyond the timer's own time, since the last reading. */
  read(): { readonly '0.5': number; readonly '0.99': number };
  stop(): void;
}

export function measureEventLoopDelay(): EventLoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const secondsAt = (percentile: number): number =>
    histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(percentile) / NANOSECONDS - RESOLUTION_MS / 1000);
  return {
    read: () => {
      const delays = { '0.5': secondsAt(50), '0.99': secondsAt(99) };
      histogram.reset();
      return delays;
    },
    stop: () => {
      histogram.disable();
    },
  };
}
