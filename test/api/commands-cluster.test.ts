// The operator's commands beside a host of a cluster, whose nodes speak TLS and ask for a password. The commands do
// the same as with a file, and a copy of a cluster's database is such a file.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { addressOf, ask, type Cluster, startCluster } from '../support/cluster.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { startFaultyNodes } from '../support/faulty-nodes.ts';
import { damagesDatabases, rqliteMissing, startNodes } from '../support/rqlite.ts';
import { openTestStore } from '../support/store.ts';

const USER = { username: 'pasted', password: 'canary-of-the-nodes' };
const LARGE = 'large '.repeat(50_000);

/** A host over three nodes, whose commands must succeed unless another exit code is given. */
async function start(t: TestContext) {
  const folder = temporaryFolder(t);
  const cluster = await startCluster(t, {
    hosts: 1,
    nodes: { user: USER, tls: true },
    secure: (nodes) => {
      writeFileSync(join(folder, 'nodes.crt'), nodes.certificate!);
      const SERVICE_DB = addressOf(nodes, `${USER.username}@`);
      return { SERVICE_DB, SERVICE_DB_PASSWORD: USER.password, SERVICE_DB_CA: join(folder, 'nodes.crt') };
    },
  });
  if (cluster === undefined) return undefined;
  return { ...cluster, folder, host: cluster.hosts[0]!, pasted: commandOf(cluster) };
}

type Pasted = (words: string, changes?: Readonly<Record<string, string>>, code?: number) => Promise<string>;

/** What a command prints; when it must fail, what it says on standard error too. */
function commandOf(cluster: Pick<Cluster, 'pasted'>): Pasted {
  return async (words, changes, code = 0) => {
    const { stdout, stderr, ...ended } = await cluster.pasted(words.split(' '), changes);
    assert.equal(ended.code, code, `${words}: ${stdout()}${stderr()}`);
    assert.ok(!`${stdout()}${stderr()}`.includes(USER.password), 'the password is in no output');
    return code === 0 ? stdout() : `${stdout()}${stderr()}`;
  };
}

test('commands beside a cluster: stats, audit, paste, invite, pki, admin and check', async (t) => {
  const started = await start(t);
  if (started === undefined) return;
  const { host, pasted, nodes, folder } = started;
  // Follows from the start: it may begin to look when the certificate is there already.
  const follower = startMain(t, ['audit', '--follow', '--json', '--after', '0'], { environment: started.environment });
  const ended = once(follower.child, 'close');
  await pasted(`admin create --out ${join(folder, 'admin.p12')}`);
  await follower.printed(/cert_issued/);
  follower.child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  assert.match(await pasted('audit'), /cert_issued/);
  const [serial = ''] = /\b[0-9a-f]{32}\b/.exec(await pasted('pki list')) ?? [];

  const id = await store(started, 'to be removed');
  const banned = await store(started, 'not to be had');
  const small = await store(started, 'small');
  await pasted(`paste rm ${id}`);
  await pasted(`paste ban ${banned}`);
  for (const gone of [id, banned]) await ask(host, 404, `GET /${gone}`);
  await ask(host, 403, 'POST /', { body: 'not to be had' });
  await ask(host, 200, `GET /${small}/raw`);
  const { code } = JSON.parse(await pasted('invite create --json')) as { code: string };
  await ask(host, 200, 'POST /register', { headers: { 'X-Invite': code } });
  await pasted(`pki revoke ${serial}`);
  const stats = JSON.parse(await pasted('stats --json')) as Record<string, Record<string, unknown>>;
  assert.deepEqual([stats['pastes']!['count'], stats['certificates']!['revoked'], stats['bans']], [1, 1, 1]);
  const sound = await pasted('check', { SERVICE_MAX_STORAGE: '1GiB' });
  // No word on the quota: that would count the pages of the copy, and the nodes count otherwise.
  assert.doesNotMatch(sound, /^\w+ quota: /m);
  assert.match(sound, /^ok nodes: .*, and all have the newest changes$/m);
  assert.equal(/^warn nodes: rqlite before 8\.30\.5 /m.test(sound), damagesDatabases());
  const nowhere = join(folder, 'none');
  const unread = await pasted('check', { TMPDIR: nowhere }, 1);
  assert.match(unread, /^ok nodes: /m);
  assert.ok(unread.includes(`fail database: ${join(nowhere, 'pasted')} cannot be written (ENOENT)\n`), unread);

  nodes[1]!.suspend();
  assert.ok((await pasted('check')).includes(`warn nodes: ${nodes[1]!.address}: silent, or without the newest changes\n`));
  nodes[2]!.suspend();
  assert.match(await pasted('check', {}, 1), /no node of the cluster answered/);
});

async function store({ host }: Pick<NonNullable<Awaited<ReturnType<typeof start>>>, 'host'>, body: string): Promise<string> {
  return String((await ask(host, 201, 'POST /', { body })).json['id']);
}

