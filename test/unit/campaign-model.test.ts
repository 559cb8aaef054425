// The campaign's own judgement: a model that finds what is wrong and nothing else, and a search that shortens a history
// which fails. A campaign that could find nothing would look like one that found nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { carryOut } from '../campaign/actions.ts';
import type { Answer, Ask } from '../campaign/client.ts';
import { randomHistory, replay, shrink, type Site, type Step } from '../campaign/history.ts';
import type { Entry } from '../campaign/load.ts';
import { historyOf } from '../campaign/load-history.ts';
import {
  contentOf, createPasteModel, versionOf, type Action, type ModelOptions, type PasteModel, type Seen,
} from '../campaign/model.ts';
import { createSeeded } from '../support/seeded.ts';

const CREATED: Seen = { kind: 'done', id: 'abcdef' };

function createdModel(options?: ModelOptions) {
  const model = createPasteModel('p', options);
  assert.equal(model.end(model.begin('create', 0, 10), CREATED, 0), undefined);
  return model;
}

/** Begins and ends an action, and returns what the model says to it. */
function judged(model: PasteModel, action: Action, seen: Seen, atMs = 0) {
  return model.end(model.begin(action, atMs, 20), seen, atMs);
}

test('model: an acknowledged paste that is not found is lost', () => {
  assert.match(String(judged(createdModel(), 'read', { kind: 'absent' })), /lost/);
});

test('model: what was deleted or burned and is found again is back', () => {
  const deleted = createdModel();
  assert.equal(judged(deleted, 'delete', { kind: 'done' }), undefined);
  assert.match(String(judged(deleted, 'read', { kind: 'done', version: 1 })), /is back/);
  const burned = createdModel({ burn: true });
  assert.equal(judged(burned, 'read', { kind: 'done', version: 1 }), undefined);
  assert.match(String(judged(burned, 'look', { kind: 'done' })), /is back/);
});

test('model: an update without an answer may have happened, and is settled by what is seen next', () => {
  const model = createdModel();
  assert.equal(judged(model, 'update', { kind: 'unknown' }), undefined);
  assert.deepEqual(model.possible(), [1, 2]);
  assert.equal(judged(model, 'read', { kind: 'done', version: 2 }), undefined);
  assert.equal(judged(model, 'update', { kind: 'done' }), undefined);
  assert.match(String(judged(model, 'read', { kind: 'done', version: 2 })), /3 was possible/);
});

test('model: what a read has shown of a change that was cut off stays so', () => {
  const deleted = createdModel();
  judged(deleted, 'delete', { kind: 'unknown' });
  assert.equal(judged(deleted, 'look', { kind: 'absent' }), undefined);
  assert.match(String(judged(deleted, 'read', { kind: 'done', version: 1 })), /is back/);
  const kept = createdModel();
  judged(kept, 'delete', { kind: 'unknown' });
  assert.equal(judged(kept, 'look', { kind: 'done' }), undefined);
  assert.match(String(judged(kept, 'look', { kind: 'absent' })), /lost/);
  const updated = createdModel();
  judged(updated, 'update', { kind: 'unknown' });
  assert.equal(judged(updated, 'read', { kind: 'done', version: 2 }), undefined);
  assert.match(String(judged(updated, 'read', { kind: 'done', version: 1 })), /2 was possible/);
});

test('model: what a read has shown beside a change, of an expired paste or in a cluster settles nothing', () => {
  const updated = createdModel();
  const update = updated.begin('update', 0, 20);
  const read = updated.begin('read', 0);
  updated.end(update, { kind: 'unknown' }, 0);
  assert.equal(updated.end(read, { kind: 'done', version: 1 }, 0), undefined);
  assert.deepEqual(updated.possible(), [1, 2]);
  const overtaken = updated.begin('read', 0);
  judged(updated, 'update', { kind: 'unknown' });
  assert.equal(updated.end(overtaken, { kind: 'done', version: 2 }, 0), undefined);
  assert.deepEqual(updated.possible(), [1, 2, 3]);
  const expired = createPasteModel('p');
  expired.end(expired.begin('create', 0, 10), { kind: 'done', id: 'abcdef', expiresAt: 5 }, 0);
  for (const action of ['look', 'delete'] as const) judged(expired, action, { kind: 'absent' }, 5000);
  assert.equal(expired.possible().includes(1), true);
  const inCluster = createdModel({ isLate: true });
  judged(inCluster, 'delete', { kind: 'unknown' });
  assert.equal(judged(inCluster, 'read', { kind: 'done', version: 1 }), undefined);
  assert.equal(judged(inCluster, 'read', { kind: 'absent' }), undefined);
});

test('model: two reads at once must not see different states when nothing changes it', () => {
  const model = createdModel();
  judged(model, 'delete', { kind: 'unknown' });
  const [one, other] = [model.begin('read', 0), model.begin('read', 0)];
  assert.equal(model.end(one, { kind: 'absent' }, 0), undefined);
  assert.match(String(model.end(other, { kind: 'done', version: 1 }, 0)), /is back/);
});

