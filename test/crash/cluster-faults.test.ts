// Three stores over three real nodes, with a proxy before each node that loses, delays, repeats, cuts and makes up
// what goes through it, by a seed. What was acknowledged is there once, what was refused is not, and all nodes hold the
// same.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openClusterStore } from '../../src/cluster/open.ts';
import type { Store } from '../../src/store/open.ts';
import { type AuditEvent, CHUNK_BYTES, type CreationTerms, type NewPaste, StoreError } from '../../src/store/store.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { type Fault, startFaultyNodes, STRANGE_BODIES } from '../support/faulty-nodes.ts';
import { rqliteMissing, type RqliteNode, startNodes } from '../support/rqlite.ts';
import { createSeeded, type Seeded } from '../support/seeded.ts';
import {
  CREATED_AT, EXPIRES_AT, inlineContent, inlinePaste, newId, NO_TERMS, patternedBytes, readContent,
} from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

/** One seed takes some seconds, most of which go into waiting for answers that do not come. */
const SEEDS = [1, 2, 3];

const missing = rqliteMissing();

/** The hosts, the truth behind them, and what may go wrong. */
interface Trial {
  readonly stores: readonly Store[];
  readonly random: Seeded;
  select(sql: string): Promise<readonly (readonly unknown[])[]>;
}

function chooseFault(random: Seeded): Fault | undefined {
  if (!random.oneIn(4)) return undefined;
  const ms = random.between(1, 400);
  const isCarriedOut = random.oneIn(2);
  const strange = { kind: 'replaced', status: 200, body: random.pick(STRANGE_BODIES), isCarriedOut } as const;
  const failed = { kind: 'replaced', status: random.pick([301, 500, 502, 503]), body: '', isCarriedOut } as const;
  const rare = { kind: 'silent', isCarriedOut } as const;
  return random.pick<Fault>([
    { kind: 'lost' }, { kind: 'late', ms }, { kind: 'unanswered' }, { kind: 'cut' }, { kind: 'halved' },
    { kind: 'delayed', ms }, { kind: 'repeated', ms }, strange, failed, random.oneIn(8) ? rare : { kind: 'lost' },
  ]);
}

/** How many calls gave a result, and for how many nobody knows whether they were carried out. */
const calls = { sure: 0, unsure: 0 };

/** The result of a call, or that nobody knows whether it was carried out. Any other error is a defect. */
async function tried<Given>(call: Promise<Given>): Promise<Given | 'unsure'> {
  try {
    const given = await call;
    calls.sure += 1;
    return given;
  } catch (error) {
    if (!(error instanceof StoreError && error.failure === 'unavailable')) throw error;
    calls.unsure += 1;
    return 'unsure';
  }
}

interface Refusable {
  readonly refused: string | null;
}

type Outcome = Refusable | 'unsure';

const isDone = (outcome: Outcome): boolean => outcome !== 'unsure' && outcome.refused === null;
const isRefused = (outcome: Outcome): boolean => outcome !== 'unsure' && outcome.refused !== null;

interface Attempt {
  readonly paste: NewPaste;
  readonly outcome: Outcome;
}

/** Creates the pastes under the same terms and all at once, each at a host chosen at random. */
function createAll({ stores, random }: Trial, pastes: readonly NewPaste[], terms: Partial<CreationTerms>) {
  return Promise.all(pastes.map(async (paste): Promise<Attempt> => (
    { paste, outcome: await tried(random.pick(stores).pastes.create(paste, { ...NO_TERMS, ...terms })) }
  )));
}

/** Asserts what every creation promises; gives how many of the pastes are there. */
async function assertCreated({ select }: Trial, attempts: readonly Attempt[]): Promise<number> {
  const rows = await select('SELECT id, lower(hex(sha256)) FROM pastes');
  const there = attempts.filter(({ paste, outcome }) => {
    const found = rows.filter(([id]) => id === paste.id);
    assert.ok(found.length <= 1 && (!isDone(outcome) || found.length === 1), 'what was acknowledged is there once');
    assert.ok(!isRefused(outcome) || found.length === 0, 'what was refused is not there');
    for (const [, sha256] of found) assert.equal(sha256, Buffer.from(paste.sha256).toString('hex'));
    return found.length === 1;
  });
  return there.length;
}

const isCertain = (outcomes: readonly unknown[]): boolean => !outcomes.includes('unsure');

function event(name: string, details: Record<string, string> = {}): AuditEvent {
  return { time: CREATED_AT, event: name, outcome: 'success', clientId: null, clientIp: null, details };
}

