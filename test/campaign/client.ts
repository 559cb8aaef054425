// A connection for one request at a time, with three ends: a whole answer, no answer because the other side went away,
// or a failure of the protocol. It can hold back the last byte of a request, so that many requests are released at
// once. It only reads answers with Content-Length, because this service gives no others.

import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Sent instead of `body`, each in a turn of its own, as the other side takes it; `headers` say where they end. */
  readonly pieces?: Iterable<Uint8Array>;
}

export interface Answer {
  readonly status: number;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Client {
  /** Undefined when the other side went away before the answer was whole: then what was asked may have happened. */
  ask(request: Ask): Promise<Answer | undefined>;
  /** Sends all but the last byte; the returned function sends that one and resolves with the answer. */
  hold(request: Ask): Promise<() => Promise<Answer | undefined>>;
  close(): void;
}

/** For an answer, from the last piece on; a service that is silent for so long has failed. */
const PATIENCE_MS = 30_000;

/** Connects when it is first needed, and again after the server has ended the connection. */
export function createClient(port: number, localAddress = '127.0.0.1'): Client {
  let line: Line | undefined;

  async function opened(): Promise<Line | undefined> {
    if (line === undefined || !line.isOpen()) line = await openLine(port, localAddress);
    return line;
  }

  async function hold(request: Ask): Promise<() => Promise<Answer | undefined>> {
    const bytes = requestBytes(request);
    const current = await opened();
    current?.send(bytes.subarray(0, -1));
    return async () => {
      const answer = current?.next(request.method);
      current?.send(bytes.subarray(-1));
      return answer;
    };
  }

  return {
    hold,
    ask: async (request) => {
      const current = await opened();
      const answer = current?.next(request.method);
      current?.send(requestBytes(request));
      // It may be rejected before the last piece is sent; the caller gets it below, so that is not unhandled.
      answer?.catch(() => undefined);
      for (const piece of request.pieces ?? []) if (!(await current?.sendInTurn(piece))) break;
      return answer;
    },
    close: () => line?.close(),
  };
}

function requestBytes({ method, path, headers = {}, body, pieces }: Ask): Uint8Array {
  const lines = Object.entries({ Host: 'paste.test', ...headers }).map(([name, value]) => `${name}: ${value}`);
  const needsLength = body !== undefined || (method === 'POST' && pieces === undefined);
  if (needsLength) lines.push(`Content-Length: ${body?.length ?? 0}`);
  const head = Buffer.from([`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'), 'latin1');
  return body === undefined ? head : Buffer.concat([head, body]);
}

interface Line {
  isOpen(): boolean;
  send(bytes: Uint8Array): void;
  /** Whether more may be sent. */
  sendInTurn(bytes: Uint8Array): Promise<boolean>;
  next(method: string): Promise<Answer | undefined>;
  close(): void;
}

/** Undefined when nobody listens. */
async function openLine(port: number, localAddress: string): Promise<Line | undefined> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
  const isConnected = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  if (!isConnected) return undefined;
  return lineOf(socket);
}

function lineOf(socket: Socket): Line {
  let chunks: Buffer[] = [];
  let gatheredBytes = 0;
  let neededBytes = 0;
  let isOpen = true;
  let waiting: { method: string; settle: (answer: Answer | undefined) => void; stillSending: () => void } | undefined;

  function attempt(): void {
    if (waiting === undefined || gatheredBytes < neededBytes) return;
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks = [bytes];
    const parsed = parseAnswer(bytes, waiting.method);
    neededBytes = parsed.neededBytes;
    if (parsed.answer === undefined) return;
    const rest = bytes.subarray(neededBytes);
    chunks = rest.length === 0 ? [] : [rest];
    gatheredBytes = rest.length;
    neededBytes = 0;
    if (parsed.answer.headers['connection'] === 'close') close();
    settle(parsed.answer);
  }

  function settle(answer: Answer | undefined): void {
    const { settle: resolve } = waiting ?? { settle: () => {} };
    waiting = undefined;
    resolve(answer);
  }

  function close(): void {
    isOpen = false;
    socket.destroy();
  }

  socket.on('data', (chunk) => {
    chunks.push(chunk);
    gatheredBytes += chunk.length;
    attempt();
  });
  socket.on('error', () => close());
  socket.on('close', () => {
    isOpen = false;
    settle(undefined);
  });
  socket.on('end', () => close());

  return {
    isOpen: () => isOpen,
    send: (bytes) => {
      if (isOpen) socket.write(bytes);
    },
    sendInTurn: async (bytes) => {
      if (!isOpen) return false;
      const taken = new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
      await Promise.all([taken, nextTurn()]);
      waiting?.stillSending();
      return isOpen;
    },
    next: (method) => new Promise((resolve, reject) => {
      if (!isOpen) return resolve(undefined);
      const timer = setTimeout(() => {
        reject(new Error(`no answer to ${method} in ${PATIENCE_MS / 1000} s`));
        close();
      }, PATIENCE_MS);
      waiting = {
        method,
        stillSending: () => timer.refresh(),
        settle: (answer) => {
          clearTimeout(timer);
          resolve(answer);
        },
      };
      attempt();
    }),
    close,
  };
}

/** `neededBytes`: the length of the whole answer, as far as it is known. */
function parseAnswer(bytes: Buffer, method: string): { answer: Answer | undefined; neededBytes: number } {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return { answer: undefined, neededBytes: bytes.length + 1 };
  const [statusLine = '', ...fields] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const colon = field.indexOf(':');
    headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim();
  }
  const status = Number(statusLine.split(' ')[1]);
  const isBodiless = method === 'HEAD' || status === 204 || status === 304;
  const bodyStart = headEnd + 4;
  const bodyEnd = bodyStart + (isBodiless ? 0 : Number(headers['content-length'] ?? 0));
  if (bytes.length < bodyEnd) return { answer: undefined, neededBytes: bodyEnd };
  return { answer: { status, headers, body: bytes.subarray(bodyStart, bodyEnd) }, neededBytes: bodyEnd };
}
