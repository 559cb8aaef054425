// The requests that a load is made of, prepared as bytes before any clock runs. Every POST body is unique, since
// equal content is a case of its own for a paste service. Sending them is connection.mjs.

import { randomBytes } from 'node:crypto';

const KIB = 1024;
const MIB = 1024 * KIB;

const STAMP_BYTES = 32;
const FILLING_BYTES = 4 * MIB;

/**
 * `get`: one of `paths`, each as likely as any other. `post`: a body of `bytes` in one piece. `upload`: a body of
 * `bytes` that is sent as the socket takes it. `register`: a registration without proof-of-work.
 * @typedef {{ kind: 'get', paths: string[] } | { kind: 'post', bytes: number } | { kind: 'upload', bytes: number } |
 *   { kind: 'register' }} Plan
 */

/** @typedef {import('./connection.mjs').Connection} Connection */

/**
 * What sends the next request of a plan; an upload may send no more than `allowedBytes` of its body before allow() is
 * called.
 * @typedef {(connection: Connection, allowedBytes?: number) => void} Sender
 */

/** @param {Plan} plan @returns {() => Sender} one sender for each connection, since each has a buffer of its own */
export function senders(plan) {
  if (plan.kind === 'get') return getSenders(plan.paths);
  if (plan.kind === 'register') return registerSender;
  if (plan.kind === 'post') return () => postSender(plan.bytes);
  return uploadSenders(plan.bytes);
}

/**
 * Printable ASCII in lines, as pastes mostly are: every byte of it passes through the server's UTF-8 check.
 * @param {number} bytes
 */
export function text(bytes) {
  const line = 57;
  const lines = Math.ceil(bytes / line);
  const random = randomBytes(lines * line);
  let made = '';
  for (let at = 0; at < bytes; at += line) made += `${random.toString('base64', at, at + line).slice(0, line - 1)}\n`;
  return Buffer.from(made.slice(0, bytes), 'latin1');
}

/** @param {string[]} paths */
function getSenders(paths) {
  const requests = paths.map((path) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`, 'latin1'));
  return () => (/** @type {Connection} */ connection) => {
    connection.send(/** @type {Buffer} */ (requests[Math.floor(Math.random() * requests.length)]));
  };
}

/** @param {number} bytes */
function postSender(bytes) {
  const head = postHead(bytes);
  const request = Buffer.concat([head, text(bytes)]);
  return (/** @type {Connection} */ connection) => {
    request.write(stamp(), head.length, 'latin1');
    connection.send(request);
  };
}

function registerSender() {
  const lines = ['POST /register HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 2'];
  const request = Buffer.from([...lines, '', '{}'].join('\r\n'), 'latin1');
  return (/** @type {Connection} */ connection) => connection.send(request);
}

/** @param {number} bytes */
function uploadSenders(bytes) {
  const filling = text(FILLING_BYTES);
  const head = postHead(bytes);
  return () => (/** @type {Connection} */ connection, allowedBytes = Infinity) => {
    const start = Buffer.concat([head, Buffer.from(stamp(), 'latin1')]);
    connection.upload(start, filling, bytes - STAMP_BYTES, allowedBytes);
  };
}

/** @param {number} bytes */
function postHead(bytes) {
  const lines = ['POST / HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: text/plain', `Content-Length: ${bytes}`, '', ''];
  return Buffer.from(lines.join('\r\n'), 'latin1');
}

const thisProcess = randomBytes(8).toString('hex');
let stamped = 0;

/** STAMP_BYTES of text that no other request has. */
function stamp() {
  stamped += 1;
  return thisProcess + stamped.toString(16).padStart(STAMP_BYTES - thisProcess.length, '0');
}