let contents = 0;
const content = (size = 100): Uint8Array => patternedBytes(size, contents += 1);

// Each of these does its work beside the others, among faults, and gives the check to make when the faults are over.

type Check = () => Promise<void>;

async function spendTokens(trial: Trial): Promise<Check> {
  const nonce = newId();
  const spend = { nonce, expiresAt: EXPIRES_AT, spendableUntil: EXPIRES_AT };
  const attempts = await createAll(trial, [1, 2, 3].map(() => inlinePaste(content())), { spend });
  return async () => {
    const count = await assertCreated(trial, attempts);
    const [[spent] = []] = await trial.select(`SELECT count(*) FROM spent_challenges WHERE nonce = '${nonce}'`);
    assert.ok(count <= 1 && spent === count, `${count} pastes for a token that is spent ${spent} times`);
    if (isCertain(attempts.map(({ outcome }) => outcome))) assert.equal(count, 1);
  };
}

async function repeatContent(trial: Trial): Promise<Check> {
  const bytes = content();
  const duplicates = { max: 3, windowSeconds: 600 };
  const attempts = await createAll(trial, Array.from({ length: 7 }, () => inlinePaste(bytes)), { duplicates });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return async () => {
    const count = await assertCreated(trial, attempts);
    const [[noted] = []] = await trial.select(`SELECT count(*) FROM submissions WHERE sha256 = unhex('${sha256}')`);
    assert.ok(count <= 3 && noted === count, `${count} pastes of one content, ${noted} submissions`);
    if (attempts.some(({ outcome }) => isRefused(outcome))) assert.equal(count, 3);
  };
}

async function fillOwner(trial: Trial): Promise<Check> {
  const owner = newId();
  const pastes = Array.from({ length: 6 }, () => inlinePaste(content(500), { owner }));
  const attempts = await createAll(trial, pastes, { maxOwnerBytes: 2000 });
  return async () => {
    const count = await assertCreated(trial, attempts);
    assert.ok(count <= 4);
    if (isCertain(attempts.map(({ outcome }) => outcome))) assert.equal(count, 4);
  };
}

async function raceBurns(trial: Trial): Promise<Check> {
  const paste = inlinePaste(content(), { burnAfterRead: true });
  const [created] = await createAll(trial, [paste], {});
  if (!isDone(created!.outcome)) return async () => assert.ok(await assertCreated(trial, [created!]) <= 1);
  const burned = await Promise.all(trial.stores.map((store) => tried(store.pastes.burn(paste.id, null, CREATED_AT))));
  return async () => {
    const [[left] = []] = await trial.select(`SELECT count(*) FROM pastes WHERE id = '${paste.id}'`);
    const given = burned.filter((isGiven) => isGiven === true).length;
    assert.ok(given <= 1 && (given === 0 || left === 0), `given to ${given}, and ${left} left`);
    if (isCertain(burned)) assert.deepEqual([given, left], [1, 0]);
  };
}

async function changeAndDelete(trial: Trial): Promise<Check> {
  const paste = inlinePaste(content(), { owner: newId() });
  const [created] = await createAll(trial, [paste], {});
  if (!isDone(created!.outcome)) return async () => assert.ok(await assertCreated(trial, [created!]) <= 1);
  const terms = { nowSeconds: CREATED_AT, duplicates: null, maxStoredBytes: null, maxOwnerBytes: null };
  const change = { content: inlineContent(content(50)) };
  const updated = await Promise.all(trial.stores.map((store) => (
    tried(store.pastes.update(paste.id, paste.owner!, change, terms))
  )));
  assert.ok(updated.every((outcome) => outcome === 'unsure' || isDone(outcome)));
  const removed = event('paste_deleted', { id: paste.id });
  const deleted = await Promise.all(trial.stores.map((store) => (
    tried<Refusable>(store.pastes.remove(paste.id, 'admin', CREATED_AT, removed))
  )));
  return async () => {
    const [[left] = []] = await trial.select(`SELECT count(*) FROM pastes WHERE id = '${paste.id}'`);
    const [[noted] = []] = await trial.select(`SELECT count(*) FROM audit WHERE details LIKE '%${paste.id}%'`);
    const done = deleted.filter(isDone).length;
    assert.ok(done <= 1 && noted === 1 - Number(left), `${done} times deleted, ${noted} times noted, ${left} left`);
    if (isCertain(deleted)) assert.deepEqual([done, left], [1, 0]);
  };
}

