// Which refusals a route can give, for the description of the API. Not consulted when requests are answered: a test
// compares it with the tables of routes and refusals, and with real answers.

import type { RefusalName } from '../../src/core/refusals.ts';
import type { RouteName } from '../../src/http/routes.ts';

/** Of any request that reaches a route, whatever it asks for. */
export const GENERAL_REFUSALS = [
  'requestMalformed', 'hostInvalid', 'headerRepeated', 'requestTimeout', 'expectationFailed', 'headersTooLarge',
  'transferEncodingUnsupported', 'internal', 'connectionsExhausted',
] as const satisfies readonly RefusalName[];

/** Of requests that reach no route, so that no operation gives them. */
export const ROUTELESS_REFUSALS = ['targetInvalid'] as const satisfies readonly RefusalName[];

/** Wherever it matters who is calling: the use of a certificate that is revoked or has expired is written down. */
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

/** The authority's key costs as much to unlock as a password check, and may be locked under another password. */
const SIGNING = [
  'pkiDisabled', 'authorityMissing', 'authorityPasswordMissing', 'issuanceFailed', 'passwordQueueFull', ...CALLER,
] as const;

const INVITED = ['registrationClosed', 'invitationRequired'] as const;

/** Of a certificate for the key of a request, or of a bundle. */
const WANTED = [
  ...JSON_BODY, 'commonNameInvalid', 'bundleProfileInvalid', 'bundlePasswordInvalid', 'csrInvalid', 'keyReused',
  'authorityPasswordMissing', 'issuanceFailed', 'passwordQueueFull', ...CALLER,
] as const;

/** Beside the general ones. */
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
