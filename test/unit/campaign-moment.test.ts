// The campaign's judge of a restored database: it finds what is of another moment, and how late the moment was.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry, Span } from '../campaign/load.ts';
import { createPasteModel, type Action, type Seen, type State } from '../campaign/model.ts';
import { latestMoment, spansOfCertificate, spansOfPaste } from '../campaign/moment.ts';

const BOUNDS: Span = { fromMs: 0, toMs: 10_000 };
const DONE: Seen = { kind: 'done', id: 'abcdef', version: 1 };
const UNKNOWN: Seen = { kind: 'unknown' };

/** A paste with these steps, each from its first moment to its second. */
function paste(steps: readonly (readonly [Action, number, number, Seen?])[], { burn = false } = {}) {
  const model = createPasteModel('p', { burn });
  const history = steps.map(([action, startMs, endMs, seen = DONE]): Entry => {
    const attempt = model.begin(action, startMs, 10);
    assert.equal(model.end(attempt, seen, endMs), undefined);
    return { round: 0, connection: 0, action, attempt: { ...attempt, startMs }, seen, endMs };
  });
  return { model, history };
}

/** The verdict on pastes that were found in these states together. It names a paste that contradicts two others. */
function judged(...found: readonly (readonly [ReturnType<typeof paste>, State])[]) {
  const spans = new Map(found.map(([known, state], index) => [index, spansOfPaste(known, state)]));
  return latestMoment(spans, BOUNDS);
}

test('moment: of what is all there it is the last one', () => {
  const updated = paste([['create', 10, 20], ['update', 30, 40]]);
  assert.deepEqual(judged([updated, 2]), { atMs: 10_000, others: [] });
  const burned = paste([['create', 10, 20], ['read', 30, 40]], { burn: true });
  assert.deepEqual(judged([updated, 2], [burned, 'gone']), { atMs: 10_000, others: [] });
});

test('moment: what is missing was not answered yet, to the millisecond', () => {
  assert.equal(judged([paste([['create', 10, 20]]), 'gone']).atMs, 21);
  assert.equal(judged([paste([['create', 10, 20], ['update', 30, 40]]), 1]).atMs, 41);
  assert.equal(judged([paste([['create', 10, 20], ['delete', 30, 40]]), 1]).atMs, 41);
  assert.equal(judged([paste([['create', 10, 20], ['read', 30, 40]], { burn: true }), 1]).atMs, 41);
  // This paste was only read.
  assert.equal(judged([paste([['create', 10, 20], ['read', 30, 40]]), 1]).atMs, 10_000);
});

test('moment: what was answered before another was asked for is not missing beside it', () => {
  const [early, late] = [paste([['create', 10, 20]]), paste([['create', 30, 40]])];
  assert.deepEqual(judged([early, 1], [late, 'gone']), { atMs: 41, others: [] });
  assert.deepEqual(judged([early, 'gone'], [late, 1], [late, 1]), { atMs: 10_000, others: [0] });
  const meanwhile = paste([['create', 15, 35]]);
  assert.deepEqual(judged([meanwhile, 'gone'], [late, 1]), { atMs: 36, others: [] });
});

test('moment: without an answer it may have happened at any time since, or not', () => {
  const deleted = paste([['create', 10, 20], ['delete', 30, 40, UNKNOWN]]);
  assert.deepEqual(judged([deleted, 1]), { atMs: 10_000, others: [] });
  assert.deepEqual(judged([deleted, 'gone']), { atMs: 10_000, others: [] });
  const [beside, missing] = [paste([['create', 22, 24]]), paste([['create', 25, 27]])];
  assert.deepEqual(judged([deleted, 'gone'], [beside, 1], [missing, 'gone'], [missing, 'gone']).others, [0]);
});

test('moment: an expired paste may be there still, and may be gone, but not before', () => {
  const expiring = paste([['create', 10, 20, { ...DONE, expiresAt: 5 }]]);
  assert.equal(judged([expiring, 1]).atMs, 10_000);
  assert.equal(judged([expiring, 'gone']).atMs, 10_000);
  const [beside, missing] = [paste([['create', 3000, 3010]]), paste([['create', 4000, 4010]])];
  assert.deepEqual(judged([expiring, 'gone'], [beside, 1], [missing, 'gone'], [missing, 'gone']).others, [0]);
});

test('moment: since a restore counts what was asked since, from the state that was restored', () => {
  const known = paste([['create', 10, 20], ['delete', 30, 40]]);
  const wentBack = { state: 1, entries: 2 };
  assert.deepEqual(spansOfPaste(known, 1, wentBack), [{ fromMs: -Infinity, toMs: Infinity }]);
  const bounds = { fromMs: 50, toMs: 10_000 };
  assert.deepEqual(latestMoment(new Map([[0, spansOfPaste(known, 'gone', wentBack)]]), bounds).others, [0]);
  // This was the state before the restore, and at no moment since.
  assert.deepEqual(latestMoment(new Map([[0, spansOfPaste(known, 1)]]), bounds).others, [0]);
});

test('moment: a certificate that is not there, and one that is no longer revoked', () => {
  const issued = { fromMs: 10, toMs: 20 };
  const revoked = { issued, revoked: { fromMs: 30, toMs: 40 } };
  const atMs = (spans: readonly Span[]): number => latestMoment(new Map([[0, spans]]), BOUNDS).atMs;
  assert.equal(atMs(spansOfCertificate({ issued }, undefined)), 21);
  assert.equal(atMs(spansOfCertificate(revoked, { isRevoked: false })), 41);
  assert.equal(atMs(spansOfCertificate(revoked, { isRevoked: true })), 10_000);
  assert.deepEqual(spansOfCertificate({ issued }, { isRevoked: true }), []);
});
