// Every setting there is: name, default, unit, meaning, and what its text may be. The type Config, `pasted config`, the
// help and the manual page are made from this table or tested against it. The environment is read in load.ts.

import { isNetwork } from '../core/callers.ts';
import { DAY_SECONDS, GIB, HOUR_SECONDS, KIB, MIB, MINUTE_SECONDS } from '../core/time.ts';

/** The release: equal to package.json's, which a test holds, so that dist/ runs with no other file beside it. */
export const VERSION = '1.5.0';

// The kinds of settings. `parse` takes a text that is not empty, and gives undefined when it is not as `expected`.

type Unit = 'bytes' | 'seconds' | 'bits' | 'count' | 'days' | 'per window' | 'bytes per second' | 'port' | 'factor';

/** `standIn` is a name that hosting platforms set, which counts where ours is not set. */
type Bounds = Readonly<{ minimum?: number; maximum?: number; standIn?: string }>;

/** `pattern` must match the whole text; `expected` says in words what that is. */
type Form = Readonly<{ pattern: RegExp; expected: string; standIn?: string }>;

/** Larger than any sensible value, and still exact in arithmetic with milliseconds. */
const LARGEST = 2 ** 40;
const PEM = { pattern: /^[^\0\n]*$/, expected: 'the path of a file' };
/** A thousand years: dates have years of four digits. */
const LIFE = { minimum: 1, maximum: 365_000 * DAY_SECONDS };

// The suffixes that may follow a number, and the factor that each stands for.
type Suffixes = ReadonlyMap<string, number>;
const SIZES: Suffixes = new Map([['KiB', KIB], ['MiB', MIB], ['GiB', GIB]]);
export const SPANS: Suffixes = new Map([['s', 1], ['m', MINUTE_SECONDS], ['h', HOUR_SECONDS], ['d', DAY_SECONDS]]);
const SUFFIXES: Readonly<Record<string, Suffixes>> = { bytes: SIZES, 'bytes per second': SIZES, seconds: SPANS };

/** A whole number; both bounds are allowed. */
function integer(name: string, fallback: number, unit: Unit, meaning: string, bounds: Bounds = {}) {
  const { minimum = 0, maximum = LARGEST, ...standIn } = bounds;
  const suffixes = SUFFIXES[unit];
  const parse = (text: string): number | undefined => {
    const [, digits = NaN, suffix = ''] = /^([0-9]+)([A-Za-z]*)$/.exec(text) ?? [];
    const factor = suffix === '' ? 1 : suffixes?.get(suffix) ?? NaN;
    return within(minimum, Number(digits) * factor, maximum);
  };
  const range = `a whole number from ${minimum} to ${maximum}`;
  const expected = suffixes === undefined ? range : `${range}, or one with ${[...suffixes.keys()].join(', ')}`;
  return { kind: 'integer' as const, name, fallback, unit, meaning, minimum, maximum, expected, parse, ...standIn };
}

function within(minimum: number, value: number, maximum: number): number | undefined {
  return value >= minimum && value <= maximum ? value : undefined;
}

function decimal(name: string, fallback: number, unit: string, meaning: string, minimum: number, maximum: number) {
  const parse = (text: string) => within(minimum, /^[0-9]+(?:\.[0-9]+)?$/.test(text) ? Number(text) : NaN, maximum);
  const expected = `a decimal number from ${minimum} to ${maximum}`;
  return { kind: 'decimal' as const, name, fallback, unit, meaning, minimum, maximum, expected, parse };
}

const FLAG_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 'true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['0', 'false', 'no', 'off'].map((word) => [word, false] as const),
]);

function flag(name: string, fallback: boolean, meaning: string) {
  const parse = (text: string) => FLAG_WORDS.get(text.toLowerCase());
  const expected = `one of ${[...FLAG_WORDS.keys()].join(', ')}`;
  return { kind: 'flag' as const, name, fallback, unit: 'flag', meaning, expected, parse };
}

