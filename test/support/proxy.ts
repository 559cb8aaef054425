// A site behind a real reverse proxy: the service, issued bundles, a server certificate, a copy of a configuration of
// scripts/deploy with this site's paths and ports, and curl to call it. All is on loopback and ends with the test.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { encodePem } from '../../src/authority/keys.ts';
import type { Config } from '../../src/config/settings.ts';
import { RUNNING_CLOCK, startApp, type RunningApp } from './app.ts';
import { withOtherSignature } from './authority.ts';
import { authorityPem, openssl, PKI, register, writeFiles } from './pki.ts';
import { temporaryFolder } from './programs.ts';

export const PROXY_SECRET = 'what the proxy and the service know';

/** The server's name in the configurations: a proxy may serve no other name. */
export const SITE_NAME = 'paste.example';

export interface Site {
  readonly app: RunningApp;
  /**
   * Stands for /etc/pasted: certificates, the revocation list, and the `.p12`, `.der`, `.key` and `-rewritten.crt` of
   * `admin` and of `client`. `-rewritten.crt` is the certificate with its other signature.
   */
  readonly folder: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Fingerprints of the holders of the bundles. */
  readonly admin: string;
  readonly client: string;
}

/** The longest name in UTF-8: no certificate that is issued is larger than one with this name. */
const LONGEST_NAME = '\u{20000}'.repeat(64);

/** Everything but the proxy. The default for `identityHeader` is what each file of scripts/deploy wants. */
export async function prepareSite(
  t: TestContext,
  identityHeader: Config['identityHeader'] = 'x-ssl-client-cert',
): Promise<Site> {
  const folder = temporaryFolder(t);
  // The other programs use the host's clock.
  const app = await startApp(t, { ...PKI, proxySecret: PROXY_SECRET, identityHeader }, RUNNING_CLOCK);
  const names = ['admin', 'client'] as const;
  const fingerprints: string[] = [];
  for (const name of names) {
    const { status, bundle, headers } = await register(app, { common_name: name === 'client' ? LONGEST_NAME : name });
    assert.equal(status, 200);
    writeFiles(folder, { [`${name}.p12`]: bundle });
    openssl(folder, 'pkcs12', '-in', `${name}.p12`, '-passin', 'pass:', '-nokeys', '-clcerts', '-out', `${name}.crt`);
    openssl(folder, 'pkcs12', '-in', `${name}.p12`, '-passin', 'pass:', '-nocerts', '-nodes', '-out', `${name}.key`);
    openssl(folder, 'x509', '-in', `${name}.crt`, '-outform', 'DER', '-out', `${name}.der`);
    const rewritten = withOtherSignature(readFileSync(join(folder, `${name}.der`)));
    writeFiles(folder, { [`${name}-rewritten.crt`]: encodePem('CERTIFICATE', rewritten) });
    fingerprints.push(headers.get('x-fingerprint-sha1') ?? '');
  }
  makeServerCertificate(folder);
  writeFiles(folder, { 'ca.crt': await authorityPem(app), 'ca.crl.pem': await revocationList(app) });
  const [admin = '', client = ''] = fingerprints;
  const [httpPort = 0, httpsPort = 0] = await freePorts(2);
  return { app, folder, httpPort, httpsPort, admin, client };
}

export async function revocationList(app: RunningApp): Promise<string> {
  return (await app.request('/pki/ca.crl.pem')).text();
}

