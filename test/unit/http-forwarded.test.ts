// Who a request comes from: addresses, networks, what is believed of the headers of proxies, and the identity.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { KIB, MIB } from '../../src/core/time.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { fingerprintSha1 } from '../../src/crypto/presented.ts';
import { HeaderLines, networkMatcher, plainAddress } from '../../src/http/engine/head.ts';
import { Connection, type Origin, type Peer, Request, type RequestParts } from '../../src/http/engine/request.ts';
import { Forwarding } from '../../src/http/forwarded.ts';
import { movableClock } from '../support/clock.ts';
import { heapBytes } from '../support/heap.ts';
import { testConfig } from '../support/test-config.ts';
import { serverPair } from '../support/tls.ts';

const FINGERPRINT = '0123456789abcdef0123456789abcdef01234567';
const PROXY = '10.0.0.1';
const STRANGER = '192.0.2.1';
const SECRET = 'a proxy secret';

test('plainAddress: one text for each address', () => {
  const cases = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['::1', '::1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['fe80::1%br_lan', 'fe80::1'],
    ['fe80::1%wg@home~1', 'fe80::1'],
    ['2001:db8::', '2001:db8::'],
  ] as const;
  for (const [text, plain] of cases) assert.equal(plainAddress(text), plain);
  for (const text of [
    '', 'unknown', '192.0.2', '192.0.2.256', '192.0.2.01', '192.0.2.1:80', '[::1]', ':::', '1:2:3:4:5:6:7:8:9', '::1 ',
    '_hidden', 'fe80::1%', 'fe80::1%a/b', 'fe80::1%a%b', 'fe80::1%a b', '192.0.2.1%eth0', '%eth0',
  ]) {
    assert.equal(plainAddress(text), undefined, text);
  }
});

test('networkMatcher: addresses and blocks, at their edges', () => {
  const matches = networkMatcher([
    '10.0.0.0/8', '192.0.2.7', '192.0.2.64/26', '::1', '2001:db8::/32', '::ffff:198.51.100.0/120', '203.0.113.9/32',
  ]);
  const inside = [
    '10.0.0.0', '10.255.255.255', '192.0.2.7', '192.0.2.64', '192.0.2.127', '::1', '2001:db8::',
    '2001:db8:ffff:ffff::1', '198.51.100.0',
    '198.51.100.255', '203.0.113.9',
  ];
  for (const address of inside) assert.equal(matches(address), true, address);
  const outside = [
    '9.255.255.255', '11.0.0.0', '192.0.2.6', '192.0.2.8', '192.0.2.63', '192.0.2.128', '::', '::2', '2001:db7:ffff::',
    '2001:db9::',
    '198.51.101.0', '203.0.113.8', '203.0.113.10',
  ];
  for (const address of outside) assert.equal(matches(address), false, address);
  assert.equal(networkMatcher([])('127.0.0.1'), false);
  assert.equal(networkMatcher(['0.0.0.0/0'])('203.0.113.1'), true);
});

function originOf(peer: string, lines: readonly string[], config: Partial<Config> = {}, tls?: Peer['tls']): Origin {
  const settings = testConfig({ trustedProxies: ['10.0.0.0/8', '2001:db8:a::/48'], ...config });
  const isTrustedProxy = networkMatcher(settings.trustedProxies);
  const forwarding = new Forwarding(settings, randomBytes);
  // This takes effect at once, since nothing has to be loaded for a fingerprint.
  void forwarding.replaceProxySecret(settings.proxySecret);
  const from: Peer = { address: peer, isTrusted: isTrustedProxy(peer), tls };
  return forwarding.originOf(new HeaderLines([...lines]), from);
}