function text(name: string, fallback: string, meaning: string, { pattern, ...words }: Form) {
  // An editor of another system leaves a carriage return at the end of each line, and that would be part of a name.
  const parse = (given: string) => (pattern.test(given) && !/\s$/.test(given) ? given : undefined);
  return { kind: 'text' as const, name, fallback, unit: 'text', meaning, parse, ...words };
}

/** One of these words; the first is the default. */
function choice<const Word extends string>(name: string, words: readonly [Word, ...Word[]], meaning: string) {
  const parse = (given: string) => words.find((word) => word === given);
  const expected = `one of ${words.join(', ')}`;
  return { kind: 'text' as const, name, fallback: words[0] as Word, unit: 'text', meaning, expected, parse };
}

/** U+FFFD is what decoding leaves of bytes that are not UTF-8: a key read that way has lost most of its bits. */
const DAMAGED = /[\u0000-\u001f\u007f\ufffd]/;

/** Text that is never shown. load.ts takes it from a file or a credential as well. */
function secret(name: string, meaning: string) {
  const parse = (given: string) => (DAMAGED.test(given) ? undefined : given);
  const expected = 'one line of UTF-8 text without control characters';
  return { kind: 'secret' as const, name, fallback: '', unit: 'secret', meaning, expected, parse };
}

/** IP addresses and CIDR blocks, separated by commas; spaces around a comma mean nothing. */
function networks(name: string, fallback: readonly string[], meaning: string) {
  const parse = (given: string): readonly string[] | undefined => {
    const items = given.split(',').map((item) => item.trim());
    return items.every(isNetwork) ? Object.freeze(items) : undefined;
  };
  const expected = 'addresses and CIDR blocks such as 10.0.0.0/8 or ::1, separated by commas';
  const frozen = Object.freeze(fallback);
  return { kind: 'networks' as const, name, fallback: frozen, unit: 'networks', meaning, expected, parse };
}

/** `name` is the environment variable; `unit` is what a number counts, or the kind of any other value. */
export type Setting = { readonly standIn?: string } & Readonly<ReturnType<
  typeof integer | typeof decimal | typeof flag | typeof text | typeof choice | typeof secret | typeof networks
>>;

export type SettingValue = Setting['fallback'];

