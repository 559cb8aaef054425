// pastec's proof-of-work against the real service: each solver by itself, challenges that run out, and what a person
// sees meanwhile. How the search ends by a signal is in shells.test.ts.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { test } from 'node:test';
import { answerAlways } from '../support/answer-always.ts';
import { RUNNING_CLOCK, startApp, type RunningApp } from '../support/app.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf, SCRIPT } from '../support/shells.ts';

const NODE = { PASTEC_SOLVER: 'node' };

/** Too slow to have 32 bits by luck while a test looks on: 35 000 tries a second, of 4 000 000 000. */
const SLOW = { PASTEC_SOLVER: 'batches' };

test('pastec put: each solver by itself finds what the service accepts', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 11 });
  const { run } = clientOf(t, app.url);
  for (const solver of ['python3', 'perl', 'node', 'php', 'ruby', 'cc', 'batches']) {
    await t.test(solver, async (solverTest) => {
      const program = solver === 'batches' ? 'sha256sum' : solver;
      if (!isInstalled(solverTest, program)) return;
      const { code, stderr } = await run([], { input: `by ${solver}`, environment: { PASTEC_SOLVER: solver } });
      if (/no program here/.test(stderr)) return solverTest.skip(`${solver} is installed without what it needs`);
      assert.deepEqual([code, stderr], [0, '']);
    });
  }
});

test('pastec put: without any solver it says so', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1 });
  const { code, stderr } = await clientOf(t, app.url).run([], { input: 'x', environment: { PASTEC_SOLVER: 'abacus' } });
  assert.equal(code, 7);
  assert.match(stderr, /no program here can do the proof-of-work \(tried: abacus\)/);
});

test('pastec put: several processes share a search', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 18 });
  const { code, stderr } = await clientOf(t, app.url).run(['-v'], { input: 'x', environment: NODE });
  assert.equal(code, 0);
  assert.match(stderr, /proof-of-work of 18 bits: node, \d+ at a time/);
});

test('pastec put: work that the service finds late is done again with a new challenge', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 10, powTtlSeconds: 30 });
  const { start } = clientOf(t, app.url);
  const { ended, says } = start(['-v'], { input: 'in the end', environment: NODE });
  await says(/GET .*\/challenge: 200/);
  app.clock.advance(31_000);
  const { code, text, stderr } = await ended;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /POST .*: 400\n.*the work came too late \(attempt 1\)/);
  assert.equal(await (await fetch(`${text.trim()}/raw`)).text(), 'in the end');
});

test('pastec put: a challenge that runs out during the search is replaced, and the search goes on', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 32, powTtlSeconds: 2 }, RUNNING_CLOCK);
  const { start } = clientOf(t, app.url);
  const { child, ended, says } = start(['-v'], { input: 'x', environment: SLOW });
  await says(/the challenge has run out; going on with a new one\n(.*\n)*.*proof-of-work of 32 bits/);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 'SIGTERM');
  assert.ok(requestsTo(app, '/challenge') >= 2);
});

test('pastec put: a challenge beyond 32 bits, or one that is none, is refused before any work', async (t) => {
  const nonce = '0'.repeat(32);
  for (const [line, code] of [
    [`${nonce} 33 99999999999 token`, 7],
    [`${nonce} 4294967296 99999999999 token`, 9],
    [`${nonce} 1 soon token`, 9],
    [`${nonce}0 1 99999999999 token`, 9],
    [`${nonce} 1 99999999999 $(id)`, 9],
    ['<!doctype html>', 9],
  ] as const) {
    const answering = await answerAlways(t, 200, line);
    const { code: found, text } = await clientOf(t, answering).run([], { input: 'x' });
    assert.deepEqual([found, text], [code, ''], line);
  }
});

test('pastec put: shows its progress on a terminal, and Ctrl-C ends it cleanly', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t, { powDifficultyBits: 32 });
  const { onTerminal, folder } = clientOf(t, app.url);
  const { child, ended, says } = onTerminal(`put '${SCRIPT}'`, { environment: SLOW });
  await says(/proof-of-work, 32 bits: \d+ s, \d+ 000\/s, \d+ s on average/);
  child.stdin.write('\x03');
  assert.equal((await ended).code, 128 + constants.signals.SIGINT);
  assert.deepEqual(readdirSync(folder), []);
});

function requestsTo(app: RunningApp, path: string): number {
  return app.logged.filter((entry) => JSON.stringify(entry).includes(`"${path}"`)).length;
}
