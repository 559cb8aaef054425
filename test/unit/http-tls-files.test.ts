// The server's certificate and key from their files: what is taken, and what each problem says. Nothing of a file's
// content may be in a message. Also the authority that vouches for clients, which may be renewed.

import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { unlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';
import {
  makeAuthorityCertificate, makeSerial, renewAuthorityCertificate, validityFrom,
} from '../../src/authority/certificates.ts';
import { distinguishedName } from '../../src/authority/der.ts';
import { generateKeyPair } from '../../src/authority/keys.ts';
import { ConfigError } from '../../src/config/load.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { DAY_SECONDS, isoSeconds } from '../../src/core/time.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { certificatePem } from '../../src/crypto/presented.ts';
import { readServerCertificate, Tls } from '../../src/http/tls.ts';
import { makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { movableClock } from '../support/clock.ts';
import { toldOf } from '../support/fake-terminal.ts';
import { openssl } from '../support/pki.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';
import { testConfig } from '../support/test-config.ts';
import { pairOf, serverPair, type TlsFiles, writePair } from '../support/tls.ts';

/** The problem with the files; undefined when they are taken. */
function problemOf(files: TlsFiles): string | undefined {
  try {
    readServerCertificate(testConfig(files));
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    assert.equal(toldOf(error).exitCode, 78);
    return error.message;
  }
  return undefined;
}

test('readServerCertificate: a pair, a chain, both in one file, other text around them', async (t) => {
  const nowMs = Date.now();
  const [pair, other] = await Promise.all([serverPair({ days: 30, nowMs }), serverPair()]);
  const expected = Math.floor(nowMs / 1000) + 30 * DAY_SECONDS;
  const cases = [
    pair,
    { ...pair, cert: pair.cert + other.cert },
    { cert: pair.cert + pair.key, key: pair.cert + pair.key },
    { cert: `subject=paste\n\n${pair.cert}`, key: `a comment\n${pair.key}` },
    { cert: pair.cert.replaceAll('\n', '\r\n'), key: pair.key.replaceAll('\n', '\r\n') },
  ];
  for (const given of cases) {
    const { certificate, privateKey, expiresAt } = readServerCertificate(testConfig(writePair(t, given)));
    assert.deepEqual({ cert: certificate, key: privateKey }, given);
    assert.equal(expiresAt, expected);
  }
});

test('readServerCertificate: each problem names the setting, and says nothing of the content', async (t) => {
  const [pair, other] = await Promise.all([serverPair(), serverPair()]);
  const key = createPrivateKey(pair.key);
  const locked = { cipher: 'aes-256-cbc', passphrase: 'x' };
  const noCertificate = /^SERVICE_TLS_CERT: expected a PEM file that begins with the server's certificate$/;
  const noKey = /^SERVICE_TLS_KEY: expected a PEM file with a private key$/;
  const encrypted = /^SERVICE_TLS_KEY: expected a key without a password; `openssl pkey [^`]*` takes it off$/;
  const another = /^SERVICE_TLS_KEY: expected the key of the first certificate in SERVICE_TLS_CERT$/;
  const cases: [{ cert: string; key: string }, RegExp][] = [
    [{ ...pair, cert: '' }, noCertificate],
    [{ ...pair, cert: 'canary' }, noCertificate],
    [{ ...pair, cert: pair.key }, noCertificate],
    [{ ...pair, cert: pair.cert.slice(0, 200) }, noCertificate],
    [{ ...pair, key: '' }, noKey],
    [{ ...pair, key: pair.cert }, noKey],
    [{ ...pair, key: pair.key.slice(0, 100) }, noKey],
    [{ ...pair, key: String(key.export({ type: 'pkcs8', format: 'pem', ...locked })) }, encrypted],
    [{ ...pair, key: String(key.export({ type: 'sec1', format: 'pem', ...locked })) }, encrypted],
    [{ ...pair, key: other.key }, another],
    [{ ...pair, cert: other.cert + pair.cert }, another],
    [{ ...pair, cert: `${pair.cert}-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n` },
      /^SERVICE_TLS_CERT: expected a certificate that TLS can use \([A-Z0-9_]+\)$/],
  ];
  for (const [given, says] of cases) assert.match(problemOf(writePair(t, given)) ?? 'it was taken', says);
});

test('readServerCertificate: a file that cannot be read', async (t) => {
  const pair = await serverPair();
  const certMissing = writePair(t, pair);
  unlinkSync(certMissing.tlsCertPath);
  assert.equal(problemOf(certMissing), 'SERVICE_TLS_CERT: expected the path of a file that can be read (ENOENT)');
  const keyMissing = writePair(t, pair);
  assert.equal(problemOf({ ...keyMissing, tlsKeyPath: temporaryFolder(t) }),
    'SERVICE_TLS_KEY: expected the path of a file that can be read (EISDIR)');
  assert.equal(problemOf({ ...keyMissing, tlsCertPath: '/dev/zero' }),
    'SERVICE_TLS_CERT: expected the path of a file that can be read (larger than 1 MiB)');
});

test('readServerCertificate: a key too short for TLS', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  openssl(folder, 'req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-keyout', 'k', '-out', 'c', '-subj', '/CN=x');
  assert.equal(problemOf({ tlsCertPath: `${folder}/c`, tlsKeyPath: `${folder}/k` }),
    'SERVICE_TLS_CERT: expected a certificate that TLS can use (ERR_SSL_EE_KEY_TOO_SMALL)');
});

test('readServerCertificate: keys and certificates that no client takes', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const problemWith = (algorithm: readonly string[], uses?: string): string | undefined => {
    openssl(folder, 'genpkey', '-out', 'k', ...algorithm);
    const extension = uses === undefined ? [] : ['-addext', `extendedKeyUsage=${uses}`];
    openssl(folder, 'req', '-x509', '-key', 'k', '-out', 'c', '-subj', '/CN=x', ...extension);
    return problemOf({ tlsCertPath: `${folder}/c`, tlsKeyPath: `${folder}/k` });
  };
  const onCurve = (name: string): string[] => ['-algorithm', 'EC', '-pkeyopt', `ec_paramgen_curve:${name}`];
  const kind = 'SERVICE_TLS_KEY: expected a key that TLS clients take: RSA, Ed25519, or one on P-256, P-384 or P-521';
  for (const name of ['secp256k1', 'brainpoolP256r1', 'secp224r1']) assert.equal(problemWith(onCurve(name)), kind, name);
  openssl(folder, 'genpkey', '-genparam', '-algorithm', 'DSA', '-pkeyopt', 'dsa_paramgen_bits:1024', '-out', 'dsa');
  assert.equal(problemWith(['-paramfile', 'dsa']), kind);
  const taken = ['P-256', 'P-384', 'P-521'].map(onCurve).concat([
    ['-algorithm', 'RSA'], ['-algorithm', 'RSA-PSS'], ['-algorithm', 'ED25519'], ['-algorithm', 'ED448'],
  ]);
  for (const algorithm of taken) assert.equal(problemWith(algorithm), undefined, algorithm.join(' '));

  const use = 'SERVICE_TLS_CERT: expected a certificate for servers (extendedKeyUsage serverAuth, or none at all)';
  for (const uses of ['clientAuth', 'clientAuth,codeSigning']) assert.equal(problemWith(onCurve('P-256'), uses), use);
  for (const uses of ['serverAuth', 'clientAuth,serverAuth', 'anyExtendedKeyUsage']) {
    assert.equal(problemWith(onCurve('P-256'), uses), undefined, uses);
  }
});

test('Tls: warns of a certificate that is not valid yet, until it is', async (t) => {
  const clock = movableClock(Math.floor(Date.now() / 1000) * 1000);
  const files = writePair(t, await serverPair({ nowMs: clock.unixMs() + DAY_SECONDS * 1000 }));
  const { beginsAt } = readServerCertificate(testConfig(files));
  const logged: LogEntry[] = [];
  const tls = new Tls({ config: testConfig(files), clock, log: (entry) => logged.push(entry) });
  clock.advance(beginsAt * 1000 - clock.unixMs() - 1000);
  tls.warnOfExpiry();
  assert.deepEqual(logged.map(({ level, event }) => [level, event]), [['warning', 'server certificate is not valid yet']]);
  assert.equal(logged[0]?.details?.['begins'], isoSeconds(beginsAt));
  clock.advance(1000);
  tls.warnOfExpiry();
  assert.equal(logged.length, 1);
});

test('Tls: warns of a certificate that expires within 14 days, when asked and when it is read again', async (t) => {
  const clock = movableClock(Math.floor(Date.now() / 1000) * 1000);
  const files = writePair(t, await serverPair({ days: 20, nowMs: clock.unixMs() }));
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): number => logged.push(entry);
  const tls = new Tls({ config: testConfig(files), clock, log });
  clock.advance((6 * DAY_SECONDS - 1) * 1000);
  tls.warnOfExpiry();
  assert.deepEqual(logged, []);
  const expires = isoSeconds(clock.unixMs() / 1000 + 14 * DAY_SECONDS + 1);
  const begins = isoSeconds(readServerCertificate(testConfig(files)).beginsAt);
  clock.advance(1000);
  assert.equal(tls.rereadCertificate(), false, 'it is the same');
  tls.warnOfExpiry();
  const soon = { level: 'warning', logger: 'http', event: 'server certificate expires soon', details: { begins, expires } };
  assert.deepEqual(logged, [soon, soon]);
  clock.advance(14 * DAY_SECONDS * 1000);
  tls.warnOfExpiry();
  assert.deepEqual(logged.at(-1), { ...soon, event: 'server certificate has expired' });
  const renewed = await serverPair({ days: 20, nowMs: clock.unixMs() });
  writeFileSync(files.tlsCertPath, renewed.cert);
  writeFileSync(files.tlsKeyPath, renewed.key);
  assert.equal(tls.rereadCertificate(), true);
  assert.equal(logged.length, 3);
});

test('Tls: handshakes that fail are logged at once, and then once a minute with their number, while there are any', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const counts: unknown[] = [];
  const log = ({ details }: LogEntry): void => void counts.push([details?.['reason'], details?.['count']]);
  const tls = new Tls({ config: testConfig(writePair(t, await serverPair())), clock: movableClock(), log });
  const fail = (...reasons: readonly string[]): void => reasons.forEach((reason) => tls.noteFailure(reason));
  fail('A', 'B', 'C');
  assert.deepEqual(counts.splice(0), [['A', 1]]);
  t.mock.timers.tick(59_999);
  assert.deepEqual(counts, []);
  t.mock.timers.tick(1);
  assert.deepEqual(counts.splice(0), [['C', 2]]);
  fail('D');
  assert.deepEqual(counts, []);
  t.mock.timers.tick(60_000);
  assert.deepEqual(counts.splice(0), [['D', 1]]);
  t.mock.timers.tick(600_000);
  assert.deepEqual(counts, []);
  fail('E', 'F');
  assert.deepEqual(counts, [['E', 1]]);
});

test('Tls: the context is made anew for another certificate of the authority, and for that alone', async (t) => {
  const files = writePair(t, await serverPair());
  const tls = new Tls({ config: testConfig(files), clock: movableClock(), log: () => {} });
  const renewed = t.mock.method(tls.createServer({}), 'setSecureContext');
  const [first, second] = await Promise.all([makeTestAuthority(), makeTestAuthority()]);
  for (const { certificate } of [first, { certificate: Buffer.from(first.certificate) }, second, second]) tls.trust(certificate);
  const trusted = renewed.mock.calls.map(({ arguments: [context] }) => context.ca);
  assert.deepEqual(trusted, [[certificatePem(first.certificate)], [certificatePem(second.certificate)]]);
});

test('Tls: without the callback for the keys of tickets each connection is served by a full handshake all the same', async (t) => {
  // This callback is node's own, under a name that it does not document, so another version may have none.
  const ofContexts = Object.getPrototypeOf(createSecureContext().context) as { enableTicketKeyCallback?: unknown };
  const { enableTicketKeyCallback } = ofContexts;
  assert.equal(typeof enableTicketKeyCallback, 'function');
  t.after(() => Object.assign(ofContexts, { enableTicketKeyCallback }));
  ofContexts.enableTicketKeyCallback = undefined;
  const tls = new Tls({ config: testConfig(writePair(t, await serverPair())), clock: movableClock(), log: () => {} });
  const server = tls.createServer({ headersTimeout: 60_000 }).on('request', (_, answer) => void answer.end('served'));
  t.after(() => server.close());
  tls.trust((await makeTestAuthority()).certificate);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    let session: Buffer | undefined;
    for (let turn = 0; turn < 2; turn += 1) {
      const options = { host: '127.0.0.1', port, rejectUnauthorized: false, minVersion: version, maxVersion: version };
      const socket = connect({ ...options, ...session === undefined ? {} : { session } });
      t.after(() => socket.destroy());
      socket.on('session', (kept: Buffer) => void (session = kept));
      await once(socket, 'secureConnect');
      assert.equal(socket.isSessionReused(), false, version);
      socket.end('GET / HTTP/1.1\r\nHost: paste.test\r\nConnection: close\r\n\r\n');
      assert.match(await text(socket), /served$/);
    }
    assert.ok(session !== undefined, 'the second connection offered it');
  }
});

test('Tls: the certificate of a renewed authority takes the place of the one that ran out', async (t) => {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const keyPair = await generateKeyPair();
  const over = { serial: makeSerial(randomBytes), validity: validityFrom(nowSeconds - 2 * DAY_SECONDS, 1), ...keyPair };
  const expired = { certificate: await makeAuthorityCertificate(over, distinguishedName('CA')), privateKey: keyPair.privateKey };
  const validity = validityFrom(nowSeconds, 30);
  const certificate = await renewAuthorityCertificate({ serial: makeSerial(randomBytes), validity }, expired);
  const client = pairOf(await makeTestClient({ ...expired, certificate }, { validity }));
  const tls = new Tls({ config: testConfig(writePair(t, await serverPair())), clock: movableClock(nowSeconds * 1000), log: () => {} });
  const server = tls.createServer({ headersTimeout: 60_000 }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  /** What OpenSSL says of the client on a new connection. */
  async function judged(): Promise<unknown> {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...client });
    const [served] = await once(server, 'secureConnection') as [TLSSocket];
    const verdict = served.authorized || String(served.authorizationError);
    socket.destroy();
    return verdict;
  }
  tls.trust(expired.certificate);
  assert.equal(await judged(), 'CERT_HAS_EXPIRED');
  tls.trust(certificate);
  assert.equal(await judged(), true);
});
