// The Debian package pasted-runtime: the pinned official build of Node, for hosts whose own is too old for the service.
// The files of scripts/deploy/debian/runtime are put in with their @NAMES@ replaced.

import { gzip } from './archive.mjs';
import { debianChangelog } from './changelog.mjs';
import { ARCHITECTURES, MAINTAINER, packed, replaced } from './dpkg.mjs';
import { sorted } from './files.mjs';

const DOC = 'usr/share/doc/pasted-runtime';
/** The level of gzip: 9 takes three times as long, and saves half a percent. */
const LEVEL = 6;

/** Its file name and content; undefined where there is no dpkg-deb. Works in `folder`, which must not exist. */
export async function runtimePackage(folder, { card, deploy, seconds }, runtime) {
  const template = (name) => deploy.get(`debian/runtime/${name}`).toString();
  const architecture = ARCHITECTURES[process.arch];
  // Not only Node's version, since the dates of each release of the service change the bytes.
  const version = `${runtime.version}+pasted${card.version}`;
  const values = {
    VERSION: version,
    ARCHITECTURE: architecture,
    NODE_VERSION: runtime.version,
    PLATFORM: runtime.platform,
    SHA256: runtime.sha256,
    SHA512: Buffer.from(runtime.sha512, 'base64').toString('hex'),
  };
  const changes = [`Node.js ${runtime.version}, for pasted ${card.version}.`];
  const content = await packed(folder, {
    control: replaced(template('control'), values),
    scripts: [['postinst', template('postinst')]],
    files: sorted(new Map([
      ['usr/lib/pasted-runtime/bin/node', runtime.node],
      ['usr/share/lintian/overrides/pasted-runtime', template('lintian-overrides')],
      [`${DOC}/README`, replaced(template('README'), values)],
      [`${DOC}/copyright`, `${template('copyright')}\n${runtime.license}`],
      [`${DOC}/changelog.gz`, gzip(debianChangelog('pasted-runtime', [{ version, changes }], MAINTAINER, seconds))],
    ])),
    seconds,
    level: LEVEL,
  });
  return content === undefined ? undefined : { name: `pasted-runtime_${version}_${architecture}.deb`, content };
}
