// node scripts/with-node.mjs SCRIPT [ARGS...]: runs SCRIPT on a Node that can build and run pasted. That is the host's
// own, when it is new enough, or else the oldest pinned official build (runtime.mjs). Runs on Node 18 and up. It does
// not install packages and does not build.

import module from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { become, endLike, say } from './child.mjs';
import { Stopped, envWith, keptRuntime, pinnedVersions } from './runtime.mjs';

const leastMajor = 24;

const [script, ...args] = process.argv.slice(2);
if (script === undefined) {
  say('usage: node scripts/with-node.mjs SCRIPT [ARGS...]');
  process.exit(2);
}
if (hostSuffices()) {
  process.argv = [process.execPath, resolve(script), ...args];
  await import(pathToFileURL(resolve(script)).href);
} else {
  const node = await keptRuntime(pinnedVersions[0]).catch(giveUp);
  await become(node, [script, ...args], { env: envWith(node) });
}

// Some distributions build Node without its TypeScript support. Such a Node runs dist/ like any other, but it cannot
// make dist/.
function hostSuffices() {
  const major = Number.parseInt(process.versions.node, 10);
  const stripsTypes = 'stripTypeScriptTypes' in module && process.config.variables.node_use_amaro === true;
  return major >= leastMajor && module.isBuiltin('node:sqlite') && stripsTypes;
}

function giveUp(error) {
  if (error instanceof Stopped) endLike({ code: null, signal: error.signal });
  say(`needs Node ${leastMajor} or newer, this is ${process.versions.node}, and no runtime could be fetched ` +
    `(${error.message}): please install Node ${leastMajor} and run this again.`);
  process.exit(1);
}
