// pastec -E against the format that its first comment describes, as Node's own primitives make it: either side reads
// what the other wrote. Whether openssl encrypts as it says is not tested.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApp } from '../support/app.ts';
import { pathReplacing } from '../support/pastec-tls.ts';
import { isInstalled } from '../support/programs.ts';
import { MAGIC, seal, TAG_BYTES, unseal } from '../support/sealed.ts';
import { clientOf } from '../support/shells.ts';

test('pastec -E: what it stores is the documented format, and no text for any server', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { requireBinary: true });
  const { run } = clientOf(t, app.url);
  const plain = Buffer.from('plain text, \u00fcber alles\n');
  const { text } = await run(['-E'], { input: plain });
  const [id = '', key = ''] = text.trim().split('/').at(-1)?.split('#') ?? [];
  const response = await app.request(`/${id}/raw`);
  assert.equal(response.headers.get('content-type'), 'application/octet-stream');
  assert.deepEqual(unseal(Buffer.from(key, 'base64url'), Buffer.from(await response.arrayBuffer())), plain);
  assert.ok(!JSON.stringify(app.logged).includes(key));
});

test('pastec get: decrypts what another program sealed', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  for (const plain of [Buffer.from('x'), randomBytes(1000)]) {
    const key = randomBytes(32);
    const id = await app.store(seal(key, plain));
    const { stdout, stderr } = await run(['get', `${app.url}/${id}#${key.toString('base64url')}`]);
    assert.deepEqual([stdout, stderr], [plain, '']);
  }
});

test('pastec -E and get: a tr that changes ASCII alone makes no key, burns nothing, and is named', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  // Of all calls of tr, only the one for the pads of HMAC has these characters.
  const asciiAlone = '[ "$1" != "\\000-\\377" ] || set -- "\\000-\\177" "$(printf %.512s "$2")"\nexec "$real" "$@"';
  const environment = { PATH: pathReplacing('tr', asciiAlone, folder) };
  const burning = await run(['-bE'], { input: 'once' });
  for (const args of [['-E'], ['get', burning.text.trim()]]) {
    const { code, text, stderr } = await run(args, { input: 'content', environment });
    assert.deepEqual([code, text], [1, '']);
    assert.match(stderr, /^pastec: can't derive the keys: tr does not change every byte\n/);
  }
  assert.equal((await run(['get', burning.text.trim()])).text, 'once');
});

test('pastec get: a changed byte, a cut end, another key and no encryption at all are refused unwritten', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { run, folder } = clientOf(t, app.url);
  const [key, sealed] = [randomBytes(32), seal(Buffer.alloc(32), Buffer.from('secret'))];
  const right = seal(key, Buffer.from('secret'));
  const changed = [0, MAGIC.length, MAGIC.length + TAG_BYTES, right.length - 7, right.length - 1].map((position) => {
    const copy = Buffer.from(right);
    copy[position] = (copy[position] ?? 0) ^ 0x80;
    return copy;
  });
  const refused = [...changed, right.subarray(0, -1), right.subarray(0, 20), sealed, Buffer.from('secret')];
  for (const content of refused) {
    const { code, text } = await run(['get', '-o', 'out', `${await app.store(content)}#${key.toString('base64url')}`]);
    assert.deepEqual([code, text], [1, '']);
    assert.ok(!existsSync(join(folder, 'out')));
  }
  await run(['get', '-o', 'out', `${await app.store(right)}#${key.toString('base64url')}`]);
  assert.equal(readFileSync(join(folder, 'out'), 'utf8'), 'secret');
});

test('pastec get: a damaged key is a usage error, encrypted content without a key comes with a warning', async (t) => {
  const app = await startApp(t);
  const { run } = clientOf(t, app.url);
  const content = seal(randomBytes(32), Buffer.from('secret'));
  const id = await app.store(content);
  assert.equal((await run(['get', `${id}#abc`])).code, 2);
  const { code, stdout, stderr } = await run(['get', id]);
  assert.deepEqual([code, stdout], [0, content]);
  assert.match(stderr, /this is encrypted/);
});

test('pastec -E: nothing to encrypt is nothing to store', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const { code, text, stderr } = await clientOf(t, app.url).run(['-E'], { input: '' });
  assert.deepEqual([code, text], [1, '']);
  assert.match(stderr, /there is no content/);
});
