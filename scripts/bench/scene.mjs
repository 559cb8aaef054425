// What an operation needs before it is measured: running processes, stored pastes, and the real answer that the floor
// then gives. Nothing here is timed.

import http from 'node:http';
import { startFloor, startLoad, startPasted } from './servers.mjs';
import { text } from './requests.mjs';

/** @typedef {import('./floor.mjs').Answer} Answer */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./requests.mjs').Plan} Plan */

/**
 * What every measurement is handed. `main` is the server's entry and `nodeArguments` go before it; `effort` says how
 * long to try.
 * @typedef {{ site: import('./site.mjs').Site, main: string, nodeArguments: string[], effort:
 *   import('./operations.mjs').Effort }} Bench
 */

/**
 * @typedef {{ plan: Plan, answer: Answer }} Prepared the load to put on the server, and the answer that it really
 *   gives
 */

/**
 * Starts pasted, prepares it, and starts a floor that answers like it; ends them all when `action` is over.
 * @template Result
 * @param {Bench} bench
 * @param {(port: number) => Promise<Prepared>} prepare
 * @param {(scene: { pasted: Server, floor: Server, load: import('./servers.mjs').Load, plan: Plan }) =>
 *   Promise<Result>} action
 */
export async function withScene({ site, main, nodeArguments }, prepare, action) {
  await using pasted = await startPasted(site, main, nodeArguments);
  const { plan, answer } = await prepare(pasted.port);
  await using floor = await startFloor(site, answer);
  await using load = await startLoad(site);
  return await action({ pasted, floor, load, plan });
}

/**
 * GET of one of `count` pastes of `bytes`; `suffix` follows the id.
 * @param {number} count
 * @param {number} bytes
 * @param {string} suffix
 */
export function readingSmall(count, bytes, suffix) {
  return async (/** @type {number} */ port) => {
    const content = text(bytes);
    const path = `/${await store(port, content)}${suffix}`;
    const answer = await capture(port, 'GET', path);
    if (suffix === '/raw') mustEqual(answer, content);
    const others = Array.from({ length: count - 1 }, async () => `/${await store(port, text(bytes))}${suffix}`);
    const paths = [path, ...await Promise.all(others)];
    return { plan: { kind: /** @type {const} */ ('get'), paths }, answer: wholeAnswer(answer) };
  };
}

/** GET of one large paste. @param {number} bytes */
export function readingLarge(bytes) {
  return async (/** @type {number} */ port) => {
    const content = text(bytes);
    const path = `/${await store(port, content)}/raw`;
    const answer = await capture(port, 'GET', path);
    mustEqual(answer, content);
    const streamed = { status: answer.status, headers: answer.headers, body: null, bytes };
    return { plan: { kind: /** @type {const} */ ('get'), paths: [path] }, answer: streamed };
  };
}

/** POST of new pastes. @param {'post' | 'upload'} kind @param {number} bytes */
export function writing(kind, bytes) {
  return async (/** @type {number} */ port) => {
    const answer = await capture(port, 'POST', '/', text(bytes));
    return { plan: { kind, bytes }, answer: wholeAnswer(answer) };
  };
}

/** @typedef {{ status: number, headers: string[], body: Buffer }} Captured */

/** @param {Captured} captured @returns {Answer} */
function wholeAnswer({ status, headers, body }) {
  return { status, headers, body: body.toString('base64'), bytes: body.length };
}

/** The id of the stored paste. @param {number} port @param {Buffer} content @returns {Promise<string>} */
async function store(port, content) {
  const { body } = await capture(port, 'POST', '/', content);
  return JSON.parse(body.toString()).id;
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

/**
 * Any answer but 2xx is thrown.
 * @param {number} port
 * @param {string} method
 * @param {string} path
 * @param {Buffer} [content]
 * @returns {Promise<Captured>}
 */
function capture(port, method, path, content) {
  const headers = content === undefined ? {} : { 'Content-Type': 'text/plain', 'Content-Length': content.length };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, headers, agent }, async (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      for await (const chunk of response) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const status = response.statusCode ?? 0;
      if (status >= 200 && status <= 299) resolve({ status, headers: response.rawHeaders, body });
      else reject(new Error(`${method} ${path}: status ${status} ${body.toString('utf8', 0, 200)}`));
    });
    request.on('error', reject);
    request.end(content);
  });
}

/** @param {Captured} answer @param {Buffer} content */
function mustEqual(answer, content) {
  if (answer.body.equals(content)) return;
  throw new Error(`read ${answer.body.length} bytes that are not the ${content.length} stored`);
}
