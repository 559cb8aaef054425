// Uploads in tiny pieces, as a part of a row: so many at once, one after the other on each connection, each read back
// and compared. A way is what the pieces are: of a byte or as small as a long body may have them, many to a packet or
// one, in JSON with every character escaped, in forms.

import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { runPart } from './part.ts';
import type { TinyWay } from './row-20-tiny.ts';

export interface TinyOptions {
  readonly way: TinyWay;
  readonly port: number;
  readonly connections: number;
  /** Connections take these in turn: no address may have all of them. */
  readonly addresses: readonly string[];
  readonly seconds: number;
}

export interface TinySent {
  /** How many bodies, by what must become of them. */
  readonly stored: number;
  readonly refused: number;
  /** Refused, and cut off before the client had read so: more than may linger at a time. */
  readonly unheard: number;
  readonly shown: number;
  readonly bytes: number;
  /** By what was answered instead of what must be. */
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
const FEW_BYTES = 4000;
const MANY_BYTES = 8192;
const SMALLEST_LONG_PIECE = 16;

/** It cuts escapes of six bytes at each of their places. */
const CUTTING_PIECE = 17;
const PACKET_BYTES = 64 * 1024;

/** Of each connection: as many as a way has kinds of uploads. */
const FEWEST_UPLOADS = 3;

const CHUNKED = { 'Transfer-Encoding': 'chunked' };
const BURNING = { 'X-Burn-After-Read': '1' };

async function sendAll({ way, port, connections, addresses, seconds }: TinyOptions): Promise<TinySent> {
  const endMs = performance.now() + seconds * 1000;
  const sent = { stored: 0, refused: 0, unheard: 0, shown: 0, bytes: 0 };
  const wrong: Record<string, number> = {};
  const sending = Array.from({ length: connections }, async (_, connection) => {
    const client = createClient(port, addresses[connection % addresses.length]);
    const shownPath = way === 'forms' ? await storedPath(client) : '';
    for (let turn = 0; turn < FEWEST_UPLOADS || performance.now() < endMs; turn += 1) {
      const upload = uploadOf(way, turn, `${process.pid} ${connection} ${turn};`, shownPath);
      const outcome = await carryOut(client, upload);
      if (outcome in sent) sent[outcome as keyof typeof sent] += 1;
      else wrong[outcome] = (wrong[outcome] ?? 0) + 1;
      if (outcome === 'stored') sent.bytes += upload.content.length;
    }
    client.close();
  });
  await Promise.all(sending);
  return { ...sent, wrong };
}

/** Forms are answered by a page of this paste. */
async function storedPath(client: Client): Promise<string> {
  const answer = await client.ask({ method: 'POST', path: '/', body: Buffer.from('to be shown') });
  return `/${String(JSON.parse(String(answer?.body))['id'])}`;
}

/** What must become of an upload when that becomes of it; else what did, in words. */
async function carryOut(client: Client, { ask, fate, content }: Upload): Promise<string> {
  const answer = await client.ask(ask);
  if (fate === 'refused' && answer === undefined) return 'unheard';
  if (fate === 'refused') return expected(answer, 400, 'too many small pieces', fate);
  if (fate === 'shown') return expected(answer, 200, 'to be shown', fate);
  if (answer?.status !== 201) return saidBy(answer);
  const { id } = JSON.parse(String(answer.body)) as { id: string };
  const read = await client.ask({ method: 'GET', path: `/${id}/raw` });
  if (read?.status !== 200) return `read: ${saidBy(read)}`;
  return read.body.equals(content) ? fate : `read: ${read.body.length} bytes that are not the ${content.length} sent`;
}

function expected(answer: Answer | undefined, status: number, words: string, fate: string): string {
  return answer?.status === status && answer.body.includes(words) ? fate : saidBy(answer);
}

function saidBy(answer: Answer | undefined): string {
  return answer === undefined ? 'no answer' : `${answer.status} ${answer.body.toString('latin1', 0, 100)}`;
}

function uploadOf(way: TinyWay, turn: number, label: string, shownPath: string): Upload {
  const few = Buffer.alloc(FEW_BYTES, label);
  switch (way) {
    case 'packed bytes':
      if (turn % 3 === 1) return refusedOf(Buffer.alloc(2 * PACKET_BYTES, label), 'packed');
      return turn % 3 === 0 ? storedOf(few, 1) : storedOf(Buffer.alloc(8 * PACKET_BYTES, label), SMALLEST_LONG_PIECE);
    case 'lone bytes':
      return turn % 2 === 0 ? storedOf(few, 1, 'lone') : refusedOf(Buffer.alloc(MANY_BYTES, label), 'lone');
    case 'escaped':
      return escapedOf(Buffer.alloc(16 * PACKET_BYTES, label), PACKET_BYTES);
    case 'lone escaped':
      return escapedOf(Buffer.alloc(PACKET_BYTES / 4, label), CUTTING_PIECE);
    case 'forms':
      return turn % 2 === 0 ? multipartOf(few.subarray(0, FEW_BYTES / 2)) : pageFormOf(shownPath);
  }
}

function storedOf(content: Buffer, chunkBytes: number, how: Packing = 'packed'): Upload {
  const headers = { ...CHUNKED, ...BURNING };
  const ask = { method: 'POST', path: '/', headers, pieces: chunksOf(content, chunkBytes, how) };
  return { ask, fate: 'stored', content };
}

function refusedOf(content: Buffer, how: Packing): Upload {
  return { ...storedOf(content, 1, how), fate: 'refused' };
}

/** With its length while it comes in packets, and in chunks of as many bytes as the pieces where these are tiny. */
function escapedOf(content: Buffer, pieceBytes: number): Upload {
  const document = Buffer.from(`{"\\u0063ontent":"${escapesOf(content, (hex) => `\\u00${hex}`)}"}`);
  const isChunked = pieceBytes < PACKET_BYTES;
  const length = isChunked ? CHUNKED : { 'Content-Length': String(document.length) };
  const headers = { 'Content-Type': 'application/json', ...length, ...BURNING };
  const pieces = isChunked ? chunksOf(document, pieceBytes, 'lone') : cut(document, pieceBytes);
  return { ask: { method: 'POST', path: '/', headers, pieces }, fate: 'stored', content };
}

/** As `curl -F` sends a file: no form is read here, and what is sent is what is stored. */
function multipartOf(field: Buffer): Upload {
  const boundary = 'in-tiny-pieces';
  const before = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n`;
  const content = Buffer.concat([Buffer.from(before), field, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}`, ...CHUNKED, ...BURNING };
  return { ask: { method: 'POST', path: '/', headers, pieces: chunksOf(content, 1, 'lone') }, fate: 'stored', content };
}

