// The thread behind BundleThread of pkcs12.ts: one bundle after the other. An invalid request ends it. A thread
// begins here, so randomness is the operating system's.

import { parentPort } from 'node:worker_threads';
import { randomBytes } from '../crypto/digest.ts';
import { makeBundle } from './pkcs12.ts';

parentPort?.on('message', async (request) => {
  const bundle = await makeBundle(request, randomBytes);
  // A Buffer shares its memory with others, and all of that would go over.
  parentPort?.postMessage(Uint8Array.from(bundle));
});
