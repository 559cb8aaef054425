// Uploads in tiny pieces, as a part of a row: many connections at once, each with one upload after the other, which is
// read back and compared. A way says what the pieces are: of a byte or as small as a long body may have them, many to a
// packet or one, in JSON with every character escaped, in forms.

import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { runPart } from './part.ts';
import type { TinyWay } from './row-20-tiny.ts';

export interface TinyOptions {
  /** Each connection takes them in turn. */
  readonly ways: readonly TinyWay[];
  readonly port: number;
  readonly connections: number;
  /** Connections take these in turn, because no address may have all of the connections. */
  readonly addresses: readonly string[];
  /** For each way. */
  readonly seconds: number;
}

export interface TinySent {
  /** How many bodies had the right outcome, by way and outcome. */
  readonly sent: Readonly<Record<string, number>>;
  /** Bytes of content that was stored and read back. */
  readonly bytes: number;
  /** How many bodies had a wrong outcome, by way and by what was answered instead. */
  readonly wrong: Readonly<Record<string, number>>;
}

/** A body, and what must become of it. */
interface Upload {
  readonly ask: Ask;
  /** `stored`: it is read back. `refused`: it has more pieces than a body may have. `shown`: a page is the answer. */
  readonly fate: 'stored' | 'refused' | 'shown';
  /** What is stored. */
  readonly content: Buffer;
}

/** A body may have 4 096 pieces, and beyond them one for each 16 bytes (http/engine/body.ts). */
const FEW_BYTES = 3968;
const MANY_BYTES = 8192;
const SMALLEST_LONG_PIECE = 16;

/** Escapes have six bytes, so that pieces of 17 cut them at each of their places. */
const CUTTING_PIECE = 17;
const PACKET_BYTES = 64 * 1024;
const TEXT_BYTES = 64;

/** On each connection, in each way: as many as a way has kinds of uploads. */
const FEWEST_UPLOADS = 3;

const CHUNKED = { 'Transfer-Encoding': 'chunked' };
const BURNING = { 'X-Burn-After-Read': '1' };

async function sendAll({ ways, port, connections, addresses, seconds }: TinyOptions): Promise<TinySent> {
  const sent: Record<string, number> = {};
  const wrong: Record<string, number> = {};
  let bytes = 0;
  const sendOne = async (client: Client, way: TinyWay, upload: Upload): Promise<void> => {
    const { outcome, isRight } = await carryOut(client, upload);
    const [outcomes, name] = [isRight ? sent : wrong, `${way}: ${outcome}`];
    outcomes[name] = (outcomes[name] ?? 0) + 1;
    if (outcome === 'stored') bytes += upload.content.length;
  };
  await Promise.all(Array.from({ length: connections }, async (_, connection) => {
    const client = createClient(port, addresses[connection % addresses.length]);
    const shownPath = ways.includes('forms') ? await storedPath(client) : '';
    for (const way of ways) {
      const endMs = performance.now() + seconds * 1000;
      for (let turn = 0; turn < FEWEST_UPLOADS || performance.now() < endMs; turn += 1) {
        await sendOne(client, way, uploadOf(way, turn, `${process.pid} ${connection} ${turn};`, shownPath));
      }
    }
    client.close();
  }));
  return { sent, bytes, wrong };
}

/** Stores the paste whose page is the answer to forms. */
async function storedPath(client: Client): Promise<string> {
  const answer = await client.ask({ method: 'POST', path: '/', body: Buffer.from('to be shown') });
  return `/${String(JSON.parse(String(answer?.body))['id'])}`;
}

/**
 * What became of the upload, in words, and whether that is right. `unheard`: it was refused, but cut off before the
 * client had read that, because more refused uploads lingered than may at a time.
 */
async function carryOut(
  client: Client,
  { ask, fate, content }: Upload,
): Promise<{ readonly outcome: string; readonly isRight: boolean }> {
  const answer = await client.ask(ask);
  if (fate === 'refused' && answer === undefined) return { outcome: 'unheard', isRight: true };
  const [status, words] = EXPECTED[fate];
  const isRight = answer?.status === status && answer.body.includes(words);
  if (!isRight) return { outcome: saidBy(answer), isRight };
  if (fate !== 'stored') return { outcome: fate, isRight };
  const { id } = JSON.parse(String(answer.body)) as { id: string };
  const read = await client.ask({ method: 'GET', path: `/${id}/raw` });
  const isSame = read?.status === 200 && read.body.equals(content);
  return { outcome: isSame ? fate : `read as ${saidBy(read)}`, isRight: isSame };
}

const EXPECTED: Readonly<Record<Upload['fate'], readonly [status: number, words: string]>> = {
  stored: [201, 'raw'], refused: [400, 'too many small pieces'], shown: [200, 'to be shown'],
};

function saidBy(answer: Answer | undefined): string {
  return answer === undefined ? 'no answer' : `${answer.status} ${answer.body.toString('latin1', 0, 100)}`;
}

/** A text that is sent many times over. It is framed or escaped only once, because nothing can be sent meanwhile. */
interface Repeated {
  readonly text: Buffer;
  readonly times: number;
}

