// The thread behind BundleThread of pkcs12.ts. A thread begins here, so randomness is the operating system's.

import { parentPort } from 'node:worker_threads';
import { randomBytes } from '../crypto/digest.ts';
import { type BundleJob, makeBundle } from './pkcs12.ts';

parentPort?.on('message', async ({ request, port }: BundleJob) => {
  // A Buffer shares its memory with others, and all of that would go over.
  const made = makeBundle(request, randomBytes).then((bytes) => new Uint8Array(bytes));
  port.postMessage(await made.catch((error: unknown) => error));
  port.close();
});
