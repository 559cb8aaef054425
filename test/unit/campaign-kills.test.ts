// The frame of the campaign's kills, with services that fail before they are killed: that may not pass for all well.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { killUnderLoad } from '../campaign/kills.ts';
import { newWorld, workOn } from '../campaign/load.ts';
import { compareStored, forgetSome } from '../campaign/load-checks.ts';
import { createPasteModel } from '../campaign/model.ts';
import { runUnit, type Row, type Unit } from '../campaign/row.ts';
import { createSeeded } from '../support/seeded.ts';
import { temporaryFolder } from '../support/programs.ts';

/** What is lost with a service that treats each connection so. */
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
  const stored = { bytes: 10, content: Buffer.from('expiring.1') };
  const pastes = new Map([['expiring', stored]]);
  compareStored(unit, world, { faults: [], pastes, certificates: new Map(), orphans: 0, usesLeft: new Map() });
});
