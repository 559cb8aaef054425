// pastec when a program that it calls fails, prints nothing or stops halfway: what was to be encrypted, locked or
// burned is not sent otherwise, nothing that was changed is decrypted, and neither keys nor burned pastes are shown to
// others or lost. A program whose defect does not matter may be worked around: then the result must be the right one.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { startApp } from '../support/app.ts';
import {
  DEFECTS, EVERY_DEFECT, notedPrograms, pathWith, pathWithCall, type Defect, type NotedPrograms,
} from '../support/broken-programs.ts';
import { isInstalled, run as runProgram, temporaryFolder } from '../support/programs.ts';
import { seal, unseal } from '../support/sealed.ts';
import { clientOf, SCRIPT, SHELLS, type Client, type Ended } from '../support/shells.ts';
import { takingServer, type Taken } from '../support/taking-server.ts';

const DASH = SHELLS[0];
const PLAIN = 'what nobody else may read, whatever happens\n'.repeat(3);
const PASSWORD = 'a secret password';

/** Nothing can be sealed or opened without these. */
const NEEDED = ['openssl base64', 'openssl dgst', 'openssl enc', 'openssl rand', 'cat', 'mkdir', 'od', 'tr', 'wc'];

/** mkdir prints nothing, so half of its output is all of it. */
function isNeeded(program: string, defect: Defect): boolean {
  return NEEDED.includes(program) && !(program === 'mkdir' && defect === 'stops halfway');
}

const DEFECTIVE = DEFECTS.join(' or ');

interface Trial {
  readonly client: Client;
  readonly environment: Record<string, string>;
}

/** A PATH whose own programs are in that folder. */
type PathIn = (folder: string) => string;

/** Each trial has a home and a temporary folder of its own, where the test sees what a run leaves. */
function trial(t: TestContext, url: string, pathIn: PathIn, shell = DASH): Trial {
  const client = clientOf(t, url, shell);
  const temporary = join(client.folder, 'temporary');
  mkdirSync(temporary);
  return { client, environment: { PATH: pathIn(client.home), TMPDIR: temporary } };
}

/**
 * Makes a first check with no program broken, which notes the programs that are started, and then one check for each
 * of them with each defect. Four run at a time, since each waits for processes most of the time.
 */
async function breakingEach(
  check: (program: string, defect: Defect, pathIn: PathIn) => Promise<void>,
): Promise<void> {
  const noted: NotedPrograms[] = [];
  await check('no program', 'fails', (folder) => {
    noted.push(notedPrograms(folder));
    return noted[0]?.path ?? '';
  });
  const started = noted[0]?.started() ?? [];
  assert.ok(started.includes('mkdir'), String(started));
  const waiting = DEFECTS.flatMap((defect) => started.map((program) => ({ program, defect })));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { program, defect } = next;
      await check(program, defect, (folder) => pathWith(folder, defect, program));
    }
  };
  await Promise.all([work(), work(), work(), work()]);
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function assertSealed({ code, text }: Ended, taken: readonly Taken[], what: string): void {
  for (const { headers, body } of taken) {
    assert.ok(!body.includes('nobody'), `${what}: sent as it is`);
    assert.equal(headers['x-paste-password'], PASSWORD, what);
    assert.equal(headers['x-burn-after-read'], 'true', what);
  }
  if (code !== 0) return;
  const [, key = ''] = /#([\w-]{43})\n$/.exec(text) ?? assert.fail(`${what}: ${text}`);
  assert.equal(taken.length, 1, what);
  assert.equal(String(unseal(Buffer.from(key, 'base64url'), taken[0]?.body ?? Buffer.of())), PLAIN, what);
}

interface MadeCertificate {
  readonly key: string;
  readonly certificate: string;
  readonly pair: string;
  /** PKCS#12 with an empty password. */
  readonly bundle: Buffer;
  readonly fingerprint: string;
}

