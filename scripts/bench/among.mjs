// Whether what owners do takes longer the more pastes there are: lists, updates and deletes among many and among few.

import { alternate, compare, errorsOf, sideOf } from './rounds.mjs';
import { ID, OWNER, STAMP, text } from './requests.mjs';
import { startLoad, startPasted } from './servers.mjs';
import { PASTE_BYTES, PASTES_OF_AN_OWNER, fingerprintOf } from './stock.mjs';
import { timedLoop } from './throughput.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./scene.mjs').Stock} Stock */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */

const HEADERS = `Host: 127.0.0.1\r\nX-SSL-Client-SHA1: ${OWNER}\r\n`;
const NEW_CONTENT = STAMP + text(PASTE_BYTES - STAMP.length).toString('latin1');

const CONTENT_HEADERS = `Content-Type: text/plain\r\nContent-Length: ${PASTE_BYTES}\r\n`;

/** A request of each kind, as templates of drawn requests. A list is the first page of an owner's own. */
const REQUESTS = {
  list: `GET /pastes HTTP/1.1\r\n${HEADERS}\r\n`,
  update: `PUT /${ID} HTTP/1.1\r\n${HEADERS}${CONTENT_HEADERS}\r\n${NEW_CONTENT}`,
  delete: `DELETE /${ID} HTTP/1.1\r\n${HEADERS}\r\n`,
};

/**
 * Time for one request in ms, `connections` of them at a time; the floor is pasted itself with few pastes. Deleted
 * pastes are made up for by as many new ones after each round.
 * @param {{ request: keyof typeof REQUESTS, connections: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function amongMany({ request, connections }) {
  return async (bench) => {
    const { site, stocks, main, nodeArguments, effort } = bench;
    const [few, many] = [await stocks.of(effort.stocks.few), await stocks.of(effort.stocks.many)];
    await using amongFew = await startPasted(site, main, nodeArguments, { folder: few.folder });
    await using amongTheMany = await startPasted(site, main, nodeArguments, { folder: many.folder });
    await using load = await startLoad(site);
    const most = request === 'delete' ? Math.floor(few.count / (2 * (effort.rounds + 1))) : Infinity;
    const on = (/** @type {Server} */ server, /** @type {Stock} */ stock) => {
      const plan = planOf(request, stock);
      return (/** @type {number} */ seconds) => async () => {
        const round = await timedLoop(load, server, { plan, connections, seconds, most });
        if (request === 'delete') await refill(load, server, round.answers);
        return round;
      };
    };
    const [onFew, onMany] = [on(amongFew, few), on(amongTheMany, many)];
    const warmUp = await alternate(1, onFew(effort.warmUpSeconds), onMany(effort.warmUpSeconds));
    const rounds = await alternate(effort.rounds, onFew(effort.roundSeconds), onMany(effort.roundSeconds));
    return {
      ...compare(rounds, ({ answers, seconds }) => (seconds * 1000) / answers),
      floorSide: sideOf(rounds.map(({ floor }) => floor), amongFew.peakBytes()),
      pastedSide: sideOf(rounds.map(({ pasted }) => pasted), amongTheMany.peakBytes()),
      errors: errorsOf([...warmUp, ...rounds]),
      notes: [`${connections} connections; ${many.count} beside ${few.count}, each owner has ${PASTES_OF_AN_OWNER}`],
      rounds,
    };
  };
}

/** @param {keyof typeof REQUESTS} request @param {Stock} stock */
function planOf(request, { ids, count }) {
  const owners = Array.from({ length: Math.ceil(count / PASTES_OF_AN_OWNER) }, (_, owner) => fingerprintOf(owner));
  const draw = request === 'delete' ? 'eachOnce' : 'uniform';
  return { kind: 'drawn', template: REQUESTS[request], ids, count, draw, owners };
}

/** @param {import('./servers.mjs').Load} load @param {Server} server @param {number} count */
async function refill(load, { port }, count) {
  const plan = { kind: 'post', bytes: PASTE_BYTES };
  await load.run('closedLoop', { port, plan, connections: 32, seconds: 60, most: count });
}
