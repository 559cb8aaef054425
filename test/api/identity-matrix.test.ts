// Every endpoint by every kind of caller, over real sockets: the status that each gets, and whom it audits. What each
// tier may store is own-pastes.test.ts; what the endpoints do is in files of their own.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint } from '../support/certificates.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';
import { assertContract } from '../support/answer-contract.ts';
import { CREATED_AT, newId, selectValue } from '../support/store.ts';

/** Statuses by tier. `gone` is for a caller whose certificate is revoked or has expired; without it, as `anonymous`. */
interface Expected {
  readonly anonymous: number;
  readonly untrusted: number;
  readonly trusted: number;
  readonly admin: number;
  readonly gone?: number;
}

interface Row {
  readonly expected: Expected;
  /** The path to ask for, made anew for every request; without it, the pattern is the path. */
  readonly path?: (app: RunningApp, fingerprint: string) => string;
  readonly body?: string;
  /** The route does not ask who is calling, and so audits nobody. */
  readonly isForAnyone?: true;
}

/** The owner of what belongs to somebody else. */
const STRANGER = '5'.repeat(40);

function all(status: number): Expected {
  return { anonymous: status, untrusted: status, trusted: status, admin: status };
}

const IDENTIFIED = { anonymous: 401, untrusted: 200, trusted: 200, admin: 200 };
const ADMIN_ONLY = { anonymous: 401, untrusted: 403, trusted: 403, admin: 200 };
const OF_ANOTHER = { anonymous: 401, untrusted: 403, trusted: 403, admin: 403 };

/** A new paste of that owner; null for an anonymous one. */
function pasteOf(app: RunningApp, owner: string | null): string {
  const id = newId();
  insertPastes(app.config.databasePath, { count: 1, owner, prefix: id });
  return `/${String(selectValue(app.config.databasePath, `SELECT id FROM pastes WHERE id LIKE '${id}%'`))}`;
}

const ownPaste = (app: RunningApp, fingerprint: string): string => pasteOf(app, fingerprint);
const anothersPaste = (app: RunningApp): string => pasteOf(app, STRANGER);

/** A path that revokes a certificate which was issued to that fingerprint. */
function revokePath(app: RunningApp, issuedTo: string, revokedAt: number | null = null): string {
  return `/pki/revoke/${insertCertificate(app.config.databasePath, { issuedTo, revokedAt }).serial}`;
}

/** Every route of the table, by method and pattern; a route whose answer depends on the owner has several rows. */
const MATRIX: Readonly<Record<string, readonly Row[]>> = {
  'GET /': [{ expected: all(200), isForAnyone: true }],
  'POST /': [{ expected: all(201), body: 'content' }],
  'PUT /': [{ expected: all(201), body: 'content' }],
  'GET /health': [{ expected: all(200), isForAnyone: true }],
  'GET /challenge': [{ expected: all(200), isForAnyone: true }],
  'GET /.well-known/security.txt': [{ expected: all(200), isForAnyone: true }],
  'GET /client': [{ expected: all(200), isForAnyone: true }],
  'GET /pastes': [
    { expected: IDENTIFIED },
    { expected: ADMIN_ONLY, path: () => '/pastes?all=1' },
  ],
  'GET /audit': [{ expected: ADMIN_ONLY }],
  'GET /{id}': [{ expected: all(200), path: anothersPaste }],
  'GET /{id}/raw': [{ expected: all(200), path: (app) => `${anothersPaste(app)}/raw` }],
  // 405 for everyone, unless it is a form of a page: then as GET.
  'POST /{id}': [{ expected: all(405), path: anothersPaste, isForAnyone: true }],
  'PUT /{id}': [
    { expected: IDENTIFIED, path: ownPaste, body: 'new content' },
    { expected: OF_ANOTHER, path: anothersPaste, body: 'new content' },
    { expected: OF_ANOTHER, path: (app) => pasteOf(app, null), body: 'new content' },
    { expected: { anonymous: 401, untrusted: 404, trusted: 404, admin: 404 }, path: () => '/unknown', body: 'new content' },
  ],
  'DELETE /{id}': [
    { expected: IDENTIFIED, path: ownPaste },
    { expected: ADMIN_ONLY, path: anothersPaste },
    { expected: ADMIN_ONLY, path: (app) => pasteOf(app, null) },
    { expected: { anonymous: 401, untrusted: 404, trusted: 404, admin: 404 }, path: () => '/unknown' },
  ],
  'GET /register/challenge': [{ expected: all(200), isForAnyone: true }],
  'POST /register': [{ expected: all(200) }],
  'POST /register/renew': [{ expected: { anonymous: 401, untrusted: 403, trusted: 200, admin: 200 } }],
  'GET /pki': [{ expected: all(200), isForAnyone: true }],
  'POST /pki/ca': [{ expected: all(409) }],
  'GET /pki/ca.crt': [{ expected: all(200), isForAnyone: true }],
  'GET /pki/ca.crl': [{ expected: all(200), isForAnyone: true }],
  'GET /pki/ca.crl.pem': [{ expected: all(200), isForAnyone: true }],
  'POST /pki/issue': [{ expected: all(201), body: '{"common_name": "alice"}' }],
  'GET /pki/certs': [{ expected: all(200) }],
  'POST /pki/revoke/{serial}': [
    { expected: IDENTIFIED, path: revokePath },
    { expected: OF_ANOTHER, path: (app) => revokePath(app, STRANGER) },
    { expected: { ...all(409), anonymous: 401, gone: 409 }, path: (app, fingerprint) => revokePath(app, fingerprint, CREATED_AT) },
    { expected: { ...all(404), anonymous: 401 }, path: () => `/pki/revoke/${'0'.repeat(32)}` },
    { expected: { ...all(404), anonymous: 401 }, path: () => '/pki/revoke/no-serial' },
  ],
};

