// The requests that a load is made of, prepared as bytes before any clock runs. Every body is unique, since equal
// content is a case of its own for a paste service. Sending them is connection.mjs.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DRAWS, seededRandom } from './draws.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Of the ids that pasted makes. */
export const ID_CHARACTERS = 26;

const STAMP_BYTES = 32;
const FILLING_BYTES = 4 * MIB;
const SEED = 9;

/** What stands in the template of a drawn request for what differs from one to the next, of the same length. */
export const ID = placeholder('id', ID_CHARACTERS);
export const OWNER = placeholder('owner', 40);
export const STAMP = placeholder('stamp', STAMP_BYTES);

/**
 * `get`: one of `paths`, by Zipf's law. `post`: a body of `bytes` in one piece. `upload`: a body of
 * `bytes` that is sent as the socket takes it. `register`: a registration without proof-of-work. `drawn`: `template`
 * about one of the first `count` pastes of the file `ids`, of the owner that it has among `owners`. `mix`: of every
 * `outOf` requests one is `rare`. A plan that comes again goes on where it was, and `side` tells equal ones apart.
 * @typedef {{ kind: 'get', paths: string[] } | { kind: 'post', bytes: number } | { kind: 'upload', bytes: number } |
 *   { kind: 'register' } | DrawnPlan | { kind: 'mix', usual: Plan, rare: Plan, outOf: number }} Plan
 * @typedef {{ kind: 'drawn', template: string, ids: string, count: number, draw: keyof typeof DRAWS,
 *   owners?: string[], side?: string }} DrawnPlan
 */

/** @typedef {import('./connection.mjs').Connection} Connection */

/**
 * What sends the next request of a plan; an upload may send no more than `allowedBytes` of its body before allow() is
 * called.
 * @typedef {(connection: Connection, allowedBytes?: number) => void} Sender
 */

/** @type {Map<string, () => Sender>} */
const made = new Map();

/** @param {Plan} plan @returns {() => Sender} one sender for each connection, since each has a buffer of its own */
export function senders(plan) {
  const key = JSON.stringify(plan);
  const known = made.get(key) ?? makeSenders(plan);
  made.set(key, known);
  return known;
}

/** @param {Plan} plan @returns {() => Sender} */
function makeSenders(plan) {
  switch (plan.kind) {
    case 'get': return getSenders(plan.paths);
    case 'register': return registerSender;
    case 'post': return () => postSender(plan.bytes);
    case 'upload': return uploadSenders(plan.bytes);
    case 'drawn': return drawnSenders(plan);
    case 'mix': return mixedSenders(plan);
  }
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
  const next = DRAWS.zipf(requests.length, seededRandom(SEED));
  return () => (/** @type {Connection} */ connection) => connection.send(/** @type {Buffer} */ (requests[next()]));
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

/** @param {DrawnPlan} plan */
function drawnSenders({ template, ids, count, draw, owners = [] }) {
  const idBytes = readFileSync(ids);
  const ownerBytes = owners.map((owner) => Buffer.from(owner, 'latin1'));
  const next = DRAWS[draw](count, seededRandom(SEED));
  const [idAt, ownerAt, stampAt] = [ID, OWNER, STAMP].map((mark) => template.indexOf(mark));
  return () => {
    const request = Buffer.from(template, 'latin1');
    return (/** @type {Connection} */ connection) => {
      const index = next();
      if (idAt >= 0) idBytes.copy(request, idAt, index * ID_CHARACTERS, (index + 1) * ID_CHARACTERS);
      if (ownerAt >= 0) ownerBytes[index % ownerBytes.length]?.copy(request, ownerAt);
      if (stampAt >= 0) request.write(stamp(), stampAt, 'latin1');
      connection.send(request);
    };
  };
}

/** @param {Plan & { kind: 'mix' }} plan */
function mixedSenders({ usual, rare, outOf }) {
  const [usualSenders, rareSenders] = [senders(usual), senders(rare)];
  let sent = 0;
  return () => {
    const [sendUsual, sendRare] = [usualSenders(), rareSenders()];
    return (/** @type {Connection} */ connection) => {
      sent += 1;
      if (sent % outOf === 0) sendRare(connection);
      else sendUsual(connection);
    };
  };
}

/** @param {string} name @param {number} length */
function placeholder(name, length) {
  return `{${name}${'-'.repeat(length - name.length - 2)}}`;
}

const thisProcess = randomBytes(8).toString('hex');
let stamped = 0;

/** STAMP_BYTES of text that no other request has. */
function stamp() {
  stamped += 1;
  return thisProcess + stamped.toString(16).padStart(STAMP_BYTES - thisProcess.length, '0');
}
