// pastec renew: the new certificate is the same owner's, and whatever fails on the way, at any moment, leaves a
// certificate in its place that the server takes. Over TLS, where certificates count.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { answerAlways } from '../support/answer-always.ts';
import { startApp } from '../support/app.ts';
import { DEFECTS, notedPrograms, pathWith } from '../support/broken-programs.ts';
import { pathReplacing, tlsService, type TlsClient } from '../support/pastec-tls.ts';
import { isInstalled, run as runProgram } from '../support/programs.ts';
import { clientOf, SHELLS } from '../support/shells.ts';
import type { RunningTlsApp } from '../support/tls.ts';

interface Registered extends TlsClient {
  readonly app: RunningTlsApp;
}

async function registered(t: TestContext): Promise<Registered> {
  const { app, client } = await tlsService(t);
  const made = client();
  const { code, stderr } = await made.run(['register']);
  assert.deepEqual([code, stderr], [0, '']);
  return { ...made, app };
}

/** The names of what lies beside the identity, without the address that each begins with. */
function beside({ identity }: TlsClient): string[] {
  return readdirSync(dirname(identity)).map((name) => name.slice(identity.length - dirname(identity).length - 1))
    .filter((name) => name !== '').map((name) => name.replace(/\d+\.\d+$/, 'TIME')).sort();
}

async function assertWorks({ run }: TlsClient, what: string): Promise<void> {
  const { code, stderr } = await run(['ls']);
  assert.equal(code, 0, `${what}: ${stderr}`);
}

/** The same, asked without pastec: certificate and key are in the file that curl would take. */
async function assertTaken({ identity, app }: Registered, what: string): Promise<void> {
  const pem = readFileSync(join(identity, 'client.pem'), 'utf8');
  const { status } = await app.ask('GET /pastes', { as: { cert: pem, key: pem } });
  assert.equal(status, 200, what);
}

test('pastec renew: another certificate and key of the same owner, and the old one ends and is kept', async (t) => {
  const client = await registered(t);
  const { run, app, identity, fact } = client;
  const url = (await run([], { input: 'x' })).text.trim();
  const before = { fingerprint: fact('fingerprint'), pem: readFileSync(join(identity, 'client.pem'), 'utf8') };
  const { code, text, stderr } = await run(['renew']);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(text, new RegExp(`^fingerprint: ${fact('fingerprint')}\nexpires: .*\nadmin: true\nfile: .*/client.pem\n$`));
  assert.notEqual(fact('fingerprint'), before.fingerprint);
  const pem = readFileSync(join(identity, 'client.pem'), 'utf8');
  assert.notEqual(pem.slice(pem.indexOf('-----BEGIN PRIVATE')), before.pem.slice(before.pem.indexOf('-----BEGIN PRIVATE')));
  assert.deepEqual(readdirSync(identity).sort(), ['client.pem', 'facts']);
  for (const name of readdirSync(identity)) assert.equal(statSync(join(identity, name)).mode & 0o777, 0o600);

  assert.match((await run(['ls', '--all'])).text, new RegExp(`^${url.split('/').at(-1)}\t`, 'm'));
  assert.equal((await run(['rm', url])).code, 0);
  assert.deepEqual(beside(client), ['.until.TIME']);
  const pair = { cert: before.pem, key: before.pem };
  assert.equal((await app.ask('GET /pastes', { as: pair })).status, 401, 'the old one has ended');
  assert.equal((await run(['renew', '--json'])).code, 0);
  await assertWorks(client, 'the third');
});

for (const shell of SHELLS) {
  test(`pastec register, status and renew under ${shell.name}`, async (t) => {
    if (!isInstalled(t, shell.program)) return;
    const client = (await tlsService(t)).client(shell);
    for (const args of [['register', '-n', 'a "name"'], ['renew'], ['renew']]) {
      const { code, stderr } = await client.run(args);
      assert.deepEqual([code, stderr], [0, ''], args[0]);
    }
    assert.match((await client.run(['status'])).text, /^registering: open\n[^]*own tier: trusted\ncertificate: \d+ days left$/m);
  });
}

