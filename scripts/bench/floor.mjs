// The bare floor, a process of its own: a node:http server that gives one captured answer to everything and keeps
// nothing. What pasted costs above it is what pasted does. The parent sends the answer over IPC and gets the port
// back.

import http from 'node:http';

/**
 * `body` of an answer that is sent whole, in base64; or, when it is null, `bytes` are streamed from memory.
 * @typedef {{ status: number, headers: string[], body: string | null, bytes: number }} Answer
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
  return (request, response) => {
    const reply = () => {
      response.writeHead(answer.status, headers);
      if (body === null) stream(response, answer.bytes);
      else response.end(body, 'latin1');
    };
    if (request.method === 'GET') return reply();
    request.resume();
    request.on('end', reply);
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
