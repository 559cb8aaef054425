// The table of settings as the README must hold it.

import { showUnit, showValue } from '../../src/config/load.ts';
import { type Setting, SETTINGS } from '../../src/config/settings.ts';

/** A Markdown table of every setting in the table's order, without a newline at its end. */
export function settingsMarkdown(): string {
  const rows = Object.values<Setting>(SETTINGS).map((setting) => {
    const standIn = setting.standIn === undefined ? '' : `; \`${setting.standIn}\` stands in`;
    return [`\`${setting.name}\``, defaultOf(setting), showUnit(setting), `${setting.meaning}${standIn}`];
  });
  return [['Setting', 'Default', 'Unit', 'Meaning'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function defaultOf(setting: Setting): string {
  const isSet = setting.fallback !== '';
  const shown = showValue(setting, setting.fallback);
  return isSet ? `\`${shown}\`` : shown;
}
