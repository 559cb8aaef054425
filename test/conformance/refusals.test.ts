// Every refusal of the table is reached through HTTP by the production assembly. Whether it is refused at every place
// where it must be is for the tests of each endpoint. Two need a store that fails: `internal` a table that refuses a
// row by a trigger, `storeUnavailable` a damaged file.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { REFUSALS, type RefusalName } from '../../src/core/refusals.ts';
import { PAGE_BYTES } from '../../src/store/schema.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { from } from '../support/posting.ts';
import { head, onlyAnswer, openRaw, type RawAnswer } from '../support/raw-http.ts';
import { makeRequestPem } from '../support/request.ts';
import { CREATED_AT } from '../support/store.ts';
import { findSolution, getChallenge, showing, solve } from '../support/work.ts';

/** The assemblies that the refusals are reached in, each started when it is first asked for. */
const SETTINGS = {
  /** With an authority, and no limits. */
  whole: { pkiEnabled: true, pkiCaPassword: 'password', registerPowDifficultyBits: 0 },
  choosy: { minBytes: 5, maxAnonBytes: 1000, requireBinary: true, minEntropyBits: 3, minEntropyBytes: 20 },
  /** An authority is allowed, but there is none and no password for it. */
  limited: { rateMax: 3, lookupRateMax: 1, duplicateMax: 1, maxStorageBytes: 10, pkiEnabled: true },
  working: { powDifficultyBits: 4, pkiEnabled: true, pkiCaPassword: 'password' },
  crowded: { maxConnections: 1 },
  closed: { registerBy: 'off' },
  damaged: {},
} as const satisfies Record<string, Partial<Config>>;

interface Stage {
  readonly t: TestContext;
  app(name: keyof typeof SETTINGS): Promise<RunningApp>;
}

interface Sent {
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
}

type Reach = (stage: Stage) => Promise<RawAnswer>;

const AS_OWNER = presenting(newFingerprint());
const JSON_TYPE = { 'Content-Type': 'application/json' };
const PASSWORD = { 'X-Paste-Password': 'p' };
/** The headers of a page's form: for any other POST /{id} there is no route. */
const FORM = { Accept: 'text/html', 'Content-Type': 'application/x-www-form-urlencoded' };

function memoised(t: TestContext): Stage {
  const started = new Map<string, Promise<RunningApp>>();
  return {
    t,
    app: (name) => {
      const app = started.get(name) ?? startApp(t, SETTINGS[name]);
      started.set(name, app);
      return app;
    },
  };
}

/** One request on a connection of its own. */
async function send({ t }: Stage, app: RunningApp, requestLine: string, sent: Sent = {}): Promise<RawAnswer> {
  const { body = '', headers = {} } = sent;
  const bytes = Buffer.from(body);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const length = bytes.length === 0 ? [] : [`Content-Length: ${bytes.length}`];
  const request = Buffer.from(head(`${requestLine} HTTP/1.1`, 'Connection: close', ...length, ...lines), 'latin1');
  return onlyAnswer(t, app.port, Buffer.concat([request, bytes]));
}

/** The answer to one request that needs no preparation. */
function by(name: keyof typeof SETTINGS, requestLine: string, sent: Sent = {}): Reach {
  return async (stage) => send(stage, await stage.app(name), requestLine, sent);
}

/** The answer to these lines, sent as they are. */
function byBytes(...lines: readonly string[]): Reach {
  return async (stage) => onlyAnswer(stage.t, (await stage.app('whole')).port, `${lines.join('\r\n')}\r\n\r\n`);
}

/** A request about a paste of AS_OWNER that was stored with these headers. */
function aboutPaste(method: string, suffix: string, sent: Sent, stored: Record<string, string> = {}): Reach {
  return async (stage) => {
    const app = await stage.app('whole');
    const id = await app.store('content', { ...AS_OWNER, ...stored });
    return send(stage, app, `${method} /${id}${suffix}`, sent);
  };
}

