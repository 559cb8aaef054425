// What must hold behind every proxy of scripts/deploy: the right identity arrives, uploads get through or are refused
// early, reading is as without a proxy, and revoking a certificate ends what it gave.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { encodePem } from '../../src/authority/keys.ts';
import { KIB, MIB } from '../../src/core/time.ts';
import { binaryContent } from './app.ts';
import { writeFiles } from './pki.ts';
import { head, openRaw } from './raw-http.ts';
import { checkForms } from './proxy-forms.ts';
import {
  curlOf, revocationList, SITE_NAME, type Curl, type CurlAnswer, type RunningProxy, type Site,
} from './proxy.ts';
import { clientOf } from './shells.ts';

const LISTENERS = ['http:', 'https:'] as const;

/** A proxy that removes what a client names in Connection (RFC 9110 section 7.6.1) could remove its own headers. */
const HOP_BY_HOP = ['-H', 'Connection: close, X-Proxy-Secret, X-SSL-Client-SHA1, X-SSL-Client-Cert, X-Forwarded-For'];

/**
 * Runs the checks that hold for every proxy, each as a step of the test. `reload` makes the proxy read the revocation
 * list again: with it, the proxy must refuse the certificates on the list. Ends the service.
 */
export async function checkProxy(
  t: TestContext,
  site: Site,
  proxy: RunningProxy,
  reload?: () => Promise<void>,
): Promise<void> {
  await t.test('a client certificate is the identity, none is nobody\'s', () => checkIdentity(site));
  await t.test('what a client claims in headers does not arrive, on either port', () => checkClaims(site));
  await t.test('100 header lines of a client arrive, and 116 are 431', (step) => checkHeaderLines(step, site));
  await t.test('no request is two, and none is seen by the service alone', (step) => checkForms(step, site));
  await t.test('what burns is read once, and ranges and tags get through', () => checkReading(site));
  await t.test('413 arrives before the body has been sent', (step) => checkEarlyAnswer(step, site));
  await t.test('413 arrives however the body is sent, and 50 MiB get through', () => checkUploads(site));
  await t.test('a certificate that was revoked is nobody\'s at once, with a rewritten signature too', () => (
    checkRevokedAtOnce(site)
  ));
  if (reload !== undefined) {
    await t.test('and refused once the list has been read again', (step) => checkRevocation(step, site, reload));
    await t.test('pastec says so then, and gets another certificate', (step) => checkClient(step, site));
  }
  await t.test('no path of a paste is logged', () => checkSilence(site, proxy));
}

function bundle(name: 'admin' | 'client'): string[] {
  return ['--cert', `${name}.p12:`, '--cert-type', 'P12'];
}

function jsonOf({ body }: CurlAnswer): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

/** The certificate with a rewritten signature, which TLS accepts just as well, in openssl and in Go. */
function rewritten(name: 'admin' | 'client'): string[] {
  return ['--cert', `${name}-rewritten.crt`, '--key', `${name}.key`];
}

/** The owner of a paste stored through the proxy: 12 digits of a fingerprint; undefined for nobody. */
async function ownerBy(curl: Curl, url: string, ...args: readonly string[]): Promise<unknown> {
  const answer = await curl(`${url}/`, '-d', 'x', ...args);
  assert.equal(answer.status, 201, answer.body);
  return jsonOf(answer)['owner'];
}

/** Header lines in which a client could claim to be the admin, as arguments of curl. */
function claims({ folder, admin }: Site): string[] {
  const der = readFileSync(join(folder, 'admin.der'));
  const [certificate, escaped] = [der.toString('base64'), encodeURIComponent(encodePem('CERTIFICATE', der))];
  const lines = [
    `X-SSL-Client-SHA1: ${admin}`, `x-ssl-client-sha1: ${admin}`,
    `Client-Cert: :${certificate}:`, `X-SSL-Client-Cert: ${certificate}`,
    `x-ssl-client-cert: ${escaped}`, 'X-Proxy-Secret: a guess',
    'X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Proto: ftp', 'X-Forwarded-Host: elsewhere.example',
  ];
  return lines.flatMap((line) => ['-H', line]);
}

