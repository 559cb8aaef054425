// GET / as people at a shell use it: what it says of this service at this moment, and that every command line in it
// works as printed. The hints of refusals that name a command line are here too.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { commandLines, type CommandLines } from '../support/command-lines.ts';
import { PKI } from '../support/pki.ts';
import { post } from '../support/posting.ts';
import { isInstalled } from '../support/programs.ts';
import { freshWork } from '../support/work.ts';

interface Index {
  readonly version: string;
  readonly endpoints: Readonly<Record<string, string>>;
  readonly usage: Readonly<Record<string, string>>;
  readonly client: Readonly<Record<string, string>>;
  readonly tiers: Readonly<Record<string, unknown>>;
  readonly proof_of_work: unknown;
  readonly note: string;
}

const SECRET = 'correct horse';
const CONTENT = 'some content';
const ID = /[a-z2-7]{26}/;

async function indexOf(app: RunningApp, headers: Record<string, string> = {}): Promise<Index> {
  const response = await app.request('/', { headers });
  assert.equal(response.status, 200);
  return await response.json() as Index;
}

/** A folder with the file to store, and `run` for a line of the index with its placeholders replaced. */
function shellWith(t: TestContext, app: RunningApp, id = ''): CommandLines {
  const lines = commandLines(t);
  writeFileSync(join(lines.folder, 'a file'), CONTENT);
  const run = (line: string): Promise<string> => {
    const file = line.includes('@FILE') ? "'@a file'" : "'a file'";
    return lines.run(line.replace(/@?FILE/, file).replace(/\bID\b/, id).replace('SECRET', SECRET));
  };
  assert.ok(app.url.startsWith('http://127.0.0.1:'));
  return { ...lines, run };
}

function idIn(output: string): string {
  return ID.exec(output)?.[0] ?? assert.fail(`no id in ${output}`);
}

test('GET /: version, endpoints, usage and note, and neither name nor prefix', async (t) => {
  const index = await indexOf(await startApp(t, PKI));
  assert.deepEqual(Object.keys(index), ['version', 'endpoints', 'usage', 'client', 'tiers', 'proof_of_work', 'note']);
  assert.match(index.version, /^1\.5\.\d+$/);
  const endpoints = ROUTES.filter((route) => !('isForm' in route) && route.name !== 'securityText').map(({ method, path, summary }) => [`${method} ${path}`, summary]);
  assert.deepEqual(Object.entries(index.endpoints), endpoints);
  assert.match(index.note, /\S/);
});

test('GET /: the endpoints of the PKI, GET /pki included, only where it is enabled', async (t) => {
  const { endpoints } = await indexOf(await startApp(t));
  const offered = ROUTES.filter((route) => !/^\/(?:pki|\.well-known)(?:\/|$)/.test(route.path) && !('isForm' in route))
    .map(({ method, path }) => `${method} ${path}`);
  assert.ok(!offered.includes('GET /pki') && offered.includes('POST /register'));
  assert.deepEqual(Object.keys(endpoints), offered);
});

test('GET /: the limits of each tier, as the settings have them', async (t) => {
  const { tiers } = await indexOf(await startApp(t, {
    maxAnonBytes: 1000, maxAuthBytes: 2000, expiryAnonSeconds: 1, expiryUntrustedSeconds: 2, expiryTrustedSeconds: 3,
    maxExpirySeconds: 4, rateMax: 5, rateTrustedFactor: 6, rateWindowSeconds: 7, lookupRateMax: 0,
    lookupRateWindowSeconds: 8,
  }));
  const common = { max_expiry: 4, creations_window: 7, lookups: null, lookups_window: 8 };
  assert.deepEqual(tiers, {
    anonymous: { max_size: 1000, default_expiry: 1, creations: 5, ...common },
    untrusted: { max_size: 1000, default_expiry: 2, creations: 5, ...common },
    trusted: { max_size: 2000, default_expiry: 3, creations: 30, ...common },
  });
});

