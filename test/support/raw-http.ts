// HTTP/1.1 over a plain socket, for what no polite client sends: any bytes out, and a strict reading of what comes
// back. It knows only answers with Content-Length, which are all that this service gives; anything else fails the test.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  /** Lower-case names, in order; each with every value that was sent. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Buffer;
  /** The value of a header that must be there exactly once. */
  header(name: string): string;
  /** The body as JSON; fails unless it is one line with its newline. */
  json(): Record<string, unknown>;
}

export interface RawConnection {
  readonly socket: Socket;
  /** Text is sent one byte a character. */
  send(bytes: string | Uint8Array): void;
  /** The next answer, interim ones (100) included. To a HEAD it has no content, whatever its Content-Length says. */
  next(method?: string): Promise<RawAnswer>;
  /** What is left when the server has closed its side: nothing, unless an answer came unasked. */
  rest(): Promise<string>;
}

/** Fails a test instead of hanging it. */
const PATIENCE_MS = 15_000;

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) ([\x20-\x7e]+)$/;
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|)$/;

/** Connects to a port of the loopback interface, over TLS when it has options; destroyed when the test ends. */
export async function openRaw(
  t: TestContext,
  port: number,
  { tls, ...options }: { localAddress?: string; tls?: ConnectionOptions } = {},
): Promise<RawConnection> {
  const tcp = connect({ port, host: '127.0.0.1', allowHalfOpen: true, ...options });
  const socket = tls === undefined ? tcp : connectTls({ ...tls, socket: tcp });
  t.after(() => socket.destroy());
  const connected = tls === undefined ? 'connect' : 'secureConnect';
  await new Promise<void>((resolve, reject) => socket.once(connected, resolve).once('error', reject));
  const inbox = createInbox(socket);
  return {
    socket,
    send: (bytes) => socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    next: async (method = 'GET') => {
      const { answer, length } = await inbox.until(() => parseAnswer(inbox.bytes(), method, inbox.expect));
      inbox.drop(length);
      return answer;
    },
    rest: () => inbox.until(() => (inbox.isEnded() ? inbox.bytes().toString('latin1') : undefined)),
  };
}

/** What has been received and not taken yet. */
interface Inbox {
  bytes(): Buffer;
  drop(length: number): void;
  /** Nothing is tried again before there are that many bytes: else each packet would mean a look at a large answer. */
  readonly expect: (bytes: number) => void;
  isEnded(): boolean;
  /** Tries now and whenever something has arrived; fails when the connection has ended or the wait is too long. */
  until<T>(attempt: () => T | undefined): Promise<T>;
}

function createInbox(socket: Socket): Inbox {
  let chunks: Buffer[] = [];
  let length = 0;
  let expected = 0;
  let isEnded = false;
  let failure: Error | undefined;
  let wake = (): void => {};
  const bytes = (): Buffer => {
    const [only = Buffer.alloc(0), ...others] = chunks;
    if (others.length > 0) chunks = [Buffer.concat(chunks)];
    return others.length > 0 ? chunks[0]! : only;
  };
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= expected) wake();
  });
  socket.on('end', () => {
    isEnded = true;
    wake();
  });
  socket.on('error', (error) => {
    failure = error;
    wake();
  });

  async function until<T>(attempt: () => T | undefined): Promise<T> {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      wake();
    }, PATIENCE_MS);
    try {
      for (;;) {
        const result = attempt();
        if (result !== undefined) return result;
        if (failure !== undefined) throw failure;
        if (isEnded || isLate) {
          const received = JSON.stringify(bytes().toString('latin1', 0, 1000));
          assert.fail(isEnded ? `the server closed after ${received}` : `nothing more came after ${received}`);
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    bytes,
    drop: (count) => {
      chunks = [bytes().subarray(count)];
      length -= count;
      expected = 0;
    },
    expect: (count) => {
      expected = count;
    },
    isEnded: () => isEnded,
    until,
  };
}

/** Sends the bytes on a connection of their own; fails unless there is one answer and it ends the connection. */
export async function onlyAnswer(
  t: TestContext,
  port: number,
  bytes: string | Uint8Array,
  method?: string,
): Promise<RawAnswer> {
  const connection = await openRaw(t, port);
  connection.send(bytes);
  const answer = await connection.next(method);
  assert.equal(answer.header('connection'), 'close');
  assert.equal(await connection.rest(), '', 'one answer only');
  return answer;
}

/**
 * Every whole answer in what one connection received, and the bytes after them. `methods` are those of the requests, in
 * order; without them no answer is to a HEAD. An interim answer belongs to the request of the one after it.
 */
export function wholeAnswers(
  received: Buffer,
  methods: readonly string[] = [],
): { answers: readonly RawAnswer[]; rest: Buffer } {
  const answers: RawAnswer[] = [];
  let final = 0;
  for (let rest = received; ;) {
    const parsed = parseAnswer(rest, methods[final] ?? 'GET', () => {});
    if (parsed === undefined) return { answers, rest };
    if (parsed.answer.status >= 200) final += 1;
    answers.push(parsed.answer);
    rest = rest.subarray(parsed.length);
  }
}

/** A request head as bytes, Host included unless another is given. */
export function head(requestLine: string, ...lines: readonly string[]): string {
  const host = lines.some((line) => /^host\s*:/i.test(line)) ? [] : ['Host: paste.test'];
  return `${[requestLine, ...host, ...lines].join('\r\n')}\r\n\r\n`;
}

/** Undefined while the answer is incomplete; `expect` is then told how many bytes it has, once that is known. */
function parseAnswer(
  bytes: Buffer,
  method: string,
  expect: (bytes: number) => void,
): { answer: RawAnswer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...fieldLines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [, status = '', reason = ''] = STATUS_LINE.exec(statusLine) ?? assert.fail(`no status line: ${statusLine}`);
  const headers = new Map<string, string[]>();
  for (const line of fieldLines) {
    const [, name = '', value = ''] = FIELD_LINE.exec(line) ?? assert.fail(`no field line: ${line}`);
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value]);
  }
  const bodyStart = headEnd + 4;
  const bodyEnd = bodyStart + contentLength(Number(status), headers, method);
  if (bytes.length < bodyEnd) {
    expect(bodyEnd);
    return undefined;
  }
  return { answer: rawAnswer(Number(status), reason, headers, bytes.subarray(bodyStart, bodyEnd)), length: bodyEnd };
}

/** RFC 9112 section 6.3, as strictly as it can be read. */
function contentLength(status: number, headers: ReadonlyMap<string, readonly string[]>, method: string): number {
  const lengths = headers.get('content-length') ?? [];
  assert.equal(headers.has('transfer-encoding'), false, 'every length is known');
  if (status < 200 || status === 204 || status === 304) {
    assert.deepEqual(lengths, [], `${status} has no Content-Length`);
    return 0;
  }
  assert.equal(lengths.length, 1, `exactly one Content-Length in ${JSON.stringify([...headers])}`);
  assert.match(lengths[0] ?? '', /^\d+$/);
  return method === 'HEAD' ? 0 : Number(lengths[0]);
}

function rawAnswer(status: number, reason: string, headers: RawAnswer['headers'], body: Buffer): RawAnswer {
  return {
    status,
    reason,
    headers,
    body,
    header: (name) => {
      const values = headers.get(name) ?? [];
      assert.equal(values.length, 1, `${name} exactly once in ${JSON.stringify([...headers])}`);
      return values[0] ?? '';
    },
    json: () => {
      assert.match(body.toString(), /^\{.*\}\n$/);
      return JSON.parse(body.toString()) as Record<string, unknown>;
    },
  };
}
