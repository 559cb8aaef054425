// From the environment to a frozen Config, with every problem reported together: where the text of a setting comes
// from, and which settings contradict each other. process.env, and how files are read, are handed in.

import { closeSync, constants, openSync, readSync } from 'node:fs';
import { parseAddress } from '../core/callers.ts';
import { codeOf, expected, reasonOf } from '../core/events.ts';
import { MIB } from '../core/time.ts';
import {
  type Config, nodesOf, type Setting, SETTING_KEYS, type SettingKey, SETTINGS, type SettingValue,
} from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The text of a file, or of standard input, which is 0; throws an error with a `code` such as ENOENT when it can't. */
export type ReadFile = (path: string | 0) => string;

/** `name` is the variable or the credential that gave the value, empty for a default. */
export type Source = Readonly<{ kind: 'default' | 'environment' | 'file' | 'credential'; name: string }>;

/** `text` is never empty. */
type Found = Source & { readonly text: string };

/** One problem for each setting, by its name, with what was expected and what was given: never a secret or password. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Every value in force and where it comes from. Throws ConfigError with all problems that there are. */
export function loadConfig(environment: Environment, readFile: ReadFile) {
  const values: Partial<Record<SettingKey, SettingValue>> = {};
  const sources: Partial<Record<SettingKey, Source>> = {};
  const problems = new Map<SettingKey, string>();

  for (const key of SETTING_KEYS) {
    const setting: Setting = SETTINGS[key];
    values[key] = setting.fallback;
    sources[key] = { kind: 'default', name: '' };
    try {
      const found = findSetting(setting, environment, readFile);
      if (found === undefined) continue;
      values[key] = parse(setting, found);
      sources[key] = { kind: found.kind, name: found.name };
    } catch (error) {
      problems.set(key, expected(ConfigError, error).message);
    }
  }

  // Every key of the table has a value of its kind now, which the loop can't say to the compiler.
  const config = Object.freeze(values as Config);
  const all = [...problems.values(), ...crossCheck(config, new Set(problems.keys()))];
  if (all.length > 0) throw new ConfigError(all);
  return { config, sources: sources as Readonly<Record<SettingKey, Source>>, warnings: unknownNames(environment) };
}

function parse(setting: Setting, { name, text }: Found): SettingValue {
  const value = setting.parse(text);
  if (value !== undefined) return value;
  const isSecret = setting.kind === 'secret' || text.includes('-----BEGIN');
  const given = isSecret ? '' : `, given ${quote(text.replace(/(?<=:\/*[^:]*:).*@/s, '...@'))}`;
  throw new ConfigError([`${name}: expected ${setting.expected}${given}`]);
}

const SHOWN_CHARACTERS = 80;

/** On one line, whatever the text has in it. */
function quote(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text);
}

/** Undefined when it is not set; an empty variable is not set either. */
function findSetting(setting: Setting, environment: Environment, readFile: ReadFile): Found | undefined {
  if (setting.kind === 'secret') return findSecret(setting.name, environment, readFile);
  const found = findVariable(setting.name, environment);
  if (found !== undefined) return found;
  if (setting === SETTINGS.databasePath) return findInStateDirectory(environment);
  return setting.standIn === undefined ? undefined : findVariable(setting.standIn, environment);
}

function findVariable(name: string, environment: Environment): Found | undefined {
  const text = environment[name] ?? '';
  return text === '' ? undefined : { text, kind: 'environment', name };
}

/** systemd.exec(5): with several directories the variable holds them all, separated by colons. */
function findInStateDirectory(environment: Environment): Found | undefined {
  const found = findVariable('STATE_DIRECTORY', environment);
  const [first = ''] = found?.text.split(':') ?? [];
  return found === undefined || first === '' ? undefined : { ...found, text: `${first}/pasted.db` };
}

/** The variable or the file that `<NAME>_FILE` names, not both. They override a credential, which a unit provides. */
function findSecret(name: string, environment: Environment, readFile: ReadFile): Found | undefined {
  const given = findVariable(name, environment);
  const file = findVariable(`${name}_FILE`, environment);
  if (given !== undefined && file !== undefined) {
    throw new ConfigError([`${name}: expected once, given also as ${name}_FILE`]);
  }
  if (given !== undefined) return given;
  if (file !== undefined) return readSecret(file.text, { kind: 'file', name: `${name}_FILE` }, readFile);
  const directory = environment['CREDENTIALS_DIRECTORY'] ?? '';
  if (directory === '') return undefined;
  const credential = (id: string) => readSecret(`${directory}/${id}`, { kind: 'credential', name: id }, readFile);
  // systemd.exec(5): LoadCredential= of a file uses the setting's name; of a folder, it puts the folder's id before it.
  return credential(name) ?? credential(`pasted_${name}`);
}

