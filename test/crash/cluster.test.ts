// Three servers over three rqlite nodes, as processes: clients see one service whichever host they ask, it is exact
// when hosts race, and nothing acknowledged is lost when a node or a host is killed or cut off.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { MIB } from '../../src/core/time.ts';
import { binaryContent } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { addressOf, ask, type Host, startCluster } from '../support/cluster.ts';
import { showing, solve } from '../support/work.ts';

type Headers = Readonly<Record<string, string>>;

const JSON_TYPE = { 'Content-Type': 'application/json' };
const BURN = { 'X-Burn-After-Read': '1' };
const LARGE_BYTES = 700_000;

/** More than the system buffers on a host for a client that does not read. */
const DOWNLOAD_BYTES = 5 * MIB;

async function store(host: Host, body: string | Uint8Array, headers: Headers = {}): Promise<string> {
  return String((await ask(host, 201, 'POST /', { body, headers })).json['id']);
}

interface Holder {
  readonly serial: string;
  readonly headers: Headers;
}

async function issue(host: Host): Promise<Holder> {
  const body = JSON.stringify({ common_name: 'holder' });
  const { json } = await ask(host, 201, 'POST /pki/issue', { headers: JSON_TYPE, body });
  return { serial: String(json['serial']), headers: presenting(String(json['fingerprint_sha1'])) };
}

