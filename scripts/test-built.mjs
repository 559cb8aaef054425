// node --import test-built.mjs TEST-FILE: imports of src/ load the compiled files of dist/ instead. Tests then run what
// users run, and each server that they start costs half as much. dist/ must be up to date (build.mjs); its lines and
// columns are those of src/. Without this option the same file runs on src/ itself.

import { enableCompileCache, registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const source = new URL('../src/', import.meta.url).href;
const built = new URL('../dist/', import.meta.url).href;

// Threads need no hook, since they are started from dist/ already.
if (isMainThread) {
  enableCompileCache(new URL('../.runtime/compile-cache', import.meta.url).pathname);
  registerHooks({ resolve: fromDist });
}

function fromDist(specifier, context, next) {
  const found = next(specifier, context);
  if (!found.url.startsWith(source) || !found.url.endsWith('.ts')) return found;
  return { ...found, url: `${built}${found.url.slice(source.length, -'.ts'.length)}.js`, format: 'module' };
}