/** Drops a newline at the end. No problem shows the path, nor node's message with it: it may be the secret itself. */
function readSecret(path: string, source: Source, readFile: ReadFile): Found | undefined {
  const what = source.kind === 'file' ? `${source.name}: expected the path of` : `credential ${source.name}: expected`;
  let text: string;
  try {
    text = readFile(path).replace(/\r?\n$/, '');
  } catch (error) {
    if (source.kind === 'credential' && codeOf(error) === 'ENOENT') return undefined;
    throw new ConfigError([`${what} a file that can be read (${reasonOf(error)})`]);
  }
  if (text === '') throw new ConfigError([`${what} a file that is not empty`]);
  return { text, ...source };
}

/** Secrets, keys and certificates are smaller, even a file of all certificates that an operating system trusts. */
const MAX_FILE_BYTES = MIB;

/** 10 s for the program at the other end of a pipe, such as one that asks a person for the secret. */
const MAX_PIPE_WAITS = 1000;
const PIPE_WAIT_MS = 10;

/** The text of a file that a setting names. If a device is there it can't fill the memory, and a pipe can't hang us. */
export function readSmallFile(path: string | 0): string {
  const file = path === 0 ? path : openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
    let size = 0;
    for (let read = 1; read > 0 && size < bytes.length; size += read) read = readSome(file, bytes.subarray(size));
    if (size > MAX_FILE_BYTES) throw Object.assign(new Error('file too large'), { code: 'larger than 1 MiB' });
    return bytes.toString('utf8', 0, size);
  } finally {
    if (file !== 0) closeSync(file);
  }
}

/** The text of a small file. Throws ConfigError, with the problem and the reason. */
export function readSettingFile(path: string, problem: string): string {
  try {
    return readSmallFile(path);
  } catch (error) {
    throw new ConfigError([`${problem} (${reasonOf(error)})`]);
  }
}

/** Waits for a pipe that nothing was written to yet (EAGAIN of read(2)). Returns 0 at the end, or without a writer. */
function readSome(file: number, into: Uint8Array): number {
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let waits = 0; ; waits += 1) {
    try {
      return readSync(file, into);
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN' || waits === MAX_PIPE_WAITS) throw error;
    }
    Atomics.wait(never, 0, 0, PIPE_WAIT_MS);
  }
}

/** Contradictions between settings, without any secret. Skips settings in `unsound`, which are wrong by themselves. */
export function crossCheck(config: Config, unsound: ReadonlySet<SettingKey>): string[] {
  const problems: string[] = [];
  const isSound = (...keys: readonly SettingKey[]): boolean => !keys.some((key) => unsound.has(key));
  const ofNodes = nodesOf(config) === undefined ? [] : ['clusterMaxBytes' as const];
  for (const key of ['maxAnonBytes', 'maxAuthBytes', ...ofNodes] as const) {
    if (!isSound('minBytes', key) || config.minBytes <= config[key]) continue;
    const [least, most] = [SETTINGS.minBytes.name, SETTINGS[key].name];
    problems.push(`${least}: expected at most ${most} (${config[key]}), given ${config.minBytes}`);
  }
  // RFC 9110 section 5.5: a field value excludes the whitespace around it, so no header could ever equal the secret.
  if (isSound('proxySecret') && /^ | $/.test(config.proxySecret)) {
    const { name } = SETTINGS.proxySecret;
    problems.push(`${name}: expected a secret without spaces around it, since no header can carry them`);
  }
  for (const [given, other] of [['tlsCertPath', 'tlsKeyPath'], ['tlsKeyPath', 'tlsCertPath']] as const) {
    if (!isSound(given, other) || config[given] === '' || config[other] !== '') continue;
    problems.push(`${SETTINGS[other].name}: expected the path of a PEM file beside ${SETTINGS[given].name}`);
  }
  return problems;
}

/** What looks like a setting; other variables are none of our business. */
const OUR_NAMES = /^(?:SERVICE|ANTIFLOOD|RATE_LIMIT|LOOKUP_RATE_LIMIT)_/;

function unknownNames(environment: Environment): string[] {
  const settings = Object.values<Setting>(SETTINGS);
  const known = new Set(settings.flatMap(({ kind, name }) => (kind === 'secret' ? [name, `${name}_FILE`] : name)));
  return Object.keys(environment)
    .filter((name) => OUR_NAMES.test(name) && !known.has(name) && Boolean(environment[name]))
    .map((name) => `${quote(name)} is not a setting${didYouMean(name, known)}`);
}