/** That of a page. The password is for a paste that has none, so that nothing is hashed. */
function pageFormOf(path: string): Upload {
  const escaped = (text: string): string => escapesOf(Buffer.from(text), (hex) => `%${hex}`);
  const type = { Accept: 'text/html', 'Content-Type': 'application/x-www-form-urlencoded' };
  const body = Buffer.from(`${escaped('password')}=${escaped('p'.repeat(300))}`);
  const pieces = chunksOf(body, 1, 'packed');
  return { ask: { method: 'POST', path, headers: { ...type, ...CHUNKED }, pieces }, fate: 'shown', content: body };
}

function escapesOf(text: Buffer, escape: (hex: string) => string): string {
  return Array.from(text, (byte) => escape(byte.toString(16).padStart(2, '0'))).join('');
}

/** Chunks one to a packet, or as many as fit. */
type Packing = 'packed' | 'lone';

/** RFC 9112 section 7.1. */
function chunksOf(content: Buffer, chunkBytes: number, how: Packing): Iterable<Buffer> {
  const size = `${chunkBytes.toString(16)}\r\n`;
  const framed = Buffer.alloc(Math.floor(content.length / chunkBytes) * (size.length + chunkBytes + 2));
  let end = 0;
  let next = 0;
  for (; next + chunkBytes <= content.length; next += chunkBytes) {
    end += framed.write(size, end, 'latin1');
    end += content.copy(framed, end, next, next + chunkBytes);
    end += framed.write('\r\n', end, 'latin1');
  }
  const rest = content.subarray(next);
  const last = rest.length === 0 ? '' : `${rest.length.toString(16)}\r\n${rest.toString('latin1')}\r\n`;
  const chunks = cut(framed, how === 'lone' ? size.length + chunkBytes + 2 : PACKET_BYTES);
  return [...chunks, Buffer.from(`${last}0\r\n\r\n`, 'latin1')];
}

function cut(bytes: Buffer, pieceBytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) => {
    return bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes);
  });
}

await runPart(sendAll);
