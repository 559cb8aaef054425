// node scripts/with-node.mjs SCRIPT [ARGS...]: runs SCRIPT on a Node that can build and run pasted. That is the host's
// own, when it is new enough, or else a pinned official build, fetched once through the host's npm and kept in
// .runtime/. Runs on Node 18 and up. It does not install packages and does not build.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import module from 'node:module';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { become, endLike, run, say } from './child.mjs';
import { withLock } from './lock.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const runtimes = join(root, '.runtime');
const leastMajor = 24;
const version = '24.21.0';
const platform = `${process.platform}-${process.arch}`;

// SHA-512 of the package node-<platform>@<version>, by version and platform. These builds are linked against glibc.
const pinned = {
  '24.21.0': {
    'linux-x64': '3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    'linux-arm64': 'FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

/** A reason why no runtime can be had, worded to stand in the parentheses of the one sentence that the user sees. */
class Unavailable extends Error {}

/** This process was told to end by `signal` while it fetched. */
class Stopped extends Error {
  constructor(signal) {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

const [script, ...args] = process.argv.slice(2);
if (script === undefined) {
  say('usage: node scripts/with-node.mjs SCRIPT [ARGS...]');
  process.exit(2);
}
if (hostSuffices()) {
  process.argv = [process.execPath, resolve(script), ...args];
  await import(pathToFileURL(resolve(script)).href);
} else {
  const node = await keptRuntime();
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  await become(node, [script, ...args], { env });
}

// Some distributions build Node without its TypeScript support. Such a Node runs dist/ like any other, but it cannot
// make dist/.
function hostSuffices() {
  const major = Number.parseInt(process.versions.node, 10);
  const stripsTypes = 'stripTypeScriptTypes' in module && process.config.variables.node_use_amaro === true;
  return major >= leastMajor && module.isBuiltin('node:sqlite') && stripsTypes;
}

async function keptRuntime() {
  const home = join(runtimes, `node-${version}-${platform}`);
  const node = join(home, 'bin', 'node');
  if (existsSync(node)) return node;
  try {
    const sha512 = pinned[version][platform];
    if (sha512 === undefined) throw new Unavailable(`there is none for ${platform}`);
    if (!hasGlibc()) throw new Unavailable('this system has no glibc');
    mkdirSync(runtimes, { recursive: true });
    const onWait = () => say(`waiting for another process that is fetching Node ${version}`);
    await withLock(join(runtimes, 'fetch.lock'), onWait, () => existsSync(node) || fetchRuntime(home, sha512));
  } catch (error) {
    if (error instanceof Stopped) endLike({ code: null, signal: error.signal });
    say(`needs Node ${leastMajor} or newer, this is ${process.versions.node}, and no runtime could be fetched ` +
      `(${error.message}): please install Node ${leastMajor} and run this again.`);
    process.exit(1);
  }
  return node;
}

function hasGlibc() {
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime !== undefined;
}

// The rename at the end is what makes the runtime exist: a fetch that breaks off anywhere leaves nothing that looks
// finished.
async function fetchRuntime(home, sha512) {
  for (const name of readdirSync(runtimes)) {
    if (name.startsWith('fetching-')) rmSync(join(runtimes, name), { recursive: true, force: true });
  }
  const temporary = mkdtempSync(join(runtimes, 'fetching-'));
  try {
    say(`this is Node ${process.versions.node}; fetching Node ${version} through npm (50 MB, only this once)`);
    const tarball = await pack(`node-${platform}@${version}`, temporary);
    const actual = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    if (actual !== sha512) throw new Unavailable('the package is not the one whose SHA-512 is known here');
    // -o: unpacked by root, the files are root's and not those of a user id from the archive.
    await mustRun('tar', ['-xzof', tarball, '-C', temporary, 'package/bin/node', 'package/LICENSE']);
    const unpacked = join(temporary, 'package');
    await mustRun(join(unpacked, 'bin', 'node'), ['--version']);
    renameSync(unpacked, home);
    say(`Node ${version} is verified and kept in .runtime/`);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function pack(spec, folder) {
  await mustRun('npm', ['pack', spec, `--pack-destination=${folder}`, '--loglevel=error'], root);
  const name = readdirSync(folder).find((entry) => entry.endsWith('.tgz'));
  if (name === undefined) throw new Unavailable('npm pack left no package');
  return join(folder, name);
}

async function mustRun(command, commandArgs, cwd) {
  const ended = await run(command, commandArgs, { cwd, stdio: ['ignore', 'pipe', 'pipe'] }).catch((error) => {
    throw new Unavailable(error.code === 'ENOENT' ? `there is no ${command} here` : error.message);
  });
  if (ended.received !== null) throw new Stopped(ended.received);
  if (ended.code === 0) return;
  const npmCode = /^npm (?:error|ERR!) code (\S+)/m.exec(ended.output)?.[1];
  const lastLine = ended.output.trim().split('\n').at(-1);
  throw new Unavailable(`${command} failed: ${npmCode ?? (lastLine || ended.signal || `exit code ${ended.code}`)}`);
}