test('model: a refused change has not happened', () => {
  const model = createdModel({ refusable: true });
  assert.equal(judged(model, 'delete', { kind: 'refused', status: 503 }), undefined);
  assert.deepEqual(model.possible(), [1]);
  assert.match(String(judged(createdModel(), 'delete', { kind: 'refused', status: 503 })), /refused with 503/);
});

test('model: a look from aside may see either side of a change under way', () => {
  const model = createdModel();
  const look = model.begin('read', 0);
  assert.equal(judged(model, 'update', { kind: 'done' }), undefined);
  assert.equal(model.end(look, { kind: 'done', version: 1 }, 0), undefined);
  assert.match(String(judged(model, 'read', { kind: 'done', version: 1 })), /2 was possible/);
});

test('model: a paste expires in its second, not before and not after', () => {
  const expiring = () => {
    const model = createPasteModel('p');
    assert.equal(model.end(model.begin('create', 0, 10), { kind: 'done', id: 'abcdef', expiresAt: 5 }, 0), undefined);
    return model;
  };
  assert.match(String(judged(expiring(), 'read', { kind: 'absent' }, 4999)), /lost/);
  assert.equal(judged(expiring(), 'read', { kind: 'absent' }, 5000), undefined);
  assert.match(String(judged(expiring(), 'read', { kind: 'done', version: 1 }, 5000)), /had expired/);
});

test('contentOf: differs by paste, version and size, and is known to the byte', () => {
  const model = createdModel();
  const content = contentOf('p', 1, 10);
  assert.equal(versionOf(model, content), 1);
  assert.equal(versionOf(model, content.subarray(1)), undefined);
  assert.equal(versionOf(model, contentOf('q', 1, 10)), undefined);
  content[9] = content[9]! ^ 1;
  assert.equal(versionOf(model, content), undefined);
});

interface Held {
  readonly body: Uint8Array;
  readonly burn: boolean;
  readonly expiresAt: number;
}

/**
 * A service in memory, which may have a fault. `forgets`: a restart undoes the last deletion. `overwrites`: a request
 * writes back all that it found with its own change, and so undoes what others changed meanwhile. `wavers`: no deletion
 * is answered, and the second restart undoes each.
 */
function memorySite({ forgets = false, overwrites = false, wavers = false } = {}): Site {
  let pastes = new Map<string, Held>();
  let removed: [string, Held] | undefined;
  const unanswered: [age: number, string, Held][] = [];
  let ids = 0;
  const answer = (status: number, body: Uint8Array = Buffer.from('{}')): Answer => {
    return { status, headers: {}, body: Buffer.from(body) };
  };

  function carryOutOn(stored: Map<string, Held>, { method, path, headers = {}, body = new Uint8Array() }: Ask): Answer {
    const [, id = '', raw] = path.split('/');
    const now = Date.now() / 1000;
    if (method === 'POST') {
      const ttl = Number(headers['X-Expiry'] ?? Infinity);
      const expiry = ttl === Infinity ? {} : { expires_at: Math.floor(now) + ttl };
      ids += 1;
      stored.set(`id${ids}`, { body, burn: 'X-Burn-After-Read' in headers, expiresAt: expiry.expires_at ?? Infinity });
      return answer(201, Buffer.from(JSON.stringify({ id: `id${ids}`, ...expiry })));
    }
    const paste = stored.get(id);
    if (paste === undefined || Math.floor(now) >= paste.expiresAt) return answer(404);
    if (method === 'PUT') stored.set(id, { ...paste, body });
    if (method === 'DELETE' || (raw !== undefined && paste.burn)) {
      removed = [id, paste];
      unanswered.push([0, id, paste]);
      stored.delete(id);
    }
    return answer(200, paste.body);
  }

  return {
    ask: async (request) => {
      const stored = overwrites ? new Map(pastes) : pastes;
      // Requests that come at the same time have found the same state.
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      const given = carryOutOn(stored, request);
      pastes = stored;
      return wavers && request.method === 'DELETE' && given.status === 200 ? undefined : given;
    },
    restart: async () => {
      for (const one of wavers ? unanswered : []) if (++one[0] === 2) pastes.set(one[1], one[2]);
      if (forgets && removed !== undefined) pastes.set(...removed);
      removed = undefined;
    },
  };
}

/** The same history with kills that do not wait: a service in memory has carried everything out by then. */
const withQuickKills = (history: readonly Step[]): readonly Step[] =>
  history.map((step) => (step.killAfterMs === undefined ? step : { ...step, killAfterMs: 0 }));

test('replay: a sound service passes every history, of one connection and of several', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    for (const connections of [1, 4]) {
      const history = withQuickKills(randomHistory(createSeeded(seed), 40, connections));
      assert.equal(await replay(history, memorySite(), 'h'), undefined, `seed ${seed}, ${connections} connections`);
    }
  }
});

