// One keep-alive HTTP/1.1 connection on a bare socket, made to cost much less than the server at its other end:
// prepared bytes go out, and of an answer only the status and Content-Length are looked at. It does not pipeline, and
// it knows no chunked answers.

import net from 'node:net';

const KIB = 1024;
const HEAD_END = '\r\n\r\n';
const LONGEST_HEAD = 16 * KIB;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/**
 * An upload in progress: `left` bytes to send, of which `allowed` may go out now.
 * @typedef {{ filling: Buffer, at: number, left: number, allowed: number, blocked: boolean }} Outflow
 */

/** A request at a time: after send or upload, either onAnswer or onBroken is called, once. */
export class Connection {
  #socket;
  #waiting = false;
  #inBody = false;
  #bodyLeft = 0;
  #status = 0;
  #partialHead = '';
  /** @type {Outflow | null} */
  #outflow = null;

  /** @type {(status: number) => void} */
  onAnswer = () => {};
  /** @type {(reason: string) => void} */
  onBroken = () => {};

  /** @param {net.Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('error', (error) => this.#break(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message));
    socket.on('close', () => this.#break('closed by the server'));
    socket.on('drain', () => this.#resume());
  }

  /** @param {Buffer} request a whole request, head and body */
  send(request) {
    this.#waiting = true;
    this.#socket.write(request);
  }

  /**
   * @param {Buffer} start the head and the first bytes of the body
   * @param {Buffer} filling repeated for the rest of the body
   * @param {number} restBytes bytes of body that are not in `start`
   * @param {number} allowedBytes how many of them may be sent at once; allow() adds to it
   */
  upload(start, filling, restBytes, allowedBytes) {
    this.#outflow = { filling, at: 0, left: restBytes, allowed: allowedBytes, blocked: false };
    this.send(start);
    this.#pour();
  }

  /** @param {number} moreBytes */
  allow(moreBytes) {
    if (this.#outflow === null) return;
    this.#outflow.allowed += moreBytes;
    this.#pour();
  }

  close() {
    this.#waiting = false;
    this.#socket.destroy();
  }

  /** The `onread` callback of the socket. @param {number} count @param {Buffer} buffer */
  take(count, buffer) {
    let at = 0;
    while (at < count) {
      if (!this.#waiting) return this.#unasked();
      if (!this.#inBody) at = this.#takeHead(buffer, at, count);
      if (!this.#inBody) return;
      const step = Math.min(this.#bodyLeft, count - at);
      at += step;
      this.#bodyLeft -= step;
      if (this.#bodyLeft === 0) this.#finish();
    }
  }

  /**
   * Where the body starts; the end of what has arrived, with #inBody unset, when the head goes on.
   * @param {Buffer} buffer
   * @param {number} at
   * @param {number} count
   */
  #takeHead(buffer, at, count) {
    const before = this.#partialHead.length;
    const text = this.#partialHead + buffer.toString('latin1', at, Math.min(count, at + LONGEST_HEAD));
    const end = text.indexOf(HEAD_END);
    if (end === -1) {
      this.#partialHead = text;
      if (text.length >= LONGEST_HEAD) this.#socket.destroy();
      return count;
    }
    const length = CONTENT_LENGTH.exec(text.slice(0, end));
    this.#partialHead = '';
    this.#status = length === null ? 0 : Number(text.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
    this.#bodyLeft = Number(length?.[1] ?? 0);
    this.#inBody = true;
    return at + end + HEAD_END.length - before;
  }

  #finish() {
    const whole = this.#outflow === null || this.#outflow.left === 0;
    this.#inBody = false;
    this.#waiting = false;
    this.#outflow = null;
    // An answer that comes before the body's end is a refusal, and the rest of the body can't be a next request.
    if (whole) this.onAnswer(this.#status);
    else this.onBroken(`status ${this.#status} before the end of the body`);
  }

  #unasked() {
    this.#waiting = true;
    this.#break('an answer that was not asked for');
    this.#socket.destroy();
  }

  /** @param {string} reason */
  #break(reason) {
    if (!this.#waiting) return;
    this.#waiting = false;
    this.#outflow = null;
    this.onBroken(reason);
  }

  #resume() {
    if (this.#outflow === null) return;
    this.#outflow.blocked = false;
    this.#pour();
  }

  #pour() {
    const outflow = this.#outflow;
    if (outflow === null) return;
    while (!outflow.blocked && outflow.left > 0 && outflow.allowed > 0) {
      const bytes = Math.min(UPLOAD_CHUNK_BYTES, outflow.left, outflow.allowed);
      if (outflow.at + bytes > outflow.filling.length) outflow.at = 0;
      const chunk = outflow.filling.subarray(outflow.at, outflow.at + bytes);
      outflow.at += bytes;
      outflow.left -= bytes;
      outflow.allowed -= bytes;
      outflow.blocked = !this.#socket.write(chunk);
    }
  }
}

/** Small enough that other connections of the same load are not kept waiting. */
export const UPLOAD_CHUNK_BYTES = 256 * KIB;

/**
 * @param {number} port on the loopback address
 * @param {number} readBytes of the buffer that answers are read into
 * @returns {Promise<Connection>} rejects when nobody listens
 */
export function openConnection(port, readBytes = 64 * KIB) {
  return new Promise((resolve, reject) => {
    /** @type {Connection} */
    let connection;
    const socket = net.connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(readBytes),
        callback: (count, buffer) => {
          connection.take(count, /** @type {Buffer} */ (buffer));
          return true;
        },
      },
    });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      connection = new Connection(socket);
      resolve(connection);
    });
  });
}