test('originOf: whoever keeps an address keeps nothing of the header that it came in', () => {
  const headerOf = (number: number, address: string) => {
    const header = `${`${number},`.padEnd(16 * KIB, 'x')}, ${address}`;
    // A header in one piece, as node has it.
    return Buffer.from(header).toString('latin1');
  };
  for (const addressOf of [(number: number) => `198.151.100.${100 + (number % 100)}`, (number: number) => `2001:db8:${number + 1}::1234`]) {
    const kept: string[] = [];
    const before = heapBytes();
    for (let number = 0; number < 500; number += 1) {
      const address = addressOf(number);
      kept.push(originOf(PROXY, ['X-Forwarded-For', headerOf(number, address)]).clientAddress);
      assert.equal(kept.at(-1), address);
    }
    const growth = heapBytes() - before;
    assert.ok(growth < 2 * MIB, `${growth} bytes for ${kept.length} addresses`);
  }
});

test('originOf: X-Forwarded-For from a trusted proxy, walked from the right', () => {
  const cases: readonly (readonly [lines: readonly string[], address: string])[] = [
    [[], PROXY],
    [['192.0.2.1'], '192.0.2.1'],
    [[' 192.0.2.1 '], '192.0.2.1'],
    [['203.0.113.9, 192.0.2.1'], '192.0.2.1'],
    [['203.0.113.9, 192.0.2.1, 10.0.0.2,10.0.0.3'], '192.0.2.1'],
    [['203.0.113.9', '192.0.2.1', '10.0.0.2'], '192.0.2.1'],
    [['garbage, 192.0.2.1'], '192.0.2.1'],
    [['::ffff:192.0.2.1'], '192.0.2.1'],
    [['2001:DB8:B::1, 2001:db8:a::1'], '2001:db8:b::1'],
    [['10.0.0.7, 10.0.0.8'], '10.0.0.7'],
    [['192.0.2.1, garbage'], PROXY],
    [['garbage'], PROXY],
    [[''], PROXY],
    [['192.0.2.1,'], PROXY],
    [['192.0.2.1:1234'], PROXY],
    [['192.0.2.1, 10.0.0.2, unknown, 10.0.0.3'], PROXY],
  ];
  for (const [lines, address] of cases) {
    const headers = lines.flatMap((line) => ['X-Forwarded-For', line]);
    assert.equal(originOf(PROXY, headers).clientAddress, address, lines.join(' | '));
    assert.equal(originOf(STRANGER, headers).clientAddress, STRANGER, 'a stranger is not believed');
  }
});

test('originOf: X-Forwarded-For of any length', () => {
  const origin = originOf(PROXY, ['X-Forwarded-For', `${STRANGER}${', 10.0.0.2'.repeat(1500)}`]);
  assert.equal(origin.clientAddress, '10.0.0.2');
});

test('originOf: the identity, without a proxy secret from anyone', () => {
  for (const peer of [PROXY, STRANGER]) {
    assert.equal(originOf(peer, ['X-SSL-Client-SHA1', FINGERPRINT]).fingerprint, FINGERPRINT);
  }
});

test('originOf: what is no identity', () => {
  const values = [
    '', FINGERPRINT.toUpperCase(), FINGERPRINT.slice(1), `${FINGERPRINT}0`, `${FINGERPRINT} `, '0'.repeat(40),
    'da39a3ee5e6b4b0d3255bfef95601890afd80709',
    FINGERPRINT.replace(/../g, '$&:').slice(0, -1), `g${FINGERPRINT.slice(1)}`, `${FINGERPRINT}\n`,
  ];
  for (const value of values) {
    assert.equal(originOf(STRANGER, ['X-SSL-Client-SHA1', value]).fingerprint, null, JSON.stringify(value));
  }
  const line = ['X-SSL-Client-SHA1', FINGERPRINT];
  assert.equal(originOf(STRANGER, [...line, ...line]).fingerprint, null, 'given twice');
  assert.equal(originOf(STRANGER, []).fingerprint, null);
});

