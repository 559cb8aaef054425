// Every way in which the service says no: one table of status and words. What a caller should change is said in the
// field `hint`, where the words alone do not say it. http/engine/reply.ts makes the answer.

/** The key is the name in code and in metrics. */
export const REFUSALS = {
  // Creating and updating
  noContent: { status: 400, error: 'no content provided' },
  jsonInvalid: { status: 400, error: 'invalid JSON body: expected an object with a non-empty string "content"' },
  passwordTooLong: { status: 400, error: 'password longer than 1024 characters' },
  pasteTooSmall: { status: 400, error: 'paste smaller than minimum size' },
  pasteTooLarge: { status: 413, error: 'paste too large' },
  contentEncodingUnsupported: { status: 415, error: 'content encoding not supported' },
  entropyTooLow: { status: 400, error: 'entropy below minimum' },
  textRefused: { status: 400, error: 'recognizable content: only binary content is accepted' },
  duplicateContent: { status: 429, error: 'duplicate content limit exceeded' },
  burnNotUpdatable: { status: 400, error: 'burn-after-read pastes cannot be updated' },
  nothingToUpdate: { status: 400, error: 'nothing to update' },
  expiryInvalid: { status: 400, error: 'X-Expiry must be a positive integer' },
  contentRefused: { status: 403, error: 'content refused' },

  // Identity, conditions (RFC 9110 section 13), lists
  identityRequired: { status: 401, error: 'authentication required' },
  permissionDenied: { status: 403, error: 'permission denied' },
  adminRequired: { status: 403, error: 'admin access required' },
  preconditionFailed: { status: 412, error: 'precondition failed' },
  queryInvalid: { status: 400, error: 'invalid query parameter' },

  // Certificates
  pkiDisabled: { status: 404, error: 'PKI not enabled' },
  authorityMissing: { status: 404, error: 'CA not initialized' },
  certificateNotFound: { status: 404, error: 'certificate not found' },
  authorityExists: { status: 409, error: 'CA already exists' },
  certificateRevoked: { status: 409, error: 'certificate already revoked' },
  bodyInvalid: { status: 400, error: 'invalid JSON body: expected an object' },
  bodyTooLarge: { status: 413, error: 'request body too large' },
  commonNameRequired: { status: 400, error: 'common_name required' },
  commonNameInvalid: { status: 400, error: 'common_name must be 1 to 64 characters without control characters' },
  csrInvalid: { status: 400, error: 'certificate signing request not acceptable' },
  keyReused: { status: 400, error: 'the public key already has a certificate' },
  reasonInvalid: { status: 400, error: 'unknown revocation reason' },
  bundleProfileInvalid: { status: 400, error: 'p12_profile must be modern or compat' },
  bundlePasswordInvalid: { status: 400, error: 'p12_password must be 1 to 1024 characters' },
  authorityPasswordMissing: { status: 500, error: 'CA password not configured' },
  issuanceFailed: { status: 500, error: 'certificate issuance failed' },
  registrationClosed: { status: 403, error: 'registration is closed' },
  invitationRequired: { status: 403, error: 'invitation required' },

  // Proof-of-work and rates
  powRequired: { status: 400, error: 'proof-of-work required' },
  powMalformedToken: { status: 400, error: 'Proof-of-work failed: malformed token' },
  powBadSignature: { status: 400, error: 'Proof-of-work failed: bad signature' },
  powExpired: { status: 400, error: 'Proof-of-work failed: challenge expired' },
  powMalformedSolution: { status: 400, error: 'Proof-of-work failed: malformed solution' },
  powInsufficient: { status: 400, error: 'Proof-of-work failed: insufficient work' },
  powAlreadyUsed: { status: 400, error: 'Proof-of-work failed: challenge already used' },
  rateLimited: { status: 429, error: 'rate limit exceeded' },
  lookupRateLimited: { status: 429, error: 'lookup rate limit exceeded' },

  // Reading
  idInvalid: { status: 400, error: 'invalid paste id' },
  pasteNotFound: { status: 404, error: 'paste not found' },
  passwordRequired: { status: 401, error: 'password required' },
  passwordInvalid: { status: 403, error: 'invalid password' },
  formInvalid: { status: 400, error: 'invalid form: expected password and reveal=1, each once at most' },
  passwordQueueFull: { status: 503, error: 'too many password checks in progress' },
  rangeNotSatisfiable: { status: 416, error: 'range not satisfiable' },

  // Requests that are not well-formed, or that this server does not take
  crossSite: { status: 403, error: 'cross-site request refused' },
  requestMalformed: { status: 400, error: 'malformed request' },
  bodyFragmented: { status: 400, error: 'request body in too many small pieces' },
  headerRepeated: { status: 400, error: 'header given more than once' },
  hostInvalid: { status: 400, error: 'Host header missing, given more than once or no host' },
  targetInvalid: { status: 400, error: 'request target not acceptable' },
  notFound: { status: 404, error: 'not found' },
  methodNotAllowed: { status: 405, error: 'method not allowed' },
  requestTimeout: { status: 408, error: 'request took too long' },
  expectationFailed: { status: 417, error: 'expectation not supported' },
  headersTooLarge: { status: 431, error: 'request headers too large' },
  transferEncodingUnsupported: { status: 501, error: 'transfer encoding not supported' },

  // The server's own condition
  internal: { status: 500, error: 'internal server error' },
  connectionsExhausted: { status: 503, error: 'too many connections' },
  storeUnavailable: { status: 503, error: 'storage unavailable' },
  storageFull: { status: 507, error: 'storage full' },
} as const satisfies Readonly<Record<string, { status: number; error: string }>>;

export type RefusalName = keyof typeof REFUSALS;
export type WorkRefusal = Extract<RefusalName, `pow${string}`>;
export type RefusalFields = Readonly<Record<string, string | number | boolean>>;

/** Where a client address stands with the creation rate limit; sent with the answer to a request that counts. */
export interface RateStanding {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds at which the whole limit is available again. */
  readonly resetAtSeconds: number;
}

/** What a refusal says outside its body: in headers. */
export interface RefusalTerms {
  readonly retryAfterSeconds?: number | undefined;
  readonly rate?: RateStanding | null | undefined;
}

/** Thrown by any rule that says no, caught in one place. `fields` are extra members of the JSON body, in camelCase. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly refusal: RefusalName;
  readonly fields: RefusalFields;
  readonly terms: RefusalTerms;

  constructor(refusal: RefusalName, fields: RefusalFields = {}, terms: RefusalTerms = {}) {
    super(REFUSALS[refusal].error);
    this.refusal = refusal;
    this.fields = fields;
    this.terms = terms;
  }
}
