// The Debian package of the service: where each file goes, and what dpkg is told of it. The files of
// scripts/deploy/debian are put in with their @NAMES@ replaced.

import { gzip } from './archive.mjs';
import { debianChangelog } from './changelog.mjs';
import { MAINTAINER, packed, replaced } from './dpkg.mjs';
import { environmentFile } from './environment-file.mjs';
import { sorted, under } from './files.mjs';
import { CLIENT } from './product.mjs';

const DOC = 'usr/share/doc/pasted';
/** Files that the README tells root to copy; not in DOC, since some hosts leave out all documentation. */
const EXAMPLES = 'usr/share/pasted/examples';
const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'];
const CONFIGURATION = 'etc/pasted/pasted.env';
// Only root may see which secrets there are; that suffices, since systemd reads them as root.
const CREDENTIALS = 'etc/pasted/credentials';
/** The script by which root gives commands; in the repository it lies among the systemd units. */
const CONTROL_SCRIPT = 'systemd/pastedctl';

/** Its file name and content; undefined where there is no dpkg-deb. Works in `folder`, which must not exist. */
export async function debianPackage(folder, product) {
  const { card, deploy, seconds } = product;
  const script = (name) => deploy.get(`debian/${name}`).toString();
  const values = { VERSION: card.version, NODE_VERSION: card.engines.node.replace('>=', '>= ') };
  const content = await packed(folder, {
    control: replaced(script('control'), values),
    scripts: MAINTAINER_SCRIPTS.map((name) => [name, script(name)]),
    files: installedFiles(product),
    configuration: CONFIGURATION,
    secrets: CREDENTIALS,
    seconds,
    level: 9,
  });
  return content === undefined ? undefined : { name: `pasted_${card.version}_all.deb`, content };
}

function installedFiles(product) {
  const { dist, deploy, completions, manuals, openapi, settings, sbom, readme, documents } = product;
  const { license, changelog, seconds } = product;
  const debian = (name) => deploy.get(`debian/${name}`).toString();
  const isUnit = (path) => /^systemd\/[^/]+\.(?:service|socket|timer)$/.test(path);
  const units = [...deploy].filter(([path]) => isUnit(path));
  const isElsewhere = (path) => isUnit(path) || path === CONTROL_SCRIPT || path.startsWith('debian/');
  const examples = [...deploy].filter(([path]) => !isElsewhere(path));
  const debianLog = debianChangelog('pasted', changelog, MAINTAINER, seconds);
  return sorted(new Map([
    ...under('usr/lib/pasted', dist),
    ['usr/bin/pasted', debian('pasted')],
    ['usr/bin/pastec', dist.get(CLIENT)],
    ['usr/sbin/pastedctl', deploy.get(CONTROL_SCRIPT)],
    ...units.map(([path, content]) => [`usr/lib/systemd/system/${path.slice('systemd/'.length)}`, content]),
    ...[...manuals].map(([name, page]) => [`usr/share/man/man1/${name}.gz`, gzip(page)]),
    // One page explains both commands.
    ['usr/share/man/man8/pastedctl.8.gz', gzip('.so man1/pasted.1\n')],
    ...[...completions].map(([name, script]) => [completionPath(name), script]),
    // Bash and fish look for a file with the name of the command; for zsh, one file serves both names.
    [completionPath('pastedctl'), `. /${completionPath('pasted')}\n`],
    [completionPath('pastedctl.fish'), `source /${completionPath('pasted.fish')}\n`],
    ['usr/share/lintian/overrides/pasted', debian('lintian-overrides')],
    [`${DOC}/copyright`, replaced(debian('copyright'), copyrightOf(license))],
    [`${DOC}/changelog.gz`, gzip(debianLog)],
    [`${DOC}/README.md`, readme.replaceAll('scripts/deploy/', '../../pasted/examples/')],
    ...under(DOC, documents),
    [`${DOC}/openapi.json`, openapi],
    [`${DOC}/sbom.cdx.json`, sbom],
    ...under(EXAMPLES, examples),
    [CONFIGURATION, environmentFile(settings)],
  ]));
}

/** The place where a shell looks for its completions; the name tells which shell. */
function completionPath(name) {
  if (name.endsWith('.fish')) return `usr/share/fish/vendor_completions.d/${name}`;
  if (name.startsWith('_')) return `usr/share/zsh/vendor-completions/${name}`;
  return `usr/share/bash-completion/completions/${name}`;
}

/** The lines of LICENSE, in the form that Debian's machine-readable copyright file wants them. */
function copyrightOf(license) {
  const [, holders, body] = /\nCopyright \(c\) (.*)\n\n([^]*)$/.exec(license);
  return { HOLDERS: holders, LICENSE: body.trimEnd().split('\n').map((line) => ` ${line || '.'}`).join('\n') };
}