/** Makes `server.crt` and `.key`, and `stranger.crt` and `.key` of a client that the site does not know. */
function makeServerCertificate(folder: string): void {
  for (const [name, purpose] of [['server', 'serverAuth'], ['stranger', 'clientAuth']] as const) {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`];
    const extensions = ['-addext', `subjectAltName=DNS:${SITE_NAME}`, '-addext', `extendedKeyUsage=${purpose}`];
    const subject = ['-subj', `/CN=${name}`, '-days', '2', '-out', `${name}.crt`];
    openssl(folder, 'req', '-x509', ...key, ...subject, ...extensions);
  }
}

let portsGiven = 0;

/**
 * Below the ports that the kernel gives to whoever asks for any one: it gives these to nobody before they are used, or
 * while what uses them is down. Twenty for each process, so that other test files get others.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < count; tries += 1) {
    assert.ok(tries < 100, 'no port is free');
    const port = 11_000 + (process.pid % 1000) * 20 + portsGiven % 20;
    portsGiven += 1;
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(() => true, () => false);
    if (!isFree) continue;
    await once(server.close(), 'close');
    if (!ports.includes(port)) ports.push(port);
  }
  return ports;
}

/** The text of a file of scripts/deploy with replacements, each of which must find something. */
export function deployed(name: string, replacements: Replacements): string {
  let text = readFileSync(new URL(`../../scripts/deploy/${name}`, import.meta.url), 'utf8');
  for (const [pattern, replacement] of replacements) {
    assert.match(text, pattern, name);
    text = text.replace(pattern, replacement);
  }
  return text;
}

export type Replacements = readonly (readonly [RegExp, string])[];

/** Makes a file that hands over the whole certificate hand over its SHA-1 instead, as in earlier releases. */
export const SHA1_INSTEAD: Replacements = [
  // The two headers change places, also where they are removed.
  [/X-SSL-Client-SHA1/g, 'X-Other'], [/X-SSL-Client-Cert/g, 'X-SSL-Client-SHA1'], [/X-Other/g, 'X-SSL-Client-Cert'],
];

export interface RunningProxy {
  /** Sends the proxy a signal, and waits for the words with which it answers. */
  signal(name: NodeJS.Signals, answer: RegExp): Promise<void>;
  /** Everything that it has said so far. */
  said(): string;
}

/** Runs "$@" until it ends or standard input is closed: not even a killed test run leaves a proxy behind. */
const UNTIL_STDIN_CLOSES = `
  exec 3<&0
  "$@" </dev/null 3<&- &
  pid=$!
  echo "its process is $pid"
  { cat <&3; kill $pid; } >/dev/null 2>&1 &
  wait $pid`;

const PATIENCE_MS = 15_000;

/** Starts the proxy in the foreground, and waits for the words, on either of its outputs, that say it serves. */
export async function startProxy(
  t: TestContext,
  command: readonly string[],
  options: { readonly isServing: RegExp; readonly environment?: Readonly<Record<string, string>> },
): Promise<RunningProxy> {
  const env = { ...process.env, ...options.environment };
  const child = spawn('sh', ['-c', UNTIL_STDIN_CLOSES, 'sh', ...command], { env });
  const ended = once(child, 'exit');
  child.stdin.on('error', () => {});
  t.after(async () => {
    child.stdin.end();
    await ended;
  });
  let said = '';
  const words = new EventEmitter();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      words.emit('more');
    });
  }

  async function heard(pattern: RegExp, from: number): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const match = pattern.exec(said.slice(from));
      if (match !== null) return match;
      const more = once(words, 'more', { signal }).catch(() => 'late');
      const outcome = await Promise.race([more, ended.then(() => 'ended')]);
      if (outcome === 'ended' || outcome === 'late') assert.fail(`${outcome}, waiting for ${pattern}:\n${said}`);
    }
  }

  const pid = Number((await heard(/^its process is (\d+)$/m, 0))[1]);
  await heard(options.isServing, 0);
  return {
    said: () => said,
    signal: async (name, answer) => {
      const from = said.length;
      process.kill(pid, name);
      await heard(answer, from);
    },
  };
}

export interface CurlAnswer {
  /** 0 when there was no answer. */
  readonly status: number;
  readonly body: string;
  /** curl's own exit code. */
  readonly exitCode: number;
}

export type Curl = (url: string, ...args: readonly string[]) => Promise<CurlAnswer>;

/** curl in the folder of the site; `url` begins with `http:` or `https:` and goes on with the path. */
export function curlOf({ folder, httpPort, httpsPort }: Site): Curl {
  return async (url, ...args) => {
    const [scheme = '', path = ''] = url.split(':');
    const port = scheme === 'https' ? httpsPort : httpPort;
    const resolve = ['--noproxy', '*', '--resolve', `${SITE_NAME}:${port}:127.0.0.1`];
    const options = ['-sS', '--max-time', '30', '--cacert', 'server.crt', '-w', '\n%{http_code}', ...resolve];
    const address = `${scheme}://${SITE_NAME}:${port}${path}`;
    const { stdout, code } = await runCurl([...options, ...args, address], folder);
    const end = stdout.lastIndexOf('\n');
    return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end), exitCode: code };
  };
}

/** Not synchronously, since the service answers in this very process. */
async function runCurl(args: readonly string[], cwd: string): Promise<{ stdout: string; code: number }> {
  try {
    const { stdout } = await promisify(execFile)('curl', args, { cwd, maxBuffer: 64 * 1024 * 1024 });
    return { stdout, code: 0 };
  } catch (error) {
    const { stdout, code } = error as { stdout: string; code: number };
    return { stdout, code };
  }
}
