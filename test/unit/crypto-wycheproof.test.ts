// Every vector of Project Wycheproof for what we use, through our wrappers: which and how is support/wycheproof.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import { WYCHEPROOF } from '../support/wycheproof.ts';

for (const [name, tryAll] of Object.entries(WYCHEPROOF)) {
  test(`Wycheproof: every vector of ${name} comes out as it should`, async () => {
    const { promised, tried, failed } = await tryAll();
    assert.deepEqual(failed, []);
    assert.equal(tried, promised);
    assert.ok(tried >= 60);
  });
}