test('originOf: with a proxy secret, it alone decides, whatever the peer is', () => {
  const identity = ['X-SSL-Client-SHA1', FINGERPRINT, 'X-Forwarded-For', '203.0.113.9'];
  const config = { proxySecret: SECRET };
  for (const peer of [PROXY, STRANGER]) {
    const believed = originOf(peer, [...identity, 'X-Proxy-Secret', SECRET], config);
    assert.deepEqual({ ...believed, certificate: undefined }, {
      clientAddress: '203.0.113.9', fingerprint: FINGERPRINT, isForwarded: true, certificate: undefined,
    });
    const refused: readonly (readonly string[])[] = [
      [],
      ['X-Proxy-Secret', ''],
      ['X-Proxy-Secret', SECRET.slice(1)],
      ['X-Proxy-Secret', `${SECRET}x`],
      ['X-Proxy-Secret', SECRET.toUpperCase()],
      ['X-Proxy-Secret', SECRET, 'X-Proxy-Secret', SECRET],
    ];
    for (const lines of refused) {
      const origin = originOf(peer, [...identity, ...lines], config);
      const nobody = { clientAddress: peer, fingerprint: null, isForwarded: false, certificate: undefined };
      assert.deepEqual({ ...origin, certificate: undefined }, nobody);
    }
  }
});

test('originOf: a proxy secret that is not ASCII is compared by its UTF-8 bytes', () => {
  const config = { proxySecret: 'gehe\u00efm' };
  const asSent = Buffer.from('gehe\u00efm').toString('latin1');
  assert.equal(originOf(STRANGER, ['X-Proxy-Secret', asSent], config).isForwarded, true);
  assert.equal(originOf(STRANGER, ['X-Proxy-Secret', 'gehe\u00efm'], config).isForwarded, false);
});

test('originOf: over TLS the certificate is the identity, and headers are none', () => {
  const presented = ['X-SSL-Client-SHA1', FINGERPRINT];
  const own = 'f'.repeat(40);
  for (const peer of [PROXY, STRANGER]) {
    for (const fingerprint of [own, null]) {
      assert.equal(originOf(peer, presented, {}, { fingerprint }).fingerprint, fingerprint);
      assert.equal(originOf(peer, presented, { proxySecret: SECRET }, { fingerprint }).fingerprint, fingerprint);
      const lines = [...presented, 'X-Proxy-Secret', SECRET];
      assert.equal(originOf(peer, lines, {}, { fingerprint }).fingerprint, fingerprint, 'there is no secret');
    }
  }
});

test('originOf: over TLS a proxy that shows the secret speaks for its clients, and never for itself', () => {
  const config = { proxySecret: SECRET };
  const tls = { fingerprint: 'f'.repeat(40) };
  const secret = ['X-Proxy-Secret', SECRET];
  assert.equal(originOf(PROXY, ['X-SSL-Client-SHA1', FINGERPRINT, ...secret], config, tls).fingerprint, FINGERPRINT);
  assert.equal(originOf(PROXY, ['X-SSL-Client-SHA1', 'malformed', ...secret], config, tls).fingerprint, null);
  assert.equal(originOf(PROXY, secret, config, tls).fingerprint, null);
});

test('replaceProxySecret: counts from then on; without one, headers count as if there had never been one', async () => {
  const settings = testConfig({ proxySecret: SECRET });
  const forwarding = new Forwarding(settings, randomBytes);
  const peer: Peer = { address: STRANGER, isTrusted: false, tls: undefined };
  const presents = (secret: string): boolean =>
    forwarding.originOf(new HeaderLines(['X-Proxy-Secret', secret]), peer).isForwarded;
  assert.deepEqual([presents(''), presents(SECRET)], [false, false], 'before there is any');
  await forwarding.replaceProxySecret(SECRET);
  assert.deepEqual([presents(SECRET), presents('another')], [true, false]);
  await forwarding.replaceProxySecret('another');
  assert.deepEqual([presents(SECRET), presents('another')], [false, true]);
  await forwarding.replaceProxySecret('');
  assert.deepEqual([presents(''), presents('another')], [false, false]);
  const { fingerprint } = forwarding.originOf(new HeaderLines(['X-SSL-Client-SHA1', FINGERPRINT]), peer);
  assert.equal(fingerprint, FINGERPRINT);
});

