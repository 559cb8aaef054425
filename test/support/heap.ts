// How much memory is left after everything collectable is collected, for tests that limit what something keeps.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

export const collectGarbage = runInNewContext('gc') as () => void;

export function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
