// From the environment to a frozen Config, with every problem reported together. Where texts come from,
// what they mean and how they go together is below.

import { parseNetwork } from '../core/callers.ts';
import { DAY_SECONDS, GIB, HOUR_SECONDS, KIB, MIB, MINUTE_SECONDS } from '../core/time.ts';
import {
  type Config, type IntegerSetting, type SecretSetting, type Setting, SETTING_KEYS, type SettingKey,
  SETTINGS, type SettingValue,
} from './settings.ts';

export interface LoadedConfig {
  readonly config: Config;
  readonly sources: Readonly<Record<SettingKey, Source>>;
  /** Variables that look like settings and are none. */
  readonly warnings: readonly string[];
}

/** One problem for each setting, by its name, with what was expected and - never for a secret - what was given. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Others' variables are none of our business; these prefixes are ours. */
const OUR_NAMES = /^(?:SERVICE|ANTIFLOOD|RATE_LIMIT|LOOKUP_RATE_LIMIT)_/;

/** As much of a wrong value as a problem repeats. */
const SHOWN_CHARACTERS = 80;

/** Every value in force, each parsed once. Throws ConfigError with all problems there are. */
export function loadConfig(environment: Environment, readFile: ReadFile): LoadedConfig {
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
      sources[key] = found.source;
    } catch (error) {
      if (!(error instanceof SettingProblem)) throw error;
      problems.set(key, error.message);
    }
  }

  // Every key of the table has been given a value of its kind, which the loop cannot say to the compiler.
  const config = Object.freeze(values as Config);
  const all = [...problems.values(), ...crossCheck(config, new Set(problems.keys()))];
  if (all.length > 0) throw new ConfigError(all);
  return { config, sources: sources as Record<SettingKey, Source>, warnings: unknownNames(environment) };
}

function parse(setting: Setting, { text, source }: Found): SettingValue {
  const parsed = parseSetting(setting, text);
  if ('value' in parsed) return parsed.value;
  const given = setting.kind === 'secret' ? '' : `, given ${quote(text)}`;
  throw new SettingProblem(`${source.name}: expected ${parsed.expected}${given}`);
}

/** On one line whatever is in it. */
function quote(text: string): string {
  const isLong = text.length > SHOWN_CHARACTERS;
  return JSON.stringify(isLong ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text);
}

function unknownNames(environment: Environment): string[] {
  const known = new Set<string>();
  for (const setting of Object.values<Setting>(SETTINGS)) {
    known.add(setting.name);
    if (setting.kind === 'secret') known.add(fileVariable(setting));
  }
  return Object.keys(environment)
    .filter((name) => OUR_NAMES.test(name) && !known.has(name) && Boolean(environment[name]))
    .map((name) => {
      const suggestion = nearest(name, known);
      const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
      return `${quote(name)} is not a setting${hint}`;
    });
}

// Where the text of a setting comes from: a variable, its stand-in, a file, a credential of systemd. Does not parse
// it, and reads neither process.env nor files by itself: both are handed in.

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the text of a file; throws an error with a `code` such as ENOENT when it cannot. */
export type ReadFile = (path: string) => string;

/** `name` is the variable or the credential that gave the value, empty for a default. */
export interface Source {
  readonly kind: 'default' | 'environment' | 'file' | 'credential';
  readonly name: string;
}

/** The text is not empty. */
export interface Found {
  readonly text: string;
  readonly source: Source;
}

/** A setting that cannot be had; the message names it and never says the value of a secret. */
export class SettingProblem extends Error {
  override readonly name = 'SettingProblem';
}

/** Undefined when it is not set, which an empty variable is not either. Throws SettingProblem. */
export function findSetting(setting: Setting, environment: Environment, readFile: ReadFile): Found | undefined {
  if (setting.kind === 'secret') return findSecret(setting, environment, readFile);
  const found = findVariable(setting.name, environment);
  if (found !== undefined) return found;
  if (setting === SETTINGS.databasePath) return findInStateDirectory(environment);
  return setting.standIn === undefined ? undefined : findVariable(setting.standIn, environment);
}

/** The variable that names the file of a secret. */
export function fileVariable(secret: SecretSetting): string {
  return `${secret.name}_FILE`;
}

function findVariable(name: string, environment: Environment): Found | undefined {
  const text = environment[name] ?? '';
  return text === '' ? undefined : { text, source: { kind: 'environment', name } };
}

/** systemd.exec(5): with several directories the variable holds them all, separated by colons. */
function findInStateDirectory(environment: Environment): Found | undefined {
  const found = findVariable('STATE_DIRECTORY', environment);
  const [first = ''] = found?.text.split(':') ?? [];
  return found === undefined || first === '' ? undefined : { text: `${first}/pasted.db`, source: found.source };
}

/**
 * From the variable or from a file, and both are one too many. A credential counts when neither is given, so that one
 * that a unit provides for all can be replaced for a try.
 */
