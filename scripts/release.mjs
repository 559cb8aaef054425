// npm run release [-- OUT]: makes what is handed out, in OUT (release/ unless given): a tarball, a Debian package, a
// list of what is in them (SBOM) and SHA256SUMS. The same source makes the same bytes wherever and whenever it runs, as
// long as the zlib of Node and of dpkg-deb compresses alike. Needs no package, and neither git nor the network. It does
// not check types, run tests or sign: do so before and after.

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';
import { gzip, tarball } from './release/archive.mjs';
import { readChangelog, releaseSeconds } from './release/changelog.mjs';
import { debianPackage } from './release/debian.mjs';
import { filesUnder, under } from './release/files.mjs';
import { describeProduct } from './release/product.mjs';
import { billOfMaterials } from './release/sbom.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** What a page looks like; beside the README in what is handed out. */
const PICTURE = 'scripts/release/page.png';
const out = resolve(process.argv[2] ?? join(root, 'release'));

mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(out, '.releasing-'));
try {
  const made = await release();
  const sums = [...made].map(([name, content]) => `${sha256(content)}  ${name}\n`).join('');
  made.set('SHA256SUMS', sums);
  // Whole or not at all, and the sums last: what they name is there.
  for (const [name, content] of made) {
    writeFileSync(join(work, name), content, { mode: 0o644 });
    renameSync(join(work, name), join(out, name));
  }
  say(`made in ${out} by Node ${process.versions.node}:`);
  process.stdout.write(sums);
} catch (error) {
  if (!(error instanceof Error) || error.name !== 'ReleaseError') throw error;
  say(error.message);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** Name -> content of each file, but for the sums. */
async function release() {
  const card = JSON.parse(text('package.json'));
  const changelog = readChangelog(text('CHANGELOG.md'), card.version);
  const seconds = releaseSeconds(changelog, process.env.SOURCE_DATE_EPOCH);
  const dist = await compile();
  const source = {
    card,
    seconds,
    dist: filesUnder(dist),
    deploy: filesUnder(join(root, 'scripts', 'deploy')),
    readme: text('README.md').replace(PICTURE, 'page.png'),
    changelog,
    license: text('LICENSE'),
    picture: readFileSync(join(root, PICTURE)),
    lock: JSON.parse(text('package-lock.json')),
  };
  const product = { ...source, ...(await describeProduct(dist, source)), sbom: billOfMaterials(source) };

  const name = `pasted-${card.version}`;
  const made = new Map([
    [`${name}.tar.gz`, gzip(tarball(under(name, tarballFiles(product)), seconds))],
    [`${name}.cdx.json`, product.sbom],
  ]);
  const deb = await debianPackage(join(work, 'deb'), product);
  if (deb === undefined) say('there is no dpkg-deb here: made no Debian package');
  else made.set(deb.name, deb.content);
  return made;
}

// Laid out as in the repository where that has the same files, so that what the README says of paths holds.
function tarballFiles({ dist, deploy, readme, picture, manual, openapi, completions, sbom }) {
  return new Map([
    ['README.md', readme.replaceAll('scripts/deploy/', 'deploy/')],
    ['page.png', picture],
    ['CHANGELOG.md', text('CHANGELOG.md')],
    ['LICENSE', text('LICENSE')],
    ['package.json', text('package.json')],
    ['sbom.cdx.json', sbom],
    ['man/pasted.1', manual],
    ['openapi.json', openapi],
    ...under('completions', completions),
    ...under('dist', dist),
    ...[...under('deploy', deploy)].filter(([path]) => !path.startsWith('deploy/debian/')),
  ]);
}

async function compile() {
  const dist = join(work, 'dist');
  const script = join(root, 'scripts', 'compile.mjs');
  const ended = await run(process.execPath, ['--disable-warning=ExperimentalWarning', script, dist]);
  if (ended.code === 0) return dist;
  rmSync(work, { recursive: true, force: true });
  return endLike(ended);
}

function text(name) {
  return readFileSync(join(root, name), 'utf8');
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}
