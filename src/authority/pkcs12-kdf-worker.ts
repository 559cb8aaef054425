// A thread that derives the keys of one bundle, and then ends.

import { parentPort, workerData } from 'node:worker_threads';
import { deriveKeys } from './pkcs12.ts';

parentPort?.postMessage(await deriveKeys(workerData));
