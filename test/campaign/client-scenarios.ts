// What pastec is asked for while something fails, and what must hold then: it sends nothing readable of what is to be
// encrypted, loses nothing that is given only once, and never reports success of what did not succeed.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAGIC, seal, unseal } from '../support/sealed.ts';
import { IDENTITY_SCENARIOS, keepIdentity } from './client-identities.ts';
import { filesOf, runClient, type Ended, type Trial } from './client-trial.ts';

export interface Scenario {
  readonly name: string;
  /** Settings of the service. */
  readonly service?: Readonly<Record<string, string>>;
  /** Whether the service speaks TLS by itself. */
  readonly hasTls?: boolean;
  /** Before pastec runs, and before anything fails. */
  begin(trial: Trial): Promise<Attempt>;
}

export interface Attempt {
  readonly args: readonly string[];
  readonly input?: string | Uint8Array;
  /** What is wrong with the result, in words. */
  judge(ended: Ended, failure: Failure): Promise<readonly string[]>;
}

export interface Failure {
  /** The program that fails; undefined when it is a disk. */
  readonly program?: string;
  /** Whether the program reports success all the same. */
  readonly lies: boolean;
  /** Whether a disk has too little room. */
  readonly isFull: boolean;
  /** What is printed when nothing fails. */
  readonly expected: string | undefined;
}

/** Several pages of a file system long, so that a disk can become full in the middle of it. */
const PLAIN = 'what nobody else may read, whatever happens\n'.repeat(250);
const NEW = 'and nobody may read this instead\n'.repeat(250);
const PASSWORD = 'a secret password';
const KEY = Buffer.alloc(32, 7);
const KEY_TEXT = KEY.toString('base64url');
const OWNER = '0123456789abcdef0123456789abcdef01234567';

/** Must be in no error, and in nothing that is sent of encrypted content. */
const READABLE = /nobody/;

async function store(trial: Trial, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
  const stored = await fetch(`http://127.0.0.1:${trial.port}/`, { method: 'POST', body: body as string, headers });
  if (stored.status !== 201) throw new Error(`storing was answered ${stored.status}: ${await stored.text()}`);
  return stored;
}

async function idOf(stored: Response): Promise<string> {
  return ((await stored.json()) as { id: string }).id;
}

/** Reads the paste, which burns a burn paste. */
async function readOf({ port }: Trial, id: string): Promise<{ status: number; content: Buffer; burns: boolean }> {
  const headers = { 'X-Paste-Password': PASSWORD };
  const answer = await fetch(`http://127.0.0.1:${port}/${id}/raw`, { headers });
  const content = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, content, burns: answer.headers.get('x-burn-after-read') === 'true' };
}

