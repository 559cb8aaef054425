// `pasted help`: texts made of the tables of commands and settings. Does not read the settings in force: that is
// `pasted config`.

import { showUnit, showValue } from '../config/load.ts';
import { type Setting, SETTINGS } from '../config/settings.ts';
import { VERSION } from '../version.ts';
import { findCommand, groupOf, optionForm } from './arguments.ts';
import { type Command, COMMANDS, type Operand, type Option, type Run } from './commands.ts';
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

// What can stand at each place of a command line of `pasted`, for shells to offer: derived from the table of commands
// alone. How a shell is told is completion.ts.

export interface Word {
  readonly word: string;
  /** For people; may be empty. */
  readonly meaning: string;
}

/** What a value or an operand may be: words, files, or, without either, text that nobody can guess. */
interface Values {
  readonly words: readonly Word[];
  readonly files: boolean;
}

export interface OptionOffer extends Word, Values {
  readonly takesValue: boolean;
}

export interface CommandOffer {
  /** One word or two, as in the table. */
  readonly name: string;
  readonly options: readonly OptionOffer[];
  /** Of all its operands, whichever comes next. */
  readonly operands: Values;
}

/** What follows `pasted`: commands of one word, and the first words of groups, in the table's order. */
export function firstWords(): readonly Word[] {
  const words = new Map<string, string>();
  for (const { name, summary } of COMMANDS) {
    const [first = '', second] = name.split(' ');
    const members = groupWords().find(({ group }) => group === first)?.words ?? [];
    words.set(first, second === undefined ? summary : members.map(({ word }) => word).join(', '));
  }
  return [...words].map(([word, meaning]) => ({ word, meaning }));
}

/** What follows the first word of a group. */
export function groupWords(): readonly { readonly group: string; readonly words: readonly Word[] }[] {
  const groups = Map.groupBy(COMMANDS.filter(({ name }) => name.includes(' ')), ({ name }) => name.split(' ')[0]!);
  return [...groups].map(([group, members]) => ({
    group,
    words: members.map(({ name, summary }) => ({ word: name.slice(group.length + 1), meaning: summary })),
  }));
}

export function commandOffers(): readonly CommandOffer[] {
  return COMMANDS.map((command) => ({
    name: command.name,
    options: [...command.options.map(optionOffer), HELP],
    operands: operandValues(command),
  }));
}

const HELP: OptionOffer = { word: '--help', meaning: 'print the help', takesValue: false, words: [], files: false };

function optionOffer(option: Option): OptionOffer {
  const values = valuesOf(option.value ?? '', option.choices);
  return { word: option.name, meaning: option.meaning, takesValue: option.value !== undefined, ...values };
}

function operandValues({ operands }: Command): Values {
  const each = operands.map(({ name, choices }: Operand) => {
    // The one operand that is itself a word of this table.
    return name === 'COMMAND' ? { words: allWords(), files: false } : valuesOf(name, choices);
  });
  return { words: each.flatMap(({ words }) => words), files: each.some(({ files }) => files) };
}

/** Of two-word names the second word too: both stand behind `pasted help`. */
function allWords(): readonly Word[] {
  return [...firstWords(), ...groupWords().flatMap(({ words }) => words)];
}

/** `form` is what the help calls the value. */
function valuesOf(form: string, choices: readonly string[] = []): Values {
  return { words: choices.map((word) => ({ word, meaning: '' })), files: /\bFILE\b|\bFOLDER\b/.test(form) };
}
