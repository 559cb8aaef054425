// `pasted config`: every setting in force and where it comes from. Never shows a secret.

import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { SETTING_KEYS, SETTINGS, type Setting, type SettingKey } from '../config/settings.ts';
import { showUnit, showValue } from '../config/show.ts';
import type { Source } from '../config/sources.ts';
import { alignColumns } from './columns.ts';
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
