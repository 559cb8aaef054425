// The container of scripts/deploy/container, built and run by podman: what is in it, that it is the same each time, and
// what becomes of the service and its pastes when it is stopped or killed.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { isUnreachable } from '../support/bare-debian.ts';
import { containers, type Containers } from '../support/containers.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { freePorts } from '../support/proxy.ts';
import { statementFaults } from '../support/provenance.ts';
import { commitSource, makeRelease, tryRelease } from '../support/release.ts';
import { ROOT } from '../support/source.ts';

const FILE = join(ROOT, 'scripts', 'deploy', 'container', 'Containerfile');

/** podman may take its time while the machine is busy, and kills after 10 s what has not ended: exit code 137. */
const STOP_MS = 5000;

/** A clone of this source, with the Node that it has kept. */
async function cloneSource(folder: string): Promise<string> {
  const source = join(folder, 'source');
  commitSource(source);
  const module: string = join(ROOT, 'scripts', 'runtime.mjs');
  const { keptRuntime, pinnedVersions } = await import(module) as {
    keptRuntime: (version: string) => Promise<string>; pinnedVersions: readonly [string];
  };
  const kept = dirname(dirname(await keptRuntime(pinnedVersions[0])));
  mkdirSync(join(source, '.runtime'));
  symlinkSync(kept, join(source, '.runtime', basename(kept)));
  return source;
}

/** The name of the archive of files in a new release; undefined where Debian cannot be reached. */
function filesFor(t: TestContext, source: string, folder: string): string | undefined {
  const { status, stdout, stderr } = tryRelease(folder, { source, words: ['--container'] });
  if (isUnreachable(stderr)) {
    t.skip('no packages of Debian can be fetched');
    return undefined;
  }
  assert.equal(status, 0, stderr);
  return / (pasted-rootfs_\S+)$/m.exec(stdout)?.[1] ?? assert.fail(stdout);
}

/** Builds the image; gives its id, which is the digest of all that it is. */
function build({ podman }: Containers, context: string, archive: string, ...options: string[]): string {
  const named = ['--build-arg', `ROOTFS=${archive}`, '-f', FILE, ...options];
  const { status, stdout, output } = podman('build', '--quiet', '--no-cache', '--timestamp', '0', ...named, context);
  assert.equal(status, 0, output);
  return stdout.trim();
}

interface Statement {
  readonly predicate: {
    readonly buildDefinition: {
      readonly externalParameters: { readonly options: readonly string[] };
      readonly resolvedDependencies: readonly {
        readonly name: string; readonly uri: string; readonly digest: { readonly sha256: string };
      }[];
    };
  };
}

interface Inspected {
  readonly Id: string;
  readonly Config: {
    readonly User: string; readonly Volumes: object; readonly Entrypoint: string[]; readonly Cmd: string[];
  };
  readonly Healthcheck?: { readonly Test: string[] };
}

test('container: from scratch, the same each time, runs read-only for nobody, and keeps its pastes', async (t) => {
  const host = containers(t);
  if (host === undefined || !['mmdebstrap', 'dpkg-deb', 'git'].every((program) => isInstalled(t, program))) return;
  const folder = temporaryFolder(t);
  const source = await cloneSource(folder);
  const [first, second] = [join(folder, 'first'), join(folder, 'second')];
  const archive = filesFor(t, source, first);
  if (archive === undefined) return;
  const image = build(host, first, archive);

  await t.test('two releases make two builds with one digest', () => {
    makeRelease(second, { source, words: ['--container'], umask: '077' });
    assert.equal(readFileSync(join(second, 'SHA256SUMS'), 'utf8'), readFileSync(join(first, 'SHA256SUMS'), 'utf8'));
    assert.equal(build(host, second, archive), image);
    const digests = host.podman('image', 'inspect', '--format', '{{.Digest}}', image).stdout.trim().split('\n');
    assert.match(digests.join(), /^sha256:[0-9a-f]{64}$/);
  });

  await t.test('for docker it says how its health is asked', () => {
    const id = build(host, first, archive, '--format', 'docker');
    const [inspected] = JSON.parse(host.podman('image', 'inspect', id).stdout) as [Inspected];
    assert.deepEqual(inspected.Healthcheck?.Test, ['CMD', '/usr/bin/pasted', 'health']);
    assert.deepEqual([inspected.Config.User, inspected.Config.Volumes], ['65532:65532', { '/var/lib/pasted': {} }]);
    assert.deepEqual([inspected.Config.Entrypoint, inspected.Config.Cmd], [['/usr/bin/pasted'], ['serve']]);
  });

  await t.test('it has no program but node, and says of all that it has whose it is', () => {
    const tree = join(folder, 'tree');
    assert.equal(run('mkdir', [tree], folder).status, 0);
    assert.equal(run('tar', ['-xzf', join(first, archive), '-C', tree], folder).status, 0);
    const found = run('find', ['.', '-type', 'f', '-perm', '/111', '-printf', '%P\n'], tree).stdout.trimEnd();
    const isLibrary = (path: string): boolean => /\/(?:lib[a-z_+]+|ld-linux-[a-z0-9_-]+)\.so\.\d+$/.test(path);
    const programs = found.split('\n').filter((path) => !isLibrary(path)).sort();
    assert.deepEqual(programs, [
      'usr/bin/node', 'usr/bin/pasted', 'usr/lib/pasted/client/pastec', 'usr/lib/pasted/main.js',
    ]);
    const sums = readFileSync(join(tree, 'usr/share/doc/pasted/debian-packages'), 'utf8').trimEnd().split('\n');
    const packages = sums.map((line) => /^[0-9a-f]{64} {2}([^_]+)_[^_]+_[a-z0-9]+\.deb$/.exec(line)?.[1] ?? line);
    for (const name of ['libc6', 'libgcc-s1', 'libstdc++6']) {
      assert.ok(packages.includes(name), name);
      assert.match(readFileSync(join(tree, 'var/lib/dpkg/status.d', name), 'utf8'), /^Version: \d/m);
      assert.match(readFileSync(join(tree, 'usr/share/doc', name, 'copyright'), 'utf8'), /GPL/i);
    }
    assert.match(readFileSync(join(tree, 'usr/share/doc/node/copyright'), 'utf8'), /Node\.js is licensed/);
    const statement = JSON.parse(readFileSync(join(first, `pasted-${VERSION}.provenance.json`), 'utf8')) as Statement;
    assert.deepEqual(statementFaults(statement), []);
    const { externalParameters, resolvedDependencies } = statement.predicate.buildDefinition;
    assert.deepEqual(externalParameters.options, ['container']);
    const debs = resolvedDependencies.filter(({ name }) => name.endsWith('.deb'));
    assert.deepEqual(debs.map(({ name, digest }) => `${digest.sha256}  ${name}`), sums);
    assert.ok(debs.every(({ uri }) => /^pkg:deb\/debian\/[^@]+@[^@]+\?arch=[a-z0-9]+$/.test(uri)));
  });

  if (host.onSomeRuntime(() => host.run(image, [], 'version')) === undefined) return;
  await runs(t, host, image);
});