/** POST / with what `show` makes of a new challenge. */
function byWork(show: (app: RunningApp, challenge: Awaited<ReturnType<typeof getChallenge>>) => Record<string, string>): Reach {
  return async (stage) => {
    const app = await stage.app('working');
    return send(stage, app, 'POST /', { body: 'x', headers: show(app, await getChallenge(app)) });
  };
}

function issue(body: object): Reach {
  return byIssuing(async () => body);
}

function byIssuing(bodyOf: (stage: Stage, app: RunningApp) => Promise<object>): Reach {
  return async (stage) => {
    const app = await stage.app('whole');
    await app.request('/pki/ca', { method: 'POST' });
    return send(stage, app, 'POST /pki/issue', { body: JSON.stringify(await bodyOf(stage, app)), headers: JSON_TYPE });
  };
}

/** POST /pki/revoke of a certificate that AS_OWNER obtained. */
function revoke(given: { revokedAt?: number }, body: string): Reach {
  return async (stage) => {
    const app = await stage.app('whole');
    const { serial } = insertCertificate(app.config.databasePath, { issuedTo: AS_OWNER['X-SSL-Client-SHA1']!, ...given });
    return send(stage, app, `POST /pki/revoke/${serial}`, { body, headers: { ...AS_OWNER, ...JSON_TYPE } });
  };
}