async function checkIdentity(site: Site): Promise<void> {
  const curl = curlOf(site);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('admin')), site.admin.slice(0, 12));
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client')), site.client.slice(0, 12));
  assert.equal((await curl('https:/audit', ...bundle('admin'))).status, 200, 'the admin\'s tier arrives');
  assert.equal((await curl('https:/audit', ...bundle('client'))).status, 403);
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener), undefined);
  const stranger = await curl('https:/', '-d', 'x', '--cert', 'stranger.crt', '--key', 'stranger.key');
  assert.notEqual(stranger.status, 201, 'a certificate of another CA is refused by the proxy');
}

async function checkClaims(site: Site): Promise<void> {
  const curl = curlOf(site);
  const claimed = claims(site);
  for (const listener of LISTENERS) {
    assert.equal(await ownerBy(curl, listener, ...claimed), undefined, listener);
    for (let start = 0; start < claimed.length; start += 2) {
      const one = claimed.slice(start, start + 2);
      assert.equal(await ownerBy(curl, listener, ...one), undefined, `${listener} ${one[1]}`);
    }
    assert.equal((await curl(`${listener}/audit`, ...claimed)).status, 401);
    const { usage } = jsonOf(await curl(`${listener}/`, ...claimed)) as { usage: { read: string } };
    const port = listener === 'https:' ? site.httpsPort : site.httpPort;
    assert.equal(usage.read, `curl ${listener}//${SITE_NAME}:${port}/ID/raw`);
  }
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client'), ...claimed), site.client.slice(0, 12));
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client'), ...HOP_BY_HOP), site.client.slice(0, 12));
  await curl('https:/register', '-X', 'POST', '-o', 'another.p12', ...claimed);
  const entries = jsonOf(await curl('https:/audit?limit=1', ...bundle('admin')))['entries'] as { client_ip: string }[];
  assert.equal(entries[0]?.client_ip, '127.0.0.1', 'the address is the connection\'s');
}

/** 100 lines of a client leave room for those that the proxy adds. */
async function checkHeaderLines(t: TestContext, { httpPort }: Site): Promise<void> {
  for (const [count, status] of [[100, 200], [116, 431]] as const) {
    // `count` lines beside Host: Connection and these.
    const own = Array.from({ length: count - 1 }, (_, index) => `X-A${index}: 1`);
    const connection = await openRaw(t, httpPort);
    connection.send(head('GET /health HTTP/1.1', `Host: ${SITE_NAME}`, 'Connection: close', ...own));
    const answer = await connection.rest();
    t.diagnostic(answer.split('\r\n')[0] ?? '');
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), `${count} lines`);
  }
}

/** HTTP/1.0 had no Host yet. A proxy that does not choose its site by name serves the only one that it has. */
export async function checkWithoutHost(t: TestContext, { httpPort }: Site): Promise<void> {
  const connection = await openRaw(t, httpPort);
  connection.send('GET /health HTTP/1.0\r\n\r\n');
  assert.match(await connection.rest(), /^HTTP\/1\.[01] 200 [^]*"healthy"/);
}

/** A client that goes on sending a body which is far too large sees the 413 long before its end. */
async function checkEarlyAnswer(t: TestContext, { httpPort }: Site): Promise<void> {
  const declared = 1024 * MIB;
  const connection = await openRaw(t, httpPort);
  connection.send(head('POST / HTTP/1.1', `Host: ${SITE_NAME}`, `Content-Length: ${declared}`));
  const { socket } = connection;
  const piece = Buffer.alloc(64 * KIB, 'x');
  let sent = 0;
  const sendMore = (): void => {
    while (sent < declared && socket.writable) {
      sent += piece.length;
      if (!socket.write(piece)) return;
    }
  };
  socket.on('drain', sendMore);
  sendMore();
  const { status } = await connection.next();
  socket.removeListener('drain', sendMore);
  assert.equal(status, 413);
  assert.ok(sent < declared, `the answer comes before the body, of which ${sent} bytes were sent`);
}