function madeCertificate(t: TestContext): MadeCertificate {
  const folder = temporaryFolder(t);
  runProgram('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-subj', '/CN=x', '-keyout', 'key', '-out', 'certificate'], folder);
  runProgram('openssl', ['pkcs12', '-export', '-inkey', 'key', '-in', 'certificate', '-passout', 'pass:',
    '-out', 'bundle'], folder);
  const [key, certificate, bundle] = [
    readFileSync(join(folder, 'key'), 'utf8'),
    readFileSync(join(folder, 'certificate'), 'utf8'),
    readFileSync(join(folder, 'bundle')),
  ];
  const fingerprint = new X509Certificate(certificate).fingerprint.replaceAll(':', '').toLowerCase();
  return { key, certificate, pair: key + certificate, bundle, fingerprint };
}

/** Whatever holds a key, in PEM or PKCS#12 (version 3), is for its owner alone. */
function assertPrivate(files: readonly string[], what: string): void {
  for (const file of files) {
    const hasKey = /PRIVATE KEY|^0\x82..\x02\x01\x03/s.test(readFileSync(file).toString('latin1'));
    if (hasKey) assert.equal(statSync(file).mode & 0o077, 0, `${what}: ${file}`);
  }
}

test(`pastec -E: when a program ${DEFECTIVE}, nothing is sent that is not encrypted`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  await breakingEach(async (program, defect, pathIn) => {
    const { url, taken } = await takingServer(t);
    const { client: { run, folder }, environment } = trial(t, url, pathIn);
    writeFileSync(join(folder, 'password'), PASSWORD);
    writeFileSync(join(folder, 'plain'), PLAIN);
    const ended = await run(['-Eb', '--password-file', 'password', 'plain'], { environment });
    assertSealed(ended, taken, `${program} ${defect}`);
    if (!isNeeded(program, defect)) return;
    assert.notEqual(ended.code, 0, `${program} ${defect}`);
    assert.equal(taken.length, 0, `${program} ${defect}`);
  });
});

test(`pastec put: when a program ${DEFECTIVE}, password, burning and content are never left out`, async (t) => {
  await breakingEach(async (program, defect, pathIn) => {
    const { url, taken } = await takingServer(t);
    const { client: { run, folder }, environment } = trial(t, url, pathIn);
    writeFileSync(join(folder, 'password'), PASSWORD);
    const what = `${program} ${defect}`;
    const { code } = await run(['-b', '--password-file', 'password'], { input: PLAIN, environment });
    for (const { headers, body } of taken) {
      assert.deepEqual([headers['x-paste-password'], headers['x-burn-after-read']], [PASSWORD, 'true'], what);
      // pastec does not know how much comes through a pipe, so it cannot tell half of cat's output from all of it.
      if (program !== 'cat' || defect !== 'stops halfway') assert.equal(String(body), PLAIN, what);
    }
    if (code === 0) assert.equal(taken.length, 1, what);
  });
});

test(`pastec get: when a program ${DEFECTIVE}, nothing wrong is printed and no burned paste is lost`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const key = Buffer.alloc(32, 7);
  const sealed = seal(key, Buffer.from(PLAIN));
  await breakingEach(async (program, defect, pathIn) => {
    const id = await app.store(sealed, { 'X-Burn-After-Read': 'true' });
    const { client: { run, folder, home }, environment } = trial(t, app.url, pathIn);
    const { code, text } = await run(['get', `${id}#${key.toString('base64url')}`], { environment });
    if (isNeeded(program, defect)) assert.notEqual(code, 0, `${program} ${defect}`);
    if (code === 0) return assert.equal(text, PLAIN, `${program} ${defect}`);
    if (program !== 'rm') assert.equal(text, '', `${program} ${defect}`);
    const isThere = (await app.request(`/${id}`)).status === 200;
    const kept = [...filesUnder(folder), ...filesUnder(home)].filter((file) => readFileSync(file).equals(sealed));
    assert.ok(isThere || text === PLAIN || kept.length > 0, `${program} ${defect}: the paste is lost`);
    for (const file of kept) assert.equal(statSync(file).mode & 0o777, 0o600);
  });
});