const REACHED: Readonly<Record<RefusalName, Reach>> = {
  noContent: by('whole', 'POST /'),
  jsonInvalid: by('whole', 'POST /', { body: '{', headers: JSON_TYPE }),
  passwordTooLong: by('whole', 'POST /', { body: 'x', headers: { 'X-Paste-Password': 'x'.repeat(1025) } }),
  pasteTooSmall: by('choosy', 'POST /', { body: 'x' }),
  pasteTooLarge: by('choosy', 'POST /', { body: 'x'.repeat(1001) }),
  contentEncodingUnsupported: by('whole', 'POST /', { body: 'x', headers: { 'Content-Encoding': 'gzip' } }),
  entropyTooLow: by('choosy', 'POST /', { body: Buffer.alloc(30, 0xff) }),
  textRefused: by('choosy', 'POST /', { body: 'plain text' }),
  duplicateContent: async (stage) => {
    const app = await stage.app('limited');
    await app.store('x', from('192.0.2.1'));
    return send(stage, app, 'POST /', { body: 'x', headers: from('192.0.2.2') });
  },
  burnNotUpdatable: aboutPaste('PUT', '', { body: 'x', headers: AS_OWNER }, { 'X-Burn-After-Read': '1' }),
  nothingToUpdate: aboutPaste('PUT', '', { headers: AS_OWNER }),
  contentRefused: async (stage) => {
    const app = await stage.app('whole');
    changeDatabase(app, `INSERT INTO bans VALUES (x'${createHash('sha256').update('refused').digest('hex')}', '', 0)`);
    return send(stage, app, 'POST /', { body: 'refused' });
  },
  expiryInvalid: aboutPaste('PUT', '', { headers: { ...AS_OWNER, 'X-Expiry': 'soon' } }),

  preconditionFailed: aboutPaste('GET', '/raw', { headers: { 'If-Match': '"other"' } }),

  identityRequired: by('whole', 'GET /pastes'),
  permissionDenied: aboutPaste('DELETE', '', { headers: presenting(newFingerprint()) }),
  adminRequired: by('whole', 'GET /audit', { headers: AS_OWNER }),
  queryInvalid: by('whole', 'GET /pastes?limit=x', { headers: AS_OWNER }),

  pkiDisabled: by('choosy', 'GET /pki/certs'),
  authorityMissing: by('limited', 'GET /pki/ca.crt'),
  certificateNotFound: by('whole', `POST /pki/revoke/${'0'.repeat(32)}`, { headers: AS_OWNER }),
  authorityExists: async (stage) => {
    const app = await stage.app('whole');
    await app.request('/pki/ca', { method: 'POST' });
    return send(stage, app, 'POST /pki/ca');
  },
  certificateRevoked: revoke({ revokedAt: CREATED_AT }, ''),
  bodyInvalid: by('whole', 'POST /pki/issue', { body: '[]', headers: JSON_TYPE }),
  bodyTooLarge: by('whole', 'POST /pki/issue', { body: ' '.repeat(33_000), headers: JSON_TYPE }),
  commonNameRequired: issue({}),
  commonNameInvalid: issue({ common_name: 'x'.repeat(65) }),
  csrInvalid: issue({ common_name: 'x', csr: 'x' }),
  keyReused: byIssuing(async (stage, app) => {
    const request = { common_name: 'x', csr: makeRequestPem() };
    assert.equal((await send(stage, app, 'POST /pki/issue', { body: JSON.stringify(request), headers: JSON_TYPE })).status, 201);
    return request;
  }),
  reasonInvalid: revoke({}, '{"reason": "x"}'),
  bundleProfileInvalid: by('whole', 'POST /register', { body: '{"p12_profile": "x"}', headers: JSON_TYPE }),
  bundlePasswordInvalid: by('whole', 'POST /register', { body: '{"p12_password": ""}', headers: JSON_TYPE }),
  authorityPasswordMissing: by('limited', 'POST /pki/ca'),
  registrationClosed: by('closed', 'GET /register/challenge'),
  invitationRequired: by('whole', 'POST /register', { headers: { 'X-Invite': 'unknown' } }),
  issuanceFailed: async (stage) => {
    const app = await stage.app('working');
    assert.equal((await app.request('/pki/ca', { method: 'POST' })).status, 201);
    changeDatabase(app, "CREATE TRIGGER no_certificate BEFORE INSERT ON certificates BEGIN SELECT RAISE(ABORT, 'no row'); END");
    return send(stage, app, 'POST /pki/issue', { body: '{"common_name": "x"}', headers: JSON_TYPE });
  },

  formInvalid: aboutPaste('POST', '', { body: 'x', headers: FORM }),

  powRequired: by('working', 'POST /', { body: 'x' }),
  powMalformedToken: byWork(() => showing('x', '0')),
  powBadSignature: byWork((_, { token }) => showing(`${token.slice(0, -4)}0000`, '0')),
  powExpired: byWork((app, { token }) => {
    app.clock.advance(app.config.powTtlSeconds * 1000);
    return showing(token, '0');
  }),
  powMalformedSolution: byWork((_, { token }) => showing(token, 'x')),
  powInsufficient: byWork((_, { token, nonce, difficulty }) => showing(token, findSolution(nonce, (bits) => bits < difficulty))),
  powAlreadyUsed: async (stage) => {
    const app = await stage.app('working');
    const { token, nonce, difficulty } = await getChallenge(app);
    const headers = showing(token, solve(nonce, difficulty));
    await app.store('x', headers);
    return send(stage, app, 'POST /', { body: 'x', headers });
  },

  rateLimited: async (stage) => {
    const app = await stage.app('limited');
    for (let turn = 0; turn < app.config.rateMax; turn += 1) await app.request('/', { method: 'POST', headers: from('192.0.2.3') });
    return send(stage, app, 'POST /', { headers: from('192.0.2.3') });
  },
  lookupRateLimited: async (stage) => {
    const app = await stage.app('limited');
    await app.request('/unknown');
    return send(stage, app, 'GET /unknown');
  },

  idInvalid: by('whole', 'GET /bad-id'),
  pasteNotFound: by('whole', 'GET /unknown'),
  passwordRequired: aboutPaste('GET', '/raw', {}, PASSWORD),
  passwordInvalid: aboutPaste('GET', '/raw', { headers: { 'X-Paste-Password': 'wrong' } }, PASSWORD),
  passwordQueueFull: async (stage) => {
    const app = await stage.app('whole');
    const checks = Array.from({ length: 4 }, () => send(stage, app, 'GET /unknown', { headers: PASSWORD }));
    // Checks run one at a time: when the first is answered, all others are in the queue, and then wait for too long.
    await Promise.race(checks);
    app.clock.advance(3_600_000);
    const shed = (await Promise.all(checks)).filter(({ status }) => status !== 404);
    return shed[0] ?? assert.fail('no check was shed');
  },
  rangeNotSatisfiable: aboutPaste('GET', '/raw', { headers: { Range: 'bytes=100-' } }),

  crossSite: by('whole', 'POST /', { body: 'x', headers: { Origin: 'null' } }),
  requestMalformed: byBytes('no request'),
  bodyFragmented: byBytes('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked', '', ...Array<string>(5000).fill('1\r\nx'), '0'),
  headerRepeated: by('whole', 'POST /', { body: 'x', headers: { 'X-Expiry': '1', 'x-expiry': '2' } }),
  hostInvalid: byBytes('GET / HTTP/1.1'),
  targetInvalid: by('whole', 'GET /../health'),
  notFound: by('whole', 'GET /not/a/path'),
  methodNotAllowed: by('whole', 'DELETE /'),
  requestTimeout: async (stage) => {
    const app = await stage.app('whole');
    const connection = await openRaw(stage.t, app.port);
    connection.send(head('POST / HTTP/1.1', 'Content-Length: 1000', 'Expect: 100-continue'));
    assert.equal((await connection.next()).status, 100);
    connection.send('half');
    // Long enough for the minimum rate, which is looked at once a second.
    app.clock.advance(3_600_000);
    return connection.next();
  },
  expectationFailed: by('whole', 'GET /', { headers: { Expect: 'the unexpected' } }),
  headersTooLarge: by('whole', 'GET /', { headers: { 'X-Long': 'x'.repeat(17_000) } }),
  transferEncodingUnsupported: byBytes('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip, chunked'),

  internal: async (stage) => {
    const app = await stage.app('choosy');
    changeDatabase(app, "CREATE TRIGGER no_paste BEFORE INSERT ON pastes BEGIN SELECT RAISE(ABORT, 'no row'); END");
    return send(stage, app, 'POST /', { body: Buffer.from([0xff, 1, 2, 3, 4]) });
  },
  connectionsExhausted: async (stage) => {
    const app = await stage.app('crowded');
    const first = await openRaw(stage.t, app.port);
    first.send(head('GET /health HTTP/1.1'));
    assert.equal((await first.next()).status, 200);
    const answer = await onlyAnswer(stage.t, app.port, '');
    first.socket.destroy();
    return answer;
  },
  storeUnavailable: async (stage) => {
    const app = await stage.app('damaged');
    await app.app.cleanup.run('write-ahead log');
    damage(app, "tbl_name = 'certificates'");
    return send(stage, app, 'GET /pastes', { headers: AS_OWNER });
  },
  storageFull: by('limited', 'POST /', { body: 'x'.repeat(11), headers: from('192.0.2.4') }),
};

