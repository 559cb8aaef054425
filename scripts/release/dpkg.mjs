// A Debian package (Debian Policy 4.6) from files and what dpkg is told of them: dpkg-deb makes the archive.

import { hash } from 'node:crypto';
import { chmodSync, lutimesSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../child.mjs';
import { ReleaseError, foldersAbove, modeOf, under } from './files.mjs';

// A name that never resolves (RFC 6761, 6.4): whoever hands the package out has an address of their own.
export const MAINTAINER = 'The pasted maintainers <pasted@example.invalid>';

/** What Debian calls the processors that Node has official builds for, by what Node calls them. */
export const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };

/**
 * The content of a package; undefined where there is no dpkg-deb. Works in `folder`, which must not exist.
 * `control` is the control file without MAINTAINER and INSTALLED_SIZE, `scripts` are the maintainer scripts by name,
 * `configuration` is the path of a file that administrators edit, `secrets` the path of an empty folder for root alone,
 * `level` the level of gzip.
 */
export async function packed(folder, { control, scripts, files, configuration, secrets, seconds, level }) {
  const tree = join(folder, 'tree');
  const values = { MAINTAINER, INSTALLED_SIZE: String(installedKib(files, secrets)) };
  const summed = [...files].filter(([path]) => path !== configuration);
  const told = new Map([
    ['control', replaced(control, values)],
    ...(configuration === undefined ? [] : [['conffiles', `/${configuration}\n`]]),
    ['md5sums', summed.map(([path, content]) => `${hash('md5', content)}  ${path}\n`).join('')],
    ...scripts,
  ]);
  writeTree(tree, new Map([...under('DEBIAN', told), ...files]), secrets, seconds);

  const deb = join(folder, 'package.deb');
  // gzip, since every dpkg since 1994 reads it and one thread writes it: xz may cut its blocks by the number of cores.
  const args = ['--root-owner-group', '-Zgzip', `-z${level}`, '--build', tree, deb];
  // dpkg-deb(1), ENVIRONMENT: nothing else of the caller's environment may change the result.
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC', SOURCE_DATE_EPOCH: String(seconds) };
  const ended = await run('dpkg-deb', args, { stdio: ['ignore', 'pipe', 'pipe'], env }).catch((error) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (ended === undefined) return undefined;
  if (ended.code !== 0) throw new ReleaseError(`dpkg-deb failed: ${ended.output.trim()}`);
  return readFileSync(deb);
}

/** `template` with each @NAME@ that `values` knows replaced. */
export function replaced(template, values) {
  return template.replace(/@([A-Z0-9_]+)@/g, (name, key) => values[key] ?? name);
}

/** Debian Policy 5.6.20, as dpkg-gencontrol counts: whole KiB of each file, and one for each folder. */
function installedKib(files, secrets) {
  const folders = new Set([...files.keys()].flatMap(foldersAbove));
  if (secrets !== undefined) folders.add(secrets);
  const ofFiles = [...files.values()].map((content) => Math.ceil(Buffer.byteLength(content) / 1024));
  return ofFiles.reduce((sum, kib) => sum + kib, folders.size);
}

/** Sets the permissions and times that the archive must have: dpkg-deb itself changes only times that are later. */
function writeTree(tree, files, secrets, seconds) {
  for (const [path, content] of files) {
    const file = join(tree, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, modeOf(content));
  }
  if (secrets !== undefined) mkdirSync(join(tree, secrets));
  const entries = readdirSync(tree, { recursive: true, withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  for (const folder of [tree, ...folders]) chmodSync(folder, 0o755);
  if (secrets !== undefined) chmodSync(join(tree, secrets), 0o700);
  for (const entry of entries) lutimesSync(join(entry.parentPath, entry.name), seconds, seconds);
  lutimesSync(tree, seconds, seconds);
}