test('commands beside a cluster: wrong access to its nodes says which setting is wrong', async (t) => {
  const started = await start(t);
  if (started === undefined) return;
  const { pasted, environment: { SERVICE_DB = '' } } = started;
  const wrong = [
    [{ SERVICE_DB_PASSWORD: 'wrong' }, /SERVICE_DB_PASSWORD/],
    [{ SERVICE_DB_CA: '' }, /SERVICE_DB_CA/],
    [{ SERVICE_DB: SERVICE_DB.replace('rqlites', 'rqlite') }, /rqlites:\/\//],
  ] as const;
  await Promise.all(wrong.map(async ([changes, said]) => assert.match(await pasted('stats', changes, 1), said)));
});

test('backup of a cluster is a file for a single host, and restore brings it to nodes without a database', async (t) => {
  const started = await start(t);
  if (started === undefined) return;
  const { pasted, folder, environment } = started;
  const [small, large] = [await store(started, 'small'), await store(started, LARGE)];
  const file = join(folder, 'backup.db');
  await pasted(`backup ${file}`);
  for (const changes of [{}, { SERVICE_DB: file }]) await pasted('check --full', changes);
  assert.match(await pasted(`restore ${file}`, {}, 78), /have a database already/);

  const others = await startNodes(t, { count: 1 });
  const elsewhere = { ...environment, SERVICE_DB: addressOf(others) };
  // A command that only looks makes no database on the nodes: that would be in the way of the backup.
  assert.match(await pasted('stats', elsewhere, 78), /the nodes have no database: set SERVICE_DB/);
  await pasted(`restore ${file}`, elsewhere);
  const alone = { ...environment, SERVICE_DB: file };
  for (const changed of [elsewhere, alone]) {
    const host = await startServing(t, { environment: changed });
    assert.equal(String((await ask(host, 200, `GET /${small}/raw`)).body), 'small');
    assert.equal(String((await ask(host, 200, `GET /${large}/raw`)).body), LARGE);
    await ask(host, 201, 'POST /', { body: 'and takes more' });
    const check = await pasted('check', changed);
    assert.match(check, /owners, certificates and invitations agree/);
  }
});

test('commands beside a cluster: stopped, they leave no copy of its pastes', { skip: rqliteMissing() }, async (t) => {
  const { nodes } = await startNodes(t, { count: 1 });
  const { addresses } = await startFaultyNodes(t, [nodes[0]!.address], ({ path }) => {
    if (path.startsWith('/db/backup')) return { kind: 'dripping' };
    return path === '/boot' ? { kind: 'silent', isCarriedOut: false } : undefined;
  });
  const { path, store: closed } = await openTestStore(t);
  await closed.close();
  for (const words of ['backup FILE', 'backup -', 'check', `restore ${path}`]) {
    const TMPDIR = join(temporaryFolder(t), 'tmp');
    mkdirSync(TMPDIR);
    const environment = { SERVICE_DB: `rqlite://${addresses[0]}`, TMPDIR };
    const { child, ended, stderr } = startMain(t, words.replace('FILE', join(TMPDIR, 'file.db')).split(' '), { environment });
    const files = () => readdirSync(TMPDIR, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const startMs = performance.now(); files().length === 0; await pause(20)) {
      assert.ok(performance.now() - startMs < 20_000 && child.exitCode === null, `${words}: ${stderr()}`);
    }
    child.kill('SIGTERM');
    assert.equal(await ended, 'SIGTERM', words);
    assert.deepEqual(readdirSync(TMPDIR), [], words);
  }
});

test('backup of a cluster: a copy that breaks off is told as such, and none is made for a name that is taken', { skip: rqliteMissing() }, async (t) => {
  const { nodes } = await startNodes(t, { count: 1 });
  let copies = 0;
  const { addresses } = await startFaultyNodes(t, [nodes[0]!.address], ({ path }) => {
    if (!path.startsWith('/db/backup')) return undefined;
    copies += 1;
    return { kind: 'cut' };
  });
  const folder = temporaryFolder(t);
  const pasted = commandOf({
    pasted: async (words) => {
      const environment = { SERVICE_DB: `rqlite://${addresses[0]}`, TMPDIR: folder };
      const { ended, ...printed } = startMain(t, words, { environment });
      return { code: await ended, ...printed };
    },
  });
  const file = join(folder, 'taken.db');
  assert.match(await pasted(`backup ${file}`, {}, 1), /^pasted: storage unavailable: a node broke off its copy \(SERVICE_DB\)\n$/);
  assert.match(await pasted('check', {}, 1), /^fail database: the nodes give no copy/m);
  assert.deepEqual([readdirSync(folder), copies], [[], 2]);
  writeFileSync(file, 'other');
  assert.match(await pasted(`backup ${file}`, {}, 1), /taken\.db exists already/);
  assert.equal(copies, 2);
});