function uploadOf(way: TinyWay, turn: number, label: string, shownPath: string): Upload {
  const text = Buffer.from(label.padEnd(TEXT_BYTES));
  const times = (bytes: number): Repeated => ({ text, times: Math.ceil(bytes / TEXT_BYTES) });
  switch (way) {
    case 'packed bytes':
      if (turn % 3 === 1) return refused(storedOf(times(2 * PACKET_BYTES), 1, 'packed'));
      if (turn % 3 === 0) return storedOf(times(FEW_BYTES), 1, 'packed');
      return storedOf(times(8 * PACKET_BYTES), SMALLEST_LONG_PIECE, 'packed');
    case 'lone bytes':
      return turn % 2 === 0 ? storedOf(times(FEW_BYTES), 1, 'lone') : refused(storedOf(times(MANY_BYTES), 1, 'lone'));
    case 'escaped':
      return escapedOf(times(4 * PACKET_BYTES), PACKET_BYTES);
    case 'lone escaped':
      return escapedOf(times(PACKET_BYTES / 4), CUTTING_PIECE);
    case 'forms':
      return turn % 2 === 0 ? multipartOf(repeat(times(FEW_BYTES / 2))) : pageFormOf(shownPath);
  }
}

function repeat({ text, times }: Repeated): Buffer {
  return Buffer.alloc(text.length * times, text);
}

function storedOf({ text, times }: Repeated, chunkBytes: number, packing: Packing): Upload {
  const chunks = repeat({ text: framed(text, chunkBytes), times });
  return uploadTo('/', BURNING, piecesOf(chunks, chunkBytes, packing), 'stored', repeat({ text, times }));
}

function uploadTo(
  path: string,
  headers: Readonly<Record<string, string>>,
  pieces: readonly Buffer[],
  fate: Upload['fate'],
  content: Buffer,
): Upload {
  return { ask: { method: 'POST', path, headers: { ...CHUNKED, ...headers }, pieces }, fate, content };
}

function refused(upload: Upload): Upload {
  return { ...upload, fate: 'refused' };
}

/** With a Content-Length when it comes in packets, else in chunks of `pieceBytes`. */
function escapedOf({ text, times }: Repeated, pieceBytes: number): Upload {
  const escapes = repeat({ text: Buffer.from(escapesOf(text, (hex) => `\\u00${hex}`)), times });
  const document = Buffer.concat([Buffer.from('{"\\u0063ontent":"'), escapes, Buffer.from('"}')]);
  const headers = { 'Content-Type': 'application/json', ...BURNING };
  const content = repeat({ text, times });
  if (pieceBytes < PACKET_BYTES) {
    const pieces = piecesOf(framed(document, pieceBytes), pieceBytes, 'lone');
    return uploadTo('/', headers, pieces, 'stored', content);
  }
  const known = { ...headers, 'Content-Length': String(document.length) };
  const ask = { method: 'POST', path: '/', headers: known, pieces: cut(document, pieceBytes) };
  return { ask, fate: 'stored', content };
}

/** As `curl -F` sends a file: the service does not read such a form, and stores what is sent. */
function multipartOf(field: Buffer): Upload {
  const boundary = 'in-tiny-pieces';
  const before = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n`;
  const content = Buffer.concat([Buffer.from(before), field, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}`, ...BURNING };
  return uploadTo('/', headers, piecesOf(framed(content, 1), 1, 'lone'), 'stored', content);
}

/** The form of a page. It has a password for a paste that has none, so that nothing is hashed. */
function pageFormOf(path: string): Upload {
  const escaped = (text: string): string => escapesOf(Buffer.from(text), (hex) => `%${hex}`);
  const headers = { Accept: 'text/html', 'Content-Type': 'application/x-www-form-urlencoded' };
  const body = Buffer.from(`${escaped('password')}=${escaped('p'.repeat(300))}`);
  return uploadTo(path, headers, piecesOf(framed(body, 1), 1, 'packed'), 'shown', body);
}

function escapesOf(text: Buffer, escape: (hex: string) => string): string {
  return Array.from(text, (byte) => escape(byte.toString(16).padStart(2, '0'))).join('');
}

/** Chunks one to a packet, or as many as fit. */
type Packing = 'packed' | 'lone';

/** Chunks of `chunkBytes` (RFC 9112 section 7.1); the last one may be shorter. */
function framed(content: Buffer, chunkBytes: number): Buffer {
  const chunks = cut(content, chunkBytes);
  return Buffer.concat(chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, LINE_END]));
}

const LINE_END = Buffer.from('\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

function piecesOf(chunks: Buffer, chunkBytes: number, packing: Packing): readonly Buffer[] {
  const framingBytes = chunkBytes.toString(16).length + 2 * LINE_END.length;
  return [...cut(chunks, packing === 'lone' ? chunkBytes + framingBytes : PACKET_BYTES), LAST_CHUNK];
}

function cut(bytes: Buffer, pieceBytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) => {
    return bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes);
  });
}

await runPart(sendAll);