async function spendInvitation(trial: Trial): Promise<Check> {
  const codeSha256 = createHash('sha256').update(newId()).digest();
  const invitation = { codeSha256, note: '', createdAt: CREATED_AT, expiresAt: EXPIRES_AT, usesLeft: 2 };
  const made = await tried(trial.random.pick(trial.stores).run('createInvitation', invitation));
  const issued = await Promise.all([...trial.stores, ...trial.stores].map(async (store) => {
    const [serial, fingerprint] = [newId(), newId()];
    const publicKeySha256 = createHash('sha256').update(serial).digest();
    const times = { createdAt: CREATED_AT, expiresAt: EXPIRES_AT };
    const certificate = { serial, commonName: 'a', fingerprint, issuedTo: null, publicKeySha256, ...times };
    const events = { issued: event('cert_issued', { serial }), granted: event('admin_granted') };
    const issuance = { certificate, spend: null, invitation: codeSha256, ...events };
    return { serial, outcome: await tried<Refusable>(store.run('issueCertificate', issuance)) };
  }));
  return async () => {
    const where = `code_sha256 = unhex('${codeSha256.toString('hex')}')`;
    const [[usesLeft] = []] = await trial.select(`SELECT uses_left FROM invitations WHERE ${where}`);
    const there = new Set((await trial.select('SELECT serial FROM certificates')).map(([serial]) => serial));
    for (const { serial, outcome } of issued) {
      if (outcome !== 'unsure') assert.equal(there.has(serial), isDone(outcome));
    }
    const count = issued.filter(({ serial }) => there.has(serial)).length;
    if (made !== 'unsure') assert.equal(usesLeft, 2 - count);
    assert.ok(count <= 2);
    if (made !== 'unsure' && isCertain(issued.map(({ outcome }) => outcome))) assert.equal(count, 2);
  };
}

/** As pastes/intake.ts does it: what became of the paste decides whether the chunks are kept. */
async function uploadAndCreate(store: Store, bytes: Uint8Array): Promise<NewPaste | undefined> {
  const upload = store.contents.upload(newId());
  const paste = inlinePaste(bytes, { content: null, contentId: upload.contentId });
  const write = async () => {
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
      await upload.write(bytes.slice(start, start + CHUNK_BYTES));
    }
    return store.pastes.create(paste, NO_TERMS);
  };
  const isStored = isDone(await tried(write()));
  if (isStored) upload.keep();
  else await upload.discard();
  return isStored ? paste : undefined;
}

async function storeLarge({ stores, random, select }: Trial): Promise<Check> {
  const bytes = content(300 * 1024);
  const paste = await uploadAndCreate(random.pick(stores), bytes);
  if (paste === undefined) return async () => {};
  const read = await tried(readContent(random.pick(stores), paste.contentId!, 0, bytes.length));
  if (read !== 'unsure') assert.ok(read.equals(bytes));
  const deleted = await tried<Refusable>(random.pick(stores).pastes.remove(paste.id, null, CREATED_AT, null));
  return async () => {
    const [[left] = []] = await select(`SELECT count(*) FROM pastes WHERE id = '${paste.id}'`);
    assert.ok(deleted === 'unsure' || left === 0);
  };
}

async function noteEvents({ stores, random, select }: Trial): Promise<Check> {
  const names = Array.from({ length: 5 }, () => newId());
  const outcomes = await Promise.all(names.map((name) => tried(random.pick(stores).run('recordAudit', event(name)))));
  return async () => {
    for (const [index, name] of names.entries()) {
      const [[noted] = []] = await select(`SELECT count(*) FROM audit WHERE event = '${name}'`);
      if (outcomes[index] === 'unsure') assert.ok(Number(noted) <= 1);
      else assert.equal(noted, 1);
    }
  };
}

const KINDS = [
  spendTokens, repeatContent, fillOwner, raceBurns, changeAndDelete, spendInvitation, storeLarge, noteEvents,
];

/** Queries, each of which gives 1 when the invariant holds. */
const INVARIANTS = {
  'the count of pastes': 'SELECT (SELECT count(*) FROM pastes) = (SELECT pastes FROM usage)',
  'their bytes': 'SELECT (SELECT coalesce(sum(size), 0) FROM pastes) = (SELECT bytes FROM usage)',
  'the bytes of owners': `SELECT NOT EXISTS (
    SELECT 1 FROM owners WHERE bytes <> (SELECT sum(size) FROM pastes WHERE pastes.owner = owners.owner))`,
  'one admin': 'SELECT (SELECT count(*) FROM certificates WHERE is_admin = 1) <= 1',
  'no chunks of nobody': `SELECT NOT EXISTS (SELECT 1 FROM chunks WHERE content_id NOT IN (
    SELECT content_id FROM pastes WHERE content_id IS NOT NULL))`,
  'no content of nobody': 'SELECT NOT EXISTS (SELECT 1 FROM orphans)',
};

