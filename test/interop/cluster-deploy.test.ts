// scripts/deploy/cluster with real nodes: the command of the unit, certificates by openssl, and a service with the
// settings of the drop-in, which finds the nodes and nobody else.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseEnv } from 'node:util';
import { builtMain } from '../support/built.ts';
import { fill } from '../support/databases.ts';
import { startMain } from '../support/main-process.ts';
import { openssl } from '../support/pki.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { freePorts } from '../support/proxy.ts';
import { rqlited, rqliteMissing } from '../support/rqlite.ts';
import { ROOT } from '../support/source.ts';
import { startedAs, UNITS_FOLDER } from '../support/unit-start.ts';

const FOLDER = join(ROOT, 'scripts', 'deploy', 'cluster');
const PATIENCE_MS = 30_000;

type Words = Record<string, string>;

const deployed = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

/** Makes the files that /etc/pasted/node has. */
function makeCredentials(folder: string, password: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(folder, 'req', '-x509', ...key, '-keyout', 'ca.key', '-subj', '/CN=nodes', '-days', '2', '-out', 'ca.crt');
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-subj', '/CN=node', '-addext', 'subjectAltName=IP:127.0.0.1'];
  openssl(folder, 'req', '-x509', ...key, '-keyout', 'node.key', ...signed, '-days', '2', '-out', 'node.crt');
  writeFileSync(join(folder, 'users.json'), JSON.stringify([{ username: 'pasted', password, perms: ['all'] }]));
}

/** The words of ExecStart, as systemd would have them with these variables. */
function commandOf(unit: string, variables: Readonly<Record<string, string>>): string[] {
  const [, line = ''] = /^ExecStart=(.*)$/m.exec(unit.replaceAll(/ *\\\n */g, ' ')) ?? [];
  return line.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => variables[name] ?? assert.fail(name)).split(' ');
}

/** Three hosts on loopback: each has ports of its own where a host would have an address of its own. */
async function threeHosts(t: TestContext, folder: string) {
  const ports = await freePorts(6);
  const peers = ports.slice(3).map((port) => `127.0.0.1:${port}`);
  const children: ChildProcess[] = [];
  t.after(async () => {
    const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    const ends = running.map((child) => once(child, 'exit'));
    for (const child of running) child.kill('SIGKILL');
    await Promise.all(ends);
  });
  const unit = deployed('rqlited.service');
  const [, NODES = ''] = /^Environment=NODES=(.*)$/m.exec(unit) ?? [];
  return {
    addresses: ports.slice(0, 3).map((port) => `127.0.0.1:${port}`),
    peers,
    /** Starts the node of that host, with these changes of its node.env. */
    startNode: (index: number, changes: Words = {}): ChildProcess => {
      const variables = {
        NODES, NODE_ID: String(index + 1), ADDRESS: '127.0.0.1', PEERS: peers.join(), ...changes,
        CREDENTIALS_DIRECTORY: folder, STATE_DIRECTORY: join(folder, `node-${index}`),
      };
      const words = commandOf(unit, variables)
        .map((word) => word.replace(/^127\.0\.0\.1:4001$/, `127.0.0.1:${ports[index]}`))
        .map((word) => word.replace(/^127\.0\.0\.1:4002$/, peers[index]!));
      assert.equal(words.shift(), '/usr/local/bin/rqlited');
      const child = spawn(rqlited()!, words, { stdio: 'ignore' });
      children.push(child);
      return child;
    },
  };
}

/** The settings that README.md puts into pasted.env, for these nodes. */
function settingsFor(addresses: readonly string[], caPath: string): Words {
  const [, settings = ''] = /```ini\n(.*?)```/s.exec(deployed('README.md')) ?? [];
  return parseEnv(settings.replace('/etc/pasted/node/ca.crt', caPath).replace(/@.*/, `@${addresses.join()}`)) as Words;
}

test('cluster: the nodes of the unit and a service with the drop-in find each other, by TLS and a password', async (t) => {
  const missing = rqliteMissing();
  if (missing !== undefined) return t.skip(missing);
  const folder = temporaryFolder(t);
  makeCredentials(folder, 'hunter2');
  const { addresses, startNode } = await threeHosts(t, folder);
  for (const index of [0, 1, 2]) startNode(index);
  const caPath = join(folder, 'ca.crt');
  const environment = {
    ...settingsFor(addresses, caPath), SERVICE_DB_PASSWORD: 'hunter2', SERVICE_PORT: '0', SERVICE_POW_DIFFICULTY: '0',
  };
  const main = builtMain();
  const check = (changes: Words) => spawnSync(process.execPath, [main, 'check'], {
    cwd: folder, env: { ...environment, ...changes }, encoding: 'utf8', timeout: PATIENCE_MS,
  });
  for (const startMs = performance.now(); !/^ok nodes/m.test(check({}).stdout); await pause(200)) {
    assert.ok(performance.now() - startMs < PATIENCE_MS, check({}).stdout);
  }
  assert.match(check({ SERVICE_DB_PASSWORD: 'wrong' }).stdout, /^fail nodes: .*SERVICE_DB_PASSWORD/m);
  assert.match(check({ SERVICE_DB_CA: '' }).stdout, /^fail nodes: .*SERVICE_DB_CA/m);
  // The unit starts the service with --permission; it needs what the drop-in permits besides.
  const [, nodeOptions = ''] = /^Environment=NODE_OPTIONS=(.*)$/m.exec(deployed('nodes.conf')) ?? [];
  const permitted = { NODE_OPTIONS: nodeOptions.replace('/etc/pasted/node/ca.crt', caPath) };
  const how = startedAs('pasted.service', temporaryFolder(t));
  const refused = startMain(t, [], { ...how, environment });
  assert.equal(await refused.ended, 78);
  assert.match(refused.stderr(), /SERVICE_DB_CA: .*needs --allow-fs-read for it/);
  const service = startMain(t, [], { ...how, environment: { ...environment, ...permitted } });
  const [, url = ''] = await service.printed(/url=(\S+)/);
  const stored = await fetch(url, { method: 'POST', body: 'kept on three disks' });
  assert.equal(stored.status, 201);
  const { id } = await stored.json() as { id: string };
  assert.equal(await (await fetch(`${url}/${id}/raw`)).text(), 'kept on three disks');
  service.child.kill('SIGTERM');
  assert.equal(await service.ended, 0);
});

