// Where a release comes from, for programs: a statement of in-toto (https://in-toto.io/Statement/v1) with a predicate of
// SLSA (https://slsa.dev/provenance/v1). It has no signature of its own: SHA256SUMS names it, and --sign signs that.
// Nothing in it depends on the machine or the time, so whoever makes the release again gets the same statement.

import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../child.mjs';
import { pinnedBuilds } from '../runtime.mjs';
import { ReleaseError } from './files.mjs';
import { hexDigests, packageUrl } from './sbom.mjs';

// Names that never resolve (RFC 6761, 6.4), since this project has no address; scripts/README.md explains them.
const BUILD_TYPE = 'https://pasted.invalid/npm-run-release/v1';
const BUILDER = 'https://pasted.invalid/whoever-signed/v1';

/** The commit of `root`, or why none can be named. A folder that is no repository may be the export of a commit. */
export async function commitOf(root) {
  // Only a repository of its own counts, since an export may lie inside another repository.
  if (!existsSync(join(root, '.git'))) return { doubt: 'this is no git repository', isExport: true };
  const status = await git(root, 'status', '--porcelain', '--untracked-files=all');
  const head = await git(root, 'rev-parse', 'HEAD');
  // A release contains all files of these folders, even those that git ignores.
  const ignored = await git(root, 'ls-files', '--others', '--', 'src', 'scripts');
  const files = await git(root, 'ls-files', '-v');
  if ([status, head, ignored, files].includes(undefined)) return { doubt: 'git does not say which commit this is' };
  if (status !== '') return { doubt: `there are changes that are in no commit (${changedFiles(status)})` };
  if (ignored !== '') return { doubt: `there are files that git ignores (${named(ignored.trimEnd().split('\n'))})` };
  // git-ls-files(1): a lower-case letter marks a file that is assumed to be unchanged, S one that is skipped.
  const unseen = files.split('\n').filter((line) => /^[a-zS] /.test(line)).map((line) => line.slice(2));
  if (unseen.length > 0) return { doubt: `git is told not to look at some files (${named(unseen)})` };
  return { commit: head.trim() };
}

const MAX_NAMES_SHOWN = 10;

/** A line of `git status --porcelain` is two letters, a space and the path, quoted where a shell would need it. */
function changedFiles(status) {
  return named(status.trimEnd().split('\n').map((line) => line.slice(3)));
}

function named(names) {
  const others = names.length - MAX_NAMES_SHOWN;
  return names.slice(0, MAX_NAMES_SHOWN).join(', ') + (others > 0 ? ` and ${others} more` : '');
}

/** What git prints, or undefined when it fails or is missing. GIT_ variables could lead it to another tree. */
async function git(root, ...words) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_')));
  const options = { cwd: root, env, stdio: ['ignore', 'pipe', 'ignore'] };
  const ended = await run('git', ['--no-optional-locks', ...words], options).catch(() => undefined);
  // A stopped git ends with an error too, and must not look like one that found no repository.
  if (ended?.received) throw new ReleaseError(`stopped by ${ended.received}`);
  return ended?.code === 0 ? ended.output : undefined;
}

/**
 * The statement about the files `made`, by name, from that commit, by Node of the version `node`. `options` are such as
 * `container`; `debs` are the packages that the container has.
 */
export function provenance(made, { commit, seconds, lock, node, options = [], debs = [] }) {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...made].map(([name, content]) => ({ name, digest: { sha256: hash('sha256', content) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { commit, SOURCE_DATE_EPOCH: String(seconds), options },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: commit } },
          ...runtimes(node),
          ...debs.map(({ sha256: sum, ...deb }) => ({ ...deb, digest: { sha256: sum } })),
          ...developmentPackages(lock),
        ],
      },
      // The id of a run follows from its inputs, so runs that make the same release have the same id.
      runDetails: { builder: { id: BUILDER }, metadata: { invocationId: [`${commit}@${seconds}`, ...options].join('+') } },
    },
  };
  return `${JSON.stringify(statement, undefined, 2)}\n`;
}

/** Every pinned build, if one has this version, since all of them make the same bytes; else only the version. */
function runtimes(node) {
  const builds = pinnedBuilds();
  if (!builds.some(({ version }) => version === node)) return [{ name: 'node', uri: `pkg:generic/node@${node}` }];
  return builds.map(({ name, version, integrity }) => ({
    name, uri: packageUrl(name, version), digest: hexDigests(integrity),
  }));
}

/** These check the types and run the tests; the release is made without them. */
function developmentPackages({ packages }) {
  return Object.entries(packages).filter(([path]) => path !== '').map(([path, { version, integrity }]) => {
    const name = path.replace(/^.*node_modules\//, '');
    return { name, uri: packageUrl(name, version), digest: hexDigests(integrity), annotations: { use: 'development' } };
  });
}
