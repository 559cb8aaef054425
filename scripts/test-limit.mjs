// node --import 'test-limit.mjs?ms=N' TEST-FILE: ends the file's process when for so long no test of it has come to its
// end, and says which file that was. The runner's own limit is of a test, and cannot end what holds the thread or keeps
// the process open afterwards. Nothing limits a file, or the suite, whose tests go on.

import { relative } from 'node:path';
import { Worker, isMainThread } from 'node:worker_threads';

const watch = `
  const { writeSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  const silent = setTimeout(() => {
    writeSync(2, 'pasted: ' + workerData.file + ' is ended: no test of it came to its end within ' +
      workerData.ms / 1000 + ' s\\n');
    process.kill(process.pid, 'SIGKILL');
  }, workerData.ms);
  parentPort.on('message', () => silent.refresh());`;

// Programs and threads that a test starts may be given these options too.
const [, file = ''] = process.argv;
if (isMainThread && /\.test\.\w+$/.test(file)) {
  const ms = Number(new URL(import.meta.url).searchParams.get('ms'));
  // On a thread of its own, which a test that never gives way cannot hold up.
  const watcher = new Worker(watch, {
    eval: true,
    execArgv: [],
    env: {},
    workerData: { file: relative(process.cwd(), file), ms },
  });
  watcher.unref();
  // Threads inherit these options too, and it takes a tenth of their start to load.
  const { afterEach } = await import('node:test');
  afterEach(() => watcher.postMessage('a test has ended'));
}