/** How often each status came. */
async function statusesOf(asked: readonly Promise<Response>[]): Promise<Record<number, number>> {
  const answers = await Promise.all(asked);
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Sends the same request for `count` clients at once, to the hosts in turn. */
function race(hosts: readonly Host[], count: number, path: string, init: RequestInit): Promise<Record<number, number>> {
  return statusesOf(Array.from({ length: count }, (_, index) => fetch(`${hosts[index % hosts.length]!.url}${path}`, init)));
}

test('cluster: what one host stores all others serve, change, list and delete', async (t) => {
  const cluster = await startCluster(t, { environment: { SERVICE_DEDUP_MAX: '2', SERVICE_DEDUP_WINDOW: '60' } });
  if (cluster === undefined) return;
  const { hosts } = cluster;
  const owner = presenting(newFingerprint());
  for (const [turn, first] of hosts.entries()) {
    const [second, third] = [hosts[(turn + 1) % 3]!, hosts[(turn + 2) % 3]!];
    const content = Buffer.from(binaryContent(turn === 0 ? 10 : LARGE_BYTES, turn));
    const id = await store(first, content, owner);
    for (const host of hosts) assert.ok((await ask(host, 200, `GET /${id}/raw`)).body.equals(content));
    const range = await ask(third, 206, `GET /${id}/raw`, { headers: { Range: 'bytes=2-5' } });
    assert.ok(range.body.equals(content.subarray(2, 6)));
    await ask(second, 200, `PUT /${id}`, { headers: owner, body: `changed ${turn}` });
    for (const host of hosts) {
      assert.equal(String((await ask(host, 200, `GET /${id}/raw`)).body), `changed ${turn}`);
      assert.equal((await ask(host, 200, 'GET /pastes', { headers: owner })).json['total'], 1);
    }
    await ask(third, 200, `DELETE /${id}`, { headers: owner });
    await Promise.all(hosts.map((host) => ask(host, 404, `GET /${id}/raw`)));
    const open = await ask(first, 201, 'POST /', { body: `nobody's ${turn}` });
    const path = `/${String(open.json['id'])}`;
    await ask(second, 200, `DELETE ${path}`, { headers: { 'X-Delete-Token': open.headers.get('x-delete-token')! } });
    await ask(third, 404, `GET ${path}`);
    const burning = await store(first, `read once ${turn}`, BURN);
    assert.equal(String((await ask(second, 200, `GET /${burning}/raw`)).body), `read once ${turn}`);
    await Promise.all(hosts.map((host) => ask(host, 404, `GET /${burning}/raw`)));
  }
  await store(hosts[0]!, 'the same');
  await store(hosts[1]!, 'the same');
  await ask(hosts[2]!, 429, 'POST /', { body: 'the same' });
  assert.deepEqual(await cluster.sql('SELECT count(*), (SELECT count(*) FROM chunks) FROM pastes'), [[2, 0]]);
});

test('cluster: content up to SERVICE_CLUSTER_MAX_BYTES is stored whole, more is refused with the limit', async (t) => {
  const cluster = await startCluster(t);
  if (cluster === undefined) return;
  const [first, second, third] = cluster.hosts as [Host, Host, Host];
  await ask(first, 201, 'POST /pki/ca');
  const { headers } = await issue(first);
  const limit = Buffer.from(binaryContent(8 * MIB));
  const id = await store(second, limit, headers);
  assert.ok((await ask(third, 200, `GET /${id}/raw`)).body.equals(limit));
  const { json } = await ask(third, 413, 'POST /', { headers, body: Buffer.concat([limit, Buffer.of(0)]) });
  assert.equal(json['max_size'], 8 * MIB);
});

test('cluster: a certificate holds on all hosts at once, and is revoked on all at once', async (t) => {
  const cluster = await startCluster(t, { environment: { SERVICE_MAX_ANON: '1000' } });
  if (cluster === undefined) return;
  const { hosts } = cluster;
  await ask(hosts[2]!, 201, 'POST /pki/ca');
  const authorities = await Promise.all(hosts.map(async (host) => String((await ask(host, 200, 'GET /pki/ca.crt')).body)));
  assert.equal(new Set(authorities).size, 1);
  await issue(hosts[1]!);
  const large = binaryContent(1001);
  for (const [turn, host] of hosts.entries()) {
    const { serial, headers } = await issue(host);
    for (const other of hosts) await ask(other, 201, 'POST /', { headers, body: large });
    await ask(hosts[(turn + 1) % 3]!, 200, `POST /pki/revoke/${serial}`, { headers });
    for (const other of hosts) {
      await ask(other, 413, 'POST /', { headers, body: large });
      await ask(other, 409, `POST /pki/revoke/${serial}`, { headers });
      const { body } = await ask(other, 200, 'GET /pki/ca.crl');
      assert.ok(body.includes(Buffer.from(serial, 'hex')), `the list of host ${hosts.indexOf(other)} has ${turn}'s`);
    }
  }
});

test('cluster: of many at several hosts one gets the authority, is the admin, burns, and spends', async (t) => {
  const cluster = await startCluster(t, {
    environment: { SERVICE_POW_DIFFICULTY: '2', SERVICE_REGISTER: 'invite', ANTIFLOOD_THRESHOLD: '3', ANTIFLOOD_STEP: '3' },
  });
  if (cluster === undefined) return;
  const { hosts } = cluster;
  assert.deepEqual(await race(hosts, 12, '/pki/ca', { method: 'POST' }), { 201: 1, 409: 11 });
  const invite = async (uses: number): Promise<Headers> => {
    const made = await cluster.pasted(['invite', 'create', '--json', '--uses', String(uses)]);
    assert.equal(made.code, 0, made.stderr());
    return { ...JSON_TYPE, 'X-Invite': String((JSON.parse(made.stdout()) as { code: string }).code) };
  };
  const issuing = { method: 'POST', headers: await invite(12), body: JSON.stringify({ common_name: 'racer' }) };
  assert.deepEqual(await race(hosts, 12, '/pki/issue', issuing), { 201: 12 });
  assert.deepEqual(await cluster.sql('SELECT sum(is_admin), count(*) FROM certificates'), [[1, 12]]);
  assert.deepEqual(await race(hosts, 12, '/pki/issue', { ...issuing, headers: await invite(1) }), { 201: 1, 403: 11 });

  const challenge = async (host: Host) => (await ask(host, 200, 'GET /challenge')).json as { nonce: string; difficulty: number; token: string };
  const work = async (host: Host): Promise<Headers> => {
    const { nonce, difficulty, token } = await challenge(host);
    return showing(token, solve(nonce, difficulty));
  };
  const spending = await work(hosts[0]!);
  const creations = hosts.flatMap((host, index) => Array.from({ length: 4 }, (_, turn) => (
    fetch(`${host.url}/`, { method: 'POST', headers: spending, body: `racer ${index} ${turn}` })
  )));
  assert.deepEqual(await statusesOf(creations), { 201: 1, 400: 11 });

  for (const bytes of [100, LARGE_BYTES]) {
    const content = Buffer.from(binaryContent(bytes));
    const id = await store(hosts[1]!, content, { ...BURN, ...await work(hosts[1]!) });
    const reads = Array.from({ length: 64 }, async (_, index) => {
      const response = await fetch(`${hosts[index % 3]!.url}/${id}/raw`);
      const body = Buffer.from(await response.arrayBuffer());
      assert.ok(response.status === 404 || body.equals(content));
      return response.status;
    });
    assert.deepEqual((await Promise.all(reads)).filter((status) => status !== 404), [200]);
  }
  // The fourth creation, of which the last host took one at most: it hears of the others.
  await ask(hosts[1]!, 201, 'POST /', { body: 'one more', headers: await work(hosts[1]!) });
  await until(10_000, async () => (await challenge(hosts[2]!)).difficulty === 5);
});

test('cluster: what was acknowledged outlives kill -9 of the leading node, of a host, and of both, while others serve', async (t) => {
  const cluster = await startCluster(t);
  if (cluster === undefined) return;
  const acknowledged = startLoad(cluster.hosts);
  const [first, second, third] = cluster.hosts as [Host, Host, Host];
  const silences: number[] = [];
  for (const [killsNode, victim] of [[true, undefined], [false, first], [true, second]] as const) {
    await acknowledged.more(20);
    const leader = await cluster.findLeader();
    await Promise.all([killsNode ? leader.kill() : undefined, victim?.child.kill('SIGKILL'), victim?.ended]);
    const killedMs = performance.now();
    await store(third, `after a kill ${killsNode}`);
    silences.push(Math.round(performance.now() - killedMs));
    await acknowledged.more(20);
    if (killsNode) await leader.start();
  }
  const { kept, gone } = await acknowledged.end();
  const fourth = await cluster.addHost();
  await assertHeld([third, fourth], kept, gone);
  t.diagnostic(`${kept.size} kept, ${gone.size} gone; ms until the next was stored: ${silences.join()}`);
});

test('cluster: with two nodes stopped every host says 503 at once, and all is there when they go on', async (t) => {
  const cluster = await startCluster(t);
  if (cluster === undefined) return;
  const { hosts, nodes } = cluster;
  const load = startLoad(hosts);
  await load.more(30);
  const id = await store(hosts[0]!, 'before');
  const others = nodes.filter((node) => node !== nodes[1]);
  for (const node of others) node.suspend();
  const startMs = performance.now();
  await Promise.all(hosts.map((host) => until(3000, async () => (await statusOf(host, '/health')) === 503)));
  const asked = hosts.flatMap((host) => [statusOf(host, `/${id}/raw`), statusOf(host, '/', { method: 'POST', body: 'x' })]);
  assert.deepEqual(await Promise.all(asked), asked.map(() => 503));
  t.diagnostic(`ms until all was answered: ${Math.round(performance.now() - startMs)}`);
  for (const node of others) node.resume();
  await Promise.all(hosts.map((host) => until(10_000, async () => (await statusOf(host, '/health')) === 200)));
  await load.more(30);
  const { kept, gone } = await load.end();
  await assertHeld(hosts, kept.set(id, 'before'), gone);
});

test('cluster: a download under way on one host ends whole when others delete, replace or have burned its paste', async (t) => {
  const cluster = await startCluster(t, { environment: { SERVICE_MAX_ANON: String(DOWNLOAD_BYTES) } });
  if (cluster === undefined) return;
  const [first, second, third] = cluster.hosts as [Host, Host, Host];
  const owner = presenting(newFingerprint());
  const contents = [1, 2, 3].map((seed) => Buffer.from(binaryContent(DOWNLOAD_BYTES, seed)));
  const ids: string[] = [];
  for (const [index, content] of contents.entries()) {
    ids.push(await store(second, content, index === 2 ? BURN : owner));
  }
  const [deleted = '', replaced = '', burned = ''] = ids;
  const downloads = await Promise.all(ids.map((id) => beginDownload(first, id)));
  await ask(second, 200, `DELETE /${deleted}`, { headers: owner });
  await ask(third, 200, `PUT /${replaced}`, { headers: owner, body: 'another content' });
  await ask(third, 404, `GET /${burned}/raw`);
  const leases = "SELECT count(*) FROM leases WHERE name NOT IN ('cleanup', 'serving')";
  assert.deepEqual(await cluster.sql(leases), [[3]], 'all are under way');
  for (const [index, finish] of downloads.entries()) assert.ok((await finish()).equals(contents[index]!), ids[index]);
  await until(10_000, async () => String(await cluster.sql(`SELECT (SELECT count(*) FROM chunks), (${leases})`)) === '0,0');
});

test('cluster: what a killed host had of uploads is removed by another, once its leases are over and not before', async (t) => {
  const cluster = await startCluster(t, { hosts: 2 });
  if (cluster === undefined) return;
  const [first, second] = cluster.hosts as [Host, Host];
  const uploads = [1, 2].map((seed) => beginUpload(first, binaryContent(MIB, seed), 2 * MIB));
  const held = "SELECT name FROM leases WHERE name NOT IN ('cleanup', 'serving')";
  const left = async () => (await cluster.sql('SELECT content_id FROM orphans')).map(([id]) => String(id));
  await until(10_000, async () => (await cluster.sql(held)).length === 2 && (await left()).length === 2);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, ...uploads]);
  const [before = '', after = ''] = await left();
  /** Makes a host that starts now lead the cleanup, whichever led it before; it cleans up as it starts. */
  const cleanUp = async (name: string): Promise<void> => {
    await cluster.sql("DELETE FROM leases WHERE name = 'cleanup'");
    await cluster.sql(`UPDATE leases SET until = 1 WHERE name = '${name}'`);
    await cluster.addHost();
    await until(10_000, async () => !(await left()).includes(name));
  };
  // The sweep takes uploads in their order: when it has come to the last one, it has passed the other and left it.
  await cleanUp(after);
  assert.deepEqual(await left(), [before]);
  assert.notDeepEqual(await cluster.sql('SELECT count(*) FROM chunks'), [[0]]);
  await cleanUp(before);
  assert.deepEqual(await cluster.sql('SELECT count(*) FROM chunks'), [[0]]);
  await store(second, 'another still takes what comes');
});