/** A caller: the header lines that it sends, and whom the service must take it for. */
interface Caller {
  readonly name: string;
  readonly tier: keyof Expected;
  readonly fingerprint: string;
  readonly lines: readonly string[];
}

function identity(value: string): string {
  return `X-SSL-Client-SHA1: ${value}`;
}

/** Callers whose certificates, where they have any, are in the database. */
function callersOf(app: RunningApp, lines: readonly string[] = []): Caller[] {
  const path = app.config.databasePath;
  const known = [
    ['trusted', 'trusted', {}],
    ['admin', 'admin', { isAdmin: true }],
    ['revoked', 'gone', { revokedAt: CREATED_AT - 1 }],
    ['revoked admin', 'gone', { isAdmin: true, revokedAt: CREATED_AT }],
    ['expired', 'gone', { expiresAt: CREATED_AT }],
    ['expired admin', 'gone', { isAdmin: true, expiresAt: CREATED_AT - 1 }],
  ] as const;
  const callers: Caller[] = known.map(([name, tier, given]) => {
    const { fingerprint } = insertCertificate(path, given);
    return { name, tier, fingerprint, lines: [identity(fingerprint), ...lines] };
  });
  const unknown = newFingerprint();
  callers.push({ name: 'unknown fingerprint', tier: 'untrusted', fingerprint: unknown, lines: [identity(unknown), ...lines] });
  callers.push({ name: 'nobody', tier: 'anonymous', fingerprint: unknown, lines });
  return callers;
}

/** Header lines that are no identity, each built from a fingerprint that is one. */
function malformed(valid: string): Record<string, readonly string[]> {
  return {
    empty: [identity('')],
    'upper case': [identity(valid.toUpperCase())],
    'one letter in upper case': [identity(`${valid.slice(0, -1)}A`)],
    colons: [identity(valid.match(/../g)!.join(':'))],
    'one character less': [identity(valid.slice(1))],
    'one character more': [identity(`${valid}0`)],
    'no hex digit': [identity(`${valid.slice(1)}g`)],
    prefixed: [identity(`sha1:${valid}`)],
    'two lines': [identity(valid), identity(valid)],
    'two different lines': [identity(valid), identity(STRANGER)],
    'two values in a line': [identity(`${valid}, ${valid}`)],
    'forty zeros': [identity('0'.repeat(40))],
    'SHA-1 of nothing': [identity('da39a3ee5e6b4b0d3255bfef95601890afd80709')],
    'another header': [`X-Client-SHA1: ${valid}`],
  };
}

