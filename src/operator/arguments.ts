// Reads a command line by the table of commands, and runs the command. What a command does is in its own file.

import { parseArgs } from 'node:util';
import { didYouMean } from '../config/load.ts';
import { SPANS } from '../config/settings.ts';
import type { Output } from '../ops/log.ts';
import { type Command, COMMANDS, type Part } from './commands.ts';
import { CommandError, EXIT, exitCodeOf, UsageError } from './failures.ts';
import type { Given, Terminal } from './terminal.ts';

/** The exit code, once all output was taken, however slowly, or a signal came. Rejects for a bug or a failing host. */
export async function runCommandLine(terminal: Terminal): Promise<number> {
  const { stdout, stderr } = terminal;
  const stopped = Promise.withResolvers<void>();
  const onStopSignal: Terminal['onStopSignal'] = (listener) => terminal.onStopSignal((signal) => {
    stopped.resolve();
    listener(signal);
  });
  const isTaken = (output: Output) => Promise.race([output.writeWhole(new Uint8Array()), stopped.promise]);
  try {
    const { command, given } = parseArguments(terminal.arguments);
    const code = (await (await command.load())({ ...terminal, onStopSignal }, given)) ?? EXIT.success;
    await isTaken(stdout);
    const reason = stdout.whyLost();
    if (reason !== undefined) throw new CommandError(`standard output did not take all that was printed (${reason})`);
    return code;
  } catch (error) {
    return exitCodeOf(terminal, error);
  } finally {
    await Promise.all([stdout, stderr].map(isTaken));
  }
}

const COMMAND_ALIASES: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'], ['-h', 'help'], ['--version', 'version'], ['-V', 'version'],
]);

/** Without a command it is `serve`. Options may stand anywhere before `--`. Throws UsageError. */
export function parseArguments(words: readonly string[]): { command: Command; given: Given } {
  // Node reads arguments as UTF-8, with U+FFFD for other bytes: the name of a file would then mean another file.
  const unclear = words.find((word) => word.includes('\ufffd'));
  if (unclear !== undefined) throw new UsageError(`not in UTF-8: ${JSON.stringify(unclear)}`);
  const [first = 'serve', ...rest] = joinName(words);
  const name = COMMAND_ALIASES.get(first) ?? first;
  if (name.startsWith('-')) return parseFor('serve', words);
  return parseFor(name, name === 'help' ? joinName(rest) : rest);
}

/** By its exact name. Throws UsageError. */
export function findCommand(name: string): Command {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const group = groupOf(name).map((member) => member.name.slice(name.length + 1));
  if (group.length > 0) throw new UsageError(`${name} is followed by one of: ${group.join(', ')}`);
  throw unknown('command', name, COMMANDS.map((candidate) => candidate.name));
}

/** The commands whose names begin with this one and go on. */
export function groupOf(name: string): readonly Command[] {
  return COMMANDS.filter((command) => command.name.startsWith(`${name} `));
}

/** Joins the first words into one when together they are the name of a command. */
function joinName(words: readonly string[]): readonly string[] {
  const count = [3, 2].find((length) => COMMANDS.some(({ name }) => name === words.slice(0, length).join(' ')));
  return count === undefined ? words : [words.slice(0, count).join(' '), ...words.slice(count)];
}

/** `--help` behind the name of a command or a group is `help` with that name. */
function parseFor(name: string, words: readonly string[]): { command: Command; given: Given } {
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  if (words.slice(0, end).some((word) => word === '--help' || word === '-h')) {
    return { command: findCommand('help'), given: { options: new Map(), operands: [name] } };
  }
  const command = findCommand(name);
  const { values: found, positionals: operands } = parseWords(command, words);
  const options = new Map<string, string>();
  const missing: string[] = [];
  command.operands.forEach((operand, index) => {
    if (operands[index]) requireChoice(operand, operands[index]);
    else if (operand.isRequired) missing.push(operand.form);
  });
  for (const option of command.options) {
    const [value, again] = [found[option.name.slice(2)] ?? []].flat();
    if (typeof value === 'string') options.set(option.name, requireChoice(option, value));
    else if (value === true) options.set(option.name, '');
    else if (option.isRequired) missing.push(option.form);
    if (value === '') throw new UsageError(`${option.name} needs a value: ${option.form}`);
    if (again !== undefined) throw new UsageError(`${option.name} is given more than once`);
  }
  const isEndless = command.operands.at(-1)?.name.endsWith('...') === true;
  const surplus = isEndless ? undefined : operands[command.operands.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  if (missing.length > 0) throw new UsageError(`${name} needs ${missing.join(' and ')}`);
  return { command, given: { options, operands } };
}

/** An option with a value gives a list, with one value for each time that it is given. */
function parseWords({ options }: Command, words: readonly string[]) {
  const types = options.map(({ name, value }) => {
    const type = value === undefined ? { type: 'boolean' as const } : { type: 'string' as const, multiple: true };
    return [name.slice(2), type] as const;
  });
  try {
    return parseArgs({ args: [...words], options: Object.fromEntries(types), allowPositionals: true });
  } catch (error) {
    // What is wrong is what the user wrote: the table of options is ours.
    const { message } = error as Error;
    const [, name] = /^Unknown option '([^']*)'/.exec(message) ?? [];
    if (name === undefined) throw new UsageError(message.replaceAll('\n', ' '));
    throw unknown('option', name, [...options.map((option) => option.name), '--help']);
  }
}

function requireChoice({ name, choices }: Part, value: string): string {
  if (choices === undefined || choices.includes(value)) return value;
  throw new UsageError(`${name} takes one of: ${choices.join(', ')}`);
}

function unknown(what: string, name: string, known: readonly string[]): UsageError {
  return new UsageError(`unknown ${what} ${JSON.stringify(name)}${didYouMean(name, known)}`);
}

export function wrongValue(option: string, expected: string, given: string): UsageError {
  return new UsageError(`${option} takes ${expected}: not ${JSON.stringify(given)}`);
}

/** Within the bounds; the fallback when it is not given. Throws UsageError. */
export function wholeNumber(
  { options }: Given, name: string, { minimum, maximum, fallback }: Record<'minimum' | 'maximum' | 'fallback', number>,
): number {
  const text = options.get(name);
  if (text === undefined) return fallback;
  const number = /^\d+$/.test(text) ? Number(text) : NaN;
  if (number >= minimum && number <= maximum) return number;
  throw new UsageError(`${name} takes a whole number from ${minimum} to ${maximum}`);
}

/** Such as 90s, 30m, 12h and 7d; NaN for anything else. */
export function spanSeconds(text: string): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return Number(count) * (SPANS.get(unit) ?? NaN);
}

/** One line that a table can hold; empty when it is not given. */
export function noteOf({ options }: Given): string {
  const note = options.get('--note') ?? '';
  if (/^[^\p{Cc}\u2028\u2029]{0,200}$/u.test(note)) return note;
  throw new UsageError('--note takes one line of at most 200 characters');
}
