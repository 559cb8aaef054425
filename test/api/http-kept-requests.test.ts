// Bytes that generated requests found something out with, as they were sent: test/vectors/requests. Whatever each was
// kept for, the service gives well-formed answers, ends the connection, and goes on.
//
// upgrade-*: Node lets a request with Upgrade keep its body to itself, so that a broken one is only noticed when it is
// too slow. head-malformed: of a head that can't be read the method is not known, so the error has a body.
// malformed-behind-another: while an answer is under way, an error of what follows is told by the end alone.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import test from 'node:test';
import { assertContract } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { wholeAnswers } from '../support/raw-http.ts';

const FOLDER = new URL('../vectors/requests/', import.meta.url);
const LONGER_THAN_ANY_TIMEOUT_MS = 60_000;

for (const name of readdirSync(FOLDER).toSorted()) {
  test(`kept request ${name}: well-formed answers, and the end`, async (t) => {
    const { port, clock, logged } = await startHttp(t);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => socket.destroy());
    const chunks: Buffer[] = [];
    socket.on('data', (bytes) => chunks.push(bytes)).on('end', () => socket.end());
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    socket.end(readFileSync(new URL(name, FOLDER)));
    // After a while whatever waits for more has waited too long; on a busy machine it may not have begun by then.
    while (!socket.closed) {
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 200))]);
      clock.advance(LONGER_THAN_ANY_TIMEOUT_MS);
    }
    const { answers, rest } = wholeAnswers(Buffer.concat(chunks));
    assert.equal(rest.length, 0);
    assert.ok(answers.length > 0);
    for (const answer of answers) assertContract(answer);
    assert.ok([200, 400, 408].includes(answers.at(-1)!.status));
    assert.deepEqual(logged.filter(({ event }) => event !== 'request'), []);
  });
}
