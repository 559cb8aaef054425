// The Debian package (Debian Policy 4.6): where each file goes, and what dpkg is told of it. dpkg-deb makes the
// archive. What scripts/deploy/debian holds is put in with its @NAMES@ replaced.

import { createHash } from 'node:crypto';
import { chmodSync, lutimesSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../child.mjs';
import { gzip } from './archive.mjs';
import { debianChangelog } from './changelog.mjs';
import { environmentFile } from './environment-file.mjs';
import { ReleaseError, modeOf, sorted, under } from './files.mjs';
import { CLIENT } from './product.mjs';

// A name that never resolves (RFC 6761, 6.4): whoever hands the package out has an address of their own.
const MAINTAINER = 'The pasted maintainers <pasted@example.invalid>';
const DOC = 'usr/share/doc/pasted';
const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'];
const CONFIGURATION = 'etc/pasted/pasted.env';
// Only root sees which secrets there are; systemd reads them as root.
const CREDENTIALS = 'etc/pasted/credentials';
/** For commands by root, among the units that it belongs to. */
const CONTROL_SCRIPT = 'systemd/pastedctl';

/** Its file name and content; undefined where there is no dpkg-deb. Works in `folder`, which must not exist. */
export async function debianPackage(folder, product) {
  const files = installedFiles(product);
  const control = controlFiles(product, files);
  const tree = join(folder, 'tree');
  writeTree(tree, new Map([...under('DEBIAN', control), ...files]), product.seconds);

  const name = `pasted_${product.card.version}_all.deb`;
  // gzip, since every dpkg since 1994 reads it and one thread writes it: xz may cut its blocks by the number of cores.
  const args = ['--root-owner-group', '-Zgzip', '-z9', '--build', tree, join(folder, name)];
  // dpkg-deb(1), ENVIRONMENT: nothing of the caller's has a say.
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC', SOURCE_DATE_EPOCH: String(product.seconds) };
  const ended = await run('dpkg-deb', args, { stdio: ['ignore', 'pipe', 'pipe'], env }).catch((error) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (ended === undefined) return undefined;
  if (ended.code !== 0) throw new ReleaseError(`dpkg-deb failed: ${ended.output.trim()}`);
  return { name, content: readFileSync(join(folder, name)) };
}

function installedFiles(product) {
  const { dist, deploy, completions, manuals, openapi, settings, sbom, readme, security, picture } = product;
  const { license, changelog, seconds } = product;
  const debian = (name) => deploy.get(`debian/${name}`).toString();
  const isUnit = (path) => /^systemd\/[^/]+\.(?:service|socket|timer)$/.test(path);
  const units = [...deploy].filter(([path]) => isUnit(path));
  const isElsewhere = (path) => isUnit(path) || path === CONTROL_SCRIPT || path.startsWith('debian/');
  const examples = [...deploy].filter(([path]) => !isElsewhere(path));
  const debianLog = debianChangelog(changelog, MAINTAINER, seconds);
  return sorted(new Map([
    ...under('usr/lib/pasted', dist),
    ['usr/bin/pasted', debian('pasted')],
    ['usr/bin/pastec', dist.get(CLIENT)],
    ['usr/sbin/pastedctl', deploy.get(CONTROL_SCRIPT)],
    ...units.map(([path, content]) => [`usr/lib/systemd/system/${path.slice('systemd/'.length)}`, content]),
    ...[...manuals].map(([name, page]) => [`usr/share/man/man1/${name}.gz`, gzip(page)]),
    // One page explains both.
    ['usr/share/man/man8/pastedctl.8.gz', gzip('.so man1/pasted.1\n')],
    ...[...completions].map(([name, script]) => [completionPath(name), script]),
    ['usr/share/lintian/overrides/pasted', debian('lintian-overrides')],
    [`${DOC}/copyright`, replaced(debian('copyright'), copyrightOf(license))],
    [`${DOC}/changelog.gz`, gzip(debianLog)],
    [`${DOC}/README.md`, readme.replaceAll('scripts/deploy/', 'examples/')],
    [`${DOC}/SECURITY.md`, security],
    [`${DOC}/page.png`, picture],
    [`${DOC}/openapi.json`, openapi],
    [`${DOC}/sbom.cdx.json`, sbom],
    ...under(`${DOC}/examples`, examples),
    [CONFIGURATION, environmentFile(settings)],
  ]));
}

/** Where the shell looks whose completions have such names. */
function completionPath(name) {
  if (name.endsWith('.fish')) return `usr/share/fish/vendor_completions.d/${name}`;
  if (name.startsWith('_')) return `usr/share/zsh/vendor-completions/${name}`;
  return `usr/share/bash-completion/completions/${name}`;
}

function controlFiles({ card, deploy }, files) {
  const debian = (name) => deploy.get(`debian/${name}`).toString();
  const fields = { VERSION: card.version, MAINTAINER, INSTALLED_SIZE: String(installedKib(files)) };
  const summed = [...files].filter(([path]) => path !== CONFIGURATION);
  return new Map([
    ['control', replaced(debian('control'), { ...fields, NODE_VERSION: card.engines.node.replace('>=', '>= ') })],
    ['conffiles', `/${CONFIGURATION}\n`],
    ['md5sums', summed.map(([path, content]) => `${md5(content)}  ${path}\n`).join('')],
    ...MAINTAINER_SCRIPTS.map((name) => [name, debian(name)]),
  ]);
}

/** The lines of LICENSE, in the form that Debian's machine-readable copyright file wants them. */
function copyrightOf(license) {
  const [, holders, body] = /\nCopyright \(c\) (.*)\n\n([^]*)$/.exec(license);
  return { HOLDERS: holders, LICENSE: body.trimEnd().split('\n').map((line) => ` ${line || '.'}`).join('\n') };
}

function replaced(template, values) {
  return template.replace(/@([A-Z_]+)@/g, (_, name) => values[name]);
}

/** Debian Policy 5.6.20, as dpkg-gencontrol counts: whole KiB of each file, and one for each folder. */
function installedKib(files) {
  const folders = new Set([CREDENTIALS, ...[...files.keys()].flatMap(foldersAbove)]);
  const ofFiles = [...files.values()].map((content) => Math.ceil(Buffer.byteLength(content) / 1024));
  return ofFiles.reduce((sum, kib) => sum + kib, folders.size);
}

function foldersAbove(path) {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

function md5(content) {
  return createHash('md5').update(content).digest('hex');
}

/** With the permissions and times that the archive shall have: of those, dpkg-deb would only change later times. */
function writeTree(tree, files, seconds) {
  for (const [path, content] of files) {
    const file = join(tree, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, modeOf(content));
  }
  mkdirSync(join(tree, CREDENTIALS));
  const entries = readdirSync(tree, { recursive: true, withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  for (const folder of [tree, ...folders]) chmodSync(folder, 0o755);
  chmodSync(join(tree, CREDENTIALS), 0o700);
  for (const entry of entries) lutimesSync(join(entry.parentPath, entry.name), seconds, seconds);
  lutimesSync(tree, seconds, seconds);
}