function findSecret(setting: SecretSetting, environment: Environment, readFile: ReadFile): Found | undefined {
  const given = findVariable(setting.name, environment);
  const fileName = fileVariable(setting);
  const file = findVariable(fileName, environment);
  if (given !== undefined && file !== undefined) {
    throw new SettingProblem(`${setting.name}: expected once, given also as ${fileName}`);
  }
  if (given !== undefined) return given;
  if (file !== undefined) return readSecret(file.text, { kind: 'file', name: fileName }, readFile);

  const directory = environment['CREDENTIALS_DIRECTORY'] ?? '';
  return directory === '' ? undefined : findCredential(setting, directory, readFile);
}

/**
 * Of its own LoadCredential= under the setting's name; of a folder's with the folder's id before it (systemd.exec(5)).
 */
function findCredential(setting: SecretSetting, directory: string, readFile: ReadFile): Found | undefined {
  for (const name of [setting.name, `pasted_${setting.name}`]) {
    const found = readSecret(`${directory}/${name}`, { kind: 'credential', name }, readFile);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The file's text without one newline at its end. The path is not repeated in a problem: someone may have put the
 * secret itself there.
 */
function readSecret(path: string, source: Source, readFile: ReadFile): Found | undefined {
  const what = source.kind === 'file' ? `${source.name}: expected the path of` : `credential ${source.name}: expected`;
  let text: string;
  try {
    text = readFile(path).replace(/\r?\n$/, '');
  } catch (error) {
    const code = errorCode(error);
    if (source.kind === 'credential' && code === 'ENOENT') return undefined;
    throw new SettingProblem(`${what} a file that can be read (${code})`);
  }
  if (text === '') throw new SettingProblem(`${what} a file that is not empty`);
  return { text, source };
}

/** Not the message, which would repeat the path. */
function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

// The text of one setting to its value: the grammar of every kind. Does not know where a text comes from, and says
// nothing about the text itself, which may be a secret.

/** The value, or in words what was expected. */
export type Parsed = { readonly value: SettingValue } | { readonly expected: string };

const WHOLE = /^([0-9]+)([A-Za-z]*)$/;
const DECIMAL = /^[0-9]+(?:\.[0-9]+)?$/;
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/** What decoding leaves in the place of bytes that are not UTF-8: a key read that way has lost most of its bits. */
const REPLACEMENT_CHARACTER = '\ufffd';

const SIZES = { KiB: KIB, MiB: MIB, GiB: GIB };

/** What may follow a number, by what the setting counts, and how many of these it stands for. */
const SUFFIXES: Partial<Record<IntegerSetting['unit'], Readonly<Record<string, number>>>> = {
  bytes: SIZES,
  'bytes per second': SIZES,
  seconds: { s: 1, m: MINUTE_SECONDS, h: HOUR_SECONDS, d: DAY_SECONDS },
};

const FLAG_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 'true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['0', 'false', 'no', 'off'].map((word) => [word, false] as const),
]);

/** `text` is not empty: an empty setting is one that is not set. */
export function parseSetting(setting: Setting, text: string): Parsed {
  switch (setting.kind) {
    case 'integer':
      return parseInteger(setting, text);
    case 'decimal':
      return withinBounds(setting, 'a decimal number', DECIMAL.test(text) ? Number(text) : NaN);
    case 'flag':
      return parseFlag(text);
    case 'text':
      return setting.pattern.test(text) ? { value: text } : { expected: setting.expected };
    case 'secret':
      return parseSecret(text);
    case 'networks':
      return parseNetworks(text);
  }
}

function parseInteger(setting: IntegerSetting, text: string): Parsed {
  const suffixes = SUFFIXES[setting.unit] ?? {};
  const [, digits = 'none', suffix = ''] = WHOLE.exec(text) ?? [];
  const factor = suffix === '' ? 1 : Object.hasOwn(suffixes, suffix) ? suffixes[suffix]! : NaN;
  const parsed = withinBounds(setting, 'a whole number', Number(digits) * factor);
  const names = Object.keys(suffixes).join(', ');
  return 'expected' in parsed && names !== '' ? { expected: `${parsed.expected}, or one with ${names}` } : parsed;
}

function withinBounds(bounds: { minimum: number; maximum: number }, form: string, value: number): Parsed {
  if (value >= bounds.minimum && value <= bounds.maximum) return { value };
  return { expected: `${form} from ${bounds.minimum} to ${bounds.maximum}` };
}

function parseFlag(text: string): Parsed {
  const value = FLAG_WORDS.get(text.toLowerCase());
  return value === undefined ? { expected: `one of ${[...FLAG_WORDS.keys()].join(', ')}` } : { value };
}

function parseSecret(text: string): Parsed {
  if (!CONTROL_CHARACTER.test(text) && !text.includes(REPLACEMENT_CHARACTER)) return { value: text };
  return { expected: 'one line of UTF-8 text without control characters' };
}

/** Spaces around a comma mean nothing. */
function parseNetworks(text: string): Parsed {
  const items = text.split(',').map((item) => item.trim());
  if (items.every((item) => parseNetwork(item) !== undefined)) return { value: Object.freeze(items) };
  return { expected: 'addresses and CIDR blocks such as 10.0.0.0/8 or ::1, separated by commas' };
}

