// `pasted config`: every setting in force and where it comes from. Never shows a secret.

import { readFileSync } from 'node:fs';
import { addressedScript, readClientScript } from '../client/script.ts';
import { loadConfig, type LoadedConfig, showUnit, showValue, type Source } from '../config/load.ts';
import { type Setting, SETTING_KEYS, type SettingKey, SETTINGS } from '../config/settings.ts';
import { parseServiceUrl } from '../http/engine/host.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { VERSION } from '../version.ts';
import { findCommand, groupOf, optionForm } from './arguments.ts';
import { type Command, COMMANDS, type Option, type Run } from './commands.ts';
import { alignColumns, EXIT, UsageError } from './terminal.ts';

export const printSettings: Run = (terminal, { options }) => {
  const loaded = loadConfig(terminal.environment, terminal.readFile);
  if (options.has('--json')) {
    terminal.stdout.write(`${JSON.stringify(jsonOf(loaded))}\n`);
    return EXIT.success;
  }
  for (const warning of loaded.warnings) terminal.stderr.write(`pasted: ${warning}\n`);
  terminal.stdout.write(tableOf(loaded));
  return EXIT.success;
};

function tableOf({ config, sources }: LoadedConfig): string {
  const rows = SETTING_KEYS.map((key) => {
    const setting: Setting = SETTINGS[key];
    return [setting.name, showValue(setting, config[key]), showUnit(setting), showSource(setting, sources[key])];
  });
  return alignColumns([['SETTING', 'VALUE', 'UNIT', 'FROM'], ...rows]);
}

/** The name is said where it is not the setting's own. */
function showSource(setting: Setting, { kind, name }: Source): string {
  return name === '' || name === setting.name ? kind : `${kind} ${name}`;
}

function jsonOf({ config, sources, warnings }: LoadedConfig): object {
  return { settings: SETTING_KEYS.map((key) => jsonSetting(key, config[key], sources[key])), warnings };
}

function jsonSetting(key: SettingKey, value: LoadedConfig['config'][SettingKey], source: Source): object {
  const setting: Setting = SETTINGS[key];
  return {
    name: setting.name,
    value: setting.kind === 'secret' ? showValue(setting, value) : value,
    unit: showUnit(setting),
    source: source.kind,
    source_name: source.name || null,
  };
}

// `pasted version`: of the program, and with --json of all that it stands on.

export const printVersion: Run = ({ stdout, runtime }, { options }) => {
  const shown = { version: VERSION, schema_version: MIGRATIONS.length, ...runtime };
  stdout.write(options.has('--json') ? `${JSON.stringify(shown)}\n` : `pasted ${VERSION}\n`);
  return EXIT.success;
};

export const printOpenapi: Run = ({ stdout }) => {
  const api = JSON.parse(besideThis('./openapi.json')) as { info: { version: string } };
  api.info.version = VERSION;
  stdout.write(`${JSON.stringify(api, null, 2)}\n`);
  return EXIT.success;
};

export const printCompletion: Run = ({ stdout }, { operands: [shell = ''] }) => {
  stdout.write(besideThis(`./completion.${shell}`));
  return EXIT.success;
};

