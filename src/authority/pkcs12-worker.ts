// The thread behind BundleThread of pkcs12.ts. Nobody can hand randomness in here: it is the operating system's.

import { parentPort } from 'node:worker_threads';
import { randomBytes } from '../crypto/digest.ts';
import { type BundleJob, makeBundle } from './pkcs12.ts';

parentPort?.on('message', async ({ request, port }: BundleJob) => {
  // A Buffer may share its memory with others, and postMessage would copy all of that memory.
  const made = makeBundle(request, randomBytes).then((bytes) => new Uint8Array(bytes));
  port.postMessage(await made.catch((error: unknown) => error));
  port.close();
});
