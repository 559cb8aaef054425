// Which client a request counts for, over real sockets: forwarded headers, who may send them, and attempts to be
// counted as somebody else. Only the rate headers show whom a request counted for.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import { from, post } from '../support/posting.ts';
import { head, onlyAnswer, openRaw, type RawConnection } from '../support/raw-http.ts';

const FINGERPRINT = '0123456789abcdef0123456789abcdef01234567';
const LIMIT = 10_000;

/** What a request for a paste of one byte begins with. */
const CREATE = ['POST / HTTP/1.1', 'Content-Length: 1'] as const;

/** Creates a paste with exactly these header lines; gives how many creations of its client are counted by then. */
async function countWith(t: TestContext, app: RunningApp, ...lines: readonly string[]): Promise<number> {
  const answer = await onlyAnswer(t, app.port, `${head(...CREATE, 'Connection: close', ...lines)}x`);
  assert.equal(answer.status, 201);
  return LIMIT - Number(answer.header('x-ratelimit-remaining'));
}

/** Fails unless a request with these header lines counts as one with `expected` in their place, and as nothing else. */
async function assertCountedAs(
  t: TestContext,
  app: RunningApp,
  lines: readonly string[],
  expected: readonly string[],
): Promise<void> {
  const before = await countWith(t, app, ...expected);
  const counted = await countWith(t, app, ...lines);
  const [sent, same] = [lines, expected].map((shown) => shown.join(' | ').slice(0, 100));
  assert.equal(counted, before + 1, `${sent} counts as ${same || 'the peer'}`);
}

function forwardedFor(...values: readonly string[]): readonly string[] {
  return values.map((value) => `X-Forwarded-For: ${value}`);
}

test('POST / behind trusted proxies', async (t) => {
  const trustedProxies = ['127.0.0.0/8', '10.0.0.0/8', '2001:db8:ffff::/48'];
  const app = await startApp(t, { rateMax: LIMIT, trustedProxies });

  await t.test('POST /: X-Forwarded-For is walked from the right to the first that is no trusted proxy', async () => {
    const client = '203.0.113.9';
    const cases = [
      [[client], client],
      [[`198.51.100.1, ${client}`], client],
      [[`198.51.100.1,198.51.100.2,\t${client} `], client],
      [[`198.51.100.1, ${client}, 10.0.0.1`], client],
      [[`${client}, 10.0.0.1, 127.0.0.1, 2001:db8:ffff::1, ::ffff:10.9.9.9`], client],
      [[client, '10.0.0.1'], client],
      [['198.51.100.1', client], client],
      [['198.51.100.1, 10.0.0.1', `${client}, 10.0.0.2`, '10.0.0.3'], client],
      [[`garbage, ${client}`], client],
      [[`${client}:80, ${client}`], client],
      [[`${Array.from({ length: 1000 }, () => client).join(',')}, 10.0.0.1`], client],
      [['10.0.0.1, 10.0.0.2'], '10.0.0.1'],
      [['127.0.0.1'], '127.0.0.1'],
      [[`::ffff:${client}`], client],
      [['::FFFF:cb00:7109'], client],
      [['0:0:0:0:0:ffff:203.0.113.9'], client],
    ] as const;
    for (const [values, expected] of cases) {
      await assertCountedAs(t, app, forwardedFor(...values), forwardedFor(expected));
    }
  });

  await t.test('POST /: what is no address in X-Forwarded-For means the peer itself', async () => {
    const garbage = [
      '', ',', ' , ', 'unknown', '_hidden', '203.0.113.9:80', '[2001:db8::1]', '[2001:db8::1]:80',
      '203.0.113.9, garbage', '203.0.113.9,', '203.0.113', '203.0.113.9.1', '203.0.113.256', '203.0.113.09',
      '0xcb.0.0x71.9', '3405803785',
      '203.0.113.9/32', '2001:db8::1::2', '2001:db8::g', '"203.0.113.9"', 'for=203.0.113.9', '203.0.113.9 203.0.113.8',
      '2\xb3.0.113.9', 'a'.repeat(8000), ','.repeat(8000),
    ];
    for (const value of garbage) await assertCountedAs(t, app, forwardedFor(value), []);
    await assertCountedAs(t, app, forwardedFor('203.0.113.9', 'garbage'), []);
    // Other headers that are in use for this count for nothing.
    for (const name of ['Forwarded', 'X-Real-IP', 'X-Client-IP', 'CF-Connecting-IP', 'True-Client-IP', 'X-Forwarded']) {
      await assertCountedAs(t, app, [`${name}: 203.0.113.9`], []);
    }
  });

  await t.test('POST /: IPv6 clients are counted by their /64, in any spelling', async () => {
    const client = forwardedFor('2001:db8:1:2::1');
    const sameClient = [
      '2001:db8:1:2::2', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:DB8:1:2:0:0:0:0', '2001:0db8:0001:0002::',
      '2001:db8:1:2::192.0.2.1', '2001:db8:1:2::1%eth0',
    ];
    for (const same of sameClient) await assertCountedAs(t, app, forwardedFor(same), client);
    for (const other of ['2001:db8:1:3::1', '2001:db8:1:1:ffff:ffff:ffff:ffff', '2001:db8::1', '::1:2:0:0:0:1']) {
      assert.equal(await countWith(t, app, ...forwardedFor(other)), 1, other);
    }
  });
});

