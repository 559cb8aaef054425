// What can stand at each place of a command line of `pasted`, for shells to offer: derived from the table of commands
// alone. How a shell is told is completion.ts.

import { COMMANDS, type Command, type Operand, type Option } from './commands.ts';

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
