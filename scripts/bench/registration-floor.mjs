// The floor of registering, a process of its own: the bare node:crypto operations that one registration needs, as many
// of them at a time as its parent asks for over IPC. Nothing is encoded, stored or sent.

import { generateKeyPair, hash, randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';

/** Iterations of the PKCS#12 key derivation for a bundle without a password, as pasted makes it. */
const KDF_ITERATIONS = 2048;

const TO_BE_SIGNED = randomBytes(512);

const makeKeyPair = promisify(generateKeyPair);
const signBytes = promisify(sign);

const authority = await makeKeyPair('ec', { namedCurve: 'secp384r1' });

async function registerBarely() {
  await makeKeyPair('ec', { namedCurve: 'secp384r1' });
  await signBytes('sha384', TO_BE_SIGNED, authority.privateKey);
  let derived = randomBytes(192);
  for (let iteration = 0; iteration < KDF_ITERATIONS; iteration += 1) derived = hash('sha256', derived, 'buffer');
}

/** @param {{ atOnce: number, seconds: number }} load */
async function run({ atOnce, seconds }) {
  const begun = performance.now();
  let answers = 0;
  const isOver = () => performance.now() - begun > seconds * 1000;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (; !isOver(); answers += 1) await registerBarely();
  }));
  return { answers, seconds: (performance.now() - begun) / 1000 };
}

process.on('message', async (/** @type {{ atOnce: number, seconds: number }} */ load) => {
  process.send?.(await run(load));
});
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
