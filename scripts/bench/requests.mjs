// The requests that a load is made of, prepared as bytes before any clock runs. Every body is unique, since equal
// content is a case of its own for a paste service. connection.mjs sends them.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { eachOnce, seededRandom, uniform, zipf } from './statistics.mjs';

const DRAWS = { zipf, uniform, eachOnce };

/** The length of the ids that pasted makes. */
export const ID_CHARACTERS = 26;

const STAMP_BYTES = 32;
const FILLING_BYTES = 4 * 1024 * 1024;
const SEED = 9;

/** Placeholders in the template of a drawn request; each is as long as the value that replaces it. */
export const ID = '{id}'.padEnd(ID_CHARACTERS, '-');
export const OWNER = '{owner}'.padEnd(40, '-');
export const STAMP = '{stamp}'.padEnd(STAMP_BYTES, '-');

const made = new Map();

/**
 * Makes a function for each connection that sends the next request of a plan. A plan that comes again continues where
 * it was; `side` tells two equal plans apart. The kinds of plan:
 * `fixed`: one of `requests`, by Zipf's law;
 * `post`: a body of `bytes` in one piece;
 * `upload`: a body of `bytes` that is sent as the socket takes it;
 * `drawn`: `template`, filled in with one of the first `count` ids of the file `ids`, and its owner among `owners`.
 */
export function senders(plan) {
  const key = JSON.stringify(plan);
  if (!made.has(key)) made.set(key, MAKERS[plan.kind](plan));
  return made.get(key);
}

/** A request without a body. */
export function headOf(line, ...headers) {
  return [`${line} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, '', ''].join('\r\n');
}

/** Printable ASCII in lines, like most pastes; every byte passes through the server's UTF-8 check. */
export function text(bytes) {
  const lines = randomBytes(bytes).toString('base64').replace(/.{56}/g, '$&\n');
  return Buffer.from(lines.slice(0, bytes), 'latin1');
}

const MAKERS = {
  fixed({ requests }) {
    const buffers = requests.map((request) => Buffer.from(request, 'latin1'));
    const next = zipf(buffers.length, seededRandom(SEED));
    return () => (connection) => connection.send(buffers[next()]);
  },

  post({ bytes }) {
    const head = postHead(bytes);
    return () => {
      const request = Buffer.concat([head, text(bytes)]);
      return (connection) => {
        request.write(stamp(), head.length, 'latin1');
        connection.send(request);
      };
    };
  },

  upload({ bytes }) {
    const filling = text(FILLING_BYTES);
    const head = postHead(bytes);
    return () => (connection) => {
      const start = Buffer.concat([head, Buffer.from(stamp(), 'latin1')]);
      connection.upload(start, filling, bytes - STAMP_BYTES);
    };
  },

  drawn({ template, ids, count, draw, owners = [] }) {
    const idBytes = readFileSync(ids);
    const ownerBytes = owners.map((owner) => Buffer.from(owner, 'latin1'));
    const next = DRAWS[draw](count, seededRandom(SEED));
    const [idAt, ownerAt, stampAt] = [ID, OWNER, STAMP].map((mark) => template.indexOf(mark));
    return () => {
      const request = Buffer.from(template, 'latin1');
      return (connection) => {
        const index = next();
        if (idAt >= 0) idBytes.copy(request, idAt, index * ID_CHARACTERS, (index + 1) * ID_CHARACTERS);
        if (ownerAt >= 0) ownerBytes[index % ownerBytes.length]?.copy(request, ownerAt);
        if (stampAt >= 0) request.write(stamp(), stampAt, 'latin1');
        connection.send(request);
      };
    };
  },
};

function postHead(bytes) {
  return Buffer.from(headOf('POST /', 'Content-Type: text/plain', `Content-Length: ${bytes}`), 'latin1');
}

const thisProcess = randomBytes(8).toString('hex');
let stamped = 0;

/** STAMP_BYTES of text that no other request contains. */
function stamp() {
  stamped += 1;
  return thisProcess + stamped.toString(16).padStart(STAMP_BYTES - thisProcess.length, '0');
}
