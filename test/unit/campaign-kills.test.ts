// The frame of the campaign's kills, with services that fail before they are killed: it must report that.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Governed } from '../campaign/governed.ts';
import { newContent, newGovernedWorld, type KnownContent, type KnownStored } from '../campaign/governed-load.ts';
import type { Inspection } from '../campaign/inspect.ts';
import { killUnderLoad } from '../campaign/kills.ts';
import { newWorld, workOn, type KnownCertificate, type KnownPaste } from '../campaign/load.ts';
import { compareCertificates, compareStored, forgetSome } from '../campaign/load-checks.ts';
import { contentOf, createPasteModel, type Action, type State } from '../campaign/model.ts';
import { comparePastes, compareStored as compareContents } from '../campaign/row-22-kills.ts';
import { runUnit, type Row, type Unit } from '../campaign/row.ts';
import { createSeeded } from '../support/seeded.ts';
import { temporaryFolder } from '../support/programs.ts';

/** What is reported as lost with a service that treats each connection like this. */
async function lostWith(t: TestContext, treatment: string): Promise<string[]> {
  const main = join(temporaryFolder(t), 'main.mjs');
  writeFileSync(main, `import { createServer } from 'node:net';
    const server = createServer((socket) => ${treatment});
    server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`);
  const row: Row = {
    name: '0', title: '', target: '', units: 1, least: [],
    run: (unit) => {
      const world = newWorld();
      return killUnderLoad(unit, {
        kills: 1,
        longestLifeMs: 1,
        fewestAcknowledged: 1,
        world,
        begin: async () => {},
        work: (service, round, isOver) => workOn(unit, world, service.port(), { round, connections: 2, isOver }),
        examine: async () => {},
      });
    },
  };
  const { lost } = await runUnit(row, { seed: 1, effort: 'quick', main });
  return lost.map(({ what }) => what);
}

test('killUnderLoad: one that breaks connections off, or ends by itself, is a loss', async (t) => {
  const brokenOff = 'a connection was broken off';
  const expected = [brokenOff, brokenOff, 'nobody was answered any more before the kill'];
  assert.deepEqual(await lostWith(t, 'socket.destroy()'), expected);
  assert.deepEqual(await lostWith(t, 'process.exit()'), expected);
});

test('killUnderLoad: a failure of who asks is one of the row, before anything is killed', async (t) => {
  const [lost = '', ...others] = await lostWith(t, "socket.end('HTTP/1.1 201 Created\\r\\nContent-Length: 4\\r\\n\\r\\nnone')");
  assert.match(lost, /^the row itself failed: SyntaxError: /);
  assert.deepEqual(others, []);
});

/** A unit that writes down what is lost. */
function losingUnit() {
  const lost: string[] = [];
  const lose = (what: string) => void lost.push(what);
  return { unit: { random: createSeeded(1), lose } as unknown as Unit, lost };
}

const EMPTY: Inspection = { faults: [], pastes: new Map(), certificates: new Map(), orphans: 0, usesLeft: new Map() };

/** What is found in a database with these pastes. */
function holding(...pastes: readonly (readonly [id: string, content: Uint8Array, expiresAt?: number])[]): Inspection {
  return {
    ...EMPTY,
    pastes: new Map(pastes.map(([id, content, expiresAt = 2 ** 40]) => {
      return [id, { bytes: content.length, expiresAt, content }];
    })),
  };
}

/** A paste whose last action was cut off. */
function cutOff(action: Action, { burn = false, isLate = false } = {}): KnownPaste {
  const model = createPasteModel('p', { burn, isLate });
  const history = (['create', action] as const).slice(0, action === 'create' ? 1 : 2).map((one, index) => {
    const attempt = model.begin(one, 0, 50);
    const seen = one === action ? { kind: 'unknown' } as const : { kind: 'done', id: 'p' } as const;
    model.end(attempt, seen, 0);
    return { round: index, connection: 0, action: one, attempt, seen, endMs: 0 };
  });
  return { model, history, isTaken: false };
}

/** What is reported as lost when the paste is found in these states, one after each kill. */
function lostWhenFound(known: KnownPaste, states: readonly State[], world = newWorld()): string[] {
  const { unit, lost } = losingUnit();
  const isNamed = known.model.id() !== undefined;
  (isNamed ? world.pastes : world.unanswered).push(known);
  for (const state of states) {
    const content = state === 'gone' ? undefined : contentOf('p', state, 50);
    compareStored(unit, world, content === undefined ? EMPTY : holding(['p', content]));
  }
  return lost;
}

test('compareStored: what one restart has settled is no other way after the next', () => {
  for (const [action, burn, first, second] of [
    ['delete', false, 'gone', 1], ['delete', false, 1, 'gone'], ['read', true, 'gone', 1], ['update', false, 2, 1],
    ['create', false, 'gone', 1], ['create', false, 1, 'gone'],
  ] as const) {
    assert.deepEqual(lostWhenFound(cutOff(action, { burn }), [first, first]), [], `${action} ${first}`);
    assert.equal(lostWhenFound(cutOff(action, { burn }), [first, second]).length, 1, `${action} ${first} ${second}`);
  }
});