/** These files are made from the tables by scripts/describe.ts. */
function besideThis(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

// `pasted client`: the command-line client as GET /client hands it out, without asking a service for it.

export const printClient: Run = ({ stdout }, { values }) => {
  const text = values.get('--server');
  const script = readClientScript();
  stdout.write(text === undefined ? script : addressedScript(script, serverUrl(text)));
  return EXIT.success;
};

function serverUrl(text: string): string {
  const parsed = parseServiceUrl(text);
  if (parsed !== undefined) return parsed.url;
  throw new UsageError(`--server takes an address such as https://paste.example/prefix: not ${JSON.stringify(text)}`);
}

// `pasted help`: texts made of the tables of commands and settings. Does not read the settings in force: that is
// `pasted config`.

export const help: Run = ({ stdout }, { operands: [name] }) => {
  stdout.write(name === undefined ? fullHelp() : helpAbout(name));
  return EXIT.success;
};

function helpAbout(name: string): string {
  const group = groupOf(name);
  return group.length > 0 ? groupHelp(name, group) : commandHelp(findCommand(name));
}

function groupHelp(name: string, group: readonly Command[]): string {
  return lines([
    `Usage: pasted ${name} COMMAND [OPTIONS]`,
    '',
    'Commands:',
    ...columns(group.map((command) => [command.name, command.summary])),
    '',
    'Every command explains itself with --help.',
  ]);
}

const HELP_OPTION: Option = { name: '-h, --help', meaning: 'print this help' };

/** The help of one command. */
export function commandHelp(command: Command): string {
  const options = [...command.options, HELP_OPTION];
  return lines([
    `pasted ${command.name} - ${command.summary}`,
    '',
    `Usage: ${usage(command)}`,
    '',
    command.description,
    '',
    'Options:',
    ...columns(options.flatMap(optionRows)),
    '',
    'Examples:',
    ...command.examples.map((example) => `  ${example}`),
  ]);
}

function optionRows(option: Option): (readonly [string, string])[] {
  const { meaning, choices } = option;
  const row = [optionForm(option), meaning] as const;
  return choices === undefined ? [row] : [row, ['', `one of: ${choices.join(', ')}`]];
}

function fullHelp(): string {
  return lines([
    `pasted ${VERSION} - a paste service for terminals`,
    '',
    'Usage: pasted [COMMAND] [OPTIONS]',
    '',
    'Commands:',
    ...columns(COMMANDS.map(({ name, summary }) => [name, summary])),
    '',
    'Every command explains itself with --help.',
    '',
    'Exit codes:',
    ...columns([
      [`${EXIT.success}`, 'done, or ended by SIGTERM or SIGINT'],
      [`${EXIT.failure}`, 'failed'],
      [`${EXIT.usage}`, 'the command line cannot be carried out'],
      [`${EXIT.busy}`, 'another process has the database; try again later'],
      [`${EXIT.configuration}`, 'the settings or the database cannot be used; trying again will not help'],
    ]),
    '',
    'Settings are variables of the environment, here with their defaults. One that is empty is not set.',
    'Bytes take KiB, MiB and GiB behind the number, seconds s, m, h and d: SERVICE_MAX_ANON=3MiB. Flags take',
    '1, true, yes, on and 0, false, no, off. A secret may be in a file that <NAME>_FILE names, or in',
    '$CREDENTIALS_DIRECTORY/<NAME>.',
    '',
    ...Object.values<Setting>(SETTINGS).flatMap(settingHelp),
  ]);
}

function settingHelp(setting: Setting): string[] {
  const standIn = setting.standIn === undefined ? '' : `; ${setting.standIn} stands in`;
  return [
    `  ${setting.name}  ${showValue(setting, setting.fallback)}  [${showUnit(setting)}]`,
    `      ${setting.meaning.replaceAll('`', '')}${standIn}`,
  ];
}

/** More options than fit on a line are shown below it alone. */
const MOST_USAGE_CHARACTERS = 110;

function usage(command: Command): string {
  const operands = command.operands.map(({ name, isRequired }) => (isRequired ? name : `[${name}]`));
  const required = command.options.filter(({ isRequired }) => isRequired).map(optionForm);
  const optional = command.options.filter(({ isRequired }) => !isRequired).map((option) => `[${optionForm(option)}]`);
  const always = ['pasted', command.name, ...operands, ...required];
  const whole = [...always, ...optional].join(' ');
  return whole.length <= MOST_USAGE_CHARACTERS ? whole : [...always, '[OPTIONS]'].join(' ');
}

/** Pairs as indented lines, the second halves below each other. */
function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`);
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