/** How much of a name may differ before a suggestion would be a guess. */
const TOLERANCE = 0.3;

/** Proposes the candidate that takes the fewest edits, the first of equals; is empty when all take too many. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const most = Math.max(2, Math.floor(name.length * TOLERANCE));
  const near = Array.from(candidates, (candidate) => ({ candidate, edits: editDistance(name, candidate) }))
    .filter(({ edits }) => edits <= most).sort((one, other) => one.edits - other.edits);
  return near[0] === undefined ? '' : `; did you mean ${near[0].candidate}?`;
}

/** Characters to insert, remove, replace, or swap with their neighbour: the optimal string alignment distance. */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replacing = previous[column - 1]! + Number(a[row - 1] !== b[column - 1]);
      // Before the first character there is undefined, which equals no character.
      const canSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapping = canSwap ? beforePrevious[column - 2]! + 1 : Infinity;
      current.push(Math.min(replacing, swapping, previous[column]! + 1, current[column - 1]! + 1));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[b.length]!;
}

export function isProduction(config: Config): boolean {
  return config.environment === 'production';
}

/** What is unwise in production, or where others can connect (see the contract, Authentication, 4), or in a cluster. */
export function startWarnings(config: Config, isExposed: boolean): string[] {
  const [secret, pki] = [SETTINGS.proxySecret.name, SETTINGS.pkiEnabled.name];
  // With TLS of our own, nobody is believed without showing a certificate.
  const isOpen = config.proxySecret === '' && config.tlsCertPath === '';
  const everyone = config.trustedProxies.find(isEveryone);
  const ofListening = !isProduction(config) && !isExposed ? [] : [
    isOpen && `${secret} is not set: whoever reaches this port can present any certificate fingerprint in ` +
      'X-SSL-Client-SHA1',
    isOpen && config.pkiEnabled && `${pki} is on without ${secret}: the privileges of trusted certificates and of ` +
      'the admin are open to whoever knows a fingerprint',
    config.pkiEnabled && config.pkiCaPassword === '' &&
      `${pki} is on without ${SETTINGS.pkiCaPassword.name}: nothing can be issued`,
    everyone !== undefined && `${SETTINGS.trustedProxies.name} has ${everyone}, which is everyone: limits by address ` +
      'hold for nobody; name the proxies alone',
    config.maxConnections <= config.maxConnectionsPerClient && `${SETTINGS.maxConnections.name} is not above ` +
      `${SETTINGS.maxConnectionsPerClient.name}: one client can take all connections`,
    config.registerBy === 'open' && config.rateMax === 0 && config.pkiCaPassword !== '' &&
      (config.pkiEnabled || config.registerPowDifficultyBits === 0) &&
      `${SETTINGS.rateMax.name} is 0, and certificates are to be had without work: nothing bounds registrations`,
  ];
  return [...ofListening, ...clusterWarnings(config)].filter((warning) => warning !== false);
}

/** Whether it has at least all of IPv4, which blocks of IPv6 can have too, mapped (RFC 4291 section 2.5.5.2). */
function isEveryone(network: string): boolean {
  const [address = '', prefix = '128'] = network.split('/');
  const bytes = parseAddress(address)!;
  if (bytes.length === 4) return prefix === '0';
  const others = BigInt(128 - Number(prefix));
  const isOfMapped = BigInt(`0x${Buffer.from(bytes).toString('hex')}`) >> others === 0xffff_0000_0000n >> others;
  return isOfMapped && Number(prefix) <= 96;
}

const ON_THIS_HOST = /^(?:localhost|127(?:\.\d+){3}|\[::1\]):/i;

function clusterWarnings(config: Config) {
  const nodes = nodesOf(config);
  if (nodes === undefined) return [];
  const { hasTls, user, places } = nodes;
  const elsewhere = places.find((place) => !ON_THIS_HOST.test(place));
  const hasPassword = config.clusterPassword !== '';
  const [setting, password] = [SETTINGS.databasePath.name, SETTINGS.clusterPassword.name];
  return [
    !hasTls && elsewhere !== undefined && `${setting} reaches ${elsewhere} without TLS: whoever is on the way reads ` +
      'and changes every paste; have the nodes speak it, and write rqlites://',
    user !== undefined && !hasPassword && `${setting} names a user without ${password}: nodes that ask for one ` +
      'refuse it',
    user === undefined && hasPassword && `${password} is not used: ${setting} names no user, as in rqlites://pasted@`,
  ];
}
