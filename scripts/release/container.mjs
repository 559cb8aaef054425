// The files of a container (scripts/deploy/container): the service, the pinned official build of Node, and the
// libraries that Node is linked to, from three Debian packages. mmdebstrap fetches these packages and apt verifies
// them. There is no shell, and no other program.

import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run } from '../child.mjs';
import { gzip, tarball } from './archive.mjs';
import { ARCHITECTURES } from './dpkg.mjs';
import { ReleaseError, foldersAbove, under } from './files.mjs';

/** Debian 13. No versions of its packages are pinned, so a release gets those with the latest fixes. */
const SUITE = 'trixie';
const OS_RELEASE = 'PRETTY_NAME="Debian 13, of which there are some libraries"\nID=debian\nVERSION_ID="13"\n';
const PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6'];
const LIBRARIES = ['libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0', 'libstdc++.so.6'];
/** As `ldd` shows for Node: the loader of the libraries, and the folder in which Debian has them. */
const PLACES = {
  x64: { loader: 'lib64/ld-linux-x86-64.so.2', libraries: 'usr/lib/x86_64-linux-gnu' },
  arm64: { loader: 'lib/ld-linux-aarch64.so.1', libraries: 'usr/lib/aarch64-linux-gnu' },
};

/** Like the command that npm makes from package.json, but with node's path: there is no `env` here to find node. */
const COMMAND = "#!/usr/bin/node\nimport '/usr/lib/pasted/main.js';\n";

/** A user id that nobody on the host has, since it is in no passwd; the Containerfile names the same. */
const USER = 65532;
const DATA = 'var/lib/pasted';

/** The level of gzip: 9 takes three times as long, and saves half a percent. */
const LEVEL = 6;

/** The archive's file name and content, and the `debs` that are in it. Works in `folder`, which must not exist. */
export async function rootFileSystem(folder, { card, dist, license, seconds }, runtime) {
  const { debs, files: libraries } = await librariesOfDebian(folder);
  const files = new Map([
    ['etc/os-release', OS_RELEASE],
    ['usr/bin/node', runtime.node],
    ['usr/bin/pasted', COMMAND],
    ...under('usr/lib/pasted', dist),
    ['usr/share/doc/pasted/copyright', license],
    ['usr/share/doc/node/copyright', runtime.license],
    ['usr/share/doc/pasted/debian-packages', debs.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')],
    ...libraries,
  ]);
  const above = new Set([...files.keys(), `${DATA}/`].flatMap(foldersAbove).sort());
  above.delete(DATA);
  const folders = [...above].map((path) => ({ path, mode: 0o755, owner: 0 }));
  // A new volume takes its owner and mode from here.
  folders.push({ path: DATA, mode: 0o700, owner: USER });
  const name = `pasted-rootfs_${card.version}_${ARCHITECTURES[process.arch]}.tar.gz`;
  return { name, content: gzip(tarball(files, seconds, folders), LEVEL), debs };
}

/** The libraries as `files`, with the copyright and control data of their packages; and these packages as `debs`. */
async function librariesOfDebian(folder) {
  const tree = join(folder, 'tree');
  const files = new Map();
  const debs = [];
  for (const archive of await fetchPackages(folder)) {
    await output('dpkg-deb', ['--extract', archive, tree]);
    const control = await output('dpkg-deb', ['--field', archive]);
    const [name, version, architecture] = ['Package', 'Version', 'Architecture'].map((field) => {
      return new RegExp(`^${field}: (.*)$`, 'm').exec(control)[1];
    });
    const copyright = `usr/share/doc/${name}/copyright`;
    if (existsSync(join(tree, copyright))) files.set(copyright, readFileSync(join(tree, copyright)));
    // Vulnerability scanners look here, since many images without dpkg keep the control data here.
    files.set(`var/lib/dpkg/status.d/${name}`, control);
    debs.push({
      name: basename(archive),
      uri: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
      sha256: hash('sha256', readFileSync(archive)),
    });
  }
  const { loader, libraries } = PLACES[process.arch];
  files.set(loader, readFileSync(join(tree, 'usr', loader)));
  for (const name of LIBRARIES) files.set(`${libraries}/${name}`, readFileSync(join(tree, libraries, name)));
  return { files, debs };
}

/** The paths of the packages, and of those that they depend on. */
async function fetchPackages(folder) {
  mkdirSync(folder);
  const fetched = join(folder, 'fetched.tar');
  // Skipping the cleanup keeps the packages in the archive. A folder would hold files that belong to other users.
  await output('mmdebstrap', [
    '--quiet', '--variant=extract', '--skip=cleanup/apt', `--include=${PACKAGES}`, SUITE, fetched,
  ]);
  const archives = 'var/cache/apt/archives';
  await output('tar', ['-xf', fetched, '-C', folder, '--wildcards', `./${archives}/*.deb`]);
  const names = readdirSync(join(folder, archives)).sort();
  return names.filter((name) => name.endsWith('.deb')).map((name) => join(folder, archives, name));
}

/** The program's output; when it fails, the release fails with its message. */
async function output(program, args) {
  const ended = await run(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }).catch((error) => {
    if (error.code === 'ENOENT') throw new ReleaseError(`a container needs ${program}: install that Debian package`);
    throw error;
  });
  if (ended.code !== 0) throw new ReleaseError(`${program} failed: ${ended.output.trim()}`);
  return ended.output;
}