test('randomHistory: every step asks for something, whatever a kill cuts off', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    for (const connections of [1, 4]) {
      const history = withQuickKills(randomHistory(createSeeded(seed), 40, connections));
      const created = history.filter(({ action }) => action === 'create').length;
      const site = memorySite();
      let answered = 0;
      let creations = 0;
      const ask = async (request: Ask, connection: number): Promise<Answer | undefined> => {
        const answer = await site.ask(request, connection);
        // Every other creation is carried out, but not answered.
        if (request.method === 'POST' && creations++ % 2 === 0) return undefined;
        answered += 1;
        return answer;
      };
      assert.equal(await replay(history, { ...site, ask }, 'h'), undefined);
      // Every paste is looked at in the end.
      assert.equal(answered, history.length + created, `seed ${seed}, ${connections} connections`);
    }
  }
});

test('replay and shrink: a service that forgets a deletion is found, with a history of two steps', async () => {
  const fails = async (part: readonly Step[]): Promise<boolean> =>
    (await replay(part, memorySite({ forgets: true }), 'h')) !== undefined;
  const history = withQuickKills(randomHistory(createSeeded(1), 60));
  assert.equal(await fails(history), true);
  const shortest = await shrink(history, fails, 500);
  assert.equal(shortest.length, 2, JSON.stringify(shortest));
  assert.equal(shortest[0]?.action, 'create');
});

test('replay: a deletion that was cut off and is undone by the second restart is found', async () => {
  const step = { connection: 0, paste: 0, bytes: 50, burn: false };
  const deleted: Step[] = [{ ...step, action: 'create' }, { ...step, action: 'delete', killAfterMs: 0 }];
  const looked: Step = { ...step, action: 'look' };
  const site = () => memorySite({ wavers: true });
  assert.match(String(await replay([...deleted, looked], site(), 'h')), /^at the end: .* is back/);
  // Nothing has shown that the deletion was carried out.
  assert.equal(await replay(deleted, site(), 'h'), undefined);
});

test('replay and shrink: a service that undoes what others do is found by two steps under load', async () => {
  const withoutKills = (history: readonly Step[]) => history.map((step) => ({ ...step, killAfterMs: undefined }));
  const fails = async (part: readonly Step[]): Promise<boolean> =>
    (await replay(part, memorySite({ overwrites: true }), 'h')) !== undefined;
  assert.equal(await fails(withoutKills(randomHistory(createSeeded(1), 60))), false, 'one at a time it is sound');
  const history = withoutKills(randomHistory(createSeeded(1), 60, 4));
  assert.equal(await fails(history), true);
  const shortest = await shrink(history, fails, 500);
  assert.equal(shortest.length, 2, JSON.stringify(shortest));
  assert.equal(new Set(shortest.map(({ connection }) => connection)).size, 2);
});

test('historyOf: what was asked under load, in its order, with a kill at the end of each round', async () => {
  const site = memorySite();
  const known = ['p', 'q'].map((label, index) => {
    return { model: createPasteModel(label, { burn: index === 1 }), history: [] as Entry[] };
  });
  const orders: readonly [paste: number, action: Action, connection: number, round: number][] = [
    [0, 'create', 3, 0], [1, 'create', 2, 0], [0, 'look', 0, -1], [1, 'read', 1, 1], [0, 'update', 3, 1],
  ];
  for (const [startMs, [paste, action, connection, round]] of orders.entries()) {
    const { model, history } = known[paste]!;
    const asker = { ask: (request: Ask) => site.ask(request, 0) };
    const { attempt, seen, endMs } = await carryOut(asker, model, action, { bytes: 50 });
    history.push({ round, connection, action, attempt: { ...attempt, startMs }, seen, endMs });
  }
  const steps = historyOf(known);
  assert.deepEqual(steps.map(({ paste, action, connection }) => [paste, action, connection]), [
    [0, 'create', 3], [1, 'create', 2], [1, 'read', 1], [0, 'update', 3],
  ]);
  assert.deepEqual(steps.map(({ killAfterMs }) => killAfterMs !== undefined), [false, true, false, true]);
  assert.deepEqual(steps.map(({ bytes, burn }) => [bytes, burn]), [[50, false], [50, true], [0, true], [50, false]]);
  assert.equal(await replay(steps.map((step) => ({ ...step, killAfterMs: undefined })), memorySite(), 'h'), undefined);
});

test('shrink: keeps exactly what is needed, in its order', async () => {
  const needed = [3, 50, 51, 97];
  const fails = async (part: readonly number[]): Promise<boolean> => needed.every((item) => part.includes(item));
  assert.deepEqual(await shrink(Array.from({ length: 100 }, (_, index) => index), fails, 1000), needed);
});

test('carryOut: an answer that no state explains is wrong', async () => {
  const model = createdModel();
  const answer: Answer = { status: 200, headers: {}, body: Buffer.from('something else') };
  const { wrong } = await carryOut({ ask: async () => answer }, model, 'read');
  assert.match(String(wrong), /14 bytes that begin with something else/);
});
