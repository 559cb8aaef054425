// Settings as people read them, in the help, in `pasted config` and in the README. Secrets are never shown.

import type { Setting, SettingValue } from './settings.ts';

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
