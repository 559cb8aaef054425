// What an operation needs before it is measured: running processes, stored pastes, and the real answer that the floor
// then gives. Nothing here is timed.

import http from 'node:http';
import { startFloor, startLoad, startPasted } from './servers.mjs';
import { ID, text } from './requests.mjs';

/** @typedef {import('./floor.mjs').Answer} Answer */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./requests.mjs').Plan} Plan */

/**
 * What every measurement is handed. `main` is the server's entry and `nodeArguments` go before it; `effort` says how
 * long to try.
 * @typedef {{ site: import('./site.mjs').Site, stocks: ReturnType<typeof import('./stock.mjs').openStocks>,
 *   main: string, nodeArguments: string[], effort: import('./operations.mjs').Effort }} Bench
 */

/** @typedef {import('./stock.mjs').Stock} Stock */

/** A stock by how many pastes it has, of those that the effort names. @typedef {'few' | 'some' | 'many'} StockName */

/**
 * What an operation needs: pastes that are there before, and the load to put on the server, found out by asking it.
 * `answer` is what the floor gives: the real answer to one such request.
 * @typedef {{ stock?: StockName, prepare: (port: number, stock?: Stock) => Promise<Prepared> }} Preparation
 * @typedef {{ plan: Plan, answer: Answer }} Prepared
 */

/**
 * Starts pasted, prepares it, and starts a floor that answers like it; ends them all when `action` is over.
 * @template Result
 * @param {Bench} bench
 * @param {Preparation} preparation
 * @param {(scene: { pasted: Server, floor: Server, load: import('./servers.mjs').Load, plan: Plan }) =>
 *   Promise<Result>} action
 */
export async function withScene(bench, preparation, action) {
  const { site } = bench;
  await using pasted = await startPrepared(bench, preparation);
  await using floor = await startFloor(site, pasted.answer);
  await using load = await startLoad(site);
  return await action({ pasted, floor, load, plan: pasted.plan });
}

/**
 * @param {Bench} bench
 * @param {Preparation} preparation
 * @param {NodeJS.ProcessEnv} settings
 * @returns {Promise<Server & Prepared>}
 */
export async function startPrepared(bench, { stock: name, prepare }, settings = {}) {
  const { site, stocks, main, nodeArguments, effort } = bench;
  const stock = name === undefined ? undefined : await stocks.of(effort.stocks[name]);
  const options = stock === undefined ? { settings } : { settings, folder: stock.folder };
  const pasted = await startPasted(site, main, nodeArguments, options);
  try {
    return { ...pasted, ...await prepare(pasted.port, stock) };
  } catch (error) {
    await pasted[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * GET of a paste of a stock, `suffix` following the id: the popular ones often, or each once and its content looked up
 * by the floor, too.
 * @param {StockName} name
 * @param {string} suffix
 * @param {'zipf' | 'eachOnce'} draw
 * @returns {Preparation}
 */
export function readingStock(name, suffix, draw) {
  return {
    stock: name,
    async prepare(port, stock) {
      const { lastId, pristine, ids, count } = /** @type {Stock} */ (stock);
      const answer = wholeAnswer(await capture(port, 'GET', `/${lastId}${suffix}`));
      const template = `GET /${ID}${suffix} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
      // The last one was read now, and is not among those drawn.
      const plan = { kind: /** @type {const} */ ('drawn'), template, ids, count: count - 1, draw };
      return { plan, answer: draw === 'eachOnce' ? { ...answer, database: pristine } : answer };
    },
  };
}

/** GET of one of `count` pastes of `bytes`. @param {number} count @param {number} bytes @returns {Preparation} */
export function readingStored(count, bytes) {
  return {
    async prepare(port) {
      const { path, answer } = await storeAndRead(port, bytes);
      const others = Array.from({ length: count - 1 }, async () => `/${await store(port, text(bytes))}/raw`);
      const paths = [path, ...await Promise.all(others)];
      return { plan: { kind: /** @type {const} */ ('get'), paths }, answer: wholeAnswer(answer) };
    },
  };
}

/** GET of a path. @param {string} path @returns {Preparation} */
export function asking(path) {
  return {
    async prepare(port) {
      const answer = await capture(port, 'GET', path);
      return { plan: { kind: /** @type {const} */ ('get'), paths: [path] }, answer: wholeAnswer(answer) };
    },
  };
}

/** GET of one large paste. @param {number} bytes @returns {Preparation} */
export function readingLarge(bytes) {
  return {
    async prepare(port) {
      const { path, answer } = await storeAndRead(port, bytes);
      const streamed = { status: answer.status, headers: answer.headers, body: null, bytes };
      return { plan: { kind: /** @type {const} */ ('get'), paths: [path] }, answer: streamed };
    },
  };
}

/**
 * POST of new pastes. The floor of an upload computes its SHA-256, which the entity tag needs.
 * @param {'post' | 'upload'} kind
 * @param {number} bytes
 * @returns {Preparation}
 */
export function writing(kind, bytes) {
  return {
    async prepare(port) {
      const answer = await capture(port, 'POST', '/', text(bytes));
      return { plan: { kind, bytes }, answer: { ...wholeAnswer(answer), hashes: kind === 'upload' } };
    },
  };
}

/** A new paste of `bytes`, and the answer that has all of it. @param {number} port @param {number} bytes */
async function storeAndRead(port, bytes) {
  const content = text(bytes);
  const path = `/${await store(port, content)}/raw`;
  const answer = await capture(port, 'GET', path);
  mustEqual(answer, content);
  return { path, answer };
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