async function isThere({ port }: Trial, id: string): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/${id}`, { method: 'HEAD' });
  return answer.status === 200 || answer.status === 401;
}

/** Empty when the key does not open the content. */
function opened(key: Buffer, content: Buffer): string {
  try {
    return String(unseal(key, content));
  } catch {
    return '';
  }
}

/** When a program that passes on content of no known file lies about its success, any part of it may be missing. */
function mayBeCut({ program, lies }: Failure, passing: string): boolean {
  return lies && program === passing;
}

/** The head and the body of each request that stores something. */
function storing({ relay }: Trial): readonly { readonly head: string; readonly body: Buffer }[] {
  const sent = relay.sent();
  const starts: number[] = [];
  for (let at = sent.indexOf('POST / HTTP/1.1\r\n'); at !== -1; at = sent.indexOf('POST / HTTP/1.1\r\n', at + 1)) {
    starts.push(at);
  }
  return starts.map((start, index) => {
    const request = sent.subarray(start, starts[index + 1]);
    const end = request.indexOf('\r\n\r\n');
    return { head: request.toString('latin1', 0, end), body: request.subarray(end + 4) };
  });
}

/** Reads what was stored if pastec reported success. Reading may burn it, so this is called once. */
async function judgeStored(
  trial: Trial, { code, stdout }: Ended, failure: Failure, passing: string, burns: boolean,
): Promise<string[]> {
  const wrong: string[] = [];
  const isSealed = passing !== 'cat';
  for (const { head, body } of storing(trial)) {
    if (!head.includes(`\r\nX-Paste-Password: ${PASSWORD}`)) wrong.push('sent without its password');
    if (burns && !/\r\nX-Burn-After-Read: true/.test(head)) wrong.push('sent without its burning');
    if (isSealed && !body.subarray(0, MAGIC.length).equals(MAGIC)) wrong.push('sent as something else than sealed');
  }
  if (isSealed && READABLE.test(String(trial.relay.sent()))) wrong.push('sent as it is');
  if (code !== 0) return wrong;
  const [, id = '', key = ''] = /\/(\w+)(?:#([\w-]{43}))?\n$/.exec(String(stdout)) ?? [];
  const { status, content, burns: hasBurned } = await readOf(trial, id);
  if (status !== 200 || hasBurned !== burns) return [...wrong, `stored, it is said, but reading is answered ${status}`];
  if (isSealed && key === '') return [...wrong, 'there is no key in the URL'];
  const plain = isSealed ? opened(Buffer.from(key, 'base64url'), content) : String(content);
  if (plain !== PLAIN && !mayBeCut(failure, passing)) wrong.push('another content is stored');
  return wrong;
}

/** `passing`: the program that passes on the content when no file has it. */
function putting(
  name: string, args: readonly string[], passing: string, isFile: boolean, service?: Scenario['service'],
): Scenario {
  return {
    name,
    ...(service === undefined ? {} : { service }),
    async begin(trial) {
      writeFileSync(join(trial.folders.work, 'password'), PASSWORD);
      if (isFile) writeFileSync(join(trial.folders.work, 'plain'), PLAIN);
      return {
        args: [...args, '--password-file', 'password', isFile ? 'plain' : '-'],
        input: isFile ? '' : PLAIN,
        judge: (ended, failure) => {
          const known = isFile ? { ...failure, lies: false } : failure;
          return judgeStored(trial, ended, known, passing, args.some((arg) => /^-[^-]*b/.test(arg)));
        },
      };
    },
  };
}

/** Reads a burn paste or, without `burns`, one that stays. */
function getting(name: string, isSealed: boolean, hasFile: boolean, burns = true): Scenario {
  return {
    name,
    async begin(trial) {
      const content = isSealed ? seal(KEY, Buffer.from(PLAIN)) : Buffer.from(PLAIN);
      const id = await idOf(await store(trial, content, burns ? { 'X-Burn-After-Read': 'true' } : {}));
      const target = `${trial.relay.url}/${id}${isSealed ? `#${KEY_TEXT}` : ''}`;
      return {
        args: ['get', ...(hasFile ? ['-o', 'out'] : []), target],
        judge: (ended, failure) => judgeRead(trial, ended, failure, { id, content, hasFile }),
      };
    },
  };
}

interface ToRead {
  readonly id: string;
  readonly content: Buffer;
  readonly hasFile: boolean;
}

async function judgeRead(
  trial: Trial, { code, stdout, stderr }: Ended, failure: Failure, { id, content, hasFile }: ToRead,
): Promise<string[]> {
  const wrong: string[] = [];
  const files = filesOf(trial);
  const out = String(files.get(join(trial.folders.work, 'out')) ?? '');
  const given = hasFile ? out : String(stdout);
  if (!PLAIN.startsWith(given)) wrong.push('something else is given');
  if (hasFile && stdout.length > 0) wrong.push('something is printed');
  const isGiven = given === PLAIN || (!hasFile && mayBeCut(failure, 'cat'));
  if (code === 0 && !isGiven) wrong.push('success is said, and the content is not there');
  if (await isThere(trial, id) || isGiven) return wrong;
  const kept = [...files].filter(([path, bytes]) => stderr.includes(path) && bytes.equals(content));
  for (const [path] of kept) if ((statSync(path).mode & 0o077) !== 0) wrong.push(`${path} is shown to others`);
  const isSaid = failure.isFull && /only once/.test(stderr);
  if (kept.length === 0 && !isSaid) wrong.push('what is given only once is lost');
  return wrong;
}

/** `isFile`: the encrypted content is in a file, else on standard input. `hasFile`: the result is written to a file. */
function decrypting(name: string, isFile: boolean, hasFile: boolean): Scenario {
  return {
    name,
    async begin(trial) {
      const { work } = trial.folders;
      const sealed = seal(KEY, Buffer.from(PLAIN));
      writeFileSync(join(work, 'key'), KEY_TEXT);
      if (isFile) writeFileSync(join(work, 'sealed'), sealed);
      return {
        args: ['decrypt', '--key-file', 'key', ...(hasFile ? ['-o', 'out'] : []), isFile ? 'sealed' : '-'],
        input: isFile ? '' : sealed,
        async judge({ code, stdout }, failure) {
          const wrong: string[] = [];
          const out = filesOf(trial, ['work']).get(join(work, 'out')) ?? '';
          const given = String(hasFile ? out : stdout);
          if (!PLAIN.startsWith(given)) wrong.push('something else is given');
          const isGiven = given === PLAIN || (!hasFile && mayBeCut(failure, 'cat'));
          if (code === 0 && !isGiven) wrong.push('success is said, and the content is not there');
          if (isFile && !readFileSync(join(work, 'sealed')).equals(sealed)) wrong.push('what was encrypted is changed');
          return wrong;
        },
      };
    },
  };
}

const removing: Scenario = {
  name: 'rm',
  async begin(trial) {
    const stored = await store(trial, PLAIN);
    const token = stored.headers.get('x-delete-token');
    const id = await idOf(stored);
    const url = `${trial.relay.url}/${id}`;
    const folder = join(trial.folders.home, '.local/state/pastec/delete-tokens');
    mkdirSync(folder, { recursive: true });
    const line = `\n${createHash('sha256').update(`${url}\n`).digest('hex')} ${token}\n`;
    const file = join(folder, '99999');
    writeFileSync(file, line);
    return {
      args: ['rm', url],
      async judge({ code }) {
        if (!await isThere(trial, id)) return [];
        if (code === 0) return ['success is said, and the paste is still there'];
        return String(filesOf(trial).get(file)) === line ? [] : ['its token is lost'];
      },
    };
  },
};

const updating: Scenario = {
  name: 'update',
  async begin(trial) {
    const sealed = seal(KEY, Buffer.from(PLAIN));
    const id = await idOf(await store(trial, sealed, { 'X-SSL-Client-SHA1': OWNER }));
    const url = `${trial.relay.url}/${id}#${KEY_TEXT}`;
    writeFileSync(join(trial.folders.work, 'new'), NEW);
    return {
      args: ['update', '--fingerprint', OWNER, url, 'new'],
      async judge({ code, stdout }) {
        const wrong: string[] = [];
        if (READABLE.test(String(trial.relay.sent()))) wrong.push('sent as it is');
        const { content } = await readOf(trial, id);
        const isNew = !content.equals(sealed);
        if (isNew && opened(KEY, content) !== NEW) wrong.push('another content is stored');
        if (code === 0 && (!isNew || String(stdout) !== `${url}\n`)) wrong.push('success is said of no update');
        return wrong;
      },
    };
  },
};

