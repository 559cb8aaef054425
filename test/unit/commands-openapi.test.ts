// `pasted openapi`: what is printed. What it says is test/conformance/openapi*.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeApi } from '../../scripts/describe/openapi.ts';
import { VERSION } from '../../src/config/settings.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';

test('openapi: prints the description as JSON that people can read, whatever the settings', async () => {
  const fake = fakeTerminal(['openapi'], { environment: { SERVICE_PORT: 'no port' } });
  assert.equal(await runCommandLine(fake.terminal), 0);
  assert.equal(fake.stderr(), '');
  const api = JSON.parse(JSON.stringify(describeApi())) as { info: object };
  assert.deepEqual(JSON.parse(fake.stdout()), { ...api, info: { ...api.info, version: VERSION } });
  assert.match(fake.stdout(), /^\{\n {2}"openapi": "3\.1\.0",\n/);
  assert.ok(fake.stdout().endsWith('}\n'));
});

test('openapi: takes no operands and no options', async () => {
  for (const word of ['more', '--json']) {
    const fake = fakeTerminal(['openapi', word]);
    assert.equal(await runCommandLine(fake.terminal), 2);
    assert.equal(fake.stdout(), '');
  }
});
