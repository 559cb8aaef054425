// The status of every refusal, written out: a number that changes by mistake is noticed here, beside what the answers'
// own tests say. That the manual page has the same table: test/conformance/release.test.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import { REFUSALS, Refusal, type RefusalName } from '../../src/core/refusals.ts';
import { refusalReply } from '../../src/http/engine/reply.ts';

const BY_STATUS: Readonly<Record<number, readonly RefusalName[]>> = {
  400: [
    'noContent', 'jsonInvalid', 'passwordTooLong', 'pasteTooSmall', 'entropyTooLow', 'textRefused',
    'burnNotUpdatable', 'nothingToUpdate', 'expiryInvalid', 'queryInvalid', 'bodyInvalid', 'commonNameRequired',
    'commonNameInvalid', 'csrInvalid', 'keyReused', 'reasonInvalid', 'bundleProfileInvalid',
    'bundlePasswordInvalid', 'powRequired', 'powMalformedToken', 'powBadSignature', 'powExpired',
    'powMalformedSolution', 'powInsufficient', 'powAlreadyUsed', 'idInvalid', 'formInvalid', 'requestMalformed',
    'bodyFragmented', 'headerRepeated', 'hostInvalid', 'targetInvalid',
  ],
  401: ['identityRequired', 'passwordRequired'],
  403: [
    'contentRefused', 'permissionDenied', 'adminRequired', 'registrationClosed', 'invitationRequired', 'passwordInvalid',
    'crossSite',
  ],
  404: ['pkiDisabled', 'authorityMissing', 'certificateNotFound', 'pasteNotFound', 'notFound'],
  405: ['methodNotAllowed'],
  408: ['requestTimeout'],
  409: ['authorityExists', 'certificateRevoked'],
  412: ['preconditionFailed'],
  413: ['pasteTooLarge', 'bodyTooLarge'],
  415: ['contentEncodingUnsupported'],
  416: ['rangeNotSatisfiable'],
  417: ['expectationFailed'],
  429: ['duplicateContent', 'rateLimited', 'lookupRateLimited'],
  431: ['headersTooLarge'],
  500: ['authorityPasswordMissing', 'issuanceFailed', 'internal'],
  501: ['transferEncodingUnsupported'],
  503: ['passwordQueueFull', 'connectionsExhausted', 'storeUnavailable'],
  507: ['storageFull'],
};

test('REFUSALS: each has the status that was decided', () => {
  const found: Record<number, string[]> = {};
  for (const [name, { status }] of Object.entries(REFUSALS)) (found[status] ??= []).push(name);
  assert.deepEqual(found, BY_STATUS);
});

test('Refusal: has the words of its name, and its answer their status', () => {
  const refusal = new Refusal('pasteTooLarge', { size: 1 }, { retryAfterSeconds: 2 });
  assert.deepEqual([refusal.message, refusal.name], [REFUSALS.pasteTooLarge.error, 'Refusal']);
  assert.equal(refusalReply(refusal).status, 413);
  assert.deepEqual([refusal.fields, refusal.terms], [{ size: 1 }, { retryAfterSeconds: 2 }]);
  assert.deepEqual([new Refusal('noContent').fields, new Refusal('noContent').terms], [{}, {}]);
});