/** Too large a body is answered 413 however it is sent; a client that may store 50 MiB gets back each byte. */
async function checkUploads(site: Site): Promise<void> {
  const curl = curlOf(site);
  const largest = 50 * MIB;
  const content = binaryContent(largest + 1);
  const [anonymous, large] = [content.subarray(0, 4 * MIB), content.subarray(0, largest)];
  writeFiles(site.folder, { anonymous, large, larger: content });
  const [unasked, chunked] = [['-H', 'Expect:'], ['-H', 'Transfer-Encoding: chunked']] as const;
  const ways = [[], unasked, chunked, [...chunked, ...unasked]];
  for (const listener of LISTENERS) {
    for (const way of ways) {
      const refused = await curl(`${listener}/`, '--data-binary', '@anonymous', ...way);
      assert.equal(refused.status, 413, `${listener} ${way.join(' ')}: ${refused.body} (${refused.exitCode})`);
      const { error, max_size: maxSize, authenticated } = jsonOf(refused);
      assert.deepEqual([error, maxSize, authenticated], ['paste too large', 3 * MIB, false]);
    }
  }
  const tooLarge = await curl('https:/', '--data-binary', '@larger', ...bundle('client'));
  assert.deepEqual([tooLarge.status, jsonOf(tooLarge)['max_size']], [413, largest]);
  const stored = await curl('https:/', '--data-binary', '@large', '-H', 'Expect:', ...bundle('client'));
  assert.equal(stored.status, 201, stored.body);
  await curl(`https:${jsonOf(stored)['raw']}`, '-o', 'fetched', ...bundle('client'));
  assert.ok(readFileSync(join(site.folder, 'fetched')).equals(large));
}

/** A paste that burns is read only once, and a range of a paste is that range. */
async function checkReading(site: Site): Promise<void> {
  const curl = curlOf(site);
  for (const listener of LISTENERS) {
    const burning = jsonOf(await curl(`${listener}/`, '-d', 'ashes', '-H', 'X-Burn-After-Read: 1'))['raw'];
    assert.equal((await curl(`${listener}${burning}`, '--head')).status, 200);
    const readers = await Promise.all(Array.from({ length: 8 }, () => curl(`${listener}${burning}`)));
    assert.deepEqual(readers.map(({ status }) => status).sort(), [200, ...Array<number>(7).fill(404)]);
    assert.equal(readers.find(({ status }) => status === 200)?.body, 'ashes');

    const raw = `${listener}${jsonOf(await curl(`${listener}/`, '-d', '0123456789'))['raw']}`;
    const part = await curl(raw, '--range', '2-4');
    assert.deepEqual([part.status, part.body], [206, '234']);
    assert.equal((await curl(raw, '--range', '10-')).status, 416);
    const tag = /^etag: (\S+)/im.exec((await curl(raw, '--head')).body)?.[1];
    assert.equal((await curl(raw, '-H', `If-None-Match: ${tag}`)).status, 304);
  }
}

async function revokeClient(curl: Curl): Promise<void> {
  const listed = jsonOf(await curl('https:/pki/certs', ...bundle('client')));
  const [certificate] = listed['certificates'] as { serial: string }[];
  const revoked = await curl(`https:/pki/revoke/${certificate?.serial}`, '-X', 'POST', ...bundle('client'));
  assert.equal(revoked.status, 200, revoked.body);
}

/** A client with a revoked certificate is anonymous at once, even if the proxy does not know that it was revoked. */
async function checkRevokedAtOnce(site: Site): Promise<void> {
  const curl = curlOf(site);
  assert.equal(await ownerBy(curl, 'https:', ...rewritten('client')), site.client.slice(0, 12));
  assert.equal((await curl('https:/audit', ...rewritten('admin'))).status, 200);
  await revokeClient(curl);
  for (const way of [bundle, rewritten]) {
    assert.equal(await ownerBy(curl, 'https:', ...way('client')), undefined);
    assert.equal(await ownerBy(curl, 'https:', ...way('admin')), site.admin.slice(0, 12));
  }
}

/** When the service looks for a SHA-1 but its proxy hands the certificate over, every client is anonymous. */
export async function checkSettingForgotten(site: Site): Promise<void> {
  const curl = curlOf(site);
  const claimed = claims(site);
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener, ...claimed), undefined);
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener, ...claimed.slice(0, 2)), undefined);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('admin')), undefined);
}

/**
 * What holds where a proxy hands over only the SHA-1: the same, but a certificate with a rewritten signature counts as
 * a stranger's, since the service can't tell it from one of another authority that the proxy trusts.
 */
