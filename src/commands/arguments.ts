// The command line after `pasted`: which command, with which options and operands. Does not run it.

import { nearest } from '../core/nearest.ts';
import { COMMANDS, type Command, type Given } from './commands.ts';
import { UsageError } from './failures.ts';

export interface Invocation {
  readonly command: Command;
  readonly given: Given;
  /** Whether its help is asked for instead. */
  readonly wantsHelp: boolean;
}

/** What other programs understand too, in the place of a command. */
const COMMAND_ALIASES: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-V', 'version'],
]);

const HELP_OPTIONS = ['--help', '-h'];

/** Without a command it is `serve`. Options may stand anywhere before `--`. Throws UsageError. */
export function parseArguments(words: readonly string[]): Invocation {
  const [first, ...others] = words;
  if (first === undefined) return parseFor(findCommand('serve'), []);
  const alias = COMMAND_ALIASES.get(first);
  if (alias !== undefined) return parseFor(findCommand(alias), others);
  return first.startsWith('-') ? parseFor(findCommand('serve'), words) : parseFor(findCommand(first), others);
}

/** By its exact name. Throws UsageError. */
export function findCommand(name: string): Command {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  throw unknown('command', name, COMMANDS.map((candidate) => candidate.name));
}

function parseFor(command: Command, words: readonly string[]): Invocation {
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const before = words.slice(0, end);
  const options = before.filter((word) => word.startsWith('-'));
  const operands = [...before.filter((word) => !word.startsWith('-')), ...words.slice(end + 1)];
  if (options.some((option) => HELP_OPTIONS.includes(option))) {
    return { command, given: { options: new Set(), operands: [] }, wantsHelp: true };
  }

  const known = command.options.map((option) => option.name);
  const strange = options.find((option) => !known.includes(option));
  if (strange !== undefined) throw unknown('option', strange, [...known, ...HELP_OPTIONS]);
  const surplus = operands[command.operands.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  return { command, given: { options: new Set(options), operands }, wantsHelp: false };
}

function unknown(what: string, name: string, known: readonly string[]): UsageError {
  const suggestion = nearest(name, known);
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  return new UsageError(`unknown ${what} ${JSON.stringify(name)}${hint}`);
}
