// `pasted paste` beside a running server of another process: what it shows, removes and bans, and that readers and
// writers of the server see it at once.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RUNNING_CLOCK } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { runHere } from '../support/operator.ts';
import { openRaw, head } from '../support/raw-http.ts';
import { patternedBytes, rowsOf, selectValue } from '../support/store.ts';

const LARGE_BYTES = 3_000_000;

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const digestOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');

async function openService(t: TestContext) {
  const databasePath = join(temporaryFolder(t), 'pasted.db');
  const environment = {
    SERVICE_DB: databasePath, SERVICE_POW_DIFFICULTY: '0', SERVICE_RATE_MAX: '0', SERVICE_LOOKUP_RATE_MAX: '0',
    SERVICE_DEDUP_MAX: '0',
  };
  const serving = await startServing(t, { environment });

  async function ask(path: string, options: RequestInit = {}): Promise<Answer> {
    const response = await fetch(`${serving.url}${path}`, options);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, body: isJson ? JSON.parse(text) : { text } };
  }

  async function store(content: string | Uint8Array, headers: Record<string, string> = {}): Promise<string> {
    const { status, body } = await ask('/', { method: 'POST', body: content as string, headers });
    assert.equal(status, 201, JSON.stringify(body));
    return String(body['id']);
  }

  async function pasted(...words: string[]): Promise<{ code: number | string; stdout: string; stderr: string }> {
    const main = startMain(t, ['paste', ...words], { environment });
    const code = await main.ended;
    return { code, stdout: main.stdout(), stderr: main.stderr() };
  }

  /** Runs a command in this process: a process of its own would take longer than the command. */
  async function done(...words: string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await runHere(['paste', ...words, '--json'], environment, { clock: RUNNING_CLOCK });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  }

  return { ...serving, databasePath, ask, store, pasted, done };
}

