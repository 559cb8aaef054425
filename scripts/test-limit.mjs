// node --import 'test-limit.mjs?ms=N' TEST-FILE: ends the file's process when no test of the file has ended for N ms,
// and names the file. The runner's own limit is for one test, and cannot end code that blocks the thread or keeps the
// process open afterwards. A file or a suite has no limit as long as its tests end.

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

// Programs and threads that a test starts may get these options too, and are not watched.
const [, file = ''] = process.argv;
if (isMainThread && /\.test\.\w+$/.test(file)) {
  const ms = Number(new URL(import.meta.url).searchParams.get('ms'));
  // The watch has its own thread, which a test that never yields cannot block.
  const watcher = new Worker(watch, {
    eval: true,
    execArgv: [],
    env: {},
    workerData: { file: relative(process.cwd(), file), ms },
  });
  watcher.unref();
  // Imported only here: threads inherit these options too, and node:test takes a tenth of their start to load.
  const { afterEach } = await import('node:test');
  afterEach(() => watcher.postMessage('a test has ended'));
}
