// The floor, in a process of its own: a bare node:http server that gives captured answers, and does only what the same
// promise takes with node:sqlite and a thread. What pasted costs above the floor is its own work. The parent sends an
// order over IPC, and gets the port back.

import { createHash } from 'node:crypto';
import http from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { makeId, startStoring } from './floor-writer.mjs';
import { ID_CHARACTERS } from './requests.mjs';

/** Larger bodies are stored in chunks; so many chunks of all uploads may be on their way to the disk. */
const LARGEST_SMALL = 64 * 1024;
const CHUNKS_UNDER_WAY = 8;

/** The service gathers its log lines for the same time. */
const GATHER_MS = 10;

/** Headers that node:http adds to an answer by itself, as it did to the captured one. */
const ADDED_BY_NODE = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/**
 * `small`, `large` and `stored` are captured answers: to a GET, to the GET of a large paste, to a POST. The others say
 * what else is done: `logLine` is written for each small GET; `contents` and `chunks` are databases in which the
 * content of a small or a large paste is looked up; `stores` is a database in which bodies are stored.
 */
function answering({ small, large, stored, logLine, contents, chunks, stores }) {
  const [replySmall, beginLarge, replyStored] = [small, large, stored].map((answer) => answer && replier(answer));
  const find = contents === undefined ? () => undefined : prepareFind(contents);
  const piecesOf = chunks === undefined ? () => undefined : preparePieces(chunks);
  const note = logLine === undefined ? () => {} : gatherLines(logLine);
  const take = stores === undefined ? receive : prepareStoring(stores);
  return (request, response) => {
    if (request.method === 'POST') return take(request).then(() => replyStored(response));
    const id = request.url.slice(1, 1 + ID_CHARACTERS);
    const pieceAt = piecesOf(id);
    if (pieceAt !== undefined) return pour(beginLarge(response), pieceAt);
    replySmall(response, find(id));
    note();
  };
}

/** A whole body goes as text of one character a byte: the cheapest way, since node:http writes it with the head. */
function replier({ status, headers: captured, body }) {
  const headers = captured.filter((_, index) => !ADDED_BY_NODE.has(captured[index - (index % 2)].toLowerCase()));
  const whole = body && Buffer.from(body).latin1Slice();
  return (response, content = whole) => {
    response.writeHead(status, headers);
    return content === undefined ? response : response.end(content, 'latin1');
  };
}

/** Writing each line by itself would cost more than a small answer; the service promises a line, not a write. */
function gatherLines(line) {
  let lines = '';
  const write = () => {
    process.stdout.write(lines);
    lines = '';
  };
  return () => {
    if (lines === '') setTimeout(write, GATHER_MS);
    lines += line;
  };
}

/** One prepared SELECT by primary key. */
function prepareFind(file) {
  const select = new DatabaseSync(file, { readOnly: true }).prepare('SELECT content FROM pastes WHERE id = ?');
  select.setReturnArrays(true);
  return (id) => {
    const [content] = select.get(id);
    return Buffer.from(content.buffer, content.byteOffset, content.byteLength).latin1Slice();
  };
}

/** Gives the chunks of each large paste that is there now, by their position. */
function preparePieces(file) {
  const db = new DatabaseSync(file, { readOnly: true });
  const large = db.prepare('SELECT id, content_id AS contentId FROM pastes WHERE content_id IS NOT NULL').all();
  const contentIds = new Map(large.map(({ id, contentId }) => [id, contentId]));
  const select = db.prepare('SELECT bytes FROM chunks WHERE content_id = ? AND position = ?');
  return (id) => {
    const contentId = contentIds.get(id);
    return contentId && ((position) => select.get(contentId, position)?.bytes);
  };
}

/** Writes pieces as fast as the client takes them, and frees them itself, since the garbage collector would be late. */
function pour(response, pieceAt, from = 0) {
  for (let position = from; ; position += 1) {
    const piece = pieceAt(position);
    if (piece === undefined) return response.end();
    if (!response.write(piece, () => piece.buffer.transfer(0))) return response.once('drain', () => pour(response, pieceAt, position + 1));
  }
}

/** Gives each piece of a body to `use`, and resolves at its end. */
function receive(request, use = () => {}) {
  request.on('data', use);
  return new Promise((resolve) => request.on('end', resolve));
}

/** Stores small bodies in their rows, others in chunks of the size that the service uses. */
function prepareStoring(file) {
  const store = startStoring(file);
  using db = new DatabaseSync(file, { readOnly: true });
  const { bytes: chunkBytes } = db.prepare('SELECT max(length(bytes)) AS bytes FROM chunks').get();
  const chunks = { bytes: chunkBytes, free: [], underWay: 0 };
  return async (request) => {
    if (Number(request.headers['content-length']) > LARGEST_SMALL) return storeLarge(request, store, chunks);
    let content = '';
    await receive(request, (piece) => (content += piece.latin1Slice()));
    return store({ content });
  };
}

/** `chunks` is shared by all uploads; its `free` buffers are shared with the thread too, and used again. */
async function storeLarge(request, store, chunks) {
  const contentId = makeId();
  const digest = createHash('sha256');
  const underWay = [];
  let [size, position, filled, buffer] = [0, 0, 0, undefined];
  const sendChunk = () => {
    const sent = buffer;
    chunks.underWay += 1;
    underWay.push(store({ contentId, position, chunk: sent.subarray(0, filled) }).then(() => {
      chunks.underWay -= 1;
      chunks.free.push(sent);
    }));
    [position, filled, buffer] = [position + 1, 0, undefined];
  };
  for await (const piece of request) {
    digest.update(piece);
    size += piece.length;
    for (let at = 0; at < piece.length; ) {
      buffer ??= chunks.free.pop() ?? new Uint8Array(new SharedArrayBuffer(chunks.bytes));
      const taken = piece.subarray(at, at + chunks.bytes - filled);
      buffer.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled === chunks.bytes) sendChunk();
    }
    while (chunks.underWay > CHUNKS_UNDER_WAY && underWay.length > 0) await underWay.shift();
  }
  if (filled > 0) sendChunk();
  await Promise.all([...underWay, store({ contentId, size, sha256: digest.digest() })]);
}

process.once('message', (order) => {
  const server = http.createServer(answering(order));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
});
process.on('disconnect', () => process.exit(0));