test('POST / and GET /{id}: limits hold for all addresses of a client together, whatever it shows', async (t) => {
  const app = await startApp(t, { rateMax: 3, lookupRateMax: 1 });
  const statuses = [];
  for (const host of ['1', '2', '3', 'ffff:4', 'a:b:c:5']) {
    statuses.push((await post(app, 'x', from(`2001:db8::${host}`))).status);
  }
  assert.deepEqual(statuses, [201, 201, 201, 429, 429]);
  assert.equal((await post(app, 'x', from('2001:db8:0:1::1'))).status, 201);

  const asOthers = [];
  for (const last of ['0', '1', '2', '3']) {
    asOthers.push((await post(app, 'x', { 'X-SSL-Client-SHA1': FINGERPRINT.slice(0, -1) + last })).status);
  }
  assert.deepEqual(asOthers, [201, 201, 201, 429], 'another fingerprint is no other client');

  const id = await app.store('x', from('192.0.2.1'));
  const looked = [];
  const lookingFrom = ['2001:db8::1', '2001:db8::2', '198.51.100.1, 2001:db8::3', '203.0.113.9', '::ffff:203.0.113.9'];
  for (const address of lookingFrom) {
    looked.push((await app.request(`/${id}`, { headers: from(address) })).status);
  }
  assert.deepEqual(looked, [200, 429, 429, 200, 429]);
});

test('POST /: forwarded headers of an untrusted peer change nothing', async (t) => {
  const app = await startApp(t, { rateMax: 3, trustedProxies: [] });
  const spoofed = ['198.51.100.1', '198.51.100.2, 127.0.0.1', '127.0.0.1', '::1', '2001:db8::1', 'garbage'];
  const statuses = [];
  for (const address of spoofed) statuses.push((await post(app, 'x', from(address))).status);
  assert.deepEqual(statuses, [201, 201, 201, 429, 429, 429]);
});

test('POST /: only the peer itself makes forwarded headers believed, by address or by block', async (t) => {
  const app = await startApp(t, { rateMax: 3, trustedProxies: ['127.0.0.2', '127.0.1.0/24'] });
  const createFrom = async (localAddress: string, ...lines: readonly string[]): Promise<number> => {
    const connection = await openRaw(t, app.port, { localAddress });
    connection.send(`${head(...CREATE, ...lines)}x`);
    return Number((await connection.next()).header('x-ratelimit-remaining'));
  };
  const claimed = forwardedFor('203.0.113.9');
  assert.equal(await createFrom('127.0.0.2', ...claimed), 2);
  assert.equal(await createFrom('127.0.1.255', ...claimed), 1);
  for (const untrusted of ['127.0.0.1', '127.0.0.3', '127.0.2.0']) {
    assert.equal(await createFrom(untrusted, ...claimed), 2, `${untrusted} is counted as itself`);
    const behindProxy = await createFrom('127.0.0.2', ...forwardedFor(untrusted));
    assert.equal(behindProxy, 1, `${untrusted} is the same behind a proxy`);
  }
  assert.equal(await createFrom('127.0.0.2', ...claimed), 0);
});

