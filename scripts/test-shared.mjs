// Imported first by a process that several test files share (test-together.mjs): a test that leaves the process
// changed fails the run, and a test that ends the process is named.

import assert from 'node:assert/strict';
import childProcess from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import { afterEach, beforeEach } from 'node:test';
import timers from 'node:timers';

const REPLACEABLE = { globalThis, process, childProcess, crypto, fs, net, timers };

let before;
let last;
let isUnderWay = false;

const isOutermost = (t) => t.fullName === t.name;

// Checked when the next test begins, since the t.after() hooks of a test have not run sooner.
beforeEach((t) => {
  if (!isOutermost(t)) return;
  before ??= stateOf();
  assertUnchanged();
  last = t.name;
  isUnderWay = true;
});

afterEach((t) => {
  if (isOutermost(t)) isUnderWay = false;
});

process.on('exit', () => {
  try {
    assert.ok(!isUnderWay, `the process has ended in the test '${last}'`);
    assertUnchanged();
  } catch (error) {
    fs.writeSync(2, `pasted: ${error.message}\n`);
    process.exitCode ||= 1;
  }
});

function assertUnchanged() {
  if (before === undefined) return;
  const now = stateOf();
  const changed = [...before.keys()].filter((name) => now.get(name) !== before.get(name));
  changed.push(...now.keys().filter((name) => name.startsWith('process.env.') && !before.has(name)));
  assert.deepEqual(changed, [], `the test '${last}' has changed its process: ${changed.join(', ')}`);
}

/** The state of this process, as far as tests of other files would notice a change. */
function stateOf() {
  const state = new Map([['the folder', process.cwd()], ['the umask', process.umask()]]);
  for (const [name, value] of Object.entries(process.env)) state.set(`process.env.${name}`, value);
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM', 'warning']) {
    state.set(`listeners of ${name}`, process.listenerCount(name));
  }
  for (const [name, object] of Object.entries(REPLACEABLE)) {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      if (typeof value === 'function') state.set(`${name}.${key}`, value);
    }
  }
  return state;
}
