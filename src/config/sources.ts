// Where the text of a setting comes from: a variable, its stand-in, a file, a credential of systemd. Does not parse
// it, and reads neither process.env nor files by itself: both are handed in.

import { SETTINGS, type SecretSetting, type Setting } from './settings.ts';

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

/** Of its own LoadCredential= under the setting's name; of a folder's with the folder's id before it (systemd.exec(5)). */
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