test('POST /: with a proxy secret only what shows it exactly is believed, wherever it comes from', async (t) => {
  // Header values are bytes: what is not ASCII is sent as UTF-8.
  const words = 'correct h\u00f6rse';
  const secret = Buffer.from(words).toString('latin1');
  const claims = [...forwardedFor('203.0.113.9'), `X-SSL-Client-SHA1: ${FINGERPRINT}`];
  const owner = async (app: RunningApp, ...lines: readonly string[]): Promise<[unknown, number]> => {
    const answer = await onlyAnswer(t, app.port, `${head(...CREATE, 'Connection: close', ...claims, ...lines)}x`);
    return [answer.json()['owner'], LIMIT - Number(answer.header('x-ratelimit-remaining'))];
  };
  for (const trustedProxies of [['127.0.0.0/8'], []]) {
    const app = await startApp(t, { rateMax: LIMIT, proxySecret: words, trustedProxies });
    const wrong = [
      [], [''], [secret.slice(1)], [secret.slice(0, -1)], ['correct h\xf6rse'], [`${secret}x`], [secret.toUpperCase()],
      [`"${secret}"`], [secret, secret], [secret, 'x'], ['x', secret], [`${secret},${secret}`],
      ['x'.repeat(secret.length)], ['x'.repeat(8000)],
    ];
    for (const [turn, values] of wrong.entries()) {
      const lines = values.map((value) => `X-Proxy-Secret: ${value}`);
      assert.deepEqual(await owner(app, ...lines), [undefined, turn + 1], lines.join(' | ').slice(0, 100));
    }
    assert.deepEqual(await owner(app, `X-Proxy-Secret: ${secret}`), [FINGERPRINT.slice(0, 12), 1]);
    assert.deepEqual(await owner(app, `x-proxy-secret:${secret}  `), [FINGERPRINT.slice(0, 12), 2]);
    for (const text of [secret, words]) assert.equal(JSON.stringify(app.logged).includes(text), false);
  }
});


for (const [proxy, trustedProxies] of [['trusted', ['127.0.0.0/8']], ['elsewhere', ['192.0.2.9']]] as const) {
  test(`connections: behind a proxy that is ${proxy} they count for whose request came last`, async (t) => {
    const settings = { maxConnectionsPerClient: 2, trustedProxies, proxySecret: 'of the proxy', shutdownGraceSeconds: 0 };
    const { port } = await startApp(t, settings);
    const open = () => openRaw(t, port, { localAddress: '127.0.0.2' });
    const ask = async (connection: RawConnection, client: string, first = 'GET /client HTTP/1.1', ...lines: string[]) => {
      const by = ['X-Proxy-Secret: of the proxy', `X-Forwarded-For: ${client}`];
      connection.send(head(first, ...lines, ...by));
      return (await connection.next()).status;
    };
    // A proxy uses a connection that it keeps for one client after another.
    const first = await open();
    for (let client = 1; client < 5; client += 1) assert.equal(await ask(first, `203.0.113.${client}`), 200);
    assert.equal(await ask(first, '203.0.113.1'), 200);
    const second = await open();
    assert.equal(await ask(second, '203.0.113.1'), 200);
    // A client may never take its answer: the proxy then keeps the connection for it, though it looks idle here.
    const third = await open();
    const isCutOff = new Promise((resolve) => first.socket.once('close', resolve));
    assert.equal(await ask(third, '203.0.113.1'), 200);
    await isCutOff;

    const begun = ['POST / HTTP/1.1', 'Content-Length: 10', 'Expect: 100-continue'] as const;
    assert.equal(await ask(second, '203.0.113.1', ...begun), 100);
    assert.equal(await ask(third, '203.0.113.1', ...begun), 100);
    const fourth = await open();
    assert.equal(await ask(fourth, '203.0.113.1'), 503, 'with two that are busy');
    assert.equal(await fourth.rest(), '');
    assert.equal(await ask(await open(), '203.0.113.2'), 200, 'others are served');
    second.socket.destroy();
    for (let status = 0; status !== 200; ) status = await ask(await open(), '203.0.113.1');
  });
}