test(`pastec update: when a program ${DEFECTIVE}, nothing readable replaces what is encrypted`, async (t) => {
  const app = await startApp(t);
  const fingerprint = '0123456789abcdef0123456789abcdef01234567';
  const sealed = seal(Buffer.alloc(32, 7), Buffer.from(PLAIN));
  await breakingEach(async (program, defect, pathIn) => {
    const id = await app.store(sealed, { 'X-SSL-Client-SHA1': fingerprint });
    const { client: { run }, environment } = trial(t, app.url, pathIn);
    const { code } = await run(['update', '--fingerprint', fingerprint, id, '-'], { input: 'readable', environment });
    assert.notEqual(code, 0, `${program} ${defect}`);
    const stored = Buffer.from(await (await app.request(`/${id}/raw`)).arrayBuffer());
    assert.deepEqual(stored, sealed, `${program} ${defect}`);
  });
});

test(`pastec register: when a program ${DEFECTIVE}, the key is neither shown to others nor lost`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { bundle, fingerprint } = madeCertificate(t);
  await breakingEach(async (program, defect, pathIn) => {
    const headers = { 'X-Fingerprint-SHA1': fingerprint, 'X-Certificate-Expires': '4000000000', 'X-Is-Admin': '1' };
    const { url, taken } = await takingServer(t, { headers, body: bundle });
    const { client: { run, folder, home }, environment } = trial(t, url, pathIn);
    const { code } = await run(['register', '--allow-http'], { environment });
    const files = [...filesUnder(folder), ...filesUnder(home)];
    assertPrivate(files, `${program} ${defect}`);
    const kept = files.filter((file) => readFileSync(file).equals(bundle));
    if (taken.length > 0 && program !== 'curl') assert.ok(kept.length > 0, `${program} ${defect}: the key is lost`);
    if (code === 0) assert.ok(kept.some((file) => file.endsWith('/client.p12')), `${program} ${defect}`);
  });
});

test(`pastec cert import: when a program ${DEFECTIVE}, nothing is taken for a certificate that is none`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const [own, other] = [madeCertificate(t), madeCertificate(t)];
  await breakingEach(async (program, defect, pathIn) => {
    const { client: { run, folder, home }, environment } = trial(t, 'https://paste.example', pathIn);
    writeFileSync(join(folder, 'pair'), own.pair, { mode: 0o600 });
    writeFileSync(join(folder, 'mismatched'), own.key + other.certificate, { mode: 0o600 });
    const mismatched = await run(['cert', 'import', 'mismatched'], { environment });
    assert.notEqual(mismatched.code, 0, `${program} ${defect}`);
    const { code } = await run(['cert', 'import', 'pair'], { environment });
    assertPrivate([...filesUnder(folder), ...filesUnder(home)], `${program} ${defect}`);
    if (code !== 0) return;
    const installed = join(home, '.local/share/pastec/certificates/paste.example');
    assert.equal(readFileSync(join(installed, 'client.pem'), 'utf8'), own.pair, `${program} ${defect}`);
    const facts = readFileSync(join(installed, 'facts'), 'utf8');
    assert.match(facts, new RegExp(`^fingerprint=${own.fingerprint}\\nexpires=\\d+\\n$`), `${program} ${defect}`);
  });
});

test(`pastec cert export: when a program ${DEFECTIVE}, no file is overwritten or shown to others`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { pair } = madeCertificate(t);
  await breakingEach(async (program, defect, pathIn) => {
    const { client: { run, folder, home }, environment } = trial(t, 'https://paste.example', pathIn);
    writeFileSync(join(folder, 'pair'), pair, { mode: 0o600 });
    assert.equal((await run(['cert', 'import', 'pair'])).code, 0);
    writeFileSync(join(folder, 'out'), 'another key', { mode: 0o644 });
    const { code } = await run(['cert', 'export', '--for', 'pem', '--force', '-o', 'out'], { environment });
    const files = [...filesUnder(folder), ...filesUnder(home)];
    assertPrivate(files, `${program} ${defect}`);
    assert.ok(files.some((file) => readFileSync(file, 'utf8') === 'another key'), `${program} ${defect}`);
    if (code === 0) assert.equal(readFileSync(join(folder, 'out'), 'utf8'), pair, `${program} ${defect}`);
  });
});

