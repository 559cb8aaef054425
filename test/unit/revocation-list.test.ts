// authority/revocation-list.ts where timing decides: what is revoked while a list is being made. What a list says, and
// when a new one is made: test/api/revocation.test.ts.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Authorities } from '../../src/authority/authority.ts';
import { RevocationList } from '../../src/authority/revocation-list.ts';
import { Refusal } from '../../src/core/refusals.ts';
import type { StoredCrl } from '../../src/store/store.ts';
import { makeTestAuthority, type TestAuthority } from '../support/authority.ts';
import { type MovableClock, movableClock } from '../support/clock.ts';
import { fakeStore } from '../support/store.ts';

const SERIALS = ['41'.repeat(16), '42'.repeat(16)] as const;

let authority: TestAuthority;

before(async () => {
  authority = await makeTestAuthority();
});

interface Shelf {
  readonly list: RevocationList;
  revoke(serial: string, expiresAt?: number): void;
  /** The list that is kept. A test reads and replaces it as another process would. */
  kept: StoredCrl | undefined;
  readonly clock: MovableClock;
}

/** Storage in memory. `keeping` and `signing` run before a list is kept or signed; each revocation has `revocationReason`. */
function createShelf(
  keeping: () => Promise<void> = async () => {},
  revocationReason: string | null = null,
  signing: () => void = () => {},
): Shelf {
  const revoked: { serial: string; revokedAt: number; expiresAt: number; revocationReason: string | null }[] = [];
  const clock = movableClock();
  const nowSeconds = (): number => clock.unixMs() / 1000;
  const shelf = {
    kept: undefined as StoredCrl | undefined,
    revoke: (serial: string, expiresAt = Infinity) => {
      revoked.push({ serial, revokedAt: nowSeconds(), expiresAt, revocationReason });
    },
    clock,
  };
  const read = {
    findCrl: async () => shelf.kept,
    revokedCount: async () => revoked.length,
    listRevokedCertificates: async () => revoked,
  };
  const store = fakeStore(read, {
    keepCrl: async (crl: StoredCrl) => {
      await keeping();
      if (crl.number <= (shelf.kept?.number ?? 0)) return false;
      shelf.kept = crl;
      return true;
    },
  });
  const list = new RevocationList({
    authorities: {
      signing: async () => {
        signing();
        return authority;
      },
    } as unknown as Authorities,
    store,
    clock,
  });
  return Object.assign(shelf, { list });
}

/** A list begins five minutes before it is made. */
const BACKDATE_MS = 300_000;
const HALF_LIFE_MS = 3.5 * 86_400_000 - BACKDATE_MS;
const START = 1_769_860_800;

function names({ der }: StoredCrl, serial: string): boolean {
  return Buffer.from(der).includes(Buffer.from(serial, 'hex'));
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
  assert.equal(shelf.kept?.number, START + 1, 'those who ask together share one');
});

test('current: a list of a number that another process has used meanwhile is not given out', async () => {
  let isFirst = true;
  const shelf = createShelf(async () => {
    if (!isFirst) return;
    isFirst = false;
    shelf.kept = { number: START, der: new Uint8Array(), thisUpdate: 0, revokedCount: 0 };
  });
  shelf.revoke(SERIALS[1]);
  assert.equal(names(await shelf.list.current(), SERIALS[1]), true);
  assert.equal(shelf.kept?.number, START + 1);
});

test('current: a failure is told to those who waited for it, and the next request tries again', async () => {
  let failures = 1;
  const shelf = createShelf(async () => {
    if (failures-- > 0) throw new Error('storage');
  });
  await assert.rejects(shelf.list.current(), /storage/);
  await shelf.list.current();
  assert.equal(shelf.kept?.number, START);
});

test('current: one list serves until half its life is over, or the clock is set back before it', async () => {
  const moments = [[0, false], [HALF_LIFE_MS - 1000, false], [HALF_LIFE_MS, true], [-BACKDATE_MS, false], [-BACKDATE_MS - 1000, true]] as const;
  for (const [ms, isMadeAnew] of moments) {
    const shelf = createShelf();
    const first = await shelf.list.current();
    shelf.clock.jump(ms);
    assert.equal((await shelf.list.current()) !== first, isMadeAnew, `${ms} ms`);
    assert.equal(shelf.kept?.number, isMadeAnew ? Math.max(START + 1, START + ms / 1000) : START, 'by the clock, and larger');
  }
});

test('current: made anew for each revocation since, and for no other reason', async () => {
  const shelf = createShelf();
  for (const [index, serial] of SERIALS.entries()) {
    shelf.revoke(serial);
    for (let times = 0; times < 2; times += 1) assert.equal(names(await shelf.list.current(), serial), true);
    assert.equal(shelf.kept?.number, START + index);
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
    const list = Buffer.from((await shelf.list.current()).der);
    assert.deepEqual([list.includes(reasonCode), list.includes(superseded)], [isNamed, isNamed]);
  }
});

test('current: an entry stays until it was on a list that began after its certificate\'s end', async () => {
  const shelf = createShelf();
  const end = START + 1000;
  shelf.revoke(SERIALS[0], end);
  const makeAt = async (seconds: number): Promise<boolean> => {
    shelf.clock.jump(1000 * seconds - shelf.clock.unixMs());
    // A revocation makes a list out of date at once.
    shelf.revoke(SERIALS[1]);
    return names(await shelf.list.current(), SERIALS[0]);
  };
  assert.equal(await makeAt(START), true);
  assert.equal(await makeAt(end + 1), true, 'after its end');
  assert.equal(await makeAt(end + 300), true, 'begins at its end');
  assert.equal(await makeAt(end + 301), true, 'begins after its end: the one more');
  assert.equal(await makeAt(end + 302), false);
  assert.equal(await makeAt(end + 303), false);
  assert.equal(await makeAt(START), true, 'the clock was ahead: it has not ended');
});

test('current: the first list names whoever was revoked, however long ago the certificate ended', async () => {
  const shelf = createShelf();
  shelf.revoke(SERIALS[0], START + 1000);
  shelf.clock.advance(1_000_000_000);
  assert.equal(names(await shelf.list.current(), SERIALS[0]), true);
});

test('current: what was revoked after its end is on a list, too', async () => {
  const shelf = createShelf();
  await shelf.list.current();
  shelf.clock.advance(1_000_000);
  await shelf.list.current();
  shelf.revoke(SERIALS[0], START);
  assert.equal(names(await shelf.list.current(), SERIALS[0]), true);
});

test('current: where none can be signed, one that names all revoked is good to its end; a new one is due at half of it', async () => {
  let isSigning = true;
  const shelf = createShelf(undefined, null, () => {
    if (!isSigning) throw new Refusal('authorityPasswordMissing');
  });
  const list = await shelf.list.current();
  isSigning = false;
  shelf.clock.advance(HALF_LIFE_MS);
  assert.equal(await shelf.list.current(), list);
  shelf.clock.advance(HALF_LIFE_MS + BACKDATE_MS - 1000);
  assert.equal(await shelf.list.current(), list);
  shelf.clock.advance(1000);
  await assert.rejects(shelf.list.current(), { refusal: 'authorityPasswordMissing' });
  isSigning = true;
  assert.notEqual(await shelf.list.current(), list);
  isSigning = false;
  shelf.revoke(SERIALS[0]);
  await assert.rejects(shelf.list.current(), { refusal: 'authorityPasswordMissing' }, 'it would not name a revoked one');
});
