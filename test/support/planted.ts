// A copy of the build whose GET /health runs what a test has planted, as an intruder's code would run in the service.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { builtMain } from './built.ts';

/** `code` is a module whose `plant` gives the JSON of the answer. Gives the path of the copy's main.js. */
export function plantedBuild(folder: string, code: string): string {
  const copy = join(folder, 'dist');
  cpSync(dirname(builtMain()), copy, { recursive: true });
  writeFileSync(join(copy, 'planted.js'), code);
  const file = join(copy, 'http', 'handlers', 'service.js');
  const before = readFileSync(file, 'utf8');
  const reply = "jsonReply(200, await (await import('../../planted.js')).plant())";
  const after = before.replace("jsonReply(200, { status: 'healthy', database: 'ok' })", () => reply);
  assert.notEqual(after, before, 'there is a handler to plant it in');
  writeFileSync(file, after);
  return join(copy, 'main.js');
}
