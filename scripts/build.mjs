// npm run build: installs the development packages when they are missing, checks the types of everything, and makes
// dist/. It does not fetch a runtime (with-node.mjs does).

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';
import { withLock } from './lock.mjs';
import { envOfHost } from './runtime.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const runtime = join(root, '.runtime');

if (!isInstalled()) {
  mkdirSync(runtime, { recursive: true });
  const onWait = () => say('waiting for another process that is installing');
  await withLock(join(runtime, 'install.lock'), onWait, () => isInstalled() || install());
}
await must(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', root]);
await must(process.execPath, ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'compile.mjs')]);

async function must(command, args, options) {
  const ended = await run(command, args, options);
  if (ended.code !== 0) endLike(ended);
}

// npm writes what it installed into node_modules/.package-lock.json, so it is enough to compare two small files.
function isInstalled() {
  const installedFile = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedFile, 'utf8')).packages;
  return Object.entries(wanted)
    .filter(([path, entry]) => path !== '' && isForThisPlatform(entry))
    .every(([path, entry]) => installed[path]?.integrity === entry.integrity);
}

function isForThisPlatform({ os, cpu, libc }) {
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true) && libc === undefined;
}

// No package's install script runs.
async function install() {
  say('installing the development packages (npm ci)');
  const args = ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const options = { cwd: root, stdio: ['ignore', 2, 2], env: envOfHost() };
  await must('npm', args, options).catch((error) => {
    say(`cannot run npm (${error.code}): please install npm, which the tests and the build need.`);
    process.exit(1);
  });
}
