// Kills a writing process at random moments, again and again on the same database, and holds it to what it had
// acknowledged.

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openStore, type Store } from '../../src/store/open.ts';
import { movableClock } from '../support/clock.ts';
import {
  CREATED_AT, patternedBytes, selectValue, strayChunks, temporaryFolder, wholeContent,
} from '../support/store.ts';

const ROUNDS = 20;

/** From the first acknowledgement of a round to its kill. */
const MAX_LIFE_MS = 120;

/** What has been acknowledged, over all rounds. */
interface Acknowledged {
  /** Sizes by id. */
  readonly created: Map<string, number>;
  /** Burning was asked for, without an answer: the paste may be there or not. */
  readonly burning: Set<string>;
  readonly burned: Set<string>;
}

/** Starts loading at once; writes when it is sent a line. */
function startChild(t: TestContext): ChildProcess {
  const program = fileURLToPath(new URL('./store-crash-child.ts', import.meta.url));
  // With the options of this process the child loads what this process does, which is built.
  const child = spawn(process.execPath, [...process.execArgv, program], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** Lets the child write into the database and kills it at a random moment; gives every whole line that it got out. */
async function runAndKill(child: ChildProcess, path: string, round: number): Promise<string[]> {
  let output = '';
  let firstDone = () => {};
  const first = new Promise<void>((resolve) => (firstDone = resolve));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.includes('created')) firstDone();
  });
  const closed = once(child, 'close');
  child.stdin?.write(`${JSON.stringify({ path, round })}\n`);
  await Promise.race([first, closed]);
  await new Promise((resolve) => setTimeout(resolve, randomInt(MAX_LIFE_MS)));
  child.kill('SIGKILL');
  const [, signal] = await closed;
  assert.equal(signal, 'SIGKILL', 'the child lives until it is killed');
  return output.slice(0, output.lastIndexOf('\n')).split('\n');
}

function note(lines: readonly string[], { created, burning, burned }: Acknowledged): void {
  for (const line of lines) {
    const [event, id = '', size] = line.split(' ');
    if (event === 'created') created.set(id, Number(size));
    if (event === 'burning') burning.add(id);
    if (event !== 'burned') continue;
    burned.add(id);
    burning.delete(id);
  }
}

/** `whole`: those whose content is compared too, and not only looked up. */
async function assertKept(store: Store, acknowledged: Acknowledged, whole: ReadonlySet<string>): Promise<void> {
  const { created, burning, burned } = acknowledged;
  for (const [id, size] of created) {
    const paste = await store.pastes.findWithContent(id, CREATED_AT);
    if (burned.has(id)) {
      assert.equal(paste, undefined, `${id} was burned and is back`);
      continue;
    }
    if (paste === undefined && burning.has(id)) continue;
    assert.ok(paste, `${id} was stored and is lost`);
    if (!whole.has(id)) continue;
    const content = await wholeContent(store, paste);
    assert.ok(Buffer.from(patternedBytes(size, size)).equals(content), `${id} is not what was stored`);
  }
}

test('kill -9 while writing: nothing stored is lost, nothing burned returns, nothing is left behind', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const acknowledged: Acknowledged = { created: new Map(), burning: new Set(), burned: new Set() };
  let child = startChild(t);
  for (let round = 0; round < ROUNDS; round += 1) {
    const running = child;
    // The next child loads while this one writes.
    child = startChild(t);
    const before = acknowledged.created.size;
    note(await runAndKill(running, path, round), acknowledged);
    assert.ok(acknowledged.created.size > before, 'the round has stored something');
    // A Map keeps the order of insertion, so these are the round's own. The last round compares everything once more.
    const whole = [...acknowledged.created.keys()].slice(round === ROUNDS - 1 ? 0 : before);

    const store = await openStore({ path, clock: movableClock(), log: () => {} });
    await assertKept(store, acknowledged, new Set(whole));
    assert.equal(strayChunks(path), 0);
    assert.equal(selectValue(path, 'SELECT count(*) FROM orphans'), 0);
    assert.equal(selectValue(path, 'PRAGMA integrity_check'), 'ok');
    await store.close();
  }
  t.diagnostic(`${acknowledged.created.size} pastes acknowledged, ${acknowledged.burned.size} burned`);
});

test('a process that does not close its store ends by itself, and what it stored is there', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  const script = `
    import { openStore } from ${JSON.stringify(import.meta.resolve('../../src/store/open.ts'))};
    import { inlinePaste, NO_TERMS, patternedBytes } from ${JSON.stringify(import.meta.resolve('../support/store.ts'))};
    import { movableClock } from ${JSON.stringify(import.meta.resolve('../support/clock.ts'))};
    const store = await openStore({ path: ${JSON.stringify(path)}, clock: movableClock(), log: () => {} });
    await store.pastes.create(inlinePaste(patternedBytes(10), { id: 'stored' }), NO_TERMS);`;
  const scriptPath = join(folder, 'process.mts');
  writeFileSync(scriptPath, script);
  const child = spawn(process.execPath, [scriptPath], { stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  const store = await openStore({ path, clock: movableClock(), log: () => {} });
  assert.ok(await store.pastes.find('stored', CREATED_AT));
  await store.close();
});
