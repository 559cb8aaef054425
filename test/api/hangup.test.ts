// A service that was started on a terminal, when the terminal is closed: on a real one (python3, pty), through the whole
// chain of `npm start`. SIGHUP without a terminal: tls-main.test.ts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { builtMain } from '../support/built.ts';
import { temporaryFolder } from '../support/main-process.ts';
import { olderNode } from '../support/older-node.ts';
import { isInstalled } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

/** Runs a command on a terminal of its own; closes the terminal when this text is on it, or in the command's log. */
const TERMINAL = `
import os, pty, sys, time
text, log = sys.argv[1].encode(), sys.argv[2]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
out = b''
while text not in out:
    if log == '-':
        out += os.read(terminal, 4096)
    else:
        time.sleep(0.02)
        out = open(log, 'rb').read() if os.path.exists(log) else b''
os.close(terminal)`;

/** More than any of these takes to end by itself. */
const PATIENCE_MS = 30_000;

interface Closed {
  readonly folder: string;
  /** Ids of the processes of the command that still run after they have had their time to end. */
  readonly left: readonly number[];
}

/** Runs a command line by sh on a terminal that is closed as soon as the service in it listens. */
async function closeTerminal(t: TestContext, line: string, log = '-'): Promise<Closed> {
  const folder = temporaryFolder(t);
  const mark = `PASTED_TEST=${folder}`;
  const env = { ...process.env, SERVICE_PORT: '0', SERVICE_DB: join(folder, 'pasted.db'), PASTED_TEST: folder };
  const words = ['-c', TERMINAL, 'listening', log === '-' ? log : join(folder, log), 'sh', '-c', `cd '${folder}'; ${line}`];
  const python = spawn('python3', words, { cwd: ROOT, env, stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(() => marked(mark).forEach((pid) => process.kill(pid, 'SIGKILL')));
  assert.deepEqual(await once(python, 'exit'), [0, null], line);
  const untilMs = performance.now() + PATIENCE_MS;
  while (marked(mark).length > 0 && performance.now() < untilMs) await setTimeout(50);
  return { folder, left: marked(mark) };
}

/** Processes with that in their environment. */
function marked(mark: string): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
    } catch {
      return false;
    }
  });
}

test('a terminal that is closed: npm start leaves nothing running', async (t) => {
  if (!isInstalled(t, 'python3') || !isInstalled(t, 'npm')) return;
  const { left } = await closeTerminal(t, `npm --prefix '${ROOT}' start`);
  assert.deepEqual(left, []);
});

test('a terminal that is closed: nor does it through an older Node, in the foreground of a shell or behind', async (t) => {
  const older = olderNode(t);
  if (older === undefined || !isInstalled(t, 'python3') || !isInstalled(t, 'bash')) return;
  const start = `${older} ${ROOT}/scripts/with-node.mjs ${ROOT}/scripts/start.mjs`;
  for (const line of [`exec ${start}`, `${start}; true`, `exec bash --norc -i -c '${start} & wait'`]) {
    const { left } = await closeTerminal(t, line);
    assert.deepEqual(left, [], line);
  }
});

test('a terminal that is closed: the service ends in the orderly way, whichever stream is on the terminal', async (t) => {
  if (!isInstalled(t, 'python3')) return;
  for (const streams of ['> log', '> log < /dev/null', '> log 2>&1']) {
    const { folder, left } = await closeTerminal(t, `exec '${process.execPath}' '${builtMain()}' ${streams}`, 'log');
    assert.deepEqual(left, []);
    const said = readFileSync(join(folder, 'log'), 'utf8');
    assert.match(said, / stopping {2}signal=SIGHUP\n[^]* stopped\n$/, streams);
    assert.doesNotMatch(said, /reloaded|at once/);
  }
});
