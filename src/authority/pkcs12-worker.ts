// The thread of one bundle, which issuing.ts starts. A thread begins here, so randomness is the operating system's.

import { parentPort, workerData } from 'node:worker_threads';
import { randomBytes } from '../crypto/digest.ts';
import { type BundleRequest, makeBundle } from './pkcs12.ts';

// A Buffer shares its memory with others, and all of that would go over.
parentPort?.postMessage(new Uint8Array(await makeBundle(workerData as BundleRequest, randomBytes)));
