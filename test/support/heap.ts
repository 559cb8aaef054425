// What is left in memory when nothing more can be collected, for tests that bound what something keeps.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

export const collectGarbage = runInNewContext('gc') as () => void;

export function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
