// authority/open.ts: the authority that somebody else makes or renews is noticed, by a look each second until it is
// closed. That its code is not loaded before it is needed: test/conformance/budgets.test.ts.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { AuthorityParts } from '../../src/authority/handlers.ts';
import { LazyAuthority } from '../../src/authority/open.ts';
import type { Request } from '../../src/http/engine/request.ts';
import type { StoredAuthority } from '../../src/store/store.ts';
import { testConfig } from '../support/test-config.ts';

const AUTHORITY = { certificate: Uint8Array.of(1) } as StoredAuthority;
const RENEWED = { certificate: Uint8Array.of(2) } as StoredAuthority;
const LOOKS_EACH_MS = 1000;

/** An authority over a storage that has one answer for each look. A certificate of no bytes is damaged. */
function watching(t: TestContext, answers: readonly (() => Promise<StoredAuthority | undefined>)[], withTls = true) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const trusted: Uint8Array[] = [];
  let looks = 0;
  const find = (): Promise<StoredAuthority | undefined> => {
    const answer = answers[looks] ?? assert.fail('looked again');
    looks += 1;
    return answer();
  };
  const trust = (certificate: Uint8Array): void => {
    if (certificate.length === 0) throw new Error('bad base64 decode');
    trusted.push(certificate);
  };
  const authority = new LazyAuthority({
    config: testConfig({ pkiCaPassword: '' }),
    store: { read: { findAuthority: find } },
    tls: withTls ? { trust } : undefined,
  } as unknown as AuthorityParts);
  const second = async (): Promise<void> => {
    t.mock.timers.tick(LOOKS_EACH_MS);
    await new Promise(setImmediate);
  };
  return { authority, trusted, second, looks: () => looks };
}

test('begin: looks once a second, through failures, and again when there is one, which may be renewed', async (t) => {
  const { authority, trusted, looks } = watching(t, [
    async () => undefined,
    () => Promise.reject(new Error('disk I/O error')),
    async () => undefined,
    async () => AUTHORITY,
    async () => RENEWED,
  ]);
  await authority.begin();
  assert.equal(looks(), 1);
  for (let seconds = 1; seconds <= 4; seconds += 1) {
    t.mock.timers.tick(LOOKS_EACH_MS - 1);
    assert.equal(looks(), seconds, 'not before the second is over');
    t.mock.timers.tick(1);
    await new Promise(setImmediate);
    assert.equal(looks(), seconds + 1);
  }
  assert.deepEqual(trusted, [AUTHORITY.certificate, RENEWED.certificate]);
  await authority.close();
});

test('begin: where there is one it is trusted at once; closed, it looks no more; without TLS it never looks', async (t) => {
  const there = watching(t, [async () => AUTHORITY]);
  await there.authority.begin();
  assert.deepEqual(there.trusted, [AUTHORITY.certificate]);
  await there.authority.close();
  await there.second();
  t.mock.timers.reset();
  const missing = watching(t, [async () => undefined]);
  await missing.authority.begin();
  await missing.authority.close();
  await missing.second();
  t.mock.timers.reset();
  await watching(t, [], false).authority.begin();
});

test('begin: with a password it loads the code, so that a load that fails is no crash of a service in use', async () => {
  const parts = {
    config: testConfig({ pkiCaPassword: 'sesame' }),
    get clock() {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    },
  } as unknown as AuthorityParts;
  const authority = new LazyAuthority(parts);
  await assert.rejects(authority.begin(), /too many open files/);
  await authority.checkKey();
});

test('begin: a certificate that cannot be trusted ends neither the start nor the process', async (t) => {
  const damaged = async () => ({ certificate: new Uint8Array() }) as StoredAuthority;
  const { authority, trusted, second } = watching(t, [damaged, damaged, async () => AUTHORITY]);
  await authority.begin();
  await second();
  assert.deepEqual(trusted, []);
  await second();
  assert.deepEqual(trusted, [AUTHORITY.certificate]);
});

test('a load that fails is tried again by the next request, and does not keep anything from closing', async () => {
  let failures = 1;
  const config = testConfig({ pkiEnabled: false });
  const parts = {
    store: {},
    get config() {
      if (failures-- > 0) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
      return config;
    },
  } as unknown as AuthorityParts;
  const authority = new LazyAuthority(parts);
  const ask = async () => authority.handlers.describePki({} as Request);
  const failed = assert.rejects(ask, /too many open files/);
  await authority.close();
  await failed;
  assert.equal((await ask()).status, 200);
  await authority.close();
});

test('renewRevocationList: nothing to renew where nobody asked for a list, or where the storage fails', async () => {
  let looks = 0;
  const fail = () => {
    throw new Error('disk I/O error');
  };
  for (const findCrl of [async () => undefined, async () => fail(), fail]) {
    const parts = {
      config: testConfig({}),
      store: { read: { findCrl: (): Promise<undefined> => (looks += 1, findCrl()) } },
      get clock() {
        return assert.fail('the code of the authority is loaded');
      },
    } as unknown as AuthorityParts;
    await new LazyAuthority(parts).renewRevocationList();
  }
  assert.equal(looks, 3);
});

test('renewRevocationList: never rejects, as whoever asks for the list is told why it cannot be made', async () => {
  let looks = 0;
  const read = {
    findCrl: async () => ({ number: 1, thisUpdate: 0, revokedCount: 0, der: new Uint8Array() }),
    revokedCount: () => (looks += 1, Promise.reject(new Error('disk I/O error'))),
    findAuthority: async () => undefined,
  };
  const lazy = new LazyAuthority({ config: testConfig({}), store: { read } } as unknown as AuthorityParts);
  await lazy.renewRevocationList();
  assert.ok(looks > 0);
  await lazy.close();
});