test('GET /: the difficulty of this moment, and that it is elevated', async (t) => {
  const app = await startApp(t, {
    powDifficultyBits: 1, registerPowDifficultyBits: 9,
    antifloodThreshold: 1, antifloodStepBits: 1, antifloodMaxBits: 2,
  });
  const register = { enabled: true, difficulty: 9 };
  const quiet = { enabled: true, difficulty: 1, base_difficulty: 1, elevated: false };
  assert.deepEqual((await indexOf(app)).proof_of_work, { paste: quiet, register });
  for (const content of ['a', 'b']) assert.equal((await post(app, content, await freshWork(app))).status, 201);
  const busy = { ...quiet, difficulty: 2, elevated: true };
  assert.deepEqual((await indexOf(app)).proof_of_work, { paste: busy, register });
});

test('GET /: proof-of-work that is switched off', async (t) => {
  const { proof_of_work: work } = await indexOf(await startApp(t, { registerPowDifficultyBits: 0 }));
  const off = { enabled: false, difficulty: 0 };
  assert.deepEqual(work, { paste: { ...off, base_difficulty: 0, elevated: false }, register: off });
});

test('GET /: its command lines have the address that the client used, never a host that is none', async (t) => {
  const app = await startApp(t, { urlPrefix: '/paste' });
  const proxied = await indexOf(app, { 'X-Forwarded-Host': 'paste.example', 'X-Forwarded-Proto': 'https' });
  assert.equal(proxied.usage['read'], 'curl https://paste.example/paste/ID/raw');
  assert.equal(proxied.client['download'], 'curl -fsS https://paste.example/paste/client -o pastec');
  const hostile = await indexOf(app, { 'X-Forwarded-Host': "x';id;'" });
  assert.equal(hostile.usage['read'], `curl ${app.url}/paste/ID/raw`);
});

test('GET /: each line of usage works as printed', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const app = await startApp(t);
  const { usage } = await indexOf(app);
  const id = await app.store(CONTENT, { 'X-Paste-Password': SECRET });
  const open = await app.store(CONTENT);
  const checks: Readonly<Record<string, (output: string) => void | Promise<void>>> = {
    create: async (output) => assert.equal(await (await app.request(`/${idIn(output)}/raw`)).text(), 'hello\n'),
    create_file: async (output) => assert.equal(await (await app.request(`/${idIn(output)}/raw`)).text(), CONTENT),
    create_burn_after_read: (output) => assert.equal(JSON.parse(output)['burn_after_read'], true),
    create_with_password: (output) => {
      const { created_at: createdAt, expires_at: expiresAt, password_protected: isProtected } = JSON.parse(output);
      assert.deepEqual([expiresAt - createdAt, isProtected], [3600, true]);
    },
    read: (output) => assert.equal(output, CONTENT),
    read_with_password: (output) => assert.equal(output, CONTENT),
    metadata: (output) => assert.equal(JSON.parse(output)['size'], CONTENT.length),
  };
  assert.deepEqual(Object.keys(usage), Object.keys(checks));
  for (const [name, line] of Object.entries(usage)) {
    const shell = shellWith(t, app, name === 'read_with_password' ? id : open);
    await checks[name]!(await shell.run(line));
  }
});

test('GET /: where work is asked for, each line of usage that stores works as printed, in order', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const app = await startApp(t, { powDifficultyBits: 4 });
  const { usage } = await indexOf(app);
  const shell = shellWith(t, app);
  const ids: Record<string, string> = {};
  for (const [name, line] of Object.entries(usage)) {
    if (name.startsWith('create')) ids[name] = idIn(await shell.run(line));
  }
  const read = async (name: string, headers = {}): Promise<string> =>
    (await app.request(`/${ids[name]}/raw`, { headers })).text();
  assert.equal(await read('create'), 'hello\n');
  assert.equal(await read('create_file'), CONTENT);
  assert.equal(await read('create_burn_after_read'), CONTENT);
  assert.equal((await app.request(`/${ids['create_burn_after_read']}`)).status, 404);
  assert.equal((await app.request(`/${ids['create_with_password']}`)).status, 401);
  assert.equal(await read('create_with_password', { 'X-Paste-Password': SECRET }), CONTENT);
});

