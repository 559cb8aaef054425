// `pasted config`: every setting in force and where it comes from. Never shows a secret.

import { readFileSync } from 'node:fs';
import { addressedScript, readClientScript } from '../client/script.ts';
import { loadConfig, type LoadedConfig, showUnit, showValue, type Source } from '../config/load.ts';
import { type Setting, SETTING_KEYS, type SettingKey, SETTINGS } from '../config/settings.ts';
import { parseServiceUrl } from '../http/engine/host.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { VERSION } from '../version.ts';
import type { Run } from './commands.ts';
import { EXIT, UsageError } from './failures.ts';
import { alignColumns } from './output.ts';

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
