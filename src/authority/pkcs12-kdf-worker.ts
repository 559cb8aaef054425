// The worker thread behind pkcs12-kdf-thread.ts: derives what it is asked for, one job after the other. An invalid
// request ends the thread, which fails that job alone.

import { parentPort } from 'node:worker_threads';
import { type KdfRequest, pkcs12Kdf } from './pkcs12.ts';

parentPort?.on('message', (requests: Readonly<Record<string, KdfRequest>>) => {
  const derived = Object.entries(requests).map(([name, request]) => [name, pkcs12Kdf(request)]);
  parentPort?.postMessage(Object.fromEntries(derived));
});
