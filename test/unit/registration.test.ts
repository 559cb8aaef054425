// service/registration.ts: which thread and queue a bundle is made in, and what is told when they are full. The bundle
// and its certificate, over real sockets: test/api/registration.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Authorities } from '../../src/authority/authority.ts';
import { type Certificates, createRegistration } from '../../src/authority/issuing.ts';
import { KdfQueueFull, type KdfThread } from '../../src/authority/pkcs12-kdf-thread.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import type { Challenges } from '../../src/pastes/admission.ts';

/** What becomes of a registration whose threads fail with `failure`; the steps that it took before, in order. */
async function registered(bundlePassword: string, failure: Error) {
  const steps: string[] = [];
  const failing = (name: string): KdfThread => ({
    derive: async () => {
      steps.push(name);
      throw failure;
    },
    close: async () => {},
  });
  const registration = createRegistration({
    challenges: {
      require: async (purpose: string) => {
        steps.push(purpose);
        return null;
      },
    } as unknown as Challenges,
    authorities: { requireUsable: async () => {}, ensured: async () => ({ certificate: new Uint8Array() }) } as unknown as Authorities,
    certificates: {
      issue: async ({ before }) => {
        await before?.(new Uint8Array());
        return assert.fail('a bundle was made');
      },
    } satisfies Pick<Certificates, 'issue'> as unknown as Certificates,
    kdf: failing('quick'),
    slowKdf: failing('slow'),
    slowQueue: {
      enter: async (client) => {
        assert.equal(client, '192.0.2.1');
        steps.push('enter');
        return () => void steps.push('leave');
      },
      running: 0,
      waiting: 0,
    },
    random: randomBytes,
  });
  const request = {
    commonName: 'alice', profile: 'modern', bundlePassword,
    spend: await registration.admit({ token: undefined, solution: undefined }),
    requester: { fingerprint: null, clientAddress: '192.0.2.1' },
  } as const;
  const error: unknown = await registration.register(request).then(() => assert.fail('made'), (reason: unknown) => reason);
  return { error, steps };
}

test('register: a bundle with a password is made in turn on the slow thread, one without on the other', async () => {
  const failure = new Error('odd');
  assert.deepEqual(await registered('', failure), { error: failure, steps: ['register', 'quick'] });
  assert.deepEqual(await registered('p', failure), { error: failure, steps: ['register', 'enter', 'slow', 'leave'] });
});

test('register: where too many bundles wait, the caller is told to come back', async () => {
  for (const password of ['', 'p']) {
    const { error } = await registered(password, new KdfQueueFull());
    assert.ok(error instanceof Refusal);
    assert.deepEqual([error.refusal, error.terms], ['passwordQueueFull', { retryAfterSeconds: 1 }]);
  }
});
