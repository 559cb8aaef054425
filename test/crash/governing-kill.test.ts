// kill -9 before each statement of the transactions that an operator governs by. What it leaves of one command, carried
// out as the writer thread does, is the whole state before or after it; once it was acknowledged, the one after it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import { Executor } from '../../src/store/batch.ts';
import { openWriting } from '../../src/store/database.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { builtMain } from '../support/built.ts';
import { CREATED_AT, selectValue, temporaryFolder } from '../support/store.ts';
import { AUTHORITY, CLIENT, INVITATION, OWNER, PASTES } from '../vectors/schema-rows.ts';
import { placeVector } from '../vectors/schema-vectors.ts';

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

function eventOf(event: string): object {
  return { time: CREATED_AT, event, outcome: 'success', clientId: 'operator', clientIp: null, details: {} };
}

function certificateOf(name: string, issuedTo: string | null): object {
  const fingerprint = createHash('sha1').update(name).digest('hex');
  const validity = { createdAt: CREATED_AT, expiresAt: CREATED_AT + 1000 };
  return { serial: fingerprint.slice(0, 32), commonName: name, fingerprint, issuedTo, ...validity, publicKeySha256: digestOf(name) };
}

const ISSUING = { spend: null, issued: eventOf('cert_issued'), granted: eventOf('admin_granted') };
const CLIENT_SERIAL = `4${'2'.repeat(31)}`;
const RENEWED_SERIAL = `4${'4'.repeat(31)}`;

/** The authority of the kept database, as the command finds it. */
const PLACED = {
  commonName: 'Paste Service CA', fingerprint: AUTHORITY.fingerprint, createdAt: CREATED_AT - 3600, expiresAt: AUTHORITY.expiresAt,
  certificate: Buffer.from(AUTHORITY.certificate, 'base64'), lockedKey: Buffer.from(AUTHORITY.lockedKey, 'base64'),
};
const RENEWED_AUTHORITY = {
  certificate: Buffer.from('another'), fingerprint: 'a'.repeat(40), createdAt: CREATED_AT, expiresAt: AUTHORITY.expiresAt + 1,
};

const PASTE = {
  id: 'governed'.padEnd(26, '2'), owner: OWNER, mimeType: 'text/plain', size: 7, sha256: digestOf('content'),
  createdAt: CREATED_AT, expiresAt: CREATED_AT + 1000, burnAfterRead: false, passwordHash: null, contentId: null,
  content: Buffer.from('content'),
};
const TERMS = { spend: null, duplicates: null, maxStoredBytes: null, maxOwnerBytes: 10_000_000 };

/** Each runs on the kept database of the newest schema: the client certificate is renewed there, the new one unused. */
const COMMANDS: Readonly<Record<string, { readonly name: string; readonly params: unknown }>> = {
  'an issuance that spends an invitation': {
    name: 'issueCertificate',
    params: { ...ISSUING, certificate: certificateOf('invited', null), invitation: digestOf(INVITATION) },
  },
  'a renewal that takes the place of another': {
    name: 'issueCertificate',
    params: { ...ISSUING, certificate: certificateOf('once more', CLIENT), renews: CLIENT_SERIAL },
  },
  'the first use of a renewed certificate': {
    name: 'useCertificate',
    params: { serial: RENEWED_SERIAL, holder: CLIENT, nowSeconds: CREATED_AT, by: eventOf('none') },
  },
  'a revocation that takes a renewed certificate along': {
    name: 'revokeCertificate',
    params: { serial: CLIENT_SERIAL, nowSeconds: CREATED_AT, reason: null, revoked: eventOf('cert_revoked') },
  },
  'a renewal of the authority': {
    name: 'replaceAuthority',
    params: { before: PLACED, after: { ...PLACED, ...RENEWED_AUTHORITY }, audited: eventOf('cert_issued') },
  },
  'a new password of its key': {
    name: 'replaceAuthority',
    params: { before: PLACED, after: { ...PLACED, lockedKey: digestOf('y') }, audited: eventOf('ca_password_changed') },
  },
  'an invitation': {
    name: 'createInvitation',
    params: { codeSha256: digestOf('x'), note: '', createdAt: CREATED_AT, expiresAt: CREATED_AT + 1, usesLeft: 1 },
  },
  'a withdrawal': { name: 'withdrawInvitation', params: 1 },
  'a ban': {
    name: 'banContent',
    params: { sha256: digestOf('x'), note: '', createdAt: CREATED_AT, banned: eventOf('content_banned') },
  },
  'a removal by the operator': {
    name: 'takeDown', params: { id: PASTES.chunked.id, content: null, removed: eventOf('paste_deleted') },
  },
  'a paste of an owner': { name: 'createPaste', params: { paste: PASTE, terms: TERMS } },
};

