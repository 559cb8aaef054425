// What the figures were measured on: processor, kernel, versions, and the disk that holds the databases. It judges
// nothing.

import { closeSync, fdatasyncSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { median } from './rounds.mjs';

/** @typedef {import('./site.mjs').Site} Site */
/** @typedef {Awaited<ReturnType<typeof describeMachine>>} Machine */

const MIB = 1024 * 1024;

/** @param {Site} site @param {string} pastedVersion */
export async function describeMachine(site, pastedVersion) {
  const folder = site.makeFolder();
  const { bavail, bsize } = await statfs(folder);
  const machine = {
    pasted: pastedVersion,
    node: process.versions.node,
    sqlite: process.versions['sqlite'] ?? 'unknown',
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.cpus().length,
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`,
    loadBefore: os.loadavg()[0] ?? NaN,
    pinned: site.cores === null ? 'no' : `load on core ${site.cores.load}, servers on ${site.cores.servers}`,
    fileSystem: fileSystemOf(folder),
    freeDiskBytes: bavail * bsize,
    ...probeDisk(folder),
  };
  site.removeFolder(folder);
  return machine;
}

/** The type of the file system that a folder is on, as the kernel names it. @param {string} folder */
function fileSystemOf(folder) {
  if (process.platform !== 'linux') return 'unknown';
  const mounts = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n').map((line) => line.split(' '));
  const holding = mounts.filter(([, point = '']) => !path.relative(point, folder).startsWith('..'));
  holding.sort(([, one = ''], [, other = '']) => one.length - other.length);
  return holding.at(-1)?.[2] ?? 'unknown';
}

/**
 * What durable writing costs here at least: nothing that is acknowledged after reaching the disk can be faster.
 * @param {string} folder
 */
function probeDisk(folder) {
  const file = openSync(path.join(folder, 'probe'), 'w');
  const page = Buffer.alloc(4096, 1);
  const content = Buffer.alloc(50 * MIB, 2);
  const timed = (/** @type {() => void} */ action) => {
    const begun = performance.now();
    action();
    return performance.now() - begun;
  };
  const pages = Array.from({ length: 50 }, () => timed(() => {
    writeSync(file, page);
    fdatasyncSync(file);
  }));
  const contents = Array.from({ length: 3 }, () => timed(() => {
    writeSync(file, content, 0, content.length, 0);
    fsyncSync(file);
  }));
  closeSync(file);
  return { writePageMs: median(pages), write50MibMs: median(contents) };
}