/** Resolves with the first bytes. Nothing more is read until the function that it gives is called for the whole. */
async function beginDownload({ url }: Host, id: string): Promise<() => Promise<Buffer>> {
  const asked = request(`${url}/${id}/raw`, { agent: false }).end();
  const [answer] = await once(asked, 'response') as [IncomingMessage];
  assert.equal(answer.statusCode, 200);
  await once(answer, 'readable');
  return () => buffer(answer);
}

/** Sends a part of the announced bytes, and then waits until the host dies. */
async function beginUpload({ url }: Host, part: Uint8Array, announcedBytes: number): Promise<void> {
  const sent = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': announcedBytes } });
  sent.write(part);
  await once(sent, 'error');
}

test('cluster: a leader that stopped and wakes shows nothing that was deleted meanwhile', async (t) => {
  // With these timeouts an election is over before a host has given the old leader up.
  const quick = ['-raft-timeout', '250ms', '-raft-election-timeout', '250ms', '-raft-leader-lease-timeout', '250ms'];
  const cluster = await startCluster(t, { nodes: { flags: quick } });
  if (cluster === undefined) return;
  const { hosts, nodes, pasted } = cluster;
  const id = await store(hosts[0]!, 'to be deleted');
  for (const host of hosts) await ask(host, 200, `GET /${id}`);
  const leader = await cluster.findLeader();
  const others = nodes.filter((node) => node !== leader);
  leader.suspend();
  const removed = await pasted(['paste', 'rm', id], { SERVICE_DB: addressOf({ nodes: others, certificate: null }) });
  assert.equal(removed.code, 0, removed.stderr());
  // These requests wait at the suspended node, which led when the hosts last asked.
  const statuses = hosts.flatMap((host) => [statusOf(host, `/${id}`), statusOf(host, `/${id}/raw`)]);
  await pause(200);
  leader.resume();
  assert.deepEqual(await Promise.all(statuses), statuses.map(() => 404));
});

