// One keep-alive HTTP/1.1 connection on a bare socket, made to cost much less than the server at its other end:
// prepared bytes go out, and of an answer only the status and Content-Length are looked at. It does not pipeline, and
// it knows no chunked answers.

import { once } from 'node:events';
import net from 'node:net';

const KIB = 1024;
const HEAD_END = '\r\n\r\n';
const LONGEST_HEAD = 16 * KIB;
const READ_BYTES = 64 * KIB;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Small enough that other connections of the same load are not kept waiting. */
const UPLOAD_CHUNK_BYTES = 256 * KIB;

/** To a port on the loopback address; rejects when nobody listens. */
export async function openConnection(port) {
  const connection = new Connection(port);
  await once(connection.socket, 'connect');
  return connection;
}

/** A request at a time: after send or upload, onEnd is called once, with a status or with what went wrong. */
class Connection {
  onEnd = () => {};
  #isWaiting = false;
  /** Of an answer whose head was read, the bytes to come; null before that. */
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
   * `start` is the head and the first bytes of the body; for the `restBytes` that follow, `filling` is repeated, as
   * fast as the socket takes it.
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
      // An answer that comes before the body's end is a refusal, and the rest of the body can't be a next request.
      const isEarly = this.#upload !== null && this.#upload.left > 0;
      this.#end(isEarly ? `status ${this.#status} before the end of the body` : undefined);
    }
  }

  /** Where the body starts; the end of what has arrived, with #bodyLeft null, when the head goes on. */
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
