// What an operation needs before it is measured: a running server, stored pastes, the plan of its load, and the order
// for the floor, with real answers that the floor then repeats. Nothing here is timed.

import http from 'node:http';
import { startPasted } from './processes.mjs';
import { ID, OWNER, STAMP, headOf, text } from './requests.mjs';
import { PASTE_BYTES, copyOf, ownersOf, stockOf } from './stock.mjs';

/** The header that Firefox and Safari send when they navigate. */
const BROWSER = 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

/** The largest content that pasted keeps in the row of its paste. */
const LARGEST_ROW_BYTES = 64 * 1024;

const AS_OWNER = `X-SSL-Client-SHA1: ${OWNER}`;
const CONTENT = ['Content-Type: text/plain', `Content-Length: ${PASTE_BYTES}`];

/** Templates of what owners do; `list` asks for the first page of an owner's own pastes. */
const OF_OWNERS = {
  list: headOf('GET /pastes', AS_OWNER),
  update: headOf(`PUT /${ID}`, AS_OWNER, ...CONTENT) + STAMP + text(PASTE_BYTES - STAMP.length).toString('latin1'),
  delete: headOf(`DELETE /${ID}`, AS_OWNER),
};

/** Each gives the `plan` of the load and, where a bare server is the floor, what it does (floor.mjs). */
const PREPARATIONS = {
  /**
   * GET of a paste of the stock, with `suffix` behind the id: popular pastes often ('zipf'), or each paste once
   * ('eachOnce'), in which case the floor looks up its content too.
   */
  async draw({ port, logged }, { suffix, draw }, { lastId, pristine, ids, count }) {
    const small = await capture(port, 'GET', `/${lastId}${suffix}`);
    // The last paste has just been read, so it is not among those drawn.
    const plan = { kind: 'drawn', template: headOf(`GET /${ID}${suffix}`), ids, count: count - 1, draw };
    const contents = draw === 'eachOnce' ? pristine : undefined;
    return { plan, floor: { small, contents, logLine: await logged(/.*"event":"request".*\n/) } };
  },

  /** What the owners of the stock do. */
  own(_, { request }, { ids, count }) {
    const draw = request === 'delete' ? 'eachOnce' : 'uniform';
    return { plan: { kind: 'drawn', template: OF_OWNERS[request], ids, count, draw, owners: ownersOf(count) } };
  },

  /**
   * GET of one of `count` new pastes of `bytes`, or with `pages` of their pages, as browsers ask for them. The floor
   * reads chunks where pasted keeps the content in chunks.
   */
  async store({ port, database }, { count, bytes, pages = false }) {
    const contents = Array.from({ length: count }, () => text(bytes));
    const stored = await Promise.all(contents.map((content) => capture(port, 'POST', '/', content)));
    const ids = stored.map(({ body }) => JSON.parse(body).id);
    const answer = await capture(port, 'GET', `/${ids[0]}/raw`);
    if (!answer.body.equals(contents[0])) throw new Error(`${answer.body.length} bytes that are not those stored`);
    const request = (id) => (pages ? headOf(`GET /${id}`, BROWSER) : headOf(`GET /${id}/raw`));
    const plan = { kind: 'fixed', requests: ids.map(request) };
    if (bytes <= LARGEST_ROW_BYTES) return { plan, floor: { small: answer } };
    // Without the body, which would only take memory of the floor.
    return { plan, floor: { large: { ...answer, body: undefined }, chunks: database } };
  },

  /** POST of new pastes of a `kind`: 'post' or 'upload'. */
  async send({ port, database }, { kind, bytes }) {
    const stored = await capture(port, 'POST', '/', text(bytes));
    return { plan: { kind, bytes }, floor: { stored, stores: database && copyOf(database) } };
  },

  /** All at once: GET and POST of small pastes, and download and upload of pastes of `bytes`. */
  async mix(pasted, { bytes }) {
    const get = await PREPARATIONS.store(pasted, { count: 1000, bytes: PASTE_BYTES });
    const download = await PREPARATIONS.store(pasted, { count: 10, bytes });
    const { plan: upload, floor } = await PREPARATIONS.send(pasted, { kind: 'upload', bytes });
    const plans = { get: get.plan, post: { kind: 'post', bytes: PASTE_BYTES }, upload, download: download.plan };
    return { plans, floor: { ...get.floor, ...download.floor, ...floor, chunks: floor.stores } };
  },
};

/**
 * Starts pasted on a stock (given by name or itself), on an empty database, or with `inCluster` on three nodes of
 * rqlite, and prepares it by one of PREPARATIONS.
 */
export async function startPrepared({ main, effort }, { by, stock: name, logsToFile, inCluster = false, ...needs }) {
  const stock = typeof name === 'string' ? await stockOf(main, effort.stocks[name]) : name;
  const ends = [];
  const settings = inCluster ? { SERVICE_DB: await startCluster({ after: (end) => ends.push(end) }) } : {};
  const started = await startPasted(main, { logsToFile, folder: stock?.folder, settings });
  const pasted = { ...started, database: inCluster ? undefined : started.database };
  const end = async () => {
    await pasted[Symbol.asyncDispose]();
    for (const endNodes of ends) await endNodes();
  };
  return { ...pasted, ...await PREPARATIONS[by](pasted, needs, stock), [Symbol.asyncDispose]: end };
}

async function startCluster(owner) {
  const { rqliteMissing, startNodes } = await import('../../test/support/rqlite.ts');
  if (rqliteMissing() !== undefined) throw new Error(`${rqliteMissing()}: bash .ci/run fetches it`);
  const { nodes } = await startNodes(owner);
  return `rqlite://${nodes.map(({ address }) => address).join()}`;
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

/** Resolves to an answer; rejects when its status is not 2xx. */
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