async function statusOf({ url }: Host, path: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(20_000) });
  await response.arrayBuffer();
  return response.status;
}

/**
 * Stores pastes on each host as fast as it takes them, and deletes or burns every third one elsewhere. A host that is
 * gone gets no more requests. A paste is in neither list when what became of it is not known for certain.
 */
function startLoad(hosts: readonly Host[]) {
  const kept = new Map<string, string>();
  const gone = new Set<string>();
  let isOver = false;
  let count = 0;
  let failure: unknown;

  async function work(host: Host, lane: number): Promise<void> {
    for (let turn = 0; !isOver && failure === undefined && isAlive(host); turn += 1) {
      const isBurning = turn % 6 === 0;
      const content = `${hosts.indexOf(host)} ${lane} ${turn} ${turn % 8 === 1 ? 'x'.repeat(100_000) : ''}`;
      const stored = await send(host, 'POST', '', { body: content, headers: isBurning ? BURN : {} });
      if (stored?.status !== 201) continue;
      count += 1;
      const { id } = JSON.parse(stored.text) as { id: string };
      if (turn % 3 !== 0) {
        kept.set(id, content);
        continue;
      }
      const other = hosts.find((one) => one !== host && isAlive(one)) ?? host;
      const headers = { 'X-Delete-Token': stored.headers.get('x-delete-token') ?? '' };
      const removed = isBurning ? await send(other, 'GET', `${id}/raw`) : await send(other, 'DELETE', id, { headers });
      if (removed?.status === 200) gone.add(id);
      else if (removed?.status === 404) throw new Error(`${id} is lost: ${isBurning ? 'read' : 'deleted'} in vain`);
    }
  }

  const works = hosts.flatMap((host) => [0, 1].map((lane) => work(host, lane).catch((error: unknown) => {
    failure = error;
  })));
  return {
    /** Resolves when `amount` more pastes have been acknowledged. */
    more: async (amount: number): Promise<void> => {
      const wanted = count + amount;
      await until(20_000, async () => {
        if (failure !== undefined) throw failure;
        return count >= wanted;
      });
    },
    end: async () => {
      isOver = true;
      await Promise.all(works);
      if (failure !== undefined) throw failure;
      return { kept, gone };
    },
  };
}

const isAlive = ({ child }: Host): boolean => child.exitCode === null && child.signalCode === null;

/** Undefined when no whole answer came, as from a host that was killed. A burn without an answer may have been done. */
async function send({ url }: Host, method: string, place: string, init: RequestInit = {}) {
  try {
    const response = await fetch(`${url}/${place}`, { ...init, method, signal: AbortSignal.timeout(20_000) });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    return undefined;
  }
}

async function assertHeld(hosts: readonly Host[], kept: ReadonlyMap<string, string>, gone: ReadonlySet<string>): Promise<void> {
  assert.ok(kept.size > 0 && gone.size > 0, 'there is something to hold');
  for (const [index, [id, content]] of [...kept].entries()) {
    assert.equal(String((await ask(hosts[index % hosts.length]!, 200, `GET /${id}/raw`)).body), content);
  }
  await Promise.all([...gone].map((id, index) => ask(hosts[index % hosts.length]!, 404, `GET /${id}`)));
}

/** Rejects when the condition does not come true in time. */
async function until(milliseconds: number, isSo: () => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  while (!(await isSo())) {
    assert.ok(performance.now() - startMs < milliseconds, `not within ${milliseconds} ms`);
    await pause(50);
  }
  return performance.now() - startMs;
}