export const SETTINGS = {
  // Listening and files
  host: text('SERVICE_HOST', '127.0.0.1', 'address to listen on',
    { pattern: /^[A-Za-z0-9.:_-]+$/, expected: 'an address or host name', standIn: 'HOST' }),
  port: integer('SERVICE_PORT', 8080, 'port',
    'TCP port to listen on; 0 picks a free one and logs it', { maximum: 65535, standIn: 'PORT' }),
  listenOn: text('SERVICE_LISTEN', '',
    '`unix:` and the path of a socket, instead of host and port; a socket from systemd comes before either',
    { pattern: /^(?:unix:\/[^\0]{1,106})?$/, expected: 'unix: and an absolute path of up to 107 bytes' }),
  listenMode: text('SERVICE_LISTEN_MODE', '660', 'permissions of the unix socket in `SERVICE_LISTEN`, octal',
    { pattern: /^0?[0-7]{3}$/, expected: 'three octal digits such as 660' }),
  tlsCertPath: text('SERVICE_TLS_CERT', '',
    'PEM file with the server\'s certificate and those between it and its root; makes the listener HTTPS', PEM),
  tlsKeyPath: text('SERVICE_TLS_KEY', '', 'PEM file with the private key of `SERVICE_TLS_CERT`', PEM),
  // The writer thread and the readers share a file: URIs, and names with a colon first, mean other things to SQLite.
  databasePath: text('SERVICE_DB', 'data/pasted.db',
    'path of the SQLite database, under systemd `$STATE_DIRECTORY/pasted.db`; or the nodes of a cluster of rqlite', {
      pattern:
        /^(?!["'\s:]|file:|\w+:\/|rqlites?:)[^\0\ufffd]+$|^rqlites?:\/\/(\w+@)?(([\w.-]+|\[[\w:]+]):\d+(,(?=.)|$))+$/i,
      expected: 'the path of a file, or the nodes of a cluster, such as rqlite://db1:4001,db2:4001,db3:4001',
    }),
  clusterPassword: secret('SERVICE_DB_PASSWORD', 'password of the user in `SERVICE_DB` for the nodes of a cluster'),
  clusterCaPath: text('SERVICE_DB_CA', '', 'PEM file with who signed the certificates of nodes in `rqlites://`', PEM),
  clusterMaxBytes: integer('SERVICE_CLUSTER_MAX_BYTES', 8 * MIB, 'bytes',
    'largest paste in a cluster, whoever stores it', { minimum: 1 }),
  environment: text('NODE_ENV', '', '`production` makes logs JSON lines and start-up warnings stricter',
    { pattern: /^[A-Za-z0-9_-]*$/, expected: 'a word such as production' }),
  urlPrefix: text('URL_PREFIX', '',
    'path under which a reverse proxy publishes the service; for text that people read, and `Location`',
    { pattern: /^(\/[A-Za-z0-9._~-]+)*$/, expected: 'a path such as /paste, without a slash at its end' }),
  servesHtml: flag('SERVICE_HTML', true,
    'answer browsers with pages: whoever prefers `text/html` to JSON; 0 gives everyone the same'),
  trustedProxies: networks('SERVICE_TRUSTED_PROXIES', ['127.0.0.0/8', '::1'],
    'peers whose `X-Forwarded-*` headers are believed: addresses and CIDR blocks, separated by commas'),
  proxySecret: secret('SERVICE_PROXY_SECRET',
    'when set, identity and forwarded headers count only beside an equal `X-Proxy-Secret`'),
  identityHeader: choice('SERVICE_IDENTITY_HEADER', ['x-ssl-client-sha1', 'client-cert', 'x-ssl-client-cert'],
    'the one header in which the proxy with that secret names its client; or `client-cert`, or `x-ssl-client-cert`'),
  contact: text('SERVICE_CONTACT', '',
    'where to report abuse or a vulnerability: for `GET /`, its page and `/.well-known/security.txt`', {
      pattern: /^(?:(?:https:\/\/|mailto:)(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[\dA-Fa-f]{2})+)?$/,
      expected: 'an https or mailto URL, such as mailto:abuse@paste.example',
    }),

  // Who may create, and who may register
  createBy: choice('SERVICE_CREATE', ['anyone', 'identity', 'trusted'],
    'who may store pastes: `identity` is whoever presents a fingerprint, `trusted` a certificate of this service'),
  registerBy: choice('SERVICE_REGISTER', ['open', 'invite', 'off'],
    'who may get a certificate: anyone, with `invite` who is invited (`pasted invite create`), with `off` nobody'),

  // Connections
  maxConnections: integer('SERVICE_MAX_CONNECTIONS', 1024, 'count', 'open connections in all', { minimum: 1 }),
  maxConnectionsPerClient: integer('SERVICE_MAX_CONNECTIONS_PER_CLIENT', 50, 'count',
    'open connections of one client address, behind a proxy those that brought its requests; 0 switches it off'),
  headersTimeoutSeconds: integer('SERVICE_HEADERS_TIMEOUT', 10, 'seconds',
    'time for a request\'s headers to arrive', { minimum: 1, maximum: HOUR_SECONDS }),
  idleTimeoutSeconds: integer('SERVICE_IDLE_TIMEOUT', 60, 'seconds',
    'time that a connection may stay open between requests', { minimum: 1, maximum: HOUR_SECONDS }),
  minTransferRate: integer('SERVICE_MIN_TRANSFER_RATE', 16 * KIB, 'bytes per second',
    'slowest upload or download, averaged over 10 s; 0 switches it off'),
  shutdownGraceSeconds: integer('SERVICE_SHUTDOWN_GRACE', 10, 'seconds',
    'time that requests in flight have to finish on SIGTERM', { maximum: HOUR_SECONDS }),

  // Content and its expiry
  maxAnonBytes: integer('SERVICE_MAX_ANON', 3 * MIB, 'bytes',
    'largest paste of anonymous and untrusted callers', { minimum: 1 }),
  maxAuthBytes: integer('SERVICE_MAX_AUTH', 50 * MIB, 'bytes', 'largest paste of trusted callers', { minimum: 1 }),
  minBytes: integer('SERVICE_MIN_SIZE', 0, 'bytes', 'smallest paste; 0 switches the check off'),
  minEntropyBits: decimal('SERVICE_MIN_ENTROPY', 0, 'bits per byte',
    'smallest Shannon entropy; 0 switches the check off', 0, 8),
  minEntropyBytes: integer('SERVICE_MIN_ENTROPY_SIZE', 256, 'bytes',
    'content smaller than this is exempt from the entropy check'),
  requireBinary: flag('SERVICE_REQUIRE_BINARY', false, 'refuse content that is valid UTF-8 text'),
  maxStorageBytes: integer('SERVICE_MAX_STORAGE', 0, 'bytes',
    'largest size of the database, uploads under way included, its first 640 KiB not counted; 0 switches this off'),
  maxOwnerStorageBytes: integer('SERVICE_MAX_STORAGE_OWNER', 0, 'bytes',
    'content of one owner, until it is deleted or has expired; 0 switches the limit off'),
  expiryAnonSeconds: integer('SERVICE_EXPIRY_ANON', DAY_SECONDS, 'seconds', 'time to live of anonymous pastes', LIFE),
  expiryUntrustedSeconds: integer('SERVICE_EXPIRY_UNTRUSTED', 7 * DAY_SECONDS, 'seconds',
    'time to live of untrusted callers\' pastes', LIFE),
  expiryTrustedSeconds: integer('SERVICE_EXPIRY_TRUSTED', 30 * DAY_SECONDS, 'seconds',
    'time to live of trusted callers\' pastes', LIFE),
  maxExpirySeconds: integer('SERVICE_MAX_EXPIRY', 90 * DAY_SECONDS, 'seconds',
    'longest time to live that `X-Expiry` can ask for', LIFE),

  // Rates and duplicates
  rateMax: integer('SERVICE_RATE_MAX', 10, 'per window',
    'pastes that one client address may create; 0 switches the limit off'),
  rateWindowSeconds: integer('SERVICE_RATE_WINDOW', MINUTE_SECONDS, 'seconds',
    'window of the creation rate limit', { minimum: 1 }),
  rateTrustedFactor: integer('SERVICE_RATE_AUTH_MULT', 5, 'factor',
    'how many times the rates trusted callers get', { minimum: 1 }),
  rateMaxEntries: integer('RATE_LIMIT_MAX_ENTRIES', 10_000, 'count',
    'client addresses tracked; the oldest are pruned', { minimum: 1 }),
  rateCleanupThreshold: decimal('RATE_LIMIT_CLEANUP_THRESHOLD', 0.8, 'fraction',
    'fraction of `RATE_LIMIT_MAX_ENTRIES` at which cleanup starts', 0, 1),
  lookupRateMax: integer('SERVICE_LOOKUP_RATE_MAX', 60, 'per window',
    'lookups, lists, refused changes, registrations by work of one client address; 0 switches the limit off'),
  lookupRateWindowSeconds: integer('SERVICE_LOOKUP_RATE_WINDOW', MINUTE_SECONDS, 'seconds',
    'window of the lookup rate limit', { minimum: 1 }),
  lookupRateMaxEntries: integer('LOOKUP_RATE_LIMIT_MAX_ENTRIES', 10_000, 'count',
    'client addresses tracked for lookups', { minimum: 1 }),
  duplicateWindowSeconds: integer('SERVICE_DEDUP_WINDOW', HOUR_SECONDS, 'seconds',
    'window of the duplicate throttle', { minimum: 1 }),
  duplicateMax: integer('SERVICE_DEDUP_MAX', 3, 'per window',
    'identical pastes stored per window; 0 switches the throttle off'),

  // Proof-of-work
  powDifficultyBits: integer('SERVICE_POW_DIFFICULTY', 20, 'bits',
    'leading zero bits asked for a paste; 0 switches it off', { maximum: 32 }),
  powTrustedBits: text('SERVICE_POW_TRUSTED', '',
    'the same of trusted callers, who need no work with 0; not set, they do as much as everyone',
    { pattern: /^(?:[0-9]|[12][0-9]|3[0-2])?$/, expected: 'a whole number from 0 to 32' }),
  powTtlSeconds: integer('SERVICE_POW_TTL', 300, 'seconds',
    'time for which a challenge is valid', { minimum: 1, maximum: DAY_SECONDS }),
  powSecret: secret('SERVICE_POW_SECRET', 'key that signs challenges; generated and kept in the database when empty'),
  registerPowDifficultyBits: integer('SERVICE_REGISTER_POW', 24, 'bits',
    'leading zero bits asked for a registration; with 0 the rate of creations bounds it', { maximum: 32 }),
  antifloodThreshold: integer('ANTIFLOOD_THRESHOLD', 30, 'per window',
    'creations before the difficulty rises; 0 switches it off'),
  antifloodWindowSeconds: integer('ANTIFLOOD_WINDOW', MINUTE_SECONDS, 'seconds',
    'window in which creations are counted', { minimum: 1 }),
  antifloodStepBits: integer('ANTIFLOOD_STEP', 2, 'bits',
    'how much the difficulty rises at each step', { maximum: 32 }),
  antifloodMaxBits: integer('ANTIFLOOD_MAX', 28, 'bits',
    'highest difficulty that anti-flood asks for', { maximum: 32 }),
  antifloodDecaySeconds: integer('ANTIFLOOD_DECAY', 30, 'seconds',
    'time before the difficulty falls by a step', { minimum: 1 }),
  antifloodMaxEntries: integer('ANTIFLOOD_MAX_ENTRIES', 10_000, 'count',
    'creations tracked at most, and one more than the threshold at least', { minimum: 1 }),

  // Certificates
  pkiEnabled: flag('SERVICE_PKI_ENABLED', false, 'offer the `/pki` endpoints'),
  pkiCaPassword: secret('SERVICE_PKI_CA_PASSWORD',
    'password that encrypts the certificate authority\'s key; needed to issue certificates'),
  pkiCertDays: integer('SERVICE_PKI_CERT_DAYS', 365, 'days',
    'validity of client certificates', { minimum: 1, maximum: 36_500 }),
  pkiCaDays: integer('SERVICE_PKI_CA_DAYS', 3650, 'days',
    'validity of the certificate authority', { minimum: 1, maximum: 36_500 }),

  // Metrics and audit
  metricsListen: text('SERVICE_METRICS_LISTEN', '',
    'where metrics are served: such as `127.0.0.1:9464`, or the path of a unix socket; empty for nowhere', {
      pattern:
        /^(\/[^\0]{1,106}|(\w[\w.-]*|\[[\da-f:.]+]):([0-5]?\d{1,4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?$/i,
      expected: 'an address and port such as 127.0.0.1:9464, or a unix socket at /PATH, of up to 107 bytes',
    }),
  auditRetentionSeconds: integer('SERVICE_AUDIT_RETENTION', 90 * DAY_SECONDS, 'seconds',
    'how long audit entries are kept', { minimum: 1 }),
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingKey = keyof typeof SETTINGS;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** Every value in force, typed as its setting's default; frozen by load.ts. */
export type Config = { readonly [Key in SettingKey]: (typeof SETTINGS)[Key]['fallback'] };

/** The nodes that keep the database; undefined where a file keeps it. */
export function nodesOf({ databasePath }: Pick<Config, 'databasePath'>) {
  const [, secure, user, places] = /^rqlite(s?):\/\/(?:(\w+)@)?(.+)$/i.exec(databasePath) ?? [];
  return places === undefined ? undefined : { hasTls: secure !== '', user, places: places.split(',') };
}

export function isCluster(config: Pick<Config, 'databasePath'>): boolean {
  return nodesOf(config) !== undefined;
}