test('pastec: what is stored with a certificate that does not count any more is said to be nobody\'s', async (t) => {
  const { run, identity } = await registered(t);
  const path = join(identity, 'client.pem');
  const pem = readFileSync(path, 'utf8');
  assert.deepEqual([(await run([], { input: 'x' })).stderr, (await run(['renew'])).code, (await run(['ls'])).code], ['', 0, 0]);
  writeFileSync(path, pem); // as another machine of its holder still has it
  const { code, stderr } = await run([], { input: 'y' });
  assert.equal(code, 0);
  assert.match(stderr, /^pastec: stored as nobody's: https:\S+ saw no identity that counts\n$/);
  assert.match((await run(['status'])).stderr, /^pastec: https:\S+ does not take the certificate for it: revoked, or renewed elsewhere\?\n$/);
  assert.deepEqual([(await run(['register', '--force'])).code, (await run(['status'])).stderr], [0, '']);
});

test('pastec renew: says what is in its way', async (t) => {
  const { client } = await tlsService(t);
  const { run, folder } = client();
  const without = await run(['renew']);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /there is no certificate .*\n {2}get one: pastec register\n$/);
  if (!isInstalled(t, 'openssl')) return;
  runProgram('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-subj', '/CN=x', '-keyout', 'key', '-out', 'certificate'], folder);
  const pair = `${readFileSync(join(folder, 'certificate'))}${readFileSync(join(folder, 'key'))}`;
  writeFileSync(join(folder, 'pair'), pair);
  assert.equal((await run(['cert', 'import', 'pair'])).code, 0);
  const stranger = await run(['renew']);
  assert.equal(stranger.code, 4);
  assert.match(stranger.stderr, /^pastec: .+\n {2}.+\n$/);

  const app = await startApp(t, { pkiCaPassword: 'x', registerPowDifficultyBits: 0 });
  const plain = clientOf(t, app.url);
  assert.equal((await plain.run(['register', '--allow-http'])).code, 0);
  assert.match((await plain.run(['renew'])).stderr, /^pastec: a certificate counts over https only/);
});

/** A curl that answers by itself what is asked for at the path. */
const instead = (path: string, lines: string, home: string): Record<string, string> =>
  ({ PATH: pathReplacing('curl', `if grep -q '${path}"$' "$3"; then ${lines}; else exec "$real" "$@"; fi`, home) });

const TRIAL = '/pastes?limit=1';

test('pastec renew: a new certificate that is refused gives way to the old one again', async (t) => {
  const client = await registered(t);
  const before = readFileSync(join(client.identity, 'client.pem'), 'utf8');
  for (const answer of ['printf 401', 'printf 403', 'printf 400', 'printf 000; exit 58', 'printf 000; exit 35']) {
    const { code, stderr } = await client.run(['renew'], { environment: instead(TRIAL, answer, client.home) });
    assert.equal(code, 4, answer);
    assert.match(stderr, /^pastec: the new certificate is refused: the old one is in its place again\n/);
    assert.equal(readFileSync(join(client.identity, 'client.pem'), 'utf8'), before);
    assert.deepEqual(beside(client), [], answer);
    await assertWorks(client, answer);
  }
  assert.equal((await client.run(['renew'])).code, 0);
});

test('pastec renew: where the server can not be reached to try it, the new certificate stays, and so does the old', async (t) => {
  const client = await registered(t);
  for (const [index, answer] of ['printf 000; exit 56', 'printf 429', 'printf 503'].entries()) {
    const before = client.fact('fingerprint');
    const { code, stderr } = await client.run(['renew'], { environment: instead(TRIAL, answer, client.home) });
    assert.equal(code, 0);
    assert.match(stderr, /^pastec: the new certificate is in place, but could not be tried \(.+\); the old one is in \S+\n$/);
    assert.notEqual(client.fact('fingerprint'), before);
    assert.equal(beside(client).length, index + 1);
    await assertWorks(client, answer);
  }
});

