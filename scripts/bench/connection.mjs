// One keep-alive HTTP/1.1 connection on a bare socket, made to cost much less than the server at its other end: it
// sends prepared bytes, and reads only the status and Content-Length of an answer. It does not pipeline, and does not
// understand chunked answers.

import { once } from 'node:events';
import net from 'node:net';

const KIB = 1024;
const HEAD_END = '\r\n\r\n';
const LONGEST_HEAD = 16 * KIB;
const READ_BYTES = 64 * KIB;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Small enough that other connections of the same load do not wait. */
const UPLOAD_CHUNK_BYTES = 256 * KIB;

/** To a port on the loopback address; rejects when nobody listens. */
export async function openConnection(port) {
  const connection = new Connection(port);
  await once(connection.socket, 'connect');
  return connection;
}

/** One request at a time: after send or upload, onEnd is called once, with a status or with what went wrong. */
class Connection {
  onEnd = () => {};
  #isWaiting = false;
  /** The bytes of the body that are still to come; null until the head is read. */
  #bodyLeft = null;
  #status = 0;
  #partialHead = '';
  /** An upload in progress: `left` bytes to send. */
  #upload = null;

  constructor(port) {
    const callback = (count, buffer) => {
      this.#take(count, buffer);
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafe(READ_BYTES), callback };
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true, onread });
    this.socket.on('error', (error) => this.#end(error.code ?? error.message));
    this.socket.on('close', () => this.#end('closed by the server'));
    this.socket.on('drain', () => this.#pour());
  }

  /** A whole request, head and body. */
  send(request) {
    this.#isWaiting = true;
    this.socket.write(request);
  }

  /**
   * `start` is the head and the first bytes of the body. The `restBytes` that follow repeat `filling`, and are sent as
   * fast as the socket takes them.
   */
  upload(start, filling, restBytes) {
    this.#upload = { filling, at: 0, left: restBytes };
    this.send(start);
    this.#pour();
  }

  close() {
    this.#isWaiting = false;
    this.socket.destroy();
  }

  #take(count, buffer) {
    let at = 0;
    while (at < count) {
      if (!this.#isWaiting) {
        this.#isWaiting = true;
        return this.socket.destroy(new Error('an answer that was not asked for'));
      }
      if (this.#bodyLeft === null) at = this.#takeHead(buffer, at, count);
      if (this.#bodyLeft === null) return;
      const step = Math.min(this.#bodyLeft, count - at);
      at += step;
      this.#bodyLeft -= step;
      if (this.#bodyLeft > 0) return;
      this.#bodyLeft = null;
      // An answer before the body's end is a refusal; the rest of the body must not be taken for a next request.
      const isEarly = this.#upload !== null && this.#upload.left > 0;
      this.#end(isEarly ? `status ${this.#status} before the end of the body` : undefined);
    }
  }

  /** Returns where the body starts, or, if the head is incomplete, the end of the input; #bodyLeft is null then. */
  #takeHead(buffer, at, count) {
    const before = this.#partialHead.length;
    const text = this.#partialHead + buffer.toString('latin1', at, Math.min(count, at + LONGEST_HEAD));
    const end = text.indexOf(HEAD_END);
    if (end === -1) {
      this.#partialHead = text;
      if (text.length >= LONGEST_HEAD) this.socket.destroy();
      return count;
    }
    const length = CONTENT_LENGTH.exec(text.slice(0, end));
    this.#partialHead = '';
    this.#status = length === null ? 0 : Number(text.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
    this.#bodyLeft = Number(length?.[1] ?? 0);
    return at + end + HEAD_END.length - before;
  }

  #end(fault) {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#upload = null;
    this.onEnd(this.#status, fault);
  }

  /** Called again when the socket has drained. */
  #pour() {
    const upload = this.#upload;
    while (upload !== null && upload.left > 0 && !this.socket.writableNeedDrain) {
      const bytes = Math.min(UPLOAD_CHUNK_BYTES, upload.left);
      if (upload.at + bytes > upload.filling.length) upload.at = 0;
      this.socket.write(upload.filling.subarray(upload.at, upload.at + bytes));
      upload.at += bytes;
      upload.left -= bytes;
    }
  }
}
