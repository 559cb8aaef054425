// The bare floor, a process of its own: a node:http server that gives one captured answer to everything and keeps
// nothing. What pasted costs above it is what pasted does. The parent sends the answer over IPC and gets the port
// back.

import { createHash } from 'node:crypto';
import http from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { ID_CHARACTERS } from './requests.mjs';

/**
 * `body` of an answer that is sent whole, in base64; or, when it is null, `bytes` are streamed from memory. With
 * `database`, the body is the content of the paste that the path names, looked up in that file; with `hashes`, the
 * SHA-256 of a request's body is computed as it arrives.
 * @typedef {{ status: number, headers: string[], body: string | null, bytes: number, database?: string,
 *   hashes?: boolean }} Answer
 */

const STREAM_CHUNK = Buffer.alloc(256 * 1024, 'pasted\n');

/** Headers that node:http puts on an answer by itself, as it did on the captured one. */
const ADDED_BY_NODE = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/** @param {Answer} answer @returns {http.RequestListener} */
function answering(answer) {
  const nameOf = (/** @type {number} */ index) => answer.headers[index - (index % 2)] ?? '';
  const headers = answer.headers.filter((_, index) => !ADDED_BY_NODE.has(nameOf(index).toLowerCase()));
  // As text of one character a byte: the cheapest way that node:http has, one write for head and body.
  const body = answer.body === null ? null : Buffer.from(answer.body, 'base64').toString('latin1');
  const find = answer.database === undefined ? () => body : prepareFind(answer.database);
  return (request, response) => {
    const reply = () => {
      const content = find(request);
      response.writeHead(content === undefined ? 404 : answer.status, headers);
      if (content === null) stream(response, answer.bytes);
      else response.end(content, 'latin1');
    };
    if (request.method === 'GET') return reply();
    if (answer.hashes) {
      const digest = createHash('sha256');
      request.on('data', (chunk) => digest.update(chunk));
      request.on('end', () => digest.digest());
    }
    request.resume();
    request.on('end', reply);
  };
}

/**
 * One prepared SELECT by primary key, for a path that begins with the id.
 * @param {string} file
 * @returns {(request: http.IncomingMessage) => string | undefined}
 */
function prepareFind(file) {
  const db = new DatabaseSync(file, { readOnly: true });
  const select = db.prepare('SELECT content FROM pastes WHERE id = ?');
  select.setReturnArrays(true);
  return ({ url = '' }) => {
    const id = url.slice(1, 1 + ID_CHARACTERS);
    const row = /** @type {[Uint8Array] | undefined} */ (/** @type {unknown} */ (select.get(id)));
    return row && Buffer.from(row[0].buffer, row[0].byteOffset, row[0].byteLength).latin1Slice();
  };
}

/** @param {http.ServerResponse} response @param {number} bytes */
function stream(response, bytes) {
  let left = bytes;
  const pour = () => {
    while (left > 0) {
      const chunk = left < STREAM_CHUNK.length ? STREAM_CHUNK.subarray(0, left) : STREAM_CHUNK;
      left -= chunk.length;
      if (!response.write(chunk)) {
        response.once('drain', pour);
        return;
      }
    }
    response.end();
  };
  pour();
}

process.once('message', (/** @type {Answer} */ answer) => {
  const server = http.createServer(answering(answer));
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    process.send?.({ port });
  });
});
process.on('disconnect', () => process.exit(0));