test('pastec renew: an answer that is lost costs nothing', async (t) => {
  const client = await registered(t);
  const before = client.fact('fingerprint');
  const lost = instead('/register/renew', '"$real" "$@" >/dev/null; exit 56', client.home);
  assert.equal((await client.run(['renew'], { environment: lost })).code, 8);
  assert.deepEqual([client.fact('fingerprint'), beside(client)], [before, []]);
  await assertWorks(client, 'the old one');
  assert.equal((await client.run(['renew'])).code, 0);
  await assertWorks(client, 'the new one');
});

test('pastec renew: of four at once those that can\'t renew say so, and the certificate works', async (t) => {
  const client = await registered(t);
  const ended = await Promise.all([1, 2, 3, 4].map(() => client.run(['renew'])));
  assert.ok(ended.some(({ code }) => code === 0));
  for (const { code, stderr } of ended) {
    if (code !== 0) assert.match(stderr, /^pastec: another pastec renews that certificate\n/);
  }
  await assertWorks(client, 'after four');
  const lock = `${client.identity}.renewing`;
  writeFileSync(lock, `${process.pid}\n`);
  assert.match((await client.run(['renew'])).stderr, /another pastec renews that certificate\n {2}if that is not so, remove /);
  writeFileSync(lock, '999999999\n');
  assert.equal((await client.run(['renew'])).code, 0, 'that process has ended');
});

for (const program of ['cp', 'mv', 'rm', 'openssl', 'curl']) {
  test(`pastec renew: killed before or after any call of ${program}, it leaves a certificate that works`, async (t) => {
    if (!isInstalled(t, 'openssl')) return;
    const client = await registered(t);
    const temporary = join(client.folder, 'temporary');
    mkdirSync(temporary);
    // The whole process group, as when the host stops.
    for (const order of ['kill -9 0', '"$real" "$@"; kill -9 0']) {
      for (let call = 1; ; call += 1) {
        const calls = join(client.folder, 'calls');
        rmSync(calls, { force: true });
        const isTurn = `echo >>'${calls}'; [ "$(wc -l <'${calls}')" -eq ${call} ]`;
        const lines = `if ${isTurn}; then ${order}; fi\nexec "$real" "$@"`;
        const environment = { PATH: pathReplacing(program, lines, client.home), TMPDIR: temporary };
        const { code } = await client.run(['renew'], { environment });
        await assertTaken(client, `${order} at call ${call} of ${program}`);
        if (code === 0) break;
      }
    }
    assert.equal((await client.run(['renew'])).code, 0, 'what was killed is in nobody\'s way');
    await assertWorks(client, 'the last');
  });
}

for (const defect of DEFECTS) {
  test(`pastec renew: when a program ${defect}, the certificate in place works, and done is done`, async (t) => {
    if (!isInstalled(t, 'openssl')) return;
    const client = await registered(t);
    const temporary = join(client.folder, 'temporary');
    mkdirSync(temporary);
    const { path, started } = notedPrograms(client.home);
    assert.equal((await client.run(['renew'], { environment: { PATH: path } })).code, 0);
    for (const program of started()) {
      const what = `${program} ${defect}`;
      const before = client.fact('fingerprint');
      const environment = { PATH: pathWith(client.home, defect, program), TMPDIR: temporary };
      const { code } = await client.run(['renew'], { environment });
      await assertTaken(client, what);
      if (code === 0) assert.notEqual(client.fact('fingerprint'), before, what);
      for (const name of readdirSync(client.identity)) {
        assert.equal(statSync(join(client.identity, name)).mode & 0o077, 0, what);
      }
    }
    await assertWorks(client, 'after all of them');
  });
}

