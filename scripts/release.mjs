// npm run release [-- OUT --runtime --container --sign KEY --as NAME]: makes a release's files in OUT (release/ unless
// given): a tarball, a Debian package, pastec, a list of what is in them (SBOM), a statement of where they come from
// (SLSA), SHA256SUMS, and with --sign a signature of that; with --runtime a Debian package of Node too, with --container
// the files of a container. The same commit makes the same bytes wherever and whenever it runs, as long as the zlib of
// Node and of dpkg-deb compresses alike. Needs no package. Needs the network only for --container, and for --runtime
// when the pinned Node is not kept yet. It neither checks types nor runs tests: do so before.

import { hash } from 'node:crypto';
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endLike, run, say } from './child.mjs';
import { gzip, tarball } from './release/archive.mjs';
import { readChangelog, releaseSeconds } from './release/changelog.mjs';
import { rootFileSystem } from './release/container.mjs';
import { debianPackage } from './release/debian.mjs';
import { ReleaseError, filesUnder, modeOf, under } from './release/files.mjs';
import { CLIENT, describeProduct } from './release/product.mjs';
import { commitOf, provenance } from './release/provenance.mjs';
import { runtimePackage } from './release/runtime-package.mjs';
import { billOfMaterials } from './release/sbom.mjs';
import { isSignatureName, sign, signatureName } from './release/signature.mjs';
import { Stopped, Unavailable, releasedRuntime } from './runtime.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** In a release, the files of this folder lie beside the README, like the files that lie beside it here. */
const DOCUMENTS = 'scripts/release/documents';
const HOUR_MS = 3_600_000;

