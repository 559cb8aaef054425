// npm start [-- COMMAND...]: runs dist/main.js, made from src/ first when it is missing or older. No package is needed
// for that. It does not check types (npm run build does) and does not fetch a runtime (with-node.mjs does).

import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endLike, run } from './child.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const main = join(root, 'dist', 'main.js');

const compiled = await run(process.execPath, [
  '--disable-warning=ExperimentalWarning',
  join(root, 'scripts', 'compile.mjs'),
]);
if (compiled.received !== null) endLike({ code: null, signal: compiled.received });
if (compiled.code !== 0) endLike(compiled);

// In this process, so that signals and the exit code are the server's own.
process.argv.splice(1, 1, main);
await import(pathToFileURL(main).href);