export async function checkSha1Alone(site: Site, reload: () => Promise<void>): Promise<void> {
  const curl = curlOf(site);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client')), site.client.slice(0, 12));
  assert.equal((await curl('https:/audit', ...bundle('admin'))).status, 200);
  const claimed = claims(site);
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener, ...claimed), undefined);
  await revokeClient(curl);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client')), undefined);
  assert.match(String(await ownerBy(curl, 'https:', ...rewritten('client'))), /^[0-9a-f]{12}$/);
  const { pastes } = jsonOf(await curl('https:/pastes', ...rewritten('client')));
  assert.equal((pastes as unknown[]).length, 1, 'nothing of what the client had stored');
  assert.equal((await curl('https:/audit', ...rewritten('admin'))).status, 403, 'no tier');
  writeFiles(site.folder, { 'ca.crl.pem': await revocationList(site.app) });
  await reload();
  const refused = await curl('https:/', '-d', 'x', ...rewritten('client'));
  assert.ok(refused.status === 400 || refused.exitCode !== 0, refused.body);
}

/** Only the certificates on the list are refused. */
async function checkRevocation(t: TestContext, site: Site, reload: () => Promise<void>): Promise<void> {
  const curl = curlOf(site);
  writeFiles(site.folder, { 'ca.crl.pem': await revocationList(site.app) });
  await reload();
  for (const way of [bundle, rewritten]) {
    const refused = await curl('https:/', '-d', 'x', ...way('client'));
    t.diagnostic(`a revoked certificate is answered ${refused.status}, curl exits with ${refused.exitCode}`);
    assert.ok(refused.status === 400 || refused.exitCode !== 0, refused.body);
    assert.equal(refused.body.includes('"error"'), false, 'by the proxy, not by the service');
  }
  assert.equal(await ownerBy(curl, 'https:', ...bundle('admin')), site.admin.slice(0, 12));
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener), undefined);
}

/** Whoever has a certificate that the proxy refuses is told what to do, and it helps. */
async function checkClient(t: TestContext, { folder, httpsPort }: Site): Promise<void> {
  const { home, run } = clientOf(t, `https://${SITE_NAME}:${httpsPort}`);
  const [programs, configuration] = [join(home, 'programs'), join(home, '.config', 'pastec')];
  for (const path of [programs, configuration]) mkdirSync(path, { recursive: true });
  const resolve = `--noproxy '*' --resolve ${SITE_NAME}:${httpsPort}:127.0.0.1`;
  writeFileSync(join(programs, 'curl'), `#!/bin/sh\nPATH=\${PATH#*${delimiter}}\nexec curl "$@" ${resolve}\n`, { mode: 0o700 });
  writeFileSync(join(configuration, 'config'), `ca=${join(folder, 'server.crt')}\n`);
  const environment = { PATH: `${programs}${delimiter}${process.env.PATH}`, PASTEC_SOLVER: 'node' };
  assert.equal((await run(['cert', 'import', join(folder, 'client.p12')], { environment })).code, 0);
  const hint = /^  the certificate is refused, as if .* list is old: ask .*: pastec register --force, none: /m;
  for (const args of [['status'], ['renew'], ['ls'], ['-e', '1h']]) {
    const { code, text, stderr } = await run(args, { environment, input: 'x' });
    t.diagnostic(`${args[0]}: ${stderr}`);
    assert.ok(code === 8 || code === 9, String(code));
    assert.equal(text, '');
    assert.match(stderr, hint, args[0]);
  }
  const registered = await run(['register', '--force', '--name', 'again'], { environment });
  assert.equal(registered.code, 0, registered.stderr);
  assert.match((await run(['status'], { environment })).text, /^trusted: /m);
  assert.equal((await run([], { environment, input: 'x' })).code, 0);
}

/** The path of a paste is the key to it, so the proxy may not log it, even when it can't reach the service. */
async function checkSilence(site: Site, proxy: RunningProxy): Promise<void> {
  const curl = curlOf(site);
  const path = String(jsonOf(await curl('https:/', '-d', 'x'))['raw']);
  assert.equal((await curl(`https:${path}`)).status, 200);
  await site.app.app.close();
  assert.ok((await curl(`https:${path}`)).status >= 500);
  assert.equal(proxy.said().includes(path.split('/')[1] ?? ''), false);
}
