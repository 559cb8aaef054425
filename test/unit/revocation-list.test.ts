// service/revocation-list.ts where moments decide: what is revoked while a list is being made. What the list says, and
// when it is made anew, is test/api/revocation.test.ts.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Authorities } from '../../src/service/authority.ts';
import { createRevocationList, type RevocationList } from '../../src/service/revocation-list.ts';
import type { AuthorityStore, CertificateStore, StoredCrl } from '../../src/store/pki-store.ts';
import { makeTestAuthority, type TestAuthority } from '../support/authority.ts';
import { movableClock, type MovableClock } from '../support/clock.ts';

const SERIALS = ['41'.repeat(16), '42'.repeat(16)] as const;

let authority: TestAuthority;

before(async () => {
  authority = await makeTestAuthority();
});

interface Shelf {
  readonly list: RevocationList;
  revoke(serial: string): void;
  /** What is kept, as another process sees and replaces it. */
  kept: StoredCrl | undefined;
  readonly clock: MovableClock;
}

/** With storage in memory; `keeping` runs before a list is kept, and `revocationReason` is of every certificate. */
function createShelf(keeping: () => Promise<void> = async () => {}, revocationReason: string | null = null): Shelf {
  const revoked: string[] = [];
  const clock = movableClock();
  const shelf = { kept: undefined as StoredCrl | undefined, revoke: (serial: string) => revoked.push(serial), clock };
  const store: Pick<AuthorityStore, 'findCrl' | 'keepCrl' | 'revokedCount'> = {
    findCrl: async () => shelf.kept,
    revokedCount: async () => revoked.length,
    keepCrl: async (crl) => {
      await keeping();
      if (crl.number <= (shelf.kept?.number ?? 0)) return false;
      shelf.kept = crl;
      return true;
    },
  };
  const revokedAt = clock.unixMs() / 1000;
  const list = createRevocationList({
    authorities: { signing: async () => ({ ...authority, stored: undefined }) } as unknown as Authorities,
    store: store as AuthorityStore,
    certificates: {
      listRevoked: async () => revoked.map((serial) => ({ serial, revokedAt, revocationReason })),
    } as unknown as CertificateStore,
    clock,
  });
  return Object.assign(shelf, { list });
}

const HALF_LIFE_MS = 3.5 * 86_400_000;

function names(list: Uint8Array, serial: string): boolean {
  return Buffer.from(list).includes(Buffer.from(serial, 'hex'));
}

test('current: whoever asks after a revocation gets a list with it, also while another is being made', async () => {
  const isKeeping = Promise.withResolvers<void>();
  const mayKeep = Promise.withResolvers<void>();
  const shelf = createShelf(() => {
    isKeeping.resolve();
    return mayKeep.promise;
  });
  const early = shelf.list.current();
  await isKeeping.promise;
  shelf.revoke(SERIALS[0]);
  const late = [shelf.list.current(), shelf.list.current()];
  mayKeep.resolve();
  assert.equal(names(await early, SERIALS[0]), false);
  for (const list of await Promise.all(late)) assert.equal(names(list, SERIALS[0]), true);
  assert.equal(shelf.kept?.number, 2, 'those who ask together share one');
});

test('current: a list of a number that another process has used meanwhile is not given out', async () => {
  let isFirst = true;
  const shelf = createShelf(async () => {
    if (!isFirst) return;
    isFirst = false;
    shelf.kept = { number: 1, der: new Uint8Array(), thisUpdate: 0, revokedCount: 0 };
  });
  shelf.revoke(SERIALS[1]);
  assert.equal(names(await shelf.list.current(), SERIALS[1]), true);
  assert.equal(shelf.kept?.number, 2);
});

test('current: a failure is told to those who waited for it, and the next request tries again', async () => {
  let failures = 1;
  const shelf = createShelf(async () => {
    if (failures-- > 0) throw new Error('storage');
  });
  await assert.rejects(shelf.list.current(), /storage/);
  await shelf.list.current();
  assert.equal(shelf.kept?.number, 1);
});

test('current: one list serves until half its life is over, or the clock is set back before it', async () => {
  const moments = [[0, false], [HALF_LIFE_MS - 1000, false], [HALF_LIFE_MS, true], [-1000, true]] as const;
  for (const [ms, isMadeAnew] of moments) {
    const shelf = createShelf();
    const first = await shelf.list.current();
    shelf.clock.jump(ms);
    assert.equal((await shelf.list.current()) !== first, isMadeAnew, `${ms} ms`);
    assert.equal(shelf.kept?.number, isMadeAnew ? 2 : 1);
  }
});

test('current: made anew for each revocation since, and for no other reason', async () => {
  const shelf = createShelf();
  for (const [index, serial] of SERIALS.entries()) {
    shelf.revoke(serial);
    for (let times = 0; times < 2; times += 1) assert.equal(names(await shelf.list.current(), serial), true);
    assert.equal(shelf.kept?.number, index + 1);
  }
});

test('current: of those that ask at once, one makes the list', async () => {
  let keepings = 0;
  const shelf = createShelf(async () => void (keepings += 1));
  const [one, other] = await Promise.all([shelf.list.current(), shelf.list.current()]);
  assert.equal(one, other);
  assert.equal(keepings, 1);
});

test('current: names the reasons that it knows', async () => {
  // CRLReason ::= ENUMERATED, in an extension under 2.5.29.21 (RFC 5280 section 5.3.1).
  const superseded = Buffer.from('0603551d1504030a0104', 'hex');
  const reasonCode = superseded.subarray(0, 5);
  for (const [reason, isNamed] of [['superseded', true], ['none of ours', false], [null, false]] as const) {
    const shelf = createShelf(undefined, reason);
    shelf.revoke(SERIALS[0]);
    const list = Buffer.from(await shelf.list.current());
    assert.deepEqual([list.includes(reasonCode), list.includes(superseded)], [isNamed, isNamed]);
  }
});
