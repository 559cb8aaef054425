// Which refusals a route can give, for the description of the API. Not consulted when requests are answered: a test
// compares it with the tables of routes and refusals, and with real answers.

import type { RefusalName } from '../../src/core/refusals.ts';
import type { RouteName } from '../../src/http/routes.ts';

/** Any request that reaches a route may get these, whatever it asks for. */
export const GENERAL_REFUSALS = [
  'requestMalformed', 'hostInvalid', 'headerRepeated', 'requestTimeout', 'expectationFailed', 'headersTooLarge',
  'transferEncodingUnsupported', 'internal', 'connectionsExhausted',
] as const satisfies readonly RefusalName[];

/** Only requests that reach no route get these, so they belong to no operation. */
export const ROUTELESS_REFUSALS = ['targetInvalid'] as const satisfies readonly RefusalName[];

/** Wherever the caller's identity matters, since the use of a revoked or expired certificate is written down. */
const CALLER = ['storeUnavailable', 'storageFull'] as const;

const PAGE = ['identityRequired', 'adminRequired', 'queryInvalid'] as const;

const WORK = [
  'powRequired', 'powMalformedToken', 'powBadSignature', 'powExpired', 'powMalformedSolution', 'powInsufficient',
  'powAlreadyUsed',
] as const;

const CONTENT = [
  'crossSite', 'contentRefused', 'contentEncodingUnsupported', 'pasteTooLarge', 'rateLimited', 'noContent',
  'jsonInvalid', 'bodyFragmented', 'passwordTooLong', 'pasteTooSmall', 'textRefused', 'entropyTooLow',
  'duplicateContent', 'passwordQueueFull',
  ...CALLER,
] as const;

const LOOKUP = [
  'idInvalid', 'lookupRateLimited', 'passwordTooLong', 'pasteNotFound', 'passwordRequired',
  'passwordInvalid', 'passwordQueueFull', ...CALLER,
] as const;

const OWN_PASTE = [
  'idInvalid', 'identityRequired', 'lookupRateLimited', 'pasteNotFound', 'permissionDenied', 'preconditionFailed',
] as const;

const JSON_BODY = ['crossSite', 'bodyInvalid', 'bodyTooLarge', 'bodyFragmented'] as const;

/** Unlocking the authority's key costs as much as a password check, and the key may have another password. */
const SIGNING = [
  'pkiDisabled', 'authorityMissing', 'authorityPasswordMissing', 'issuanceFailed', 'passwordQueueFull', ...CALLER,
] as const;

const INVITED = ['registrationClosed', 'invitationRequired'] as const;

/** For issuing a certificate for the key of a request, or a bundle. */
const WANTED = [
  ...JSON_BODY, 'commonNameInvalid', 'bundleProfileInvalid', 'bundlePasswordInvalid', 'csrInvalid', 'keyReused',
  'authorityPasswordMissing', 'issuanceFailed', 'passwordQueueFull', ...CALLER,
] as const;

/** In addition to GENERAL_REFUSALS. */
export const ROUTE_REFUSALS: Readonly<Record<RouteName, readonly RefusalName[]>> = {
  index: [],
  createPaste: ['identityRequired', 'permissionDenied', ...WORK, ...CONTENT],
  health: [],
  getChallenge: CALLER,
  securityText: ['notFound'],
  getClient: [],
  listPastes: [...PAGE, 'lookupRateLimited', ...CALLER],
  listAudit: [...PAGE, ...CALLER],
  registrationChallenge: [...INVITED, 'storeUnavailable'],
  register: [...INVITED, 'rateLimited', 'lookupRateLimited', ...WORK, ...WANTED],
  renewCertificate: [
    'identityRequired', 'permissionDenied', 'rateLimited', 'authorityMissing', 'certificateNotFound',
    'certificateRevoked', ...WANTED,
  ],
  describePki: ['storeUnavailable'],
  createAuthority: [
    'pkiDisabled', ...JSON_BODY, 'commonNameInvalid', 'authorityExists', 'authorityPasswordMissing',
    'passwordQueueFull', ...CALLER,
  ],
  authorityCertificate: ['pkiDisabled', 'authorityMissing', 'storeUnavailable'],
  revocationList: SIGNING,
  revocationListPem: SIGNING,
  issueCertificate: [
    ...SIGNING, ...INVITED, 'rateLimited', ...JSON_BODY, 'commonNameRequired', 'commonNameInvalid', 'csrInvalid', 'keyReused',
  ],
  listCertificates: ['pkiDisabled', 'queryInvalid', 'lookupRateLimited', ...CALLER],
  revokeCertificate: [
    'pkiDisabled', ...JSON_BODY, 'reasonInvalid', 'identityRequired', 'certificateRevoked', 'certificateNotFound',
    'permissionDenied', ...CALLER,
  ],
  getPaste: LOOKUP,
  getRaw: ['crossSite', ...LOOKUP, 'preconditionFailed', 'rangeNotSatisfiable'],
  answerForm: [
    'crossSite', 'contentEncodingUnsupported', 'bodyTooLarge', 'bodyFragmented', 'formInvalid', ...LOOKUP,
    'methodNotAllowed',
  ],
  updatePaste: [...OWN_PASTE, ...CONTENT, 'expiryInvalid', 'nothingToUpdate', 'burnNotUpdatable'],
  deletePaste: ['crossSite', ...OWN_PASTE, ...CALLER],
};