// What the grammar of a single setting cannot say: settings that contradict each other, and settings that are valid but
// unwise in production or where others can reach the service. Does not parse.

interface CrossCheck {
  /** The settings it looks at: when one of them is wrong by itself, there is nothing to compare. */
  readonly keys: readonly SettingKey[];
  /** The problem in words, undefined when there is none. Never says a secret. */
  readonly problem: (config: Config) => string | undefined;
}

/** Only combinations with which the service could not do its work. */
const CROSS_CHECKS: readonly CrossCheck[] = [
  sizeCheck('maxAnonBytes'),
  sizeCheck('maxAuthBytes'),
  {
    keys: ['proxySecret'],
    problem: ({ proxySecret }) => {
      // RFC 9110 section 5.5: a field value excludes the whitespace around it, so none could ever be equal.
      if (!/^ | $/.test(proxySecret)) return undefined;
      return `${SETTINGS.proxySecret.name}: expected a secret without spaces around it, since no header can carry them`;
    },
  },
  {
    keys: ['tlsCertPath', 'tlsKeyPath'],
    problem: ({ tlsCertPath, tlsKeyPath }) => {
      if ((tlsCertPath === '') === (tlsKeyPath === '')) return undefined;
      const { tlsCertPath: certificate, tlsKeyPath: key } = SETTINGS;
      const [given, missing] = tlsCertPath === '' ? [key, certificate] : [certificate, key];
      return `${missing.name}: expected the path of a PEM file beside ${given.name}`;
    },
  },
];

function sizeCheck(key: 'maxAnonBytes' | 'maxAuthBytes'): CrossCheck {
  const smallest = SETTINGS.minBytes.name;
  return {
    keys: ['minBytes', key],
    problem: (config) => {
      if (config.minBytes <= config[key]) return undefined;
      return `${smallest}: expected at most ${SETTINGS[key].name} (${config[key]}), given ${config.minBytes}`;
    },
  };
}

/** The problems of a whole configuration; `unsound` are the keys whose values are not the ones given. */
export function crossCheck(config: Config, unsound: ReadonlySet<SettingKey>): string[] {
  return CROSS_CHECKS.filter(({ keys }) => !keys.some((key) => unsound.has(key)))
    .map(({ problem }) => problem(config))
    .filter((problem) => problem !== undefined);
}

export function isProduction(config: Config): boolean {
  return config.environment === 'production';
}

/** In production, or `isExposed`: listening where others than this host can connect. */
export function startWarnings(config: Config, isExposed: boolean): string[] {
  if (!isProduction(config) && !isExposed) return [];
  const warnings = identityWarnings(config);
  if (config.pkiEnabled && config.pkiCaPassword === '') {
    warnings.push(`${SETTINGS.pkiEnabled.name} is on without ${SETTINGS.pkiCaPassword.name}: nothing can be issued`);
  }
  return warnings;
}

/**
 * The start-up warnings of the contract (Authentication, 4): none with TLS of our own, where nobody is believed who has
 * not shown a certificate or the secret.
 */
function identityWarnings(config: Config): string[] {
  if (config.proxySecret !== '' || config.tlsCertPath !== '') return [];
  const name = SETTINGS.proxySecret.name;
  const warnings = [
    `${name} is not set: whoever reaches this port can present any certificate fingerprint in X-SSL-Client-SHA1`,
  ];
  if (config.pkiEnabled) {
    warnings.push(
      `${SETTINGS.pkiEnabled.name} is on without ${name}: the privileges of trusted certificates and of the admin ` +
        'are open to whoever knows a fingerprint',
    );
  }
  return warnings;
}

// Settings as people read them, in the help, in `pasted config` and in the manual page. Secrets are never shown.

const NOT_SET = '(not set)';

/** The value as one would write it into the environment; of a secret only whether there is one. */
export function showValue(setting: Setting, value: SettingValue): string {
  if (setting.kind === 'secret') return value === '' ? NOT_SET : '(set)';
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'object') return value.join(',');
  return String(value) || NOT_SET;
}

/** What a number counts; of all else the kind. */
export function showUnit(setting: Setting): string {
  return 'unit' in setting ? setting.unit : setting.kind;
}

/** How much of a name may differ before a suggestion would be a guess. */
const TOLERANCE = 0.3;

/** "Did you mean": the candidate that takes the fewest edits, undefined when all take too many. Of equals the first. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length * TOLERANCE)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Characters to insert, remove, replace, or swap with their neighbour to come from one text to the other (optimal
 * string alignment distance). Takes a.length * b.length steps.
 */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replacing = previous[column - 1]! + Number(a[row - 1] !== b[column - 1]);
      const removing = previous[column]! + 1;
      const inserting = current[column - 1]! + 1;
      // Before the first character there is none, and undefined is like no character.
      const canSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapping = canSwap ? beforePrevious[column - 2]! + 1 : Infinity;
      current.push(Math.min(replacing, removing, inserting, swapping));
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}