async function select(node: RqliteNode, sql: string, level = 'strong'): Promise<readonly (readonly unknown[])[]> {
  const { body } = await node.ask(`/db/query?level=${level}&redirect`, [sql]);
  const { results, error = results?.[0]?.error } = JSON.parse(body) as {
    results?: readonly { error?: string; values?: readonly (readonly unknown[])[] }[]; error?: string;
  };
  assert.equal(error, undefined, `${sql}: ${body}`);
  return results?.[0]?.values ?? [];
}

/** All rows of all tables, as a node has them in its own file. */
async function allOf(node: RqliteNode): Promise<string> {
  const tables = await select(node, `SELECT name, (
      SELECT group_concat('quote(' || name || ')') FROM pragma_table_info(tables.name))
    FROM sqlite_schema AS tables WHERE type = 'table' ORDER BY name`, 'none');
  const rows = await Promise.all(tables.map(async ([name, columns]) => {
    const row = `concat_ws(',', ${columns})`;
    return [name, await select(node, `SELECT ${row} FROM ${name} ORDER BY 1`, 'none')];
  }));
  return JSON.stringify(rows);
}

/** Waits, since a follower applies what was committed a moment after the leader. */
async function assertNodesAlike(nodes: readonly RqliteNode[]): Promise<void> {
  for (const startMs = performance.now(); ; await pause(50)) {
    const [first, ...others] = await Promise.all(nodes.map(allOf));
    if (others.every((other) => other === first)) return;
    assert.ok(performance.now() - startMs < 10_000, 'the nodes hold different rows');
  }
}

/** Stores whose faults end when the trial does. */
async function openTrial(t: TestContext, nodes: readonly RqliteNode[], seed: number) {
  const random = createSeeded(seed);
  const faults = { areOn: false, count: 0 };
  const { addresses, settled } = await startFaultyNodes(t, nodes.map(({ address }) => address), () => {
    const fault = faults.areOn ? chooseFault(random) : undefined;
    if (fault !== undefined) faults.count += 1;
    return fault;
  });
  const config = testConfig({ databasePath: `rqlite://${addresses.join()}` });
  const open = () => openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  const stores = [await open(), await open(), await open()];
  t.after(() => {
    faults.areOn = false;
    return Promise.all(stores.map((store) => store.close()));
  });
  return { stores, random, faults, settled };
}

/** The other nodes elect a leader meanwhile; what was on its way to this one arrives when it leads no more. */
async function suspendAWhile(leader: RqliteNode, random: Seeded): Promise<void> {
  await pause(random.between(0, 500));
  leader.suspend();
  await pause(random.between(500, 3000));
  leader.resume();
}

test('cluster: whatever is lost, late, twice or made up between hosts and nodes', { skip: missing }, async (t) => {
  const { nodes, findLeader } = await startNodes(t);
  for (const seed of SEEDS) {
    await t.test(`seed ${seed}`, async (t) => {
      let leader = await findLeader();
      const { stores, random, faults, settled } = await openTrial(t, nodes, seed);
      const trial = { stores, random, select: (sql: string) => select(leader, sql) };
      faults.areOn = true;
      const work = Promise.all([...KINDS, ...KINDS, ...KINDS].map((kind) => kind(trial)));
      if (seed % 2 === 0) await suspendAWhile(leader, random);
      const checks = await work;
      faults.areOn = false;
      await settled();
      leader = await findLeader();
      t.diagnostic(`${faults.count} faults, ${calls.sure} calls sure and ${calls.unsure} not`);
      for (const check of checks) await check();
      // What a host could not release would stay until its lease ends, so the leases go here.
      await leader.ask('/db/execute', ['DELETE FROM leases']);
      await stores[0]!.upkeep.truncateWal();
      for (const [what, sql] of Object.entries(INVARIANTS)) assert.deepEqual(await trial.select(sql), [[1]], what);
      await assertNodesAlike(nodes);
      assert.ok(faults.count > 10, 'there were faults to live with');
    });
  }
  assert.ok(calls.sure > calls.unsure, 'what nobody knows shows little');
});
