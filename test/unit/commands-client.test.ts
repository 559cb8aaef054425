// `pasted client`: the script that GET /client hands out, without a server.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { startApp } from '../support/app.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { SCRIPT } from '../support/shells.ts';

async function client(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const fake = fakeTerminal(['client', ...words]);
  const code = await runCommandLine(fake.terminal);
  return { code, stdout: fake.stdout(), stderr: fake.stderr() };
}

test('client --server: exactly what GET /client answers at that address', async (t) => {
  const { url, request } = await startApp(t, { urlPrefix: '/paste' });
  const answered = await (await request('/client')).text();
  for (const server of [`${url}/paste`, `${url}/paste/`]) {
    assert.deepEqual(await client('--server', server), { code: 0, stdout: answered, stderr: '' });
  }
});

test('client: without an address the script as it is', async () => {
  assert.deepEqual(await client(), { code: 0, stdout: readFileSync(SCRIPT, 'utf8'), stderr: '' });
});

test('client --server: an address that could be more than an address is refused', async () => {
  for (const server of ["http://x';id;'", 'http://a b', 'paste.example', 'https://a/$(id)', 'https://u:p@a']) {
    const { code, stdout, stderr } = await client('--server', server);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^pasted: --server takes an address such as [^\n]+\nTry: pasted help\n$/);
  }
});