/** With an authority, and no work to do for anything. */
async function startWhole(t: TestContext, overrides: Partial<Config> = {}): Promise<RunningApp> {
  const pki = { pkiEnabled: true, pkiCaPassword: 'password of the authority', registerPowDifficultyBits: 0 };
  const app = await startApp(t, { ...pki, contact: 'mailto:abuse@paste.example', ...overrides });
  // Another certificate comes first, so that nobody below becomes the admin by registering.
  insertCertificate(app.config.databasePath);
  assert.equal((await app.request('/pki/ca', { method: 'POST' })).status, 201);
  return app;
}

function requestOf(method: string, path: string, { body = '' }: Row, { lines }: Caller): string {
  const json = body.startsWith('{') ? ['Content-Type: application/json'] : [];
  const length = body === '' ? [] : [`Content-Length: ${body.length}`, ...json];
  return head(`${method} ${path} HTTP/1.1`, 'Connection: close', ...length, ...lines) + body;
}

/** Sends every row of the matrix for every caller, and calls `seen` after each. */
async function runMatrix(
  t: TestContext,
  app: RunningApp,
  callers: readonly Caller[],
  seen?: (row: Row, caller: Caller, what: string) => void,
): Promise<void> {
  for (const [route, rows] of Object.entries(MATRIX)) {
    const [method = '', pattern = ''] = route.split(' ');
    for (const row of rows) {
      for (const caller of callers) {
        const path = row.path?.(app, caller.fingerprint) ?? pattern;
        const answer = await onlyAnswer(t, app.port, requestOf(method, path, row, caller));
        const what = `${method} ${path} by ${caller.name}`;
        const expected = row.expected[caller.tier] ?? row.expected.anonymous;
        assert.equal(answer.status, expected, `${what}: ${answer.status === 200 ? '' : String(answer.body)}`);
        assertContract(answer);
        seen?.(row, caller, what);
      }
    }
  }
}

test('ROUTES: the matrix has every route and no other', () => {
  assert.deepEqual(Object.keys(MATRIX).toSorted(), ROUTES.map(({ method, path }) => `${method} ${path}`).toSorted());
});

test('every endpoint: the status for each tier, and one auth_failure where a certificate that has ended is looked at', async (t) => {
  const app = await startWhole(t);
  const counted = "SELECT count(*) FROM audit WHERE event = 'auth_failure'";
  const failures = (): number => Number(selectValue(app.config.databasePath, counted));
  let before = failures();
  await runMatrix(t, app, callersOf(app), (row, caller, what) => {
    const after = failures();
    assert.equal(after - before, caller.tier === 'gone' && row.isForAnyone !== true ? 1 : 0, what);
    before = after;
    // Only a limited number of failures a minute is written down.
    app.clock.advance(2000);
  });
});

test('every endpoint: what is no identity is anonymous, also in the form of an admin\'s fingerprint', async (t) => {
  const app = await startWhole(t);
  const { fingerprint } = insertCertificate(app.config.databasePath, { isAdmin: true, fingerprint: 'abcdef0123'.repeat(4) });
  const callers = Object.entries(malformed(fingerprint)).map(([name, lines]) =>
    ({ name, tier: 'anonymous' as const, fingerprint, lines }));
  await runMatrix(t, app, callers);
});

test('every endpoint: with a proxy secret set, an identity counts only beside it', async (t) => {
  const proxySecret = 'shared with the proxy';
  const app = await startWhole(t, { proxySecret });
  const right = `X-Proxy-Secret: ${proxySecret}`;
  const { fingerprint } = insertCertificate(app.config.databasePath, { isAdmin: true });
  const wrong = {
    missing: [],
    empty: ['X-Proxy-Secret:'],
    wrong: [`X-Proxy-Secret: ${proxySecret.slice(0, -1)}X`],
    shorter: [`X-Proxy-Secret: ${proxySecret.slice(0, -1)}`],
    longer: [`${right}X`],
    twice: [right, right],
    'in another case': [`X-Proxy-Secret: ${proxySecret.toUpperCase()}`],
  };
  const unbelieved = Object.entries(wrong).map(([name, lines]) =>
    ({ name: `admin, secret ${name}`, tier: 'anonymous' as const, fingerprint, lines: [identity(fingerprint), ...lines] }));
  await runMatrix(t, app, [...callersOf(app, [right]), ...unbelieved]);
});