/** Kills itself before the statement of that number, prepared or not; says `done` when the command is acknowledged. */
function programOf(): string {
  const built = (name: string): string => String(pathToFileURL(join(dirname(builtMain()), 'store', name)));
  return `
    import { writeSync } from 'node:fs';
    import { DatabaseSync, StatementSync } from 'node:sqlite';
    import { deserialize } from 'node:v8';
    import { Executor } from '${built('batch.js')}';
    import { openWriting } from '${built('database.js')}';
    const [path, killAt, command] = process.argv.slice(1);
    const executor = new Executor(openWriting(path));
    let statements = 0;
    for (const [prototype, name] of [
      [DatabaseSync.prototype, 'exec'], [StatementSync.prototype, 'run'],
      [StatementSync.prototype, 'get'], [StatementSync.prototype, 'all'],
    ]) {
      const original = prototype[name];
      prototype[name] = function (...args) {
        if (statements++ === Number(killAt)) {
          process.kill(process.pid, 'SIGKILL');
          for (;;);
        }
        return original.apply(this, args);
      };
    }
    const [answer] = executor.carryOut([deserialize(Buffer.from(command, 'base64'))]);
    if (!answer.done) throw answer.error;
    writeSync(1, answer.value?.refused ? String(answer.value.refused) : 'done');`;
}

/** All that the tables hold. */
function contentOf(path: string): string {
  const db = new DatabaseSync(path);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const hash = createHash('sha256');
  for (const { name } of tables) {
    for (const row of db.prepare(`SELECT * FROM ${String(name)}`).iterate()) {
      for (const value of Object.values(row)) hash.update(value instanceof Uint8Array ? value : `${value}\0`);
    }
  }
  db.close();
  return hash.digest('hex');
}

interface Trial {
  readonly isKilled: boolean;
  readonly said: string;
}

async function carryOut(t: TestContext, path: string, killAt: number, command: string): Promise<Trial> {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', programOf(), path, String(killAt), command];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code, signal] = await once(child, 'close');
  assert.ok(code === 0 || signal === 'SIGKILL', `ended with ${code ?? signal}`);
  return { isKilled: signal === 'SIGKILL', said };
}

/**
 * Carries the command out here, and calls `before` with the number of each statement, prepared or not, before it runs.
 * A kill there leaves the files as they are then: everything else is lost with the process.
 */
function carryOutInSteps(t: TestContext, path: string, command: object, before: (statement: number) => void): number {
  const db = openWriting(path);
  const executor = new Executor(db);
  let statements = 0;
  const step = <Original extends (...args: never[]) => unknown>(original: Original) => (
    function (this: unknown, ...args: Parameters<Original>) {
      before(statements);
      statements += 1;
      return original.apply(this, args);
    }
  );
  const { exec } = DatabaseSync.prototype;
  const { all, get, run } = StatementSync.prototype;
  t.mock.method(DatabaseSync.prototype, 'exec', step(exec));
  t.mock.method(StatementSync.prototype, 'all', step(all));
  t.mock.method(StatementSync.prototype, 'get', step(get));
  t.mock.method(StatementSync.prototype, 'run', step(run));
  const [answer] = executor.carryOut([command as never]);
  t.mock.restoreAll();
  assert.ok(answer?.done);
  db.close();
  return statements;
}

function copyDatabase(from: string, to: string): void {
  for (const suffix of ['', '-wal', '-shm']) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix);
}

for (const [what, command] of Object.entries(COMMANDS)) {
  test(`kill -9 before each statement of ${what}: all of it, or nothing`, async (t) => {
    const folder = temporaryFolder(t);
    const nameOf = (name: string | number): string => join(folder, `${name}.db`);
    placeVector(MIGRATIONS.length, nameOf('model'));
    openWriting(nameOf('model')).close();
    const before = contentOf(nameOf('model'));
    copyDatabase(nameOf('model'), nameOf('whole'));
    const encoded = serialize(command).toString('base64');
    assert.deepEqual(await carryOut(t, nameOf('whole'), -1, encoded), { isKilled: false, said: 'done' });
    const after = contentOf(nameOf('whole'));
    assert.notEqual(after, before);

    copyDatabase(nameOf('model'), nameOf('here'));
    const copy = (statement: number): void => copyDatabase(nameOf('here'), nameOf(statement));
    const statements = carryOutInSteps(t, nameOf('here'), command, copy);
    assert.ok(statements >= 3, 'BEGIN, the change and COMMIT');
    assert.equal(contentOf(nameOf('here')), after);
    copyDatabase(nameOf('model'), nameOf('killed'));
    assert.deepEqual(await carryOut(t, nameOf('killed'), statements - 1, encoded), { isKilled: true, said: '' });
    for (const name of ['killed', ...Array.from({ length: statements }, (_, statement) => statement)]) {
      openWriting(nameOf(name)).close();
      assert.equal(selectValue(nameOf(name), 'PRAGMA integrity_check'), 'ok');
      assert.equal(contentOf(nameOf(name)), before, `before statement ${name}`);
    }
    t.diagnostic(`left before each of ${statements} statements, and killed before the last`);
  });
}
