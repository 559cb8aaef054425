// `pasted health`: asks a running service how it is, for container checks and scripts. How it finds that out itself is
// GET /health; nothing here opens its database.

import { loadConfig } from '../config/load.ts';
import { type Config, SETTINGS } from '../config/settings.ts';
import { firstCertificate } from '../crypto/presented.ts';
import { hostOf, parseServiceUrl } from '../http/engine/host.ts';
import { publicPlace } from '../http/listening.ts';
import { probe, type ProbeAnswer, ProbeError, type ProbeTarget } from '../http/probe.ts';
import { wholeNumber } from './arguments.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT, UsageError } from './failures.ts';
import type { Terminal } from './output.ts';

const HEALTH_PATH = '/health';

const TIMEOUT_SECONDS = { minimum: 1, maximum: 60, fallback: 5 };

interface Asked extends ProbeTarget {
  /** For people. */
  readonly name: string;
}

export const run: Run = async (terminal, given) => {
  const timeoutMs = wholeNumber(given, '--timeout', TIMEOUT_SECONDS) * 1000;
  const url = given.values.get('--url');
  const asked = url === undefined ? bySettings(terminal) : byUrl(url);
  const answer = await ask(asked, timeoutMs);
  const said = jsonIn(answer);
  if (given.options.has('--json') && said !== undefined) terminal.stdout.write(`${JSON.stringify(said)}\n`);
  if (answer.status !== 200 || said?.['status'] !== 'healthy') throw unhealthy(asked, answer, said);
  if (!given.options.has('--json')) terminal.stdout.write('healthy\n');
  return EXIT.success;
};

async function ask(asked: Asked, timeoutMs: number): Promise<ProbeAnswer> {
  try {
    return await probe(asked, timeoutMs);
  } catch (error) {
    throw error instanceof ProbeError ? new CommandError(`${asked.name}: ${error.message}`) : error;
  }
}

/** Undefined when the body is no JSON object. */
function jsonIn({ body }: ProbeAnswer): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}

function unhealthy({ name }: Asked, { status }: ProbeAnswer, said: ReturnType<typeof jsonIn>): CommandError {
  return new CommandError(
    said?.['status'] === 'unhealthy'
      ? `${name}: the service is unhealthy, or is stopping (${status})`
      : `${name}: the answer is not that of this service (${status})`,
  );
}

function byUrl(text: string): Asked {
  if (text.startsWith('unix:/')) return overSocket(text.slice('unix:'.length), undefined);
  const url = parseServiceUrl(text);
  if (url === undefined) {
    const expected = 'an address such as https://paste.example or unix:/run/pasted/http';
    throw new UsageError(`--url takes ${expected}: not ${JSON.stringify(text)}`);
  }
  const { isTls, host, port, prefix } = url;
  return {
    name: `${url.url}${HEALTH_PATH}`,
    place: { host, port },
    tls: isTls ? {} : undefined,
    host: hostOf(host, port),
    path: `${prefix}${HEALTH_PATH}`,
  };
}

/**
 * Where a service with these settings listens, seen from the same host. With TLS it must show the very certificate of
 * the settings' file: its name is that of the public host, not of this connection, and a stranger on the port shows
 * another one.
 */
function bySettings(terminal: Terminal): Asked {
  const { config } = loadConfig(terminal.environment, terminal.readFile);
  const tls = config.tlsCertPath === '' ? undefined : { pinned: ownCertificate(config, terminal) };
  const place = publicPlace(config, 0);
  if ('path' in place) return overSocket(place.path, tls);
  if ('fd' in place || place.port === 0) {
    throw new CommandError(`the settings do not say which port it listens on (${SETTINGS.port.name}): give --url`);
  }
  const { port } = place;
  const host = LOCAL.get(place.host) ?? place.host;
  const address = hostOf(host, port);
  const scheme = tls === undefined ? 'http' : 'https';
  return { name: `${scheme}://${address}${HEALTH_PATH}`, place: { host, port }, tls, host: address, path: HEALTH_PATH };
}

/** What listens on every address is reached at this one. */
const LOCAL: ReadonlyMap<string, string> = new Map([['0.0.0.0', '127.0.0.1'], ['::', '::1']]);

function overSocket(path: string, tls: ProbeTarget['tls']): Asked {
  return { name: `unix:${path}`, place: { path }, tls, host: 'localhost', path: HEALTH_PATH };
}

function ownCertificate({ tlsCertPath }: Config, { readFile }: Terminal): Uint8Array {
  const { name } = SETTINGS.tlsCertPath;
  let pem;
  try {
    pem = readFile(tlsCertPath);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CommandError(`${name}: the file cannot be read (${code})`);
  }
  const certificate = firstCertificate(pem);
  if (certificate === undefined) throw new CommandError(`${name}: the file does not begin with a certificate in PEM`);
  return certificate;
}
