// The bare floor, a process of its own: a node:http server that gives one captured answer to everything and keeps
// nothing. What pasted costs above it is what pasted does. The parent sends the answer over IPC and gets the port
// back.

import { createHash } from 'node:crypto';
import http from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { ID_CHARACTERS } from './requests.mjs';

const STREAM_CHUNK = Buffer.alloc(256 * 1024, 'pasted\n');

/** What is larger is streamed. */
const LARGEST_WHOLE = 1024 * 1024;

/** Headers that node:http puts on an answer by itself, as it did on the captured one. */
const ADDED_BY_NODE = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/**
 * The captured answer. With `database`, the body is the content of the paste that the path names, looked up in that
 * file; with `hashes`, the SHA-256 of a request's body is computed as it arrives.
 */
function answering({ status, headers: captured, body, database, hashes }) {
  const headers = captured.filter((_, index) => !ADDED_BY_NODE.has(captured[index - (index % 2)].toLowerCase()));
  // As text of one character a byte: the cheapest way that node:http has, one write for head and body.
  const whole = body.length > LARGEST_WHOLE ? null : body.toString('latin1');
  const find = database === undefined ? () => whole : prepareFind(database);
  return (request, response) => {
    const reply = () => {
      const content = find(request);
      response.writeHead(content === undefined ? 404 : status, headers);
      if (content === null) stream(response, body.length);
      else response.end(content, 'latin1');
    };
    if (request.method === 'GET') return reply();
    if (hashes) {
      const digest = createHash('sha256');
      request.on('data', (chunk) => digest.update(chunk));
      request.on('end', () => digest.digest());
    }
    request.resume();
    request.on('end', reply);
  };
}

/** One prepared SELECT by primary key, for a path that begins with the id. */
function prepareFind(file) {
  const select = new DatabaseSync(file, { readOnly: true }).prepare('SELECT content FROM pastes WHERE id = ?');
  select.setReturnArrays(true);
  return ({ url }) => {
    const row = select.get(url.slice(1, 1 + ID_CHARACTERS));
    return row && Buffer.from(row[0].buffer, row[0].byteOffset, row[0].byteLength).latin1Slice();
  };
}

function stream(response, bytes) {
  let left = bytes;
  const pour = () => {
    while (left > 0) {
      const chunk = left < STREAM_CHUNK.length ? STREAM_CHUNK.subarray(0, left) : STREAM_CHUNK;
      left -= chunk.length;
      if (!response.write(chunk)) return response.once('drain', pour);
    }
    response.end();
  };
  pour();
}

process.once('message', (answer) => {
  const server = http.createServer(answering(answer));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
});
process.on('disconnect', () => process.exit(0));
