// kill -9 before each statement of the transactions that an operator governs by: a process that carries out one command
// as the writer thread does. What is left is as before or as after, whole; and as after once it was acknowledged.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import { openWriting } from '../../src/store/database.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { builtMain } from '../support/built.ts';
import { CREATED_AT, selectValue, temporaryFolder } from '../support/store.ts';
import { AUTHORITY, CLIENT, INVITATION, OWNER, PASTES } from '../vectors/schema-rows.ts';
import { placeVector } from '../vectors/schema-vectors.ts';

/** Killed so many at a time. */
const AT_ONCE = 4;

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

/** Each on the kept database of the newest schema, in which the client's certificate is renewed and that one unused. */
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

for (const [what, command] of Object.entries(COMMANDS)) {
  test(`kill -9 before each statement of ${what}: all of it, or nothing`, async (t) => {
    const folder = temporaryFolder(t);
    const model = join(folder, 'model.db');
    placeVector(MIGRATIONS.length, model);
    openWriting(model).close();
    const before = contentOf(model);
    const encoded = serialize(command).toString('base64');
    const whole = join(folder, 'whole.db');
    copyFileSync(model, whole);
    assert.deepEqual(await carryOut(t, whole, -1, encoded), { isKilled: false, said: 'done' });
    const after = contentOf(whole);
    assert.notEqual(after, before);

    async function killAt(statement: number): Promise<boolean> {
      const path = join(folder, `${statement}.db`);
      copyFileSync(model, path);
      const { isKilled, said } = await carryOut(t, path, statement, encoded);
      openWriting(path).close();
      assert.equal(selectValue(path, 'PRAGMA integrity_check'), 'ok');
      assert.equal(contentOf(path), said === 'done' ? after : before, `killed before statement ${statement}`);
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
      return isKilled;
    }

    let killed = 0;
    for (let isOver = false; !isOver;) {
      const outcomes = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => killAt(killed + index)));
      killed += outcomes.filter(Boolean).length;
      isOver = outcomes.includes(false);
    }
    assert.ok(killed >= 3, 'BEGIN, the change and COMMIT');
    t.diagnostic(`killed before each of ${killed} statements`);
  });
}