for (const form of ['p12', 'pem', 'keychain']) {
  test(`pastec cert export --for ${form}: when a program that carries it does half, no half is called done`, async (t) => {
    if (!isInstalled(t, 'openssl')) return;
    const { pair, fingerprint } = madeCertificate(t);
    const args = ['cert', 'export', '--for', form, ...(form === 'pem' ? [] : ['--password-file', 'password']), '-o', 'out'];
    const exported = async (pathIn: PathIn): Promise<Client & { readonly code: Ended['code'] }> => {
      const { client, environment } = trial(t, 'https://paste.example', pathIn);
      writeFileSync(join(client.folder, 'pair'), pair, { mode: 0o600 });
      writeFileSync(join(client.folder, 'password'), PASSWORD);
      assert.equal((await client.run(['cert', 'import', 'pair'])).code, 0);
      return { ...client, code: (await client.run(args, { environment })).code };
    };
    const noted: NotedPrograms[] = [];
    const whole = await exported((folder) => {
      noted.push(notedPrograms(folder));
      return noted[0]?.path ?? '';
    });
    assert.equal(whole.code, 0);
    const carrying = noted[0]?.calls().filter(({ program }) => program === 'cat' || program === 'openssl pkcs12') ?? [];
    assert.ok(carrying.length > 0);
    for (const call of carrying) {
      const { code, folder } = await exported((place) => pathWithCall(place, 'stops halfway', call).path);
      if (code !== 0) continue;
      const other = clientOf(t, 'https://other.example');
      const imported = await other.run(['cert', 'import', join(folder, 'out'), '--password-file', join(folder, 'password')]);
      assert.match(imported.text, new RegExp(`^fingerprint: ${fingerprint}$`, 'm'), `${call.program} ${call.number}`);
    }
  });
}

test('pastec help and completion: when a call of a program fails, all is printed or a word says that it is not', async (t) => {
  for (const args of [['help'], ['help', 'put'], ['completion', 'bash'], ['completion', 'zsh'], ['completion', 'fish']]) {
    const first = clientOf(t, 'http://127.0.0.1:9', DASH);
    const noted = notedPrograms(first.home);
    const { text: whole } = await first.run(args, { environment: { PATH: noted.path } });
    for (const call of noted.calls()) {
      const { client: { run }, environment } = trial(t, 'http://127.0.0.1:9', (folder) => pathWithCall(folder, 'fails', call).path);
      const { code, text, stderr } = await run(args, { environment });
      const what = `${args.join(' ')}, ${call.program} ${call.number}`;
      assert.ok(code === 0 ? text === whole : stderr.startsWith('pastec: '), `${what}: ${code} ${stderr}`);
    }
  }
});

test(`pastec decrypt: when a program ${DEFECTIVE}, what was changed is not decrypted`, async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const key = Buffer.alloc(32, 7);
  const changed = seal(key, Buffer.from(PLAIN));
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  await breakingEach(async (program, defect, pathIn) => {
    const { client: { run, folder }, environment } = trial(t, 'http://127.0.0.1:9', pathIn);
    writeFileSync(join(folder, 'changed'), changed);
    writeFileSync(join(folder, 'key'), key.toString('base64url'));
    const { code, text } = await run(['decrypt', '--key-file', 'key', 'changed'], { environment });
    assert.notEqual(code, 0, `${program} ${defect}`);
    assert.equal(text, '', `${program} ${defect}`);
  });
});

test('pastec -E: a configuration of openssl that names a provider which is not there stores nothing', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { url, taken } = await takingServer(t);
  const { run, folder } = clientOf(t, url);
  writeFileSync(join(folder, 'openssl.cnf'), 'openssl_conf = init\n[init]\nproviders = named\n[named]\nmissing = one\n'
    + '[one]\nmodule = /nonexistent/provider.so\nactivate = 1\n');
  const environment = { OPENSSL_CONF: join(folder, 'openssl.cnf') };
  const { code, text, stderr } = await run(['-E'], { input: PLAIN, environment });
  assert.deepEqual([code, text, taken.length], [1, '', 0]);
  assert.match(stderr, /^pastec: can't make a key\n/);
});

