// What pastec is asked for about certificates and their keys while something fails, and what must hold then: no key is
// lost or shown to others, and success is reported only of what is whole and can be used.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run as runProgram } from '../support/programs.ts';
import { askTls, serverPair, type Pair } from '../support/tls.ts';
import type { Attempt, Scenario } from './client-scenarios.ts';
import { filesOf, runClient, type Trial } from './client-trial.ts';

/** Of bundles. An error that contains it reveals a secret. */
const PASSWORD = 'a secret password';

interface Identity {
  /** Certificate and key in one PEM. */
  readonly pair: string;
  /** PKCS#12, with and without a password. */
  readonly bundle: Buffer;
  readonly lockedBundle: Buffer;
}

let made: Identity | undefined;

/** One identity is enough for all runs, since each run has folders of its own. */
function identity(): Identity {
  if (made !== undefined) return made;
  const folder = mkdtempSync(join(tmpdir(), 'pasted-identity-'));
  const openssl = (...args: string[]): void => {
    const { status, output } = runProgram('openssl', args, folder);
    if (status !== 0) throw new Error(`openssl ended with ${status}: ${output}`);
  };
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=x', '-days', '365',
    '-keyout', 'key', '-out', 'certificate');
  for (const [out, password] of [['bundle', ''], ['locked', PASSWORD]] as const) {
    openssl('pkcs12', '-export', '-inkey', 'key', '-in', 'certificate', '-passout', `pass:${password}`, '-out', out);
  }
  made = { pair: `${read('certificate')}${read('key')}`, bundle: read('bundle'), lockedBundle: read('locked') };
  rmSync(folder, { recursive: true });
  return made;
}

/** Where the identity for the relay's server is. */
function identityFolder({ folders, relay }: Trial): string {
  return join(folders.home, '.local/share/pastec/certificates', new URL(relay.url).host.replace(':', '_'));
}

/** Keeps an identity as an import leaves it or, with `isBundle`, as a server's bundle is kept without openssl. */
export function keepIdentity(trial: Trial, isBundle = false): string[] {
  const { pair, bundle } = identity();
  const folder = identityFolder(trial);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { fingerprint, validTo } = new X509Certificate(pair);
  const facts = `fingerprint=${plainHex(fingerprint)}\nexpires=${Date.parse(validTo) / 1000}\n`;
  writeFileSync(join(folder, 'facts'), facts, { mode: 0o600 });
  writeFileSync(join(folder, isBundle ? 'client.p12' : 'client.pem'), isBundle ? bundle : pair, { mode: 0o600 });
  return [];
}

function plainHex(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase();
}

/** A fault for each file with a key, in PEM or PKCS#12, that is not for its owner alone. */
function shownKeys(trial: Trial): string[] {
  const withKey = [...filesOf(trial)].filter(([, bytes]) => /PRIVATE KEY|^0\x82..\x02\x01\x03/s.test(bytes.toString('latin1')));
  const shown = withKey.filter(([path]) => (statSync(path).mode & 0o077) !== 0);
  return shown.map(([path]) => `${path} shows a key to others`);
}

function hasKeyOf(certificate: X509Certificate, text: string): boolean {
  const pem = /-----BEGIN (?:EC )?PRIVATE KEY-----[^-]+-----END (?:EC )?PRIVATE KEY-----/.exec(text)?.[0];
  return pem !== undefined && certificate.checkPrivateKey(createPrivateKey(pem));
}

/** Whether the text has that certificate as its first one, and its key. */
function hasPair(certificate: X509Certificate, text: string): boolean {
  try {
    return new X509Certificate(text).fingerprint256 === certificate.fingerprint256 && hasKeyOf(certificate, text);
  } catch {
    return false;
  }
}

function textAt(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isInFiles(trial: Trial, certificate: X509Certificate): boolean {
  return [...filesOf(trial).values()].some((bytes) => hasKeyOf(certificate, String(bytes)));
}

/** Whether the certificate is where pastec takes it from, with its key and with what pastec notes about it. */
function isInPlace(trial: Trial, certificate: X509Certificate): boolean {
  const folder = identityFolder(trial);
  return hasPair(certificate, textAt(join(folder, 'client.pem'))) &&
    textAt(join(folder, 'facts')).includes(`fingerprint=${plainHex(certificate.fingerprint)}\n`);
}

const registering: Scenario = {
  name: 'register',
  async begin(trial) {
    return {
      args: ['register', '--allow-http'],
      async judge({ code }, { isFull }) {
        const wrong = shownKeys(trial);
        const given = /"certificate_pem":"([^"]+)"/.exec(String(trial.relay.received()))?.[1];
        if (given === undefined) return code === 0 ? [...wrong, 'success is said of no certificate'] : wrong;
        const certificate = new X509Certificate(given.replaceAll('\\n', '\n'));
        // Without room on the disk pastec cannot keep the key; then reporting the failure is enough.
        if (!isInFiles(trial, certificate) && !(isFull && code !== 0)) wrong.push('the key of the certificate is lost');
        if (code === 0 && !isInPlace(trial, certificate)) wrong.push('success is said, and the certificate is not there');
        return wrong;
      },
    };
  },
};