test('pastec status: of a number of days that awk did not finish nothing is said', async (t) => {
  const client = await registered(t);
  const environment = { PATH: pathReplacing('awk', '"$real" "$@" | head -c 2; exit 1', client.home) };
  const { code, text, stderr } = await client.run(['status'], { environment });
  assert.deepEqual([code, text], [1, '']);
  assert.match(stderr, /^pastec: can't find out how long the certificate is good$/m);
});

test('pastec status: asks to renew from 30 days before the end, and to register anew after it', async (t) => {
  const { run, identity, app } = await registered(t);
  const facts = readFileSync(join(identity, 'facts'), 'utf8');
  for (const [days, says] of [
    [30.5, ''],
    [29.5, `pastec: the certificate for ${app.url} ends in 29 days: pastec renew\n`],
    [0.5, `pastec: the certificate for ${app.url} ends in 0 days: pastec renew\n`],
    [-0.5, `pastec: the certificate for ${app.url} has run out; another: pastec register --force\n`],
    [-1.5, `pastec: the certificate for ${app.url} has run out; another: pastec register --force\n`],
  ] as const) {
    const expires = Math.floor(Date.now() / 1000 + days * 86_400);
    writeFileSync(join(identity, 'facts'), facts.replace(/expires=\d+/, `expires=${expires}`));
    const { code, stderr } = await run(['status']);
    assert.deepEqual([code, stderr], [0, says]);
  }
});

test('pastec: says what to do where a proxy refuses the certificate, and only where that is what the words say', async (t) => {
  const client = await registered(t);
  const refused = /^  the certificate is refused, as if .* list is old: ask .*: pastec register --force, none: move \S+ away$/m;
  const tls = 'OpenSSL SSL_read: OpenSSL/3.0.19: error:0A000415:SSL routines::';
  writeFileSync(join(client.folder, 'page'), '<html><head><title>400 The SSL certificate error</title></head></html>');
  const answers: readonly (readonly [lines: string, code: number, hint: RegExp])[] = [
    ['printf 400; sed -n "s/^output = \\"\\(.*\\)\\"/\\1/p" "$3" >name; cat page >"$(cat name)"', 9, refused],
    ['printf 400', 9, /^ {2}asked: GET \S+\/challenge$/m],
    ...['sslv3 alert certificate expired', 'sslv3 alert bad certificate', 'tlsv1 alert unknown ca'].map((words) => (
      [`printf 000; echo "curl: (56) ${tls}${words}, errno 0" >&2; exit 56`, 8, refused] as const
    )),
    ['printf 000; echo "curl: (60) SSL certificate verification failed" >&2; exit 60', 8, refused],
    ['printf 000; echo "curl: (60) SSL certificate problem: self-signed certificate" >&2; exit 60', 8, /^ {2}to trust its authority/m],
    ['printf 000; echo "curl: (60) SSL certificate problem: certificate has expired" >&2; exit 60', 8, /expired\n$/],
    ['printf 000; echo "curl: (60) SSL: no alternative certificate subject name matches x" >&2; exit 60', 8, /matches x\n$/],
    [`printf 000; echo "curl: (35) ${tls}wrong version number" >&2; exit 35`, 8, /^ {2}no TLS with that server/m],
  ];
  for (const [lines, code, hint] of answers) {
    const ended = await client.run(['status'], { environment: instead('/challenge', lines, client.home) });
    assert.equal(ended.code, code, lines);
    assert.match(ended.stderr, hint, lines);
    assert.equal(refused.test(ended.stderr), hint === refused, lines);
  }
});

test('pastec renew: a server that renews no certificates leaves the one that is there', async (t) => {
  const client = await registered(t);
  const old = instead('/register/renew', 'printf 404', client.home);
  const { code, stderr } = await client.run(['renew'], { environment: old });
  assert.equal(code, 3);
  assert.match(stderr, /^pastec: this server renews no certificates\n/);
  await assertWorks(client, 'the old one');
  assert.deepEqual(beside(client), []);
  assert.equal((await client.run(['status', '--server', await answerAlways(t, 500, '{"error":"x"}')])).code, 9);
});