/** Waits for a value, and fails when it has not come after a time that nothing here takes. */
async function until(isThere: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!isThere()) {
    assert.ok(performance.now() < deadline, String(isThere));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const auditOf = (path: string): string[] => (
  rowsOf(path, `SELECT event || ' ' || outcome || ' ' || client_id || ' ' || details FROM audit ORDER BY id`)
);

test('paste show: all that is known of a paste but its content, which neither burns nor counts as read', async (t) => {
  const { store, pasted, done, ask, databasePath } = await openService(t);
  const owner = newFingerprint();
  const content = 'canary of the content';
  const headers = { ...presenting(owner), 'X-Burn-After-Read': 'true', 'X-Paste-Password': 'canary of the password' };
  const id = await store(content, headers);
  const shown = await done('show', id);
  const { created_at: createdAt, expires_at: expiresAt, ...rest } = shown as { created_at: number; expires_at: number };
  assert.deepEqual(rest, {
    id, owner, mime_type: 'text/plain', size: content.length, sha256: digestOf(content), burn_after_read: true,
    password_protected: true,
  });
  assert.equal(expiresAt - createdAt, 7 * 86_400);
  const { code, stdout } = await pasted('show', id);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^id +${id}\nowner +${owner}\nmime type +text/plain\nsize +21\n`));
  assert.match(stdout, /\ncreated at +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n/);
  assert.doesNotMatch(stdout + JSON.stringify(shown), /canary|\$scrypt|scrypt/);
  assert.deepEqual(auditOf(databasePath), []);
  assert.equal((await ask(`/${id}/raw`, { headers: { 'X-Paste-Password': 'canary of the password' } })).body['text'], content);
  assert.deepEqual(await pasted('show', id), { code: 1, stdout: '', stderr: 'pasted: paste not found\n' });
});

test('paste rm: what was in memory is gone at once, for every reader and under every name', async (t) => {
  const { store, done, ask, databasePath } = await openService(t);
  const kept = await store('kept');
  const owner = newFingerprint();
  for (let turn = 0; turn < 5; turn += 1) {
    const id = await store(`removed ${turn}`, presenting(owner));
    // Twice, so that it is answered from memory; below, another paste is asked for together with it.
    for (let read = 0; read < 2; read += 1) assert.equal((await ask(`/${id}/raw`)).status, 200);
    assert.deepEqual(await done('rm', id), { removed: 1, not_found: [] });
    const answers = await Promise.all([`/${id}`, `/${id}/raw`, `/${kept}/raw`].map((path) => ask(path)));
    assert.deepEqual(answers.map(({ status }) => status), [404, 404, 200]);
    assert.equal(auditOf(databasePath).at(-1), (
      `paste_deleted success operator {"paste":"${id.slice(0, 8)}","via":"command line","owner":"${owner}"}`
    ));
  }
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM owners'), 0);
});

test('paste rm: several at once, those that are not there are named, and the others are removed', async (t) => {
  const { store, pasted, ask } = await openService(t);
  const ids = await Promise.all(['a', 'b', 'c'].map((content) => store(content)));
  const { code, stdout, stderr } = await pasted('rm', ...ids, ids[0]!, 'notthere', '--json');
  assert.deepEqual([code, stderr], [1, 'pasted: paste not found: notthere\n']);
  assert.deepEqual(JSON.parse(stdout), { removed: 3, not_found: ['notthere'] });
  for (const id of ids) assert.equal((await ask(`/${id}`)).status, 404);
  assert.deepEqual(await pasted('rm', ids[0]!), {
    code: 1, stdout: 'Removed 0 of 1 paste.\n', stderr: `pasted: paste not found: ${ids[0]}\n`,
  });
  const usage = await pasted('rm');
  assert.deepEqual([usage.code, usage.stdout], [2, '']);
  assert.match(usage.stderr, /paste rm needs ID\.\.\./);
});

test('paste show, rm and ban: what is no id at all is a wrong command line, and nothing is removed', async (t) => {
  const { store, pasted, ask } = await openService(t);
  const id = await store('still there');
  const isNone = (words: string, what = '') => ({
    code: 2, stdout: '',
    stderr: `pasted: not the id of a paste${what}: ${words}; an id has 6 to 64 letters and digits\nTry: pasted help\n`,
  });
  assert.deepEqual(await pasted('show', 'nix'), isNone('"nix"'));
  assert.deepEqual(await pasted('rm', id, `/${id}`), isNone(`"/${id}"`));
  assert.deepEqual(await pasted('ban', 'x'), isNone('"x"', ', nor a SHA-256 of content'));
  assert.equal((await ask(`/${id}`)).status, 200);
  assert.equal((await pasted('show', 'nothing')).stderr, 'pasted: paste not found\n');
  const { stdout } = await pasted('ban', id);
  assert.equal(stdout, `Content ${digestOf('still there')} is refused from now on; removed 1 paste.\n`);
});

test('paste rm: who reads a large paste gets all of it, and then its chunks go; an upload under way is left alone', async (t) => {
  const { store, done, ask, port, databasePath } = await openService(t);
  // More than the kernel takes for a client that does not read: 80 chunks.
  const content = patternedBytes(20 * 2 ** 20);
  const { fingerprint } = insertCertificate(databasePath, { expiresAt: 2 ** 40 });
  const read = await store(content, presenting(fingerprint));
  const unread = await store(patternedBytes(LARGE_BYTES));

  const reader = await openRaw(t, port);
  reader.socket.pause();
  reader.send(head(`GET /${read}/raw HTTP/1.1`));
  const uploader = await openRaw(t, port);
  const uploaded = content.subarray(0, LARGE_BYTES);
  uploader.send(head('POST / HTTP/1.1', `Content-Length: ${LARGE_BYTES}`));
  uploader.send(uploaded.subarray(0, 1_000_000));
  const chunks = (): number => Number(selectValue(databasePath, 'SELECT count(*) FROM chunks'));
  await until(() => chunks() === 80 + 12 + 3);

  await done('rm', read, unread);
  assert.equal((await ask(`/${read}/raw`)).status, 404);
  // The paste that nobody reads loses its chunks.
  await until(() => chunks() === 80 + 3);
  reader.socket.resume();
  assert.deepEqual((await reader.next()).body, Buffer.from(content));
  await until(() => chunks() === 3);
  uploader.send(uploaded.subarray(1_000_000));
  const answer = await uploader.next('POST');
  assert.equal(answer.status, 201);
  const { status, body } = await ask(`/${String(answer.json()['id'])}`);
  assert.deepEqual([status, body['size']], [200, LARGE_BYTES]);
  assert.deepEqual(rowsOf(databasePath, 'SELECT * FROM orphans'), []);
});

test('paste rm: where no service runs, the next one removes the chunks', async (t) => {
  const { store, done, child, ended, databasePath } = await openService(t);
  const id = await store(patternedBytes(LARGE_BYTES));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  await done('rm', id);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 0);
  await startServing(t, { environment: { SERVICE_DB: databasePath } });
  await until(() => selectValue(databasePath, 'SELECT count(*) FROM chunks') === 0);
});

test('paste ban: removes every paste with the content, and refuses it in every form until it is taken again', async (t) => {
  const { store, pasted, done, ask, databasePath } = await openService(t);
  const owner = newFingerprint();
  const admin = insertCertificate(databasePath, { isAdmin: true });
  const small = 'banned, and small\n';
  const large = patternedBytes(LARGE_BYTES);
  const ids = [
    await store(small), await store(small, presenting(owner)), await store(small, { 'X-Paste-Password': 'p' }),
    await store(JSON.stringify({ content: small }), { 'Content-Type': 'application/json' }),
  ];
  const large1 = await store(large);
  const own = await store('something else', presenting(owner));
  const [sha256, largeSha256] = [digestOf(small), digestOf(large)];
  for (const id of ids.slice(0, 2)) await ask(`/${id}/raw`);

  assert.deepEqual(await done('ban', ids[0]!, '--note', 'reported'), { sha256, is_new: true, removed: 4 });
  assert.deepEqual(await done('ban', largeSha256.toUpperCase()), { sha256: largeSha256, is_new: true, removed: 1 });
  for (const id of [...ids, large1]) assert.equal((await ask(`/${id}`)).status, 404);
  assert.equal((await ask(`/${own}`)).status, 200);

  const refused = { status: 403, body: { error: 'content refused' } };
  const json = { 'Content-Type': 'application/json' };
  const attempts: readonly (readonly [string, RequestInit])[] = [
    ['/', { method: 'POST', body: small }],
    ['/', { method: 'POST', body: JSON.stringify({ content: small }), headers: json }],
    ['/', { method: 'POST', body: large, headers: presenting(admin.fingerprint) }],
    ['/', { method: 'PUT', body: small }],
    [`/${own}`, { method: 'PUT', body: small, headers: presenting(owner) }],
    [`/${own}`, { method: 'PUT', body: JSON.stringify({ content: small }), headers: { ...json, ...presenting(owner) } }],
    [`/${own}`, { method: 'PUT', body: large, headers: presenting(owner) }],
  ];
  for (const [path, options] of attempts) assert.deepEqual(await ask(path, options), refused);
  assert.equal((await ask(`/${own}/raw`)).body['text'], 'something else');
  assert.equal((await ask('/', { method: 'POST', body: `${small}\n` })).status, 201, 'one byte more is other content');
  await until(() => selectValue(databasePath, 'SELECT count(*) FROM chunks') === 0);

  const { bans } = await done('bans') as { bans: { sha256: string; note: string; created_at: number }[] };
  assert.deepEqual(bans.map((ban) => [ban.sha256, ban.note]).toSorted(), [[sha256, 'reported'], [largeSha256, '']].toSorted());
  const { stdout } = await pasted('bans');
  assert.match(stdout, new RegExp(`^SHA-256 +BANNED +NOTE\n(?:.*\n)?${sha256}  \\S+Z  reported\n`));
  assert.deepEqual(await done('ban', sha256), { sha256, is_new: false, removed: 0 });
  const said = (more: string) => `Content ${sha256} was refused already${more}; removed 0 pastes.\n`;
  assert.equal((await pasted('ban', sha256)).stdout, said(''));
  assert.equal((await pasted('ban', sha256, '--note', 'court order')).stdout, said(', and has the new note'));
  assert.match((await pasted('bans')).stdout, new RegExp(`^${sha256}  \\S+Z  court order$`, 'm'));

  const entries = auditOf(databasePath).filter((entry) => entry.startsWith('content_banned'));
  assert.deepEqual(entries, [
    `content_banned success operator {"sha256":"${sha256}","paste":"${ids[0]!.slice(0, 8)}","via":"command line"}`,
    `content_banned success operator {"sha256":"${largeSha256}","via":"command line"}`,
  ]);
  assert.equal(auditOf(databasePath).filter((entry) => entry.startsWith('paste_deleted success operator')).length, 5);
  const asked = await ask('/audit?client_id=operator&event=content_banned', { headers: presenting(admin.fingerprint) });
  assert.equal(asked.body['total'], 2);

  assert.deepEqual(await done('unban', sha256.toUpperCase()), { sha256 });
  const lifted = auditOf(databasePath).filter((entry) => entry.startsWith('content_unbanned'));
  assert.deepEqual(lifted, [`content_unbanned success operator {"sha256":"${sha256}","via":"command line"}`]);
  assert.equal((await ask('/', { method: 'POST', body: small })).status, 201);
  assert.deepEqual(await pasted('unban', sha256), {
    code: 1, stdout: '', stderr: `pasted: content ${sha256} is not banned\n`,
  });
  assert.equal((await pasted('unban', 'x')).code, 2);
  assert.equal((await pasted('ban', sha256, '--note', 'two\nlines')).code, 2);
  assert.equal((await pasted('ban', 'notthere')).stderr, 'pasted: paste not found\n');
});

test('paste ban: against 40 creations of the same content at once, none is left, and none comes after', async (t) => {
  const { ask, done, databasePath } = await openService(t);
  const content = 'the same content';
  const sha256 = digestOf(content);
  let isBanned = false;
  const storing = Array.from({ length: 40 }, async () => {
    const statuses: number[] = [];
    for (let left = 3; left > 0;) {
      const wasBanned = isBanned;
      const { status } = await ask('/', { method: 'POST', body: content });
      assert.ok(status === 403 || (status === 201 && !wasBanned), `answered ${status}`);
      statuses.push(status);
      // It goes on until well after the ban.
      if (isBanned) left -= 1;
    }
    return statuses;
  });
  await until(() => Number(selectValue(databasePath, 'SELECT count(*) FROM pastes')) > 40);
  const banning = await done('ban', sha256);
  isBanned = true;
  const statuses = (await Promise.all(storing)).flat();
  const stored = statuses.filter((status) => status === 201).length;
  assert.deepEqual([banning['is_new'], banning['removed']], [true, stored]);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 0);
});

test('paste rm, killed at any moment: each paste is there, or gone with its audit entry', async (t) => {
  const { store, pasted, ask, databasePath } = await openService(t);
  for (let round = 0; round < 4; round += 1) {
    const ids = await Promise.all(Array.from({ length: 60 }, (_, index) => store(`${round} ${index}`)));
    const left = (): number => Number(selectValue(databasePath, 'SELECT count(*) FROM pastes'));
    const removing = startMain(t, ['paste', 'rm', ...ids], { environment: { SERVICE_DB: databasePath } });
    await until(() => left() < 60 || removing.child.exitCode !== null);
    removing.child.kill('SIGKILL');
    await removing.ended;
    const statuses = await Promise.all(ids.map(async (id) => [id.slice(0, 8), (await ask(`/${id}`)).status] as const));
    const audited = new Set(auditOf(databasePath).map((entry) => /"paste":"([^"]*)"/.exec(entry)?.[1]));
    for (const [id, status] of statuses) assert.equal(status, audited.has(id) ? 404 : 200);
    assert.equal((await pasted('rm', ...ids)).code, left() === 0 ? 1 : 0);
    assert.equal(left(), 0);
  }
});