/** For commands that only print. If a program lies about its failure, it may have left something out: no judgement. */
function printing(name: string, args: readonly string[], prepare: (trial: Trial) => Promise<string[]>): Scenario {
  return {
    name,
    async begin(trial) {
      const operands = await prepare(trial);
      return {
        args: [...args, ...operands],
        async judge({ code, stdout }, { lies, expected }) {
          if (code !== 0 || lies || expected === undefined) return [];
          return neutral(trial, stdout) === expected ? [] : ['success is said, and something else is printed'];
        },
      };
    },
  };
}

/**
 * What is printed, without what differs from run to run. Times are Unix seconds where no program knows the calendar. A
 * certificate is made for a year, of which a second may have passed.
 */
export function neutral(trial: Trial, printed: Buffer): string {
  return String(printed).replaceAll(trial.relay.url, 'URL').replaceAll(/\b[a-z2-7]{26}\b/g, 'ID')
    .replaceAll(/\b(\d{4}-\d\d-\d\dT[\d:]{8}Z|1[789]\d{8})(?=\s)/g, 'TIME').replace(/36[45] days left/, 'N days left')
    .replaceAll(/\b[0-9a-f]{12}\b/g, 'OWNER').replaceAll(trial.folders.home, 'HOME').replace(/_\d+(?=\/client)/, '_PORT');
}

/** Claims an owner that nobody else has, so that the list shows no other pastes. */
async function ownPastes(trial: Trial): Promise<string[]> {
  const owner = createHash('sha1').update(trial.root).digest('hex');
  for (const content of [PLAIN, PLAIN]) await store(trial, content, { 'X-SSL-Client-SHA1': owner });
  return ['--fingerprint', owner];
}

async function registered(trial: Trial): Promise<string[]> {
  const { code, stderr } = await runClient(trial, ['register', '--allow-http'], '', {});
  if (code !== 0) throw new Error(`registering failed: ${stderr}`);
  return [];
}

export const SCENARIOS: readonly Scenario[] = [
  putting('put', ['-b'], 'cat', false),
  putting('put of a file, after work', ['-b'], 'cat', true, { SERVICE_POW_DIFFICULTY: '6' }),
  putting('put -E', ['-E'], 'openssl enc', false),
  putting('put -bE of a file', ['-bE'], 'openssl enc', true),
  getting('get', false, false, false),
  getting('get of what burns', false, false),
  getting('get of what burns and is encrypted', true, false),
  getting('get -o of what burns', false, true),
  getting('get -o of what burns and is encrypted', true, true),
  decrypting('decrypt', true, false),
  decrypting('decrypt -o of standard input', false, true),
  removing,
  updating,
  ...IDENTITY_SCENARIOS,
  printing('ls', ['ls'], ownPastes),
  printing('info', ['info'], async (trial) => [`${trial.relay.url}/${await idOf(await store(trial, PLAIN))}`]),
  printing('status', ['status'], registered),
  printing('cert show', ['cert', 'show'], async (trial) => keepIdentity(trial)),
  printing('help', ['help'], async () => []),
  printing('completion bash', ['completion', 'bash'], async () => []),
];