/** A backup, three hosts whose nodes are not started, and commands beside them. */
async function beforeRestore(t: TestContext) {
  const folder = temporaryFolder(t);
  makeCredentials(folder, 'hunter2');
  const backup = join(folder, 'backup.db');
  const { length: count } = await fill(backup, 1);
  const hosts = await threeHosts(t, folder);
  const env = { ...settingsFor(hosts.addresses, join(folder, 'ca.crt')), SERVICE_DB_PASSWORD: 'hunter2' };
  const pasted = (...words: string[]) => spawnSync(process.execPath, [builtMain(), ...words], {
    cwd: folder, env, encoding: 'utf8', timeout: PATIENCE_MS,
  });
  const untilEmptyNodesLead = async (): Promise<void> => {
    for (const startMs = performance.now(); !pasted('stats').stderr.includes('the nodes have no database'); await pause(200)) {
      assert.ok(performance.now() - startMs < PATIENCE_MS, pasted('stats').stderr);
    }
  };
  return { ...hosts, folder, backup, count, pasted, untilEmptyNodesLead };
}

test('cluster: a backup is restored to a node alone, as its README says, and the nodes that join have it', async (t) => {
  const missing = rqliteMissing();
  if (missing !== undefined) return t.skip(missing);
  if (!isInstalled(t, 'curl')) return;
  const { folder, backup, count, addresses, peers, startNode, pasted, untilEmptyNodesLead } = await beforeRestore(t);
  const first = startNode(0, { NODES: '1', PEERS: peers[0]! });
  await untilEmptyNodesLead();
  const restored = pasted('restore', backup);
  assert.equal(restored.status, 0, restored.stderr);
  for (const index of [1, 2]) startNode(index);
  const counted = (index: number): string => {
    const query = `https://${addresses[index]}/db/query?level=none&q=SELECT+count(*)+FROM+pastes`;
    return run('curl', ['-sSk', '--user', 'pasted:hunter2', query], folder).output;
  };
  for (const index of [1, 2]) {
    for (const startMs = performance.now(); !counted(index).includes(`"values":[[${count}]]`); await pause(200)) {
      assert.ok(performance.now() - startMs < PATIENCE_MS, counted(index));
    }
  }
  assert.match(pasted('check', '--full').stdout, /^ok integrity: .*^ok records: /ms);
  const again = pasted('restore', backup);
  assert.deepEqual([again.status, again.stderr.includes('have a database already')], [78, true]);
  first.kill('SIGKILL');
  await once(first, 'exit');
  const stats = pasted('stats');
  assert.match(stats.stdout, new RegExp(`^pastes +${count}$`, 'm'), stats.stderr);
});

test('cluster: several nodes without a database refuse a backup, and the refusal says what to do', async (t) => {
  const missing = rqliteMissing();
  if (missing !== undefined) return t.skip(missing);
  const { backup, startNode, pasted, untilEmptyNodesLead } = await beforeRestore(t);
  for (const index of [0, 1, 2]) startNode(index);
  await untilEmptyNodesLead();
  const { status, stderr } = pasted('restore', backup);
  assert.equal(status, 1);
  assert.match(stderr, /no node took the backup \(503 not (?:single-node|leader)\): only a node that is alone does, /);
});

test('cluster: unit and drop-in say why of what they set, and systemd has nothing to say against them', (t) => {
  const lines = deployed('nodes.conf').split('\n');
  for (const [index, line] of lines.entries()) {
    if (!/^[A-Z]/.test(line)) continue;
    const above = lines[index - 1]!;
    assert.ok(above.startsWith('# ') || /^(?:Environment|LoadCredential)=/.test(line), line);
  }
  if (!isInstalled(t, 'systemd-analyze')) return;
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'pasted.service.d'));
  for (const unit of ['pasted.service', 'pasted.socket']) copyFileSync(join(UNITS_FOLDER, unit), join(folder, unit));
  copyFileSync(join(FOLDER, 'nodes.conf'), join(folder, 'pasted.service.d', 'nodes.conf'));
  const unit = deployed('rqlited.service').replace('/usr/local/bin/rqlited', process.execPath);
  writeFileSync(join(folder, 'rqlited.service'), unit);
  const units = ['pasted.service', 'rqlited.service'].map((name) => join(folder, name));
  assert.deepEqual(run('systemd-analyze', ['verify', '--man=no', ...units], folder), { status: 0, stdout: '', output: '' });
});
