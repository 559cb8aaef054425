// Commands that only print and do not open the database: help, config, version, openapi, completion and client.

import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { type Setting, SETTING_KEYS, SETTINGS, type SettingValue, VERSION } from '../config/settings.ts';
import { parseServiceUrl } from '../http/engine/head.ts';
import { addressedScript, readClientScript } from '../http/present.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { findCommand, groupOf, wrongValue } from './arguments.ts';
import { COMMANDS } from './commands.ts';
import { alignColumns, printWarnings, report, type Run } from './terminal.ts';

export const help: Run = ({ stdout }, { operands: [name] }) => void stdout.write(`${helpAbout(name)}\n`);

/** From help.txt, which begins with a text about all commands; a command's section begins with its name and summary. */
function helpAbout(name: string | undefined): string {
  const [aboutAll = '', ...sections] = readBeside('./help.txt').trimEnd().split(/\n\n(?=pasted )/);
  const explained = new Map(sections.map((text) => {
    const [, of = '', summary = ''] = /^pasted (.+?) - (.+)/.exec(text) ?? [];
    return [of, { text, summary }];
  }));
  const commands = name === undefined ? COMMANDS : groupOf(name);
  // The name of a group may be that of a command as well.
  const isCommand = name !== undefined && (commands.length === 0 || explained.has(name));
  if (isCommand) return explained.get(findCommand(name).name)!.text;
  const rows = commands.map((command) => [`  ${command.name}`, explained.get(command.name)!.summary]);
  const list = `Commands:\n${alignColumns(rows)}\nEvery command explains itself with --help.`;
  if (name !== undefined) return `Usage: pasted ${name} COMMAND [OPTIONS]\n\n${list}`;
  const [title = '', usage, ...others] = aboutAll.split('\n\n');
  return [title.replace('pasted', `pasted ${VERSION}`), usage, list, ...others, settingsHelp()].join('\n\n');
}

function settingsHelp(): string {
  return Object.values<Setting>(SETTINGS).flatMap((setting) => [
    `  ${setting.name}  ${showValue(setting, setting.fallback)}  [${setting.unit}]`,
    `      ${setting.meaning.replaceAll('`', '')}${setting.standIn ? `; ${setting.standIn} stands in` : ''}`,
  ]).join('\n');
}

/** The value as one would write it into the environment; for a secret only whether it is set. */
export function showValue(setting: Setting, value: SettingValue): string {
  if (setting.kind === 'secret') return value === '' ? '(not set)' : '(set)';
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'object') return value.join(',');
  return String(value) || '(not set)';
}

export const printSettings: Run = (terminal, given) => {
  const { config, sources, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const rows = SETTING_KEYS.map((key) => ({ setting: SETTINGS[key] as Setting, value: config[key], ...sources[key] }));
  const settings = rows.map(({ setting, value, kind, name }) => ({
    name: setting.name, value: setting.kind === 'secret' ? showValue(setting, value) : value, unit: setting.unit,
    source: kind, source_name: name || null,
  }));
  const table = rows.map(({ setting, value, kind, name }) => {
    const source = name === '' || name === setting.name ? kind : `${kind} ${name}`;
    return [setting.name, showValue(setting, value), setting.unit, source];
  });
  if (!given.options.has('--json')) printWarnings(terminal, warnings);
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

/** scripts/describe.ts makes these files from the tables, except help.txt. */
function readBeside(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

export const printClient: Run = ({ stdout }, { options }) => {
  const script = readClientScript();
  const address = options.get('--server');
  if (address === undefined) return void stdout.write(script);
  const service = parseServiceUrl(address);
  if (service === undefined) throw wrongValue('--server', 'an address such as https://paste.example/prefix', address);
  stdout.write(addressedScript(script, service.url));
};