test('replaceProxySecret: before it, nobody is believed, and no certificate in a header is anybody', async () => {
  const { cert } = await serverPair();
  const certificate = Buffer.from(cert.replaceAll(/-----.*-----|\n/g, ''), 'base64');
  const settings = testConfig({ proxySecret: SECRET, identityHeader: 'client-cert' });
  const forwarding = new Forwarding(settings, randomBytes);
  const lines = ['X-Proxy-Secret', SECRET, 'Client-Cert', `:${certificate.toString('base64')}:`];
  const seen = () => forwarding.originOf(new HeaderLines(lines), { address: PROXY, isTrusted: true, tls: undefined });
  const { isForwarded, fingerprint, certificate: believed } = seen();
  assert.deepEqual([isForwarded, fingerprint, believed], [false, null, undefined]);
  await forwarding.replaceProxySecret(SECRET);
  assert.equal(seen().fingerprint, fingerprintSha1(certificate));
});

interface Sent {
  readonly host?: string | undefined;
  readonly scheme?: 'http' | 'https';
  readonly config?: Partial<Config>;
}

function publicUrlOf(lines: readonly string[], isForwarded: boolean, sent: Sent = {}): string {
  const { host, scheme = 'http', config } = sent;
  const socket = { localAddress: '127.0.0.1', localPort: 8080 } as Socket;
  const tls = scheme === 'https' ? { fingerprint: null } : undefined;
  const rawHeaders = [...lines, ...(host === undefined ? [] : ['Host', host])];
  const req = { method: 'GET', url: '/', httpVersion: '1.1', rawHeaders, socket } as IncomingMessage;
  const origin: Origin = { clientAddress: PROXY, isForwarded, fingerprint: null };
  const parts = { config: testConfig(config), clock: movableClock(), newUuid: String, trust: { originOf: () => origin } };
  const connection = new Connection(socket, { address: PROXY, isTrusted: true, tls });
  return new Request(parts as unknown as RequestParts, connection, req, { req } as ServerResponse).publicUrl;
}

function publicUrl(lines: readonly string[], isForwarded: boolean, host?: string, config?: Partial<Config>): string {
  return publicUrlOf(lines, isForwarded, { host, config: config ?? {} });
}

test('publicUrl: over TLS it says https, unless a believed proxy says http', () => {
  const over = { host: 'paste.test', scheme: 'https' } as const;
  assert.equal(publicUrlOf([], false, over), 'https://paste.test');
  assert.equal(publicUrlOf([], false, { scheme: 'https' }), 'https://127.0.0.1:8080');
  for (const [proto, scheme] of [['http', 'http'], ['HTTPS', 'https'], ['javascript', 'https'], ['', 'https']]) {
    assert.equal(publicUrlOf(['X-Forwarded-Proto', proto ?? ''], true, over), `${scheme}://paste.test`);
    assert.equal(publicUrlOf(['X-Forwarded-Proto', proto ?? ''], false, over), 'https://paste.test');
  }
});

test('publicUrl: forwarded scheme and host when believed, Host otherwise', () => {
  const lines = ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'pastes.example'];
  assert.equal(publicUrl(lines, true, 'paste.test'), 'https://pastes.example');
  assert.equal(publicUrl(lines, false, 'paste.test'), 'http://paste.test');
  assert.equal(publicUrl([], true, 'paste.test:81', { urlPrefix: '/p/q' }), 'http://paste.test:81/p/q');
  const appended = ['X-Forwarded-Host', 'evil.test, pastes.example', 'X-Forwarded-Proto', 'http, HTTPS'];
  assert.equal(publicUrl(appended, true, 'a'), 'https://pastes.example');
});

test('publicUrl: what is not well-formed is passed over', () => {
  assert.equal(publicUrl(['X-Forwarded-Host', "x';id;'"], true, 'paste.test'), 'http://paste.test');
  assert.equal(publicUrl(['X-Forwarded-Host', ''], true, '<script>'), 'http://127.0.0.1:8080');
  assert.equal(publicUrl(['X-Forwarded-Proto', 'javascript'], true, 'paste.test'), 'http://paste.test');
  assert.equal(publicUrl([], false, undefined), 'http://127.0.0.1:8080');
});