function changeDatabase({ config }: RunningApp, sql: string): void {
  const db = new DatabaseSync(config.databasePath, { timeout: 5000 });
  db.exec(sql);
  db.close();
}

/** Overwrites the first page of tables and indexes, which must be in the file itself and not have been read yet. */
function damage({ config }: RunningApp, which: string): void {
  const db = new DatabaseSync(config.databasePath, { readOnly: true });
  const rows = db.prepare(`SELECT rootpage FROM sqlite_schema WHERE rootpage > 1 AND ${which}`).all();
  db.close();
  assert.notEqual(rows.length, 0);
  const file = openSync(config.databasePath, 'r+');
  const garbage = Buffer.alloc(PAGE_BYTES, 0xa5);
  for (const { rootpage } of rows) writeSync(file, garbage, 0, PAGE_BYTES, (Number(rootpage) - 1) * PAGE_BYTES);
  closeSync(file);
}

test('REFUSALS: each one is reached through HTTP, with its status and its words', async (t) => {
  const stage = memoised(t);
  for (const name of Object.keys(REFUSALS) as RefusalName[]) {
    await t.test(name, async () => {
      const answer = await REACHED[name](stage);
      if (name !== 'formInvalid') return void assertRefused(answer, REFUSALS[name].status, REFUSALS[name].error);
      assert.equal(answer.status, REFUSALS[name].status);
      assert.ok(answer.body.includes(`<h1><small>${REFUSALS[name].error}</small></h1>`));
    });
  }
});

test('REFUSALS: no two share their words', () => {
  const words = Object.values(REFUSALS).map(({ error }) => error);
  assert.equal(new Set(words).size, words.length);
});
