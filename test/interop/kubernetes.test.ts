// scripts/deploy/kubernetes as Python's yaml reads it (Debian package `python3-yaml`): whether the API knows its
// fields, whether its parts name each other rightly, and whether the container, the units and the service mean the same.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { startServing } from '../support/main-process.ts';
import { manifestFaults } from '../support/kubernetes.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

const DEPLOY = join(ROOT, 'scripts', 'deploy');
const FILE = join(DEPLOY, 'kubernetes', 'pasted.yaml');
const TO_JSON = 'import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin.buffer.read())), sys.stdout)';

interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: { readonly limits: { readonly memory: string } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: object;
  readonly startupProbe: object;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas: number;
    readonly strategy: object;
    readonly selector: { readonly matchLabels: object };
    readonly podSelector: { readonly matchLabels: object };
    readonly egress: readonly object[];
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly automountServiceAccountToken: boolean;
        readonly securityContext: { readonly runAsUser: number; readonly runAsNonRoot: boolean };
        readonly containers: readonly [Container];
        readonly volumes: readonly {
          readonly name: string;
          readonly persistentVolumeClaim?: { readonly claimName: string };
          readonly secret?: { readonly defaultMode: number };
        }[];
      };
    };
  };
}

/** The documents of the file, with `to` in the place of `from` if it is given; undefined where the test is skipped. */
function manifests(t: TestContext, from?: string, to = ''): Manifest[] | undefined {
  if (!isInstalled(t, 'python3')) return undefined;
  const text = readFileSync(FILE, 'utf8');
  if (from !== undefined) assert.ok(text.includes(from), from);
  const file = join(temporaryFolder(t), 'changed.yaml');
  writeFileSync(file, from === undefined ? text : text.replace(from, to));
  const { status, stdout, output } = run('sh', ['-c', 'python3 -c "$0" <"$1"', TO_JSON, file], '/');
  if (/No module named 'yaml'/.test(output)) {
    t.skip('python3-yaml is not installed');
    return undefined;
  }
  assert.equal(status, 0, output);
  return JSON.parse(stdout) as Manifest[];
}

function kind(all: readonly Manifest[], name: string): Manifest {
  return all.find((manifest) => manifest.kind === name) ?? assert.fail(name);
}

test('kubernetes: the API knows every field, and the checker would find what it does not know', (t) => {
  const all = manifests(t);
  if (all === undefined) return;
  assert.deepEqual(all.map(({ kind: name }) => name), [
    'PersistentVolumeClaim', 'Deployment', 'Service', 'NetworkPolicy',
  ]);
  assert.deepEqual(all.flatMap(manifestFaults), []);
  const container = '.spec.template.spec.containers[0]';
  for (const [from, to, fault] of [
    ['runAsNonRoot: true', 'runAsNonroot: true', '.spec.template.spec.securityContext.runAsNonroot'],
    ['runAsUser: 65532', 'runAsUser: "65532"', '.spec.template.spec.securityContext.runAsUser'],
    ['value: 8GiB', 'value: 8', `${container}.env[2].value`],
    ['drop: [ALL]', 'drop: ALL', `${container}.securityContext.capabilities.drop`],
    ['memory: 512Mi', 'memory: 512M b', `${container}.resources.limits.memory`],
    ['replicas: 1', 'replicas: one', '.spec.replicas'],
    ['targetPort: http', 'targetport: http', '.spec.ports[0].targetport'],
    ['apiVersion: apps/v1', 'apiVersion: apps/v2', 'kind'],
  ] as const) assert.equal(manifests(t, from, to)!.flatMap(manifestFaults)[0], fault, from);
});