test('compareStored: in a cluster what was cut off may be carried out later', () => {
  for (const action of ['delete', 'create'] as const) {
    const states = action === 'delete' ? [1, 'gone'] as const : ['gone', 1] as const;
    assert.deepEqual(lostWhenFound(cutOff(action, { isLate: true }), states, newWorld({ isLate: true })), []);
  }
});

test('compareStored: what is found of a creation that was cut off may expire, and then must not be served', () => {
  const { unit, lost } = losingUnit();
  const world = newWorld();
  const known = cutOff('create');
  world.unanswered.push(known);
  compareStored(unit, world, holding(['p', contentOf('p', 1, 50), 1]));
  compareStored(unit, world, EMPTY);
  assert.deepEqual([lost, world.pastes, known.model.hasExpiredAt(1000)], [[], [known], true]);
});

test('compareCertificates: a revocation that was cut off is settled for whoever asks of which moment a database is', () => {
  for (const isRevoked of [true, false]) {
    const { unit, lost } = losingUnit();
    const asked = { fromMs: 1, toMs: Infinity };
    const known: KnownCertificate = {
      serial: '1', fingerprint: 'f', issued: { fromMs: 0, toMs: 1 }, state: 'asked', revoked: asked,
    };
    const world = newWorld();
    world.certificates.push(known);
    compareCertificates(unit, world, {
      ...EMPTY, certificates: new Map([['1', { fingerprint: 'f', isRevoked, isUnused: false }]]),
    });
    assert.deepEqual([lost, known.state], [[], isRevoked ? 'revoked' : 'valid']);
    assert.equal(isRevoked ? Number.isFinite(known.revoked?.toMs) : known.revoked === undefined, true);
  }
});

test('row 22k: what one restart has settled of a paste is no other way after the next', () => {
  for (const [first, second] of [['gone', 1], [1, 'gone']] as const) {
    const { unit, lost } = losingUnit();
    const world = newGovernedWorld();
    world.pastes.push({ ...cutOff('delete'), token: '' });
    const inspections = [first, second].map((state) => state === 'gone' ? EMPTY : holding(['p', contentOf('p', 1, 50)]));
    comparePastes(unit, world, inspections[0]!);
    assert.deepEqual(lost, []);
    comparePastes(unit, world, inspections[1]!);
    assert.equal(lost.length, 1);
  }
});

test('row 22k: content that was stored is there, what was deleted or banned is gone, what was cut off is settled', () => {
  const lostWith = (
    state: KnownStored['state'], ban: KnownContent['state'], found: readonly (boolean | 'other')[], isBanned = false,
  ): number => {
    const { unit, lost } = losingUnit();
    const content = newContent(createSeeded(1), 'c');
    content.state = ban;
    const world = newGovernedWorld();
    world.stored.push({ id: 's', content, state });
    const banned: Governed['banned'] = new Set(isBanned ? [content.sha256] : []);
    for (const one of found) {
      const { pastes } = one === false ? EMPTY : holding(['s', one === 'other' ? Buffer.from('x') : content.bytes]);
      compareContents(unit, world, { pastes, banned });
    }
    return lost.length;
  };
  assert.deepEqual([true, false, 'other'].map((found) => lostWith('there', 'free', [found as boolean])), [0, 1, 1]);
  assert.deepEqual([true, false].map((found) => lostWith('gone', 'free', [found])), [1, 0]);
  assert.deepEqual([true, false].map((found) => lostWith('there', 'banned', [found], true)), [1, 0]);
  assert.deepEqual([true, false].map((found) => lostWith('there', 'asked', [found], true)), [0, 0]);
  assert.equal(lostWith('there', 'asked', [false], false), 1, 'a ban that has not happened has removed nothing');
  assert.deepEqual([[true, true], [false, false], [true, false], [false, true]]
    .map((found) => lostWith('asked', 'free', found)), [0, 0, 1, 1]);
});

/** A service with pastes in memory, and no certificates. */
const SERVICE = `import { createServer } from 'node:http';
  const pastes = new Map();
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await Array.fromAsync(request));
    const [, id, raw] = url.split('/');
    response.statusCode = method === 'POST' ? 201 : 200;
    if (url !== '/' && pastes.get(id) === undefined) response.statusCode = 404;
    if (response.statusCode === 404) return response.end();
    const made = method === 'POST' ? 'p' + pastes.size : id;
    const { burn, content } = pastes.get(id) ?? { burn: headers['x-burn-after-read'] };
    if (method === 'POST' || method === 'PUT') pastes.set(made, { burn, content: body });
    if (method === 'DELETE' || (raw && burn)) pastes.set(id, undefined);
    response.end(raw ? content : JSON.stringify({ id: made }));
  });
  server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`;

