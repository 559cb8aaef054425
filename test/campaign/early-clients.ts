// Clients as people have them. Each uploads more than the service takes, in its own manner, and reports what it saw.
// When a client cannot read the early answer, the service has failed: it has to close so that every client can.

import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { connect } from 'node:net';
import { installedPrograms } from './programs.ts';

export type Form = 'length' | 'chunked' | 'expect';

/** What is uploaded, and where to. */
export interface Upload {
  readonly port: number;
  /** An empty folder for this one request. */
  readonly folder: string;
  readonly file: string;
  readonly content: Buffer;
}

export interface Sighting {
  readonly status: number;
  /** The answer's body as far as the client shows it. */
  readonly body: string | undefined;
  /** How much of the upload's body was sent; undefined where the client does not tell. */
  readonly sentBytes?: number | undefined;
  /** Helps to find the cause of a failure. */
  readonly said?: string | undefined;
}

export interface EarlyClient {
  readonly name: string;
  readonly program?: string;
  readonly forms: readonly Form[];
  /** It speaks TLS only. */
  readonly tls?: boolean;
  upload(form: Form, upload: Upload): Promise<Sighting>;
}

const ALL_FORMS: readonly Form[] = ['length', 'chunked', 'expect'];
const PATIENCE_MS = 30_000;

/** The clients whose program is installed, and the programs that are not. */
export function installedClients(): { clients: readonly EarlyClient[]; missing: readonly string[] } {
  const programs = EARLY_CLIENTS.flatMap(({ program }) => (program === undefined ? [] : [program]));
  const installed = installedPrograms(programs);
  return {
    clients: EARLY_CLIENTS.filter(({ program }) => program === undefined || installed.has(program)),
    missing: programs.filter((program) => !installed.has(program)),
  };
}

/** Waits a minute for the 100, so that curl sends a body only when it is asked for. */
export async function curl(form: Form, { port, folder, file }: Upload): Promise<Sighting> {
  const lines = {
    length: ['Expect:'],
    chunked: ['Expect:', 'Transfer-Encoding: chunked'],
    expect: ['Expect: 100-continue'],
  }[form];
  const headers = ['Content-Type: text/plain', ...lines].flatMap((line) => ['-H', line]);
  const args = [
    '-sS', '--expect100-timeout', '60', '--data-binary', `@${file}`, ...headers, '-w', '\n%{http_code} %{size_upload}',
  ];
  const { stdout, stderr } = await run('curl', [...args, `http://127.0.0.1:${port}/`], folder);
  const end = stdout.lastIndexOf('\n');
  const [status, sentBytes] = stdout.slice(end + 1).split(' ').map(Number);
  return { status: status ?? 0, body: stdout.slice(0, end), sentBytes, said: stderr };
}

async function fetchUpload(form: Form, { port, content }: Upload): Promise<Sighting> {
  const body = form === 'length' ? content : new Blob([new Uint8Array(content)]).stream();
  const options = { method: 'POST', body, duplex: 'half' } as unknown as RequestInit;
  const answer = await fetch(`http://127.0.0.1:${port}/`, options);
  return { status: answer.status, body: await answer.text() };
}

/** As programs use node:http: they write, and listen for the answer at the same time. */
function nodeUpload(form: Form, { port, content }: Upload): Promise<Sighting> {
  const length = { 'Content-Length': content.length };
  const headers = { chunked: {}, length, expect: { ...length, Expect: '100-continue' } };
  return new Promise((resolve, reject) => {
    let sentBytes = 0;
    const req = request({ port, host: '127.0.0.1', method: 'POST', headers: headers[form], agent: false }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (text) => (body += text)).on('error', reject);
      res.on('end', () => {
        req.destroy();
        resolve({ status: res.statusCode ?? 0, body, sentBytes });
      });
    });
    req.setTimeout(PATIENCE_MS, () => req.destroy(new Error('nothing came')));
    req.on('error', reject);
    const send = (): void => {
      sentBytes = content.length;
      req.end(content);
    };
    if (form === 'expect') req.on('continue', send).flushHeaders();
    else send();
  });
}

/** The worst of clients: reads nothing before it has sent everything. */
function socketUpload(form: Form, { port, content }: Upload): Promise<Sighting> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  return new Promise((resolve, reject) => {
    let received = '';
    const giveUp = (): void => void socket.destroy(new Error(`nothing more came after ${received.slice(0, 100)}`));
    socket.setTimeout(PATIENCE_MS, giveUp);
    socket.on('error', reject);
    socket.pause();
    socket.write(uploadHead(form, content.length));
    const body = form === 'length' ? content : form === 'chunked' ? chunked(content) : Buffer.alloc(0);
    socket.write(body, () => socket.resume());
    socket.on('data', (bytes) => (received += bytes.toString('latin1')));
    socket.on('end', () => {
      socket.destroy();
      resolve(sightingOf(received, body.length));
    });
  });
}

