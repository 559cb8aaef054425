// Commands that only print, without a look at the database: help, config, version, openapi, completion and client.

import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { type Setting, SETTING_KEYS, SETTINGS, type SettingValue, VERSION } from '../config/settings.ts';
import { parseServiceUrl } from '../http/engine/head.ts';
import { addressedScript, readClientScript } from '../http/present.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { findCommand, groupOf, wrongValue } from './arguments.ts';
import { COMMANDS } from './commands.ts';
import { EXIT } from './failures.ts';
import { alignColumns, printWarnings, report, type Run } from './terminal.ts';

export const help: Run = ({ stdout }, { operands: [name] }) => {
  stdout.write(`${helpAbout(name)}\n`);
};

function helpAbout(name: string | undefined): string {
  const explained = readHelp();
  const commands = name === undefined ? COMMANDS : groupOf(name);
  // The name of a group may be that of a command as well.
  const isCommand = name !== undefined && (commands.length === 0 || explained.has(name));
  if (isCommand) return explained.get(findCommand(name).name)!.text;
  const rows = commands.map((command) => [command.name, explained.get(command.name)!.summary]);
  const list = ['Commands:', ...columns(rows), '', 'Every command explains itself with --help.'];
  return (name === undefined ? fullHelp(list) : [`Usage: pasted ${name} COMMAND [OPTIONS]`, '', ...list]).join('\n');
}

/** By command. A section of the file begins with the name of one and a summary. */
function readHelp() {
  const sections = readBeside('./help.txt').trimEnd().split(/\n\n(?=pasted )/);
  return new Map(sections.map((text) => {
    const [, name = '', summary = ''] = /^pasted (.+?) - (.+)/.exec(text) ?? [];
    return [name, { text, summary }];
  }));
}

function fullHelp(commandList: readonly string[]): string[] {
  return [
    `pasted ${VERSION} - a paste service for terminals`, '',
    'Usage: pasted [COMMAND] [OPTIONS]', '',
    ...commandList, '',
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

function columns(rows: readonly (readonly string[])[]): string[] {
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

/** But for help.txt, scripts/describe.ts makes these files from the tables. */
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
