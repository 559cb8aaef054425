// `pasted help`: texts made of the tables of commands and settings. Does not read the settings in force: that is
// `pasted config`.

import { showUnit, showValue } from '../config/load.ts';
import { type Setting, SETTINGS } from '../config/settings.ts';
import { VERSION } from '../version.ts';
import { findCommand, groupOf, optionForm } from './arguments.ts';
import { type Command, COMMANDS, type Option, type Run } from './commands.ts';
import { EXIT } from './failures.ts';

export const run: Run = ({ stdout }, { operands: [name] }) => {
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