async function runs(t: TestContext, host: Containers, image: string): Promise<void> {
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const variables = { SERVICE_HOST: '127.0.0.1', SERVICE_PORT: String(port), SERVICE_POW_DIFFICULTY: '0' };
  const settings = Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const start = async () => {
    const running = host.start(image, 'pasted', [...settings, '-v', 'pastes:/var/lib/pasted']);
    await running.said(/"listening"/);
    return running;
  };
  /** Runs a script in another node beside the service. */
  const inside = (script: string) => host.podman('exec', 'pasted', '/usr/bin/node', '-e', script);
  let running = await start();
  let raw = '';

  await t.test('pasted version, help and unknown words: as everywhere', () => {
    assert.equal(host.run(image, [], 'version').stdout, `pasted ${VERSION}\n`);
    assert.equal(host.run(image, [], 'no-such-command').status, 2);
  });

  await t.test('stores and gives back', async () => {
    const stored = await fetch(url, { method: 'POST', body: 'kept by the volume' });
    assert.equal(stored.status, 201);
    ({ raw } = await stored.json() as { raw: string });
    assert.equal(await (await fetch(`${url}${raw}`)).text(), 'kept by the volume');
  });

  await t.test('is nobody\'s, without a right, can write nowhere else, and has no shell', () => {
    const status = inside('console.log(require("fs").readFileSync("/proc/self/status", "utf8"))').stdout;
    assert.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
    assert.match(status, /^CapEff:\t0{16}$/m);
    assert.match(status, /^CapBnd:\t0{16}$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    for (const place of ['/file', '/tmp/file', '/usr/lib/pasted/main.js', '/usr/bin/file']) {
      assert.match(inside(`require("fs").writeFileSync("${place}", "")`).output, /EROFS|ENOENT|EACCES/, place);
    }
    assert.match(inside('eval("1")').output, /Code generation from strings disallowed/, 'NODE_OPTIONS');
    for (const shell of ['/bin/sh', 'sh', 'env']) assert.equal(host.podman('exec', 'pasted', shell).status, 127, shell);
  });

  await t.test('pasted health: 0 while it serves', () => {
    const { status, output } = host.podman('exec', 'pasted', '/usr/bin/pasted', 'health');
    assert.equal(status, 0, output);
    assert.match(host.podman('exec', 'pasted', 'pasted', 'stats').stdout, /^pastes +1$/m);
  });

  await t.test('SIGTERM: ends with 0, long before it would be killed', async () => {
    const before = performance.now();
    assert.equal(host.podman('kill', '--signal', 'TERM', 'pasted').status, 0);
    assert.deepEqual(await running.ended, [0, null]);
    const took = performance.now() - before;
    assert.ok(took < STOP_MS, `${took} ms`);
    t.diagnostic(`stopped within ${Math.round(took)} ms`);
    const { status, output } = host.run(image, settings, 'health');
    assert.deepEqual([status, /nothing listens there/.test(output)], [1, true], output);
  });

  await t.test('SIGKILL: what was stored before is there afterwards', async () => {
    running = await start();
    const stored = await fetch(url, { method: 'POST', body: 'stored right before' });
    const { raw: last } = await stored.json() as { raw: string };
    assert.equal(host.podman('kill', '--signal', 'KILL', 'pasted').status, 0);
    assert.deepEqual(await running.ended, [137, null]);
    running = await start();
    assert.equal(await (await fetch(`${url}${raw}`)).text(), 'kept by the volume');
    assert.equal(await (await fetch(`${url}${last}`)).text(), 'stored right before');
    host.podman('kill', '--signal', 'TERM', 'pasted');
    assert.deepEqual(await running.ended, [0, null]);
  });
}