test('workOn: what is only read is not acknowledged as a change is', async (t) => {
  const main = join(temporaryFolder(t), 'main.mjs');
  writeFileSync(main, SERVICE);
  const world = newWorld();
  const row: Row = {
    name: '0', title: '', target: '', units: 1, least: ['create', 'read', 'look', 'update', 'delete'],
    run: async (unit) => {
      const service = await unit.start({ folder: unit.folder });
      const isOver = () => world.acknowledged >= 100;
      await workOn(unit, world, service.port(), { round: 0, connections: 1, isOver });
    },
  };
  const { lost } = await runUnit(row, { seed: 1, effort: 'quick', main });
  assert.deepEqual(lost.filter(({ what }) => !/^(?:issue|register) was answered 404/.test(what)), []);
  const changes = [...world.pastes, ...world.forgotten].flatMap(({ model, history }) => {
    return history.filter(({ action }) => action !== 'look' && (action !== 'read' || model.burn));
  });
  assert.equal(changes.length, 100);
});

/** A cluster whose leader has a full disk for every third change: the other nodes do it, and the answer is 507. */
const FULL = `import { createServer } from 'node:http';
  const { EARLY_MS, FORGETS } = process.env;
  const [pastes, refusedMs] = [new Map(), new Map()];
  let changes = 0;
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await Array.fromAsync(request));
    const [, id, raw] = url.split('/');
    const { burn, content } = pastes.get(id) ?? { burn: headers['x-burn-after-read'] };
    response.statusCode = method === 'POST' ? 201 : 200;
    if (url !== '/' && content === undefined) response.statusCode = 404;
    if (response.statusCode === 404) return response.end();
    const made = method === 'POST' ? 'p' + pastes.size : id;
    if (method === 'GET' && !(raw && burn)) return response.end(raw ? content : '{}');
    changes += 1;
    const isEarly = Date.now() - refusedMs.get(made) < EARLY_MS;
    const isForgotten = isEarly || (FORGETS && method === 'PUT' && changes % 3 === 1);
    if (!isForgotten) pastes.set(made, { burn, content: method === 'POST' || method === 'PUT' ? body : undefined });
    if (changes % 3 === 0) response.statusCode = 507;
    if (changes % 3 === 0) refusedMs.set(made, Date.now());
    response.end(changes % 3 !== 0 && raw ? content : JSON.stringify({ id: made }));
  });
  server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`;

test('workOn: of a cluster that may be full 507 leaves all open, and what was asked for is left alone for a while', async (t) => {
  const main = join(temporaryFolder(t), 'main.mjs');
  writeFileSync(main, FULL);
  const lostBy = async (unsettledMs: number | undefined, environment: Record<string, string>): Promise<string[]> => {
    const world = newWorld({ isLate: true, ...unsettledMs === undefined ? {} : { unsettledMs } });
    const row: Row = {
      name: '0', title: '', target: '', units: 1, least: [],
      run: async (unit) => {
        const service = await unit.start({ folder: unit.folder, environment });
        const isOver = () => world.acknowledged >= 200;
        await workOn(unit, world, service.port(), { round: 0, connections: 8, isPatient: true, isOver });
      },
    };
    const { lost, tried } = await runUnit(row, { seed: 1, effort: 'quick', main });
    assert.ok(unsettledMs === undefined || tried['refused with 507']! > 10);
    return lost.map(({ what }) => what).filter((what) => !/^(?:issue|register) was answered 404/.test(what));
  };
  assert.deepEqual(await lostBy(150, { EARLY_MS: '100' }), []);
  assert.match(String(await lostBy(undefined, {})), /was refused with 507/);
  assert.match(String(await lostBy(0, { EARLY_MS: '10000' })), /s1r0n\d+ (?:is back|is lost|read as version)/, 'lost by another');
  assert.match(String(await lostBy(0, { FORGETS: '1' })), /s1r0n\d+ read as version/, 'lost later');
});

test('forgetSome: a paste that expires while it is looked at stays known, gone or not', (t) => {
  const world = newWorld();
  const model = createPasteModel('expiring');
  const attempt = model.begin('create', 0, 10);
  model.end(attempt, { kind: 'done', id: 'expiring', expiresAt: 100 }, 0);
  world.pastes.push({ model, history: [], isTaken: false });
  const unit = { random: createSeeded(1), lose: (what: string) => assert.fail(what) } as unknown as Unit;
  let nowMs = 99_999;
  t.mock.method(Date, 'now', () => nowMs++);
  forgetSome(unit, world);
  assert.deepEqual([world.pastes.length, world.forgotten.length], [1, 0]);
  const stored = { bytes: 10, expiresAt: 100, content: Buffer.from('expiring.1') };
  const pastes = new Map([['expiring', stored]]);
  compareStored(unit, world, { faults: [], pastes, certificates: new Map(), orphans: 0, usesLeft: new Map() });
});