const given = readArguments();
const out = resolve(given.out ?? join(root, 'release'));
mkdirSync(out, { recursive: true });
removeLeftOvers();
const work = mkdtempSync(join(out, '.releasing-'));
try {
  const made = await release();
  const sums = [...made].map(([name, content]) => `${hash('sha256', content)}  ${name}\n`).join('');
  made.set('SHA256SUMS', sums);
  for (const [name, content] of made) writeFileSync(join(work, name), content, { mode: modeOf(content) });
  const names = [...made.keys()];
  if (given.key !== undefined) {
    await sign(join(work, 'SHA256SUMS'), given.key, given.signature);
    names.push(given.signature);
  }
  publish(names, sums);
  say(`made in ${out} by Node ${process.versions.node}:`);
  process.stdout.write(sums);
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  say(error.message);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** Ends this process when the arguments make no sense, before anything is made, even a folder. */
function readArguments() {
  const [string, boolean] = [{ type: 'string' }, { type: 'boolean' }];
  const options = { sign: string, as: string, runtime: boolean, container: boolean };
  try {
    const { values, positionals: [out, ...others] } = parseArgs({ options, allowPositionals: true });
    if (others.length > 0) throw new ReleaseError(`unexpected argument ${JSON.stringify(others[0])}`);
    if (values.sign === '') throw new ReleaseError('--sign: expected the file of a key');
    if (values.as !== undefined && values.sign === undefined) throw new ReleaseError('--as goes with --sign KEY');
    const { runtime = false, container = false } = values;
    return { out, runtime, container, key: values.sign, signature: signatureName(values.as) };
  } catch (error) {
    say(error.message);
    return process.exit(2);
  }
}

/** Removes the work folders of killed releases: the folder of a release under way is younger than an hour. */
function removeLeftOvers() {
  for (const name of readdirSync(out).filter((name) => name.startsWith('.releasing-'))) {
    const madeMs = statSync(join(out, name), { throwIfNoEntry: false })?.mtimeMs;
    if (madeMs < Date.now() - HOUR_MS) rmSync(join(out, name), { recursive: true, force: true });
  }
}

/** Each file is there whole or not at all. Old signatures go before new sums come, and sums after the files in them. */
function publish(names, sums) {
  const current = join(out, 'SHA256SUMS');
  const before = existsSync(current) ? readFileSync(current, 'utf8') : '';
  if (before !== sums) {
    // First, while the old sums still name these files: if this run is ended here, the next one removes the rest.
    for (const name of readdirSync(out).filter((name) => isOnlyIn(before, name, names))) {
      rmSync(join(out, name));
      say(`removed ${name} of the release before`);
    }
    rmSync(current, { force: true });
    for (const name of readdirSync(out).filter(isSignatureName)) rmSync(join(out, name));
  }
  for (const name of names) renameSync(join(work, name), join(out, name));
}

/** Whether `sums` name a file that this release lacks: it is of another version, or was made with other options. */
function isOnlyIn(sums, name, names) {
  return /^pasted[-_]/.test(name) && sums.includes(`  ${name}\n`) && !names.includes(name);
}

/** Name -> content of each file except the sums. */
async function release() {
  const { commit, doubt, isExport } = await commitOf(root);
  const isSound = commit !== undefined || isExport;
  if (given.key !== undefined && !isSound) throw new ReleaseError(`--sign: ${doubt}, so nobody could make this again`);
  const card = JSON.parse(text('package.json'));
  const changelog = readChangelog(text('CHANGELOG.md'), card.version);
  const seconds = releaseSeconds(changelog, process.env.SOURCE_DATE_EPOCH);
  const dist = await compile();
  const source = {
    card,
    seconds,
    dist: filesUnder(dist),
    deploy: filesUnder(join(root, 'scripts', 'deploy')),
    readme: text('README.md').replaceAll(`${DOCUMENTS}/`, ''),
    documents: new Map([...filesUnder(join(root, DOCUMENTS)), ['SECURITY.md', text('SECURITY.md')]]),
    changelog,
    license: text('LICENSE'),
    lock: JSON.parse(text('package-lock.json')),
  };
  const product = { ...source, ...(await describeProduct(dist, source)), sbom: billOfMaterials(source) };

  const name = `pasted-${card.version}`;
  const made = new Map([
    [`${name}.tar.gz`, gzip(tarball(under(name, tarballFiles(product)), seconds))],
    [`${name}.cdx.json`, product.sbom],
    ['pastec', source.dist.get(CLIENT)],
  ]);
  const debs = [await debianPackage(join(work, 'deb'), product)];
  if (given.runtime && debs.includes(undefined)) throw new ReleaseError('--runtime needs dpkg-deb');
  const runtime = given.runtime || given.container ? await runtimeToHandOut() : undefined;
  if (given.runtime) debs.push(await runtimePackage(join(work, 'runtime'), product, runtime));
  if (debs.includes(undefined)) say('there is no dpkg-deb here: made no Debian package');
  else for (const deb of debs) made.set(deb.name, deb.content);
  const rootfs = given.container ? await rootFileSystem(join(work, 'rootfs'), product, runtime) : undefined;
  if (rootfs !== undefined) made.set(rootfs.name, rootfs.content);
  const options = ['runtime', 'container'].filter((option) => given[option]);
  const origin = { ...source, commit, node: process.versions.node, options, debs: rootfs?.debs };
  if (commit === undefined) say(`${doubt}: made no statement of where the release comes from`);
  else made.set(`${name}.provenance.json`, provenance(made, origin));
  return made;
}

async function runtimeToHandOut() {
  return releasedRuntime().catch((error) => {
    if (error instanceof Unavailable) throw new ReleaseError(`there is no Node to hand out: ${error.message}`);
    if (!(error instanceof Stopped)) throw error;
    rmSync(work, { recursive: true, force: true });
    return endLike({ code: null, signal: error.signal });
  });
}

// Files that the repository has too are laid out as there, so that the paths in the README hold.
function tarballFiles({ dist, deploy, readme, documents, manuals, openapi, completions, sbom }) {
  return new Map([
    ['README.md', readme.replaceAll('scripts/deploy/', 'deploy/')],
    ['CHANGELOG.md', text('CHANGELOG.md')],
    ['LICENSE', text('LICENSE')],
    ...documents,
    ['package.json', text('package.json')],
    ['sbom.cdx.json', sbom],
    ['openapi.json', openapi],
    ...under('man', manuals),
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
