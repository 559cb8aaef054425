// Signatures of SHA256SUMS, made by OpenSSH (ssh-keygen(1), `-Y sign`): whoever has a key for ssh can make one, and any
// host with OpenSSH can verify it. scripts/README.md says how.

import { closeSync, openSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../child.mjs';
import { ReleaseError } from './files.mjs';

/** ssh-keygen(1): a signature for another purpose, such as a commit or a mail, does not count for a release. */
const NAMESPACE = 'pasted-release';

/** A part of a file name, without dots because dots separate the parts. */
const SIGNER = /^[A-Za-z0-9][\w-]{0,31}$/;

/** The file name of a signature; that of a named signer contains the name. Refuses a signer that is no name. */
export function signatureName(signer) {
  if (signer === undefined) return 'SHA256SUMS.sig';
  if (SIGNER.test(signer)) return `SHA256SUMS.${signer}.sig`;
  throw new ReleaseError(`--as ${JSON.stringify(signer)}: expected at most 32 letters, digits, - and _`);
}

export function isSignatureName(name) {
  return /^SHA256SUMS(?:\.[\w-]+)?\.sig$/.test(name);
}

/** Signs the file `sums`, and puts the signature beside it as `name`. ssh-keygen asks for a passphrase by itself. */
export async function sign(sums, key, name) {
  await sshKeygen(['-Y', 'sign', '-n', NAMESPACE, '-f', key, sums], `${key} signed nothing`);
  const made = `${sums}.sig`;
  // A full disk may leave half a signature, which counts as none.
  const args = ['-Y', 'check-novalidate', '-n', NAMESPACE, '-s', made];
  const content = openSync(sums);
  try {
    await sshKeygen(args, 'ssh-keygen made a signature that it does not take', content);
  } finally {
    closeSync(content);
  }
  renameSync(made, join(dirname(sums), name));
}

/** Its messages go to the terminal as they come, since it may ask for a touch of the key. */
async function sshKeygen(args, failure, input = 'inherit') {
  const ended = await run('ssh-keygen', args, { stdio: [input, 'ignore', 'inherit'] }).catch((error) => {
    if (error.code === 'ENOENT') throw new ReleaseError('--sign needs ssh-keygen, which comes with OpenSSH');
    throw error;
  });
  if (ended.code !== 0) throw new ReleaseError(`${failure}; the release was not made`);
}