/** The status is 0 unless exactly one answer came: a 100 before it would have asked for the body. */
function sightingOf(received: string, sentBytes?: number): Sighting {
  const [, status = '0'] = /^HTTP\/1\.1 (\d{3}) /.exec(received) ?? [];
  const answers = received.split('HTTP/1.1 ').length - 1;
  const body = received.slice(received.indexOf('\r\n\r\n') + 4);
  return { status: answers === 1 ? Number(status) : 0, body, sentBytes, said: received.slice(0, 1000) };
}

function uploadHead(form: Form, bytes: number): string {
  const framing = form === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes}`;
  const lines = [
    'POST / HTTP/1.1', 'Host: paste.example', framing, ...(form === 'expect' ? ['Expect: 100-continue'] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function chunked(content: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let start = 0; start < content.length; start += 65_536) {
    const piece = content.subarray(start, start + 65_536);
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

/** http.client sends everything, and then looks for the answer; with Expect it is made to look first. */
const PYTHON = `
import http.client, sys
form, port, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
content = open(file, 'rb').read()
c = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
try:
    if form == 'length':
        c.request('POST', '/', content)
    elif form == 'chunked':
        c.request('POST', '/', (content[i:i + 65536] for i in range(0, len(content), 65536)), encode_chunked=True,
                  headers={'Transfer-Encoding': 'chunked'})
    else:
        c.putrequest('POST', '/')
        c.putheader('Content-Length', str(len(content)))
        c.putheader('Expect', '100-continue')
        c.endheaders()
except (BrokenPipeError, ConnectionResetError):
    pass
r = c.getresponse()
print(r.status)
print(r.read().decode(), end='')
`;

async function pythonUpload(form: Form, { port, folder, file }: Upload): Promise<Sighting> {
  const { stdout, stderr } = await run('python3', ['-c', PYTHON, form, String(port), file], folder);
  const [status = '', ...body] = stdout.split('\n');
  return { status: Number(status), body: body.join('\n'), sentBytes: form === 'expect' ? 0 : undefined, said: stderr };
}

async function wgetUpload(_: Form, { port, folder, file }: Upload): Promise<Sighting> {
  const args = ['-S', '--tries=1', '--no-proxy', '--content-on-error', '-O', '-', `--post-file=${file}`];
  const { stdout, stderr } = await run('wget', [...args, `http://127.0.0.1:${port}/`], folder);
  return { status: statusIn(stderr), body: stdout, said: stderr };
}

/** BusyBox shows no body of an error. */
async function busyboxUpload(_: Form, { port, folder, file }: Upload): Promise<Sighting> {
  const args = ['wget', '-S', '-Y', 'off', '-O', '-', '--post-file', file, `http://127.0.0.1:${port}/`];
  const { stderr } = await run('busybox', args, folder);
  return { status: statusIn(stderr), body: undefined, said: stderr };
}

async function opensslUpload(form: Form, { port, folder, content }: Upload): Promise<Sighting> {
  const body = form === 'length' ? content : form === 'chunked' ? chunked(content) : Buffer.alloc(0);
  const args = ['s_client', '-quiet', '-connect', `127.0.0.1:${port}`];
  const input = Buffer.concat([Buffer.from(uploadHead(form, content.length)), body]);
  const { stdout, stderr } = await run('openssl', args, folder, input);
  return { ...sightingOf(stdout, body.length), said: stderr };
}

function statusIn(text: string): number {
  return Number(/HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
}

/** Resolves whatever the program ends with. */
function run(
  program: string,
  args: readonly string[],
  cwd: string,
  input?: Buffer,
): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = { cwd, timeout: PATIENCE_MS, maxBuffer: 2 ** 26 };
    const child = execFile(program, args, options, (_, stdout, stderr) => resolve({ stdout, stderr }));
    child.stdin?.on('error', () => {});
    if (input === undefined) child.stdin?.end();
    // The input stays open, because s_client ends when its input does.
    else child.stdin?.write(input);
    child.on('exit', () => child.stdin?.destroy());
  });
}

const EARLY_CLIENTS: readonly EarlyClient[] = [
  { name: 'curl', program: 'curl', forms: ALL_FORMS, upload: curl },
  { name: 'fetch', forms: ['length', 'chunked'], upload: fetchUpload },
  { name: 'node:http', forms: ALL_FORMS, upload: nodeUpload },
  { name: 'a socket', forms: ALL_FORMS, upload: socketUpload },
  { name: 'http.client', program: 'python3', forms: ALL_FORMS, upload: pythonUpload },
  { name: 'wget', program: 'wget', forms: ['length'], upload: wgetUpload },
  { name: 'BusyBox wget', program: 'busybox', forms: ['length'], upload: busyboxUpload },
  { name: 'openssl', program: 'openssl', forms: ALL_FORMS, tls: true, upload: opensslUpload },
];
