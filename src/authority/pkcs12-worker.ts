// The thread behind BundleThread of pkcs12.ts. A thread begins here, so randomness is the operating system's.

import { parentPort } from 'node:worker_threads';
import { randomBytes } from '../crypto/digest.ts';
import { type BundleAnswer, type BundleRequest, makeBundle } from './pkcs12.ts';

parentPort?.on('message', async ({ number, request }: { number: number; request: BundleRequest }) => {
  const answer = (values: Omit<BundleAnswer, 'number'>): void => parentPort?.postMessage({ number, ...values });
  // A Buffer shares its memory with others, and all of that would go over.
  await makeBundle(request, randomBytes).then((bytes) => answer({ bundle: new Uint8Array(bytes) }))
    .catch((error: unknown) => answer({ error }));
});