test('kubernetes: its parts name each other, and one process at a time has the volume', (t) => {
  const all = manifests(t);
  if (all === undefined) return;
  const { spec } = kind(all, 'Deployment');
  const pod = spec.template.spec;
  const [container] = pod.containers;
  assert.deepEqual([spec.replicas, spec.strategy], [1, { type: 'Recreate' }]);
  const { labels } = spec.template.metadata;
  assert.deepEqual([
    spec.selector.matchLabels, kind(all, 'Service').spec.selector,
    kind(all, 'NetworkPolicy').spec.podSelector.matchLabels,
  ], [labels, labels, labels]);
  assert.deepEqual(kind(all, 'NetworkPolicy').spec.egress, []);
  const names = container.ports.map(({ name }) => name);
  assert.deepEqual(kind(all, 'Service').spec.ports.map(({ targetPort }) => targetPort), names);
  const probed = JSON.stringify(container).match(/"httpGet":\{[^}]*\}/g);
  // A disk that takes no writes must neither end nor hide the only process, which still reads.
  const paths = ['/health', '/challenge', '/challenge'];
  assert.deepEqual(probed, paths.map((path) => `"httpGet":{"path":"${path}","port":"${names[0]}"}`));
  assert.deepEqual(container.volumeMounts.map(({ name }) => name), pod.volumes.map(({ name }) => name));
  const claims = pod.volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
  assert.deepEqual(claims, [kind(all, 'PersistentVolumeClaim').metadata.name]);
  assert.deepEqual(pod.volumes.flatMap(({ secret }) => secret?.defaultMode ?? []), [0o440]);
});

test('kubernetes: the container has no rights, no root, no files but its own and no account of the cluster', (t) => {
  const all = manifests(t);
  if (all === undefined) return;
  const pod = kind(all, 'Deployment').spec.template.spec;
  assert.deepEqual(pod.containers[0].securityContext, {
    allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] },
  });
  const { runAsUser, ...others } = pod.securityContext;
  assert.ok(runAsUser > 0);
  assert.deepEqual(others, {
    runAsNonRoot: true, runAsGroup: runAsUser, fsGroup: runAsUser, fsGroupChangePolicy: 'OnRootMismatch',
    seccompProfile: { type: 'RuntimeDefault' },
  });
  assert.equal(pod.automountServiceAccountToken, false);
});

test('kubernetes: user, folders, port, memory and patience are those of the container and of the units', (t) => {
  const all = manifests(t);
  if (all === undefined) return;
  const pod = kind(all, 'Deployment').spec.template.spec;
  const [container] = pod.containers;
  const containerfile = readFileSync(join(DEPLOY, 'container', 'Containerfile'), 'utf8');
  const unit = readFileSync(join(DEPLOY, 'systemd', 'pasted.service'), 'utf8');
  const [, volume = ''] = /^VOLUME \["(.*)"\]$/m.exec(containerfile) ?? [];
  const { runAsUser } = pod.securityContext;
  assert.match(containerfile, new RegExp(`^USER ${runAsUser}:${runAsUser}$`, 'm'));
  assert.match(containerfile, new RegExp(`^EXPOSE ${container.ports[0]!.containerPort}$`, 'm'));
  assert.equal(container.ports[0]!.containerPort, SETTINGS.port.fallback);
  assert.equal(container.volumeMounts[0]!.mountPath, volume);
  assert.match(unit, new RegExp(`^MemoryMax=${container.resources.limits.memory.replace('Mi', 'M')}$`, 'm'));
  assert.match(unit, new RegExp(`^TimeoutStopSec=${pod.terminationGracePeriodSeconds}s$`, 'm'));
});

test('kubernetes: the service starts with its environment, in folders as it mounts them', async (t) => {
  const all = manifests(t);
  if (all === undefined) return;
  const [container] = kind(all, 'Deployment').spec.template.spec.containers;
  const { CREDENTIALS_DIRECTORY: secrets, ...settings } = Object.fromEntries(container.env.map(({ name, value }) => {
    return [name, value];
  }));
  const known = new Set<string>(Object.values(SETTINGS).map(({ name }) => name));
  assert.deepEqual(Object.keys(settings).filter((name) => !known.has(name)), []);
  assert.equal(secrets, container.volumeMounts.find(({ name }) => name === 'secrets')?.mountPath);
  const folder = temporaryFolder(t);
  for (const { mountPath } of container.volumeMounts) mkdirSync(join(folder, mountPath), { recursive: true });
  writeFileSync(join(folder, 'run/secrets/pasted/SERVICE_PKI_CA_PASSWORD'), 'a passphrase');
  const variables = Object.fromEntries(container.env.map(({ name, value }) => {
    return [name, value.startsWith('/') ? join(folder, value) : value];
  }));
  const main = await startServing(t, { environment: variables });
  assert.equal((await fetch(`${main.url}/health`)).status, 200);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  // The group may use the folder of the volume; the folder of the database is for its owner alone.
  const { stdout } = run('stat', ['-c', '%a', join(variables['SERVICE_DB']!, '..'), variables['SERVICE_DB']!], '/');
  assert.equal(stdout, '700\n600\n');
  assert.equal(main.stderr(), '');
});