test('pastec -E under mksh: when printf, a program there, is broken, nothing is sent that is not encrypted', async (t) => {
  if (!isInstalled(t, 'mksh') || !isInstalled(t, 'openssl')) return;
  const mksh = SHELLS.find(({ name }) => name === 'mksh');
  for (const defect of DEFECTS) {
    const { url, taken } = await takingServer(t);
    const { client: { run, folder }, environment } = trial(t, url, (place) => pathWith(place, defect, 'printf'), mksh);
    writeFileSync(join(folder, 'password'), PASSWORD);
    const ended = await run(['-Eb', '--password-file', 'password'], { input: PLAIN, environment });
    assert.notEqual(ended.code, 0);
    assertSealed(ended, taken, defect);
  }
});

test('pastec put under mksh: no program writes the request, so that none can send half of it', async (t) => {
  if (!isInstalled(t, 'mksh')) return;
  const mksh = SHELLS.find(({ name }) => name === 'mksh');
  const { url, taken } = await takingServer(t);
  const { client: { run, folder }, environment } = trial(t, url, (place) => pathWith(place, 'stops halfway', 'cat'), mksh);
  writeFileSync(join(folder, 'plain'), PLAIN);
  const { code } = await run(['-b', '-e', '1h', 'plain'], { environment });
  assert.deepEqual([code, taken.map(({ headers }) => headers['x-burn-after-read'])], [0, ['true']]);
});

test('pastec put: what can not be kept whole until it is sent is not sent', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { url, taken } = await takingServer(t);
  const limited = join(temporaryFolder(t), 'limited');
  // Files of at most 4 KiB; more is an error (signal 25 is SIGXFSZ), as on a full disk.
  writeFileSync(limited, `ulimit -f 8; trap '' 25; exec dash '${SCRIPT}' "$@"\n`);
  const { run } = clientOf(t, url, DASH, limited);
  for (const args of [[], ['-E']]) {
    const { code, text } = await run(args, { input: 'x'.repeat(20_000) });
    assert.deepEqual([args, code, text, taken.length], [args, 1, '', 0]);
  }
  assert.equal((await run(['-E'], { input: 'x'.repeat(1_000) })).code, 0);
});

test('info: where nothing can be removed, what is known of the paste is shown, or a word says why not', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x');
  for (const defect of EVERY_DEFECT) {
    const pathIn = (folder: string) => pathWithCall(folder, defect, { program: 'rm', number: 1 }).path;
    const { client, environment } = trial(t, app.url, pathIn);
    const { code, stdout, stderr } = await client.run(['info', id], { environment });
    assert.ok(code === 0 ? stdout.includes(id) : stderr.startsWith('pastec: '), `${defect}: ${code} ${stdout}${stderr}`);
  }
});

test('pastec get: what a disk changed since it was stored is refused; an openssl that fails is no reason to', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t);
  const id = await app.store('what was stored\n');
  const fails = (folder: string) => pathWith(folder, 'fails', 'openssl');
  const { client: { run, folder }, environment } = trial(t, app.url, fails);
  const compared = await run(['get', id]);
  assert.deepEqual([compared.text, compared.stderr], ['what was stored\n', '']);
  const uncompared = await run(['get', id], { environment });
  assert.deepEqual([uncompared.code, uncompared.text], [0, 'what was stored\n']);
  assert.match(uncompared.stderr, /^pastec: can't compare the content with its digest: openssl fails\n$/);
  assert.equal((await run(['-q', 'get', id], { environment })).text, 'what was stored\n');

  const other = await app.store('what is damaged\n');
  using db = new DatabaseSync(app.config.databasePath, { timeout: 5000 });
  db.exec(`UPDATE pastes SET content = CAST('what is damageD\n' AS BLOB) WHERE id = '${other}'`);
  const { code, text, stderr } = await run(['get', '-o', 'out', other]);
  assert.deepEqual([code, text, readdirSync(folder).includes('out')], [9, '', false]);
  assert.match(stderr, /^pastec: this is not the content that was stored: its digest is another\n {2}the server finds /);
});
