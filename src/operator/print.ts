// Commands that only print, without a look at the database: help, config, version, openapi, completion and client.

import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { type Setting, SETTING_KEYS, SETTINGS, type SettingValue, VERSION } from '../config/settings.ts';
import { parseServiceUrl } from '../http/engine/head.ts';
import { addressedScript, readClientScript } from '../http/present.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { findCommand, groupOf, optionForm, wrongValue } from './arguments.ts';
import { type Command, COMMANDS, type Option } from './commands.ts';
import { EXIT } from './failures.ts';
import { alignColumns, printWarnings, report, type Run } from './terminal.ts';

export const help: Run = ({ stdout }, { operands: [name] }) => {
  stdout.write(`${helpAbout(name).join('\n')}\n`);
};

function helpAbout(name: string | undefined): string[] {
  if (name === undefined) return fullHelp();
  const group = groupOf(name);
  if (group.length === 0 || COMMANDS.some((command) => command.name === name)) return commandHelp(findCommand(name));
  return [`Usage: pasted ${name} COMMAND [OPTIONS]`, '', ...commandList(group)];
}

function commandList(commands: readonly Command[]): string[] {
  const rows = commands.map(({ name, summary }) => [name, summary] as const);
  return ['Commands:', ...columns(rows), '', 'Every command explains itself with --help.'];
}

function commandHelp(command: Command): string[] {
  const options = [...command.options, { name: '-h, --help', meaning: 'print this help' }];
  return [
    `pasted ${command.name} - ${command.summary}`, '',
    `Usage: ${usage(command)}`, '',
    command.description, '',
    'Options:', ...columns(options.flatMap(optionRows)), '',
    'Examples:', ...command.examples.map((example) => `  ${example}`),
  ];
}

const CHOICES_LINES = /.{1,90}(?:,|$)/g;

function optionRows(option: Option): (readonly [string, string])[] {
  const row = [optionForm(option), option.meaning] as const;
  const choices = option.choices === undefined ? [] : `one of: ${option.choices.join(', ')}`.match(CHOICES_LINES)!;
  return [row, ...choices.map((line) => ['', line.trim()] as const)];
}

const MAX_USAGE_CHARACTERS = 110;

function usage({ name, operands, options }: Command): string {
  const required = options.filter(({ isRequired }) => isRequired).map(optionForm);
  const optional = options.filter(({ isRequired }) => !isRequired).map((option) => `[${optionForm(option)}]`);
  const shownOperands = operands.map((operand) => (operand.isRequired ? operand.name : `[${operand.name}]`));
  const always = ['pasted', name, ...shownOperands, ...required];
  const whole = [...always, ...optional].join(' ');
  return whole.length <= MAX_USAGE_CHARACTERS ? whole : [...always, '[OPTIONS]'].join(' ');
}

function fullHelp(): string[] {
  return [
    `pasted ${VERSION} - a paste service for terminals`, '',
    'Usage: pasted [COMMAND] [OPTIONS]', '',
    ...commandList(COMMANDS), '',
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
    '$CREDENTIALS_DIRECTORY/<NAME>.', '',
    ...Object.values<Setting>(SETTINGS).flatMap((setting) => [
      `  ${setting.name}  ${showValue(setting, setting.fallback)}  [${setting.unit}]`,
      `      ${setting.meaning.replaceAll('`', '')}${setting.standIn ? `; ${setting.standIn} stands in` : ''}`,
    ]),
  ];
}

/** The value as one would write it into the environment; of a secret only whether there is one. */
export function showValue(setting: Setting, value: SettingValue): string {
  if (setting.kind === 'secret') return value === '' ? '(not set)' : '(set)';
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'object') return value.join(',');
  return String(value) || '(not set)';
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  return alignColumns(rows).trimEnd().split('\n').map((line) => `  ${line}`);
}

export const printSettings: Run = (terminal, given) => {
  const { config, sources, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const rows = SETTING_KEYS.map((key) => ({ setting: SETTINGS[key] as Setting, value: config[key], ...sources[key] }));
  const settings = rows.map(({ setting, value, kind, name }) => ({
    name: setting.name,
    value: setting.kind === 'secret' ? showValue(setting, value) : value,
    unit: setting.unit,
    source: kind,
    source_name: name || null,
  }));
  const table = rows.map(({ setting, value, kind, name }) => {
    const source = name === '' || name === setting.name ? kind : `${kind} ${name}`;
    return [setting.name, showValue(setting, value), setting.unit, source];
  });
  if (!given.flags.has('--json')) printWarnings(terminal, warnings);
  const text = alignColumns([['SETTING', 'VALUE', 'UNIT', 'FROM'], ...table]);
  report(terminal.stdout, given, { settings, warnings }, text);
};

export const printVersion: Run = ({ stdout, runtime }, given) => {
  report(stdout, given, { version: VERSION, schema_version: MIGRATIONS.length, ...runtime }, `pasted ${VERSION}\n`);
};

export const printOpenapi: Run = ({ stdout }) => {
  const api = JSON.parse(readBeside('./openapi.json')) as { info: { version: string } };
  api.info.version = VERSION;
  stdout.write(`${JSON.stringify(api, null, 2)}\n`);
};

export const printCompletion: Run = ({ stdout }, { operands: [shell = ''] }) => {
  stdout.write(readBeside(`./completion.${shell}`));
};

/** scripts/describe.ts makes these files from the tables. */
function readBeside(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

export const printClient: Run = ({ stdout }, { values }) => {
  const script = readClientScript();
  const address = values.get('--server');
  if (address === undefined) return void stdout.write(script);
  const service = parseServiceUrl(address);
  if (service === undefined) throw wrongValue('--server', 'an address such as https://paste.example/prefix', address);
  stdout.write(addressedScript(script, service.url));
};
