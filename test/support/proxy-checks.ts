// What must hold behind any proxy of scripts/deploy, whichever it is: whose identity arrives, that uploads get through
// or are refused early, and that a revoked certificate ends at the proxy.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { MIB } from '../../src/core/time.ts';
import { binaryContent } from './app.ts';
import { writeFiles } from './pki.ts';
import { head, openRaw } from './raw-http.ts';
import { curlOf, revocationList, type Curl, type CurlAnswer, type Site } from './proxy.ts';

const LISTENERS = ['http:', 'https:'] as const;

function bundle(name: 'admin' | 'client'): string[] {
  return ['--cert', `${name}.p12:`, '--cert-type', 'P12'];
}

function jsonOf({ body }: CurlAnswer): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

/** The owner of a paste stored through the proxy: 12 digits of a fingerprint, or nobody. */
async function ownerBy(curl: Curl, url: string, ...args: readonly string[]): Promise<unknown> {
  const answer = await curl(`${url}/`, '-d', 'x', ...args);
  assert.equal(answer.status, 201, answer.body);
  return jsonOf(answer)['owner'];
}

/** Header lines in which a client could claim to be the admin, as arguments of curl. */
function claims({ folder, admin }: Site): string[] {
  const certificate = readFileSync(join(folder, 'admin.der')).toString('base64');
  const lines = [
    `X-SSL-Client-SHA1: ${admin}`, `x-ssl-client-sha1: ${admin}`,
    `Client-Cert: :${certificate}:`, `X-SSL-Client-Cert: ${certificate}`, 'X-Proxy-Secret: a guess',
    'X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Proto: ftp', 'X-Forwarded-Host: elsewhere.example',
  ];
  return lines.flatMap((line) => ['-H', line]);
}

export async function checkIdentity(site: Site): Promise<void> {
  const curl = curlOf(site);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('admin')), site.admin.slice(0, 12));
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client')), site.client.slice(0, 12));
  assert.equal((await curl('https:/audit', ...bundle('admin'))).status, 200, 'the admin\'s tier arrives');
  assert.equal((await curl('https:/audit', ...bundle('client'))).status, 403);
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener), undefined);
  const stranger = await curl('https:/', '-d', 'x', '--cert', 'stranger.crt', '--key', 'stranger.key');
  assert.notEqual(stranger.status, 201, 'a certificate of another CA is refused by the proxy');
}

export async function checkClaims(site: Site): Promise<void> {
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
    assert.equal(usage.read, `curl ${listener}//127.0.0.1:${port}/ID/raw`);
  }
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client'), ...claimed), site.client.slice(0, 12));
  await curl('https:/register', '-X', 'POST', '-o', 'another.p12', ...claimed);
  const entries = jsonOf(await curl('https:/audit?limit=1', ...bundle('admin')))['entries'] as { client_ip: string }[];
  assert.equal(entries[0]?.client_ip, '127.0.0.1', 'the address is the connection\'s');
}

/** 413 before the body has been sent, and however it is sent; and 50 MiB, byte for byte, for whom they are allowed. */
export async function checkUploads(t: TestContext, site: Site): Promise<void> {
  const curl = curlOf(site);
  const unfinished = await openRaw(t, site.httpPort);
  unfinished.send(`${head('POST / HTTP/1.1', `Content-Length: ${4 * MIB}`)}and no more`);
  assert.equal((await unfinished.next()).status, 413, 'the answer comes before the body');
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
  await curl(`http:${jsonOf(stored)['raw']}`, '-o', 'fetched');
  assert.ok(readFileSync(join(site.folder, 'fetched')).equals(large));
}

/** `reload` makes the proxy read the list again. Refused are only those on it. */
export async function checkRevocation(t: TestContext, site: Site, reload: () => Promise<void>): Promise<void> {
  const curl = curlOf(site);
  const listed = jsonOf(await curl('https:/pki/certs', ...bundle('client')));
  const [certificate] = listed['certificates'] as { serial: string }[];
  const revoked = await curl(`https:/pki/revoke/${certificate?.serial}`, '-X', 'POST', ...bundle('client'));
  assert.equal(revoked.status, 200, revoked.body);
  assert.equal(await ownerBy(curl, 'https:', ...bundle('client')), undefined, 'the service knows at once');

  writeFiles(site.folder, { 'ca.crl.pem': await revocationList(site.app) });
  await reload();
  const refused = await curl('https:/', '-d', 'x', ...bundle('client'));
  t.diagnostic(`a revoked certificate is answered ${refused.status}, curl exits with ${refused.exitCode}`);
  assert.ok(refused.status === 400 || refused.exitCode !== 0, refused.body);
  assert.equal(refused.body.includes('"error"'), false, 'by the proxy, not by the service');
  assert.equal(await ownerBy(curl, 'https:', ...bundle('admin')), site.admin.slice(0, 12));
  for (const listener of LISTENERS) assert.equal(await ownerBy(curl, listener), undefined);
}
