// Generated requests that once found something out, kept as they were sent in test/vectors/requests. Whatever each
// was kept for, the service gives well-formed answers, ends the connection, and goes on.
//
// upgrade-*: Node lets a request with Upgrade keep its body to itself, so a broken body is only noticed when it is
// too slow. head-malformed: the method of a head that can't be read is unknown, so the error has a body.
// malformed-behind-another: while an answer is under way, only the end tells of an error in what follows.

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
    // After a while whatever waits for more has waited too long; a busy machine may begin late, so the clock goes on.
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
