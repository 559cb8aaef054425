// Whose turn it is to send the next slice of a large answer: so many in one turn of the event loop, in the order asked
// for. A socket takes megabytes without a pause; hundreds of them at once would keep everyone else waiting for seconds.

export interface Turns {
  /** Resolves when the next slice may be read and sent: at once, unless others have had this turn of the event loop. */
  wait(): Promise<void> | undefined;
}

export function createTurns(slicesPerTurn: number): Turns {
  const waiting: (() => void)[] = [];
  let left = slicesPerTurn;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      left = slicesPerTurn;
      for (const resolve of waiting.splice(0, slicesPerTurn)) {
        left -= 1;
        resolve();
      }
      if (waiting.length > 0) schedule();
    });
  }

  return {
    wait: () => {
      schedule();
      if (left > 0) {
        left -= 1;
        return undefined;
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}
