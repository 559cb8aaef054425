// The thread behind KdfThread of pkcs12.ts: one request after the other. An invalid one ends it.

import { parentPort } from 'node:worker_threads';
import { deriveKeys } from './pkcs12.ts';

parentPort?.on('message', async (requests) => parentPort?.postMessage(await deriveKeys(requests)));
