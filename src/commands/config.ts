// `pasted config`: every setting in force and where it comes from. Never shows a secret.

import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { SETTING_KEYS, SETTINGS, type Setting, type SettingKey } from '../config/settings.ts';
import { showUnit, showValue } from '../config/show.ts';
import type { Source } from '../config/sources.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';

export const run: Run = (terminal, { options }) => {
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
  const all = [['SETTING', 'VALUE', 'UNIT', 'FROM'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
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