/** With `isForced`, an identity is already in place, and its key must be kept. */
function importing(name: string, file: 'pair' | 'lockedBundle', isForced: boolean): Scenario {
  return {
    name,
    async begin(trial) {
      const { work } = trial.folders;
      const certificate = new X509Certificate(identity().pair);
      writeFileSync(join(work, 'given'), identity()[file], { mode: 0o600 });
      writeFileSync(join(work, 'password'), PASSWORD);
      const former = 'the key that there was\n';
      if (isForced) {
        keepIdentity(trial);
        writeFileSync(join(identityFolder(trial), 'client.pem'), former, { mode: 0o600 });
      }
      return {
        args: ['cert', 'import', ...(isForced ? ['--force'] : []), '--password-file', 'password', 'given'],
        async judge({ code }) {
          const wrong = shownKeys(trial);
          const files = [...filesOf(trial, ['home']).values()].map(String);
          if (isForced && !files.includes(former)) wrong.push('the key that there was is lost');
          if (code === 0 && !isInPlace(trial, certificate)) wrong.push('success is said, and the certificate is not there');
          return wrong;
        },
      };
    },
  };
}

interface Export {
  readonly form: 'p12' | 'pem' | 'keychain';
  /** Whether what is kept is a bundle that a server made. */
  readonly isBundle: boolean;
}

/** Exports to the name of a file that may be the only copy of something, and must be kept. */
function exporting(name: string, { form, isBundle }: Export): Scenario {
  return {
    name,
    async begin(trial) {
      const { work } = trial.folders;
      keepIdentity(trial, isBundle);
      writeFileSync(join(work, 'out'), 'another key', { mode: 0o600 });
      writeFileSync(join(work, 'password'), PASSWORD);
      const locked = form === 'pem' ? [] : ['--password-file', 'password'];
      return {
        args: ['cert', 'export', '--for', form, ...locked, '--force', '-o', 'out'],
        async judge({ code }) {
          const wrong = shownKeys(trial);
          const files = [...filesOf(trial, ['work']).values()].map(String);
          if (!files.includes('another key')) wrong.push('a file is overwritten');
          const open = ['pkcs12', '-in', 'out', '-passin', `pass:${PASSWORD}`, '-nodes'];
          const text = code !== 0 || form === 'pem' ? textAt(join(work, 'out')) : runProgram('openssl', open, work).stdout;
          const certificate = new X509Certificate(identity().pair);
          if (code === 0 && !hasPair(certificate, text)) wrong.push('success is said, and the file does not hold both');
          return wrong;
        },
      };
    },
  };
}

let shown: Promise<Pair> | undefined;

/** The certificate of each service with TLS. */
async function shownPair(): Promise<Pair> {
  return shown ??= serverPair();
}

/** Settings of a service with TLS by itself, whose files are in the folder. */
export async function tlsSettings(folder: string): Promise<Record<string, string>> {
  const { cert, key } = await shownPair();
  mkdirSync(folder, { recursive: true });
  const settings = { SERVICE_TLS_CERT: join(folder, 'server.pem'), SERVICE_TLS_KEY: join(folder, 'server.key') };
  writeFileSync(settings.SERVICE_TLS_CERT, cert);
  writeFileSync(settings.SERVICE_TLS_KEY, key, { mode: 0o600 });
  return settings;
}

/** Runs a command while an identity of that service is in place; `judge` judges what becomes of it. */
function overTls(name: string, args: readonly string[], judge: JudgeIdentity): Scenario {
  return {
    name,
    hasTls: true,
    async begin(trial): Promise<Attempt> {
      const ca = join(trial.root, 'ca.pem');
      writeFileSync(ca, (await shownPair()).cert);
      mkdirSync(join(trial.folders.home, '.config/pastec'), { recursive: true });
      writeFileSync(join(trial.folders.home, '.config/pastec/config'), `ca=${ca}\n`);
      const server = ['--server', trial.relay.url.replace('http:', 'https:')];
      const { code, stderr } = await runClient(trial, ['register', ...server], '', {});
      if (code !== 0) throw new Error(`registering failed: ${stderr}`);
      const former = textAt(join(identityFolder(trial), 'client.pem'));
      return {
        args: [...args, ...server],
        judge: async (ended) => [...shownKeys(trial), ...await judge(trial, former, ended.code === 0)],
      };
    },
  };
}

/** `former`: the identity before the command, in PEM. */
type JudgeIdentity = (trial: Trial, former: string, isSaidDone: boolean) => Promise<readonly string[]>;

/** What the service answers to a client that shows this identity; 0 when it can't be shown. */
async function statusOf({ port }: Trial, pem: string): Promise<number> {
  try {
    return (await askTls(port, 'GET /pastes?limit=1', { as: { cert: pem, key: pem } })).status;
  } catch {
    return 0;
  }
}

const judgeRenewal: JudgeIdentity = async (trial, former, isSaidDone) => {
  const pem = textAt(join(identityFolder(trial), 'client.pem'));
  const status = await statusOf(trial, pem);
  if (status !== 200) return [`the identity in place is answered ${status}`];
  const isNew = pem !== former && isInPlace(trial, new X509Certificate(pem));
  return isSaidDone && !isNew ? ['success is said of no renewal'] : [];
};

const judgeRevocation: JudgeIdentity = async (trial, former, isSaidDone) => {
  if (!isInFiles(trial, new X509Certificate(former))) return ['its key is lost'];
  if (!isSaidDone) return [];
  const isGone = textAt(join(identityFolder(trial), 'client.pem')) === '';
  return isGone && await statusOf(trial, former) === 401 ? [] : ['success is said of no revocation'];
};

export const IDENTITY_SCENARIOS: readonly Scenario[] = [
  registering,
  importing('cert import', 'pair', false),
  importing('cert import --force of a bundle', 'lockedBundle', true),
  exporting('cert export', { form: 'p12', isBundle: false }),
  exporting('cert export --for pem', { form: 'pem', isBundle: false }),
  exporting('cert export --for keychain, of a bundle', { form: 'keychain', isBundle: true }),
  overTls('renew', ['renew'], judgeRenewal),
  overTls('cert revoke', ['cert', 'revoke', '--yes'], judgeRevocation),
];
