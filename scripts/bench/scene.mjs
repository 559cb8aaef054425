// What an operation needs before it is measured: a running server, stored pastes, the plan of its load, and the real
// answer that the floor then gives. Nothing here is timed.

import http from 'node:http';
import { startFloor, startLoad, startPasted } from './processes.mjs';
import { ID, headOf, text } from './requests.mjs';
import { stockOf } from './stock.mjs';

/**
 * Starts pasted, prepares it, and starts a floor that answers like it; ends them all when `action` is over.
 * A preparation is `{ stock, prepare(port, stock) }`: the name of a stock, if it needs one, and what gives `plan` and
 * `answer`.
 */
export async function withScene(bench, preparation, action) {
  await using pasted = await startPrepared(bench, preparation);
  await using floor = await startFloor(pasted.answer);
  await using load = startLoad();
  return await action({ pasted, floor, load, plan: pasted.plan });
}

export async function startPrepared({ main, effort }, { stock: name, prepare }, settings = {}) {
  const stock = name === undefined ? undefined : await stockOf(main, effort.stocks[name]);
  const options = stock === undefined ? { settings } : { settings, folder: stock.folder, stays: true };
  const pasted = await startPasted(main, options);
  try {
    return { ...pasted, ...await prepare(pasted.port, stock) };
  } catch (error) {
    await pasted[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * GET of a paste of a stock, `suffix` following the id: the popular ones often ('zipf'), or each once and its content
 * looked up by the floor, too ('eachOnce').
 */
export function readingStock(stock, suffix, draw) {
  return {
    stock,
    async prepare(port, { lastId, pristine, ids, count }) {
      const answer = wholeAnswer(await capture(port, 'GET', `/${lastId}${suffix}`));
      // The last one was read now, and is not among those drawn.
      const plan = { kind: 'drawn', template: headOf(`GET /${ID}${suffix}`), ids, count: count - 1, draw };
      return { plan, answer: draw === 'eachOnce' ? { ...answer, database: pristine } : answer };
    },
  };
}

/** GET of one of `count` pastes of `bytes`. */
export function readingStored(count, bytes) {
  return {
    async prepare(port) {
      const { path, answer } = await storeAndRead(port, bytes);
      const others = Array.from({ length: count - 1 }, async () => `/${await store(port, text(bytes))}/raw`);
      return { plan: getting(path, ...await Promise.all(others)), answer: wholeAnswer(answer) };
    },
  };
}

/** As Firefox and Safari navigate. */
const BROWSER = 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

/** GET of the pages of `count` pastes of `bytes` as browsers ask for them; `rawPlan` is that of their content. */
export function readingPages(count, bytes) {
  return {
    async prepare(port) {
      const ids = await Promise.all(Array.from({ length: count }, () => store(port, text(bytes))));
      const requests = ids.map((id) => headOf(`GET /${id}`, BROWSER));
      return { plan: { kind: 'fixed', requests }, rawPlan: getting(...ids.map((id) => `/${id}/raw`)) };
    },
  };
}

export function asking(path) {
  return { prepare: async (port) => ({ plan: getting(path), answer: wholeAnswer(await capture(port, 'GET', path)) }) };
}

/** GET of one large paste. */
export function readingLarge(bytes) {
  return {
    async prepare(port) {
      const { path, answer: { status, headers } } = await storeAndRead(port, bytes);
      return { plan: getting(path), answer: { status, headers, body: null, bytes } };
    },
  };
}

/** POST of new pastes; `kind` is 'post' or 'upload'. The floor of an upload computes the SHA-256 of its entity tag. */
export function writing(kind, bytes) {
  return {
    async prepare(port) {
      const answer = await capture(port, 'POST', '/', text(bytes));
      return { plan: { kind, bytes }, answer: { ...wholeAnswer(answer), hashes: kind === 'upload' } };
    },
  };
}

function getting(...paths) {
  return { kind: 'fixed', requests: paths.map((path) => headOf(`GET ${path}`)) };
}

/** A new paste of `bytes`, and the answer that has all of it. */
async function storeAndRead(port, bytes) {
  const content = text(bytes);
  const path = `/${await store(port, content)}/raw`;
  const answer = await capture(port, 'GET', path);
  if (!answer.body.equals(content)) throw new Error(`${answer.body.length} bytes that are not the ${bytes} stored`);
  return { path, answer };
}

function wholeAnswer({ status, headers, body }) {
  return { status, headers, body: body.toString('base64'), bytes: body.length };
}

/** The id of the stored paste. */
async function store(port, content) {
  const { body } = await capture(port, 'POST', '/', content);
  return JSON.parse(body).id;
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

/** Any answer but 2xx is thrown. */
export function capture(port, method, path, content) {
  const headers = content === undefined ? {} : { 'Content-Type': 'text/plain', 'Content-Length': content.length };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, headers, agent }, async (response) => {
      const body = Buffer.concat(await response.toArray());
      const status = response.statusCode;
      if (status >= 200 && status <= 299) resolve({ status, headers: response.rawHeaders, body });
      else reject(new Error(`${method} ${path}: status ${status} ${body.toString('utf8', 0, 200)}`));
    });
    request.on('error', reject);
    request.end(content);
  });
}
