// pastec's proof-of-work against the real service: each solver by itself, challenges that run out, what a person sees
// meanwhile, and how it ends by a signal. What the solvers compute is in solvers.test.ts.

import assert from 'node:assert/strict';
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { answerAlways } from '../support/answer-always.ts';
import { RUNNING_CLOCK, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate } from '../support/certificates.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf, SCRIPT } from '../support/shells.ts';
import { SOLVERS, solverIsInstalled } from '../support/solvers.ts';

const NODE = { PASTEC_SOLVER: 'node' };

/** Too slow to find 32 bits by luck while a test runs: 35 000 tries a second, of 4 000 000 000. */
const SLOW = { PASTEC_SOLVER: 'batches' };

test('pastec put: each solver by itself finds what the service accepts', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 11 });
  const { run } = clientOf(t, app.url);
  for (const solver of SOLVERS) {
    await t.test(solver, async (solverTest) => {
      if (!solverIsInstalled(solverTest, solver)) return;
      const { code, stderr } = await run([], { input: `by ${solver}`, environment: { PASTEC_SOLVER: solver } });
      if (/no program here/.test(stderr)) return solverTest.skip(`${solver} is installed without what it needs`);
      assert.deepEqual([code, stderr], [0, '']);
    });
  }
});

test('pastec put: descriptors of the caller, such as /dev/fd/3, are still content after the work', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1 });
  const passing = { name: 'sh', program: 'sh', options: ['-c', 'exec sh "$0" "$@" 3<first 4<second 5<third'] };
  const { run, folder } = clientOf(t, app.url, passing);
  for (const name of ['first', 'second', 'third']) writeFileSync(join(folder, name), name);
  const { code, text, stderr } = await run(['/dev/fd/3', '/dev/fd/4', '/dev/fd/5']);
  assert.deepEqual([code, stderr], [0, '']);
  const stored = await Promise.all(text.trim().split('\n').map(async (url) => (await fetch(`${url}/raw`)).text()));
  assert.deepEqual(stored, ['first', 'second', 'third']);
});

test('pastec put: by default a compiler comes before what is slower, for a long search', async (t) => {
  if (!isInstalled(t, 'cc')) return;
  const app = await startApp(t, { powDifficultyBits: 18 });
  const { code, stderr } = await clientOf(t, app.url).run(['-v'], { input: 'x' });
  assert.equal(code, 0);
  assert.match(stderr, /proof-of-work of 18 bits: cc, \d+ at a time/);
});

test('pastec put: with a compiler and none of the interpreters, it compiles for the shortest search', async (t) => {
  if (!isInstalled(t, 'cc')) return;
  const app = await startApp(t, { powDifficultyBits: 1 });
  const { folder, run } = clientOf(t, app.url);
  for (const program of ['php', 'perl', 'python3', 'node', 'ruby']) {
    writeFileSync(join(folder, program), '#!/bin/sh\nexit 1\n');
    chmodSync(join(folder, program), 0o755);
  }
  const environment = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
  const { code, stderr } = await run(['-v', '-'], { input: 'x', environment });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /proof-of-work of 1 bits: cc, 1 at a time/);
});

test('pastec put: a challenge of no bits with a nonce is answered with a number, too', async (t) => {
  const nonce = '0'.repeat(32);
  for (const solver of SOLVERS) {
    await t.test(solver, async (solverTest) => {
      if (!solverIsInstalled(solverTest, solver)) return;
      const answering = await answerAlways(solverTest, 200, `${nonce} 0 99999999999 token`);
      const environment = { PASTEC_SOLVER: solver };
      const { stderr } = await clientOf(solverTest, answering).run(['-v'], { input: 'x', environment });
      if (/no program here/.test(stderr)) return solverTest.skip(`${solver} is installed without what it needs`);
      assert.match(stderr, /POST .*: 200/);
    });
  }
});

test('pastec put: SIGINT and SIGTERM end every solver\'s processes', async (t) => {
  // A nonce without a number for 32 bits among the first billions, in whatever way a solver counts.
  const answering = await answerAlways(t, 200, `${'0'.repeat(32)} 32 99999999999 token`);
  for (const solver of SOLVERS) {
    await t.test(solver, async (solverTest) => {
      if (!solverIsInstalled(solverTest, solver)) return;
      for (const signal of ['SIGINT', 'SIGTERM'] as const) {
        const { start } = clientOf(solverTest, answering);
        // /usr/bin comes first, since a program elsewhere may be a shell script whose children outlive it for a moment.
        const environment = { PASTEC_SOLVER: solver, PATH: `/usr/bin${delimiter}${process.env['PATH'] ?? ''}` };
        const { child, ended, says } = start(['-v'], { input: 'x', environment });
        const began = await says(/proof-of-work of 32 bits/).then(() => true, () => false);
        if (!began) return solverTest.skip(`${solver} is installed without what it needs`);
        await setTimeout(100); // by then the processes run, most of the time
        child.kill(signal);
        // Every run checks besides that no process of its group is left.
        assert.equal((await ended).code, signal);
      }
    });
  }
});

test('pastec put: without any solver it says so', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 1 });
  const { code, stderr } = await clientOf(t, app.url).run([], { input: 'x', environment: { PASTEC_SOLVER: 'abacus' } });
  assert.equal(code, 7);
  assert.match(stderr, /no program here can do the proof-of-work \(tried: abacus\)/);
});

test('pastec put: does the work that is asked of the caller that it is, none with SERVICE_POW_TRUSTED=0', async (t) => {
  for (const bits of ['0', '3']) {
    const app = await startApp(t, { powDifficultyBits: 5, powTrustedBits: bits });
    const { run } = clientOf(t, app.url);
    const { fingerprint } = insertCertificate(app.config.databasePath);
    const identity = ['--fingerprint', fingerprint];
    const environment = { PASTEC_SOLVER: bits === '0' ? 'abacus' : 'node' };
    const trusted = await run(['-v', ...identity], { input: 'x', environment });
    assert.equal(trusted.code, 0, trusted.stderr);
    assert.equal(/proof-of-work of (\d+) bits/.exec(trusted.stderr)?.[1], bits === '0' ? undefined : bits);
    assert.match((await run(['status', ...identity])).text, new RegExp(`^proof-of-work: ${bits} bits$`, 'm'));
    const stranger = await run(['-v'], { input: 'y', environment: NODE });
    assert.deepEqual([stranger.code, /proof-of-work of (\d+) bits/.exec(stranger.stderr)?.[1]], [0, '5']);
  }
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
  await says(/proof-of-work, 32 bits: \d+ s so far; from here about \d+ h, could be \d+/);
  child.stdin.write('\x03');
  assert.equal((await ended).code, 128 + constants.signals.SIGINT);
  assert.deepEqual(readdirSync(folder), []);
});

function requestsTo(app: RunningApp, path: string): number {
  return app.logged.filter((entry) => JSON.stringify(entry).includes(`"${path}"`)).length;
}