test('GET /: where a short text is refused, the first line works as printed, with work and without', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const terms: readonly Partial<Config>[] = [
    { requireBinary: true }, { minBytes: 7 }, { minBytes: 5000, minEntropyBits: 7.5, requireBinary: true },
    { minEntropyBits: 3, minEntropyBytes: 6 }, { minEntropyBits: 7.98, minEntropyBytes: 6 },
    { minBytes: 7, maxAnonBytes: 1000 }, { minBytes: 7, maxAnonBytes: 1000, requireBinary: true },
  ];
  for (const [powDifficultyBits, refused] of terms.flatMap((refused) => [[0, refused], [4, refused]] as const)) {
    const app = await startApp(t, { powDifficultyBits, ...refused });
    const { usage } = await indexOf(app);
    const id = idIn(await shellWith(t, app).run(usage['create']!));
    assert.equal((await app.request(`/${id}`)).status, 200, usage['create']);
  }
});

test('GET /: where only trusted callers store, and do no work, curl alone stores', async (t) => {
  const terms = { createBy: 'trusted', powDifficultyBits: 4 } as const;
  const { usage } = await indexOf(await startApp(t, { ...terms, powTrustedBits: '0' }));
  assert.match(usage['create']!, /^echo hello \| curl /);
  const page = await (await startApp(t, { ...terms, powTrustedBits: '0' })).request('/', { headers: { Accept: 'text/html' } });
  assert.doesNotMatch(await page.text(), /Storing asks for some computing/);
  for (const powTrustedBits of ['', '2'] as const) {
    const asked = await indexOf(await startApp(t, { ...terms, powTrustedBits }));
    assert.match(asked.usage['create']!, /sh pastec/);
  }
});

test('GET /: each line about the client works as printed, one after another', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...PKI, powDifficultyBits: 4, registerPowDifficultyBits: 4 });
  const { client } = await indexOf(app);
  const shell = shellWith(t, app, await app.store(CONTENT, await freshWork(app)));
  const outputs: Record<string, string> = {};
  for (const [name, line] of Object.entries(client)) outputs[name] = await shell.run(line);
  assert.match(readFileSync(join(shell.folder, 'pastec'), 'utf8'), /^#!\/bin\/sh\n/);
  assert.equal(await (await app.request(`/${idIn(outputs['create']!)}/raw`)).text(), CONTENT);
  assert.match(outputs['create_encrypted']!, /#[A-Za-z0-9_-]{43}\n$/);
  assert.equal(outputs['read'], CONTENT);
  assert.match(outputs['register']!, /[0-9a-f]{40}/);
  assert.match(outputs['help']!, /register/);
});

test('GET /: over https the line that registers needs no leave to use http', async (t) => {
  const app = await startApp(t, PKI);
  const forwarded = { headers: { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'paste.example' } };
  const { client } = await (await app.request('/', forwarded)).json() as { client: Record<string, string> };
  assert.equal(client['register'], 'sh pastec register');
});

test('GET /: registering is not proposed where it cannot work', async (t) => {
  const { client } = await indexOf(await startApp(t));
  assert.equal('register' in client, false);
});

test('POST / and POST /register without work: the hint has a command line that works', async (t) => {
  if (!isInstalled(t, 'curl') || !isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...PKI, powDifficultyBits: 4, registerPowDifficultyBits: 4 });
  const cases = [['/', '/challenge', ID], ['/register', '/register/challenge', /[0-9a-f]{40}/]] as const;
  for (const [path, challenge, produced] of cases) {
    const response = await app.request(path, { method: 'POST', body: path === '/' ? 'x' : '' });
    const { error, hint } = await response.json() as { error: string; hint: string };
    assert.deepEqual([response.status, error], [400, 'proof-of-work required']);
    const beginning = `request a new challenge: GET ${challenge}; or let the client do the work: `;
    assert.ok(hint.startsWith(beginning), hint);
    assert.doesNotMatch(hint, /["\\\n]/);
    assert.match(await shellWith(t, app).run(hint.slice(beginning.length)), produced);
  }
});
