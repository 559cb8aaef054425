// The command line after `pasted`: which command, with which options and operands. Does not run it.

import { nearest } from '../config/load.ts';
import { DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS } from '../core/time.ts';
import { type Command, COMMANDS, type Given, type Operand, type Option } from './commands.ts';
import { EXIT, failureOf, type Terminal, UsageError } from './terminal.ts';

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
  const [first, ...others] = joinName(words);
  if (first === undefined) return parseFor(findCommand('serve'), []);
  const name = COMMAND_ALIASES.get(first) ?? first;
  if (name.startsWith('-')) return parseFor(findCommand('serve'), words);
  if (name === 'help') return parseFor(findCommand('help'), joinName(others));
  const asksAboutGroup = groupOf(name).length > 0 && others.some((word) => HELP_OPTIONS.includes(word));
  return asksAboutGroup ? parseFor(findCommand('help'), [name]) : parseFor(findCommand(name), others);
}

/** By its exact name. Throws UsageError. */
export function findCommand(name: string): Command {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const group = groupOf(name).map((member) => member.name.slice(name.length + 1));
  if (group.length > 0) throw new UsageError(`${name} is followed by one of: ${group.join(', ')}`);
  throw unknown('command', name, COMMANDS.map((candidate) => candidate.name));
}

/** The commands of two words that begin with this one. */
export function groupOf(name: string): readonly Command[] {
  return COMMANDS.filter((command) => command.name.startsWith(`${name} `));
}

/** The first two words as one, where they are the name of a command. */
function joinName(words: readonly string[]): readonly string[] {
  const name = words.slice(0, 2).join(' ');
  return COMMANDS.some((command) => command.name === name) ? [name, ...words.slice(2)] : words;
}

function parseFor(command: Command, words: readonly string[]): Invocation {
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  if (words.slice(0, end).some((word) => HELP_OPTIONS.includes(word))) {
    return { command, given: { options: new Set(), values: new Map(), operands: [] }, wantsHelp: true };
  }

  const given = { options: new Set<string>(), values: new Map<string, string>(), operands: [] as string[] };
  const waiting = words.slice(0, end);
  for (let word = waiting.shift(); word !== undefined; word = waiting.shift()) {
    if (word.startsWith('-') && word !== '-') takeOption(command, word, waiting, given);
    else given.operands.push(word);
  }
  given.operands.push(...words.slice(end + 1));
  requireAll(command, given);
  return { command, given, wantsHelp: false };
}

interface GivenOptions {
  readonly options: Set<string>;
  readonly values: Map<string, string>;
}

/** A value is what follows `=` in the same word, or the next word. */
function takeOption({ options }: Command, word: string, waiting: string[], given: GivenOptions): void {
  const [name = '', ...parts] = word.split('=');
  const option = options.find((candidate) => candidate.name === (candidate.value === undefined ? word : name));
  const known = options.map((candidate) => candidate.name);
  // Not with its value, but where that is what is wrong.
  if (option === undefined) throw unknown('option', known.includes(name) ? word : name, [...known, ...HELP_OPTIONS]);
  if (option.value === undefined) {
    given.options.add(name);
    return;
  }
  if (given.values.has(name)) throw new UsageError(`${name} is given more than once`);
  const value = parts.length > 0 ? parts.join('=') : takeNext(waiting);
  if (value === undefined || value === '') throw new UsageError(`${name} needs a value: ${optionForm(option)}`);
  refuseOthers(option, value);
  given.values.set(name, value);
}

/** What is no member of a closed set. */
function refuseOthers({ name, choices }: Option | Operand, value: string): void {
  if (choices === undefined || choices.includes(value)) return;
  throw new UsageError(`${name} takes one of: ${choices.join(', ')}`);
}

/** A forgotten value must not swallow the option behind it; one that does begin like an option can be said with `=`. */
function takeNext(waiting: string[]): string | undefined {
  const isValue = waiting[0] === '-' || !waiting[0]?.startsWith('-');
  return isValue ? waiting.shift() : undefined;
}

function requireAll(command: Command, { values, operands }: Given): void {
  const surplus = operands[command.operands.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  operands.forEach((operand, index) => refuseOthers(command.operands[index]!, operand));
  const missing = [
    ...command.operands.slice(operands.length).filter(({ isRequired }) => isRequired).map(({ name }) => name),
    ...command.options.filter(({ name, isRequired }) => isRequired && !values.has(name)).map(optionForm),
  ];
  if (missing.length > 0) throw new UsageError(`${command.name} needs ${missing.join(' and ')}`);
}

/** As help shows it and as it is given. */
export function optionForm({ name, value }: Option): string {
  return value === undefined ? name : `${name} ${value}`;
}

function unknown(what: string, name: string, known: readonly string[]): UsageError {
  const suggestion = nearest(name, known);
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  return new UsageError(`unknown ${what} ${JSON.stringify(name)}${hint}`);
}

// The values of options as what they stand for: numbers and moments. Each is refused with a UsageError that names its
// option.

const DIGITS = /^\d+$/;

/** `2026-01-31`, `2026-01-31T12:00` or `2026-01-31T12:00:00`, with or without the `Z` of UTC, which is always meant. */
const ISO_MOMENT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(?::(\d{2}))?Z?)?$/;

const AGO = /^(\d{1,9})([smhd])$/;
const AGO_SECONDS: Readonly<Record<string, number>> = {
  s: 1, m: MINUTE_SECONDS, h: HOUR_SECONDS, d: DAY_SECONDS,
};

/** A whole number within the bounds; the fallback when the option is not given. */
export function wholeNumber(
  { values }: Given,
  name: string,
  bounds: { readonly minimum: number; readonly maximum: number; readonly fallback: number },
): number {
  const { minimum, maximum, fallback } = bounds;
  const text = values.get(name);
  if (text === undefined) return fallback;
  const number = DIGITS.test(text) ? Number(text) : NaN;
  if (number >= minimum && number <= maximum) return number;
  throw new UsageError(`${name} takes a whole number from ${minimum} to ${maximum}`);
}

/** A moment in Unix seconds, given as such, as a date and time in UTC, or as how long ago; undefined without one. */
export function moment({ values }: Given, name: string, nowSeconds: number): number | undefined {
  const text = values.get(name);
  if (text === undefined) return undefined;
  const seconds = momentOf(text, nowSeconds);
  if (Number.isSafeInteger(seconds)) return seconds;
  throw new UsageError(`${name} takes a moment: Unix seconds, 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 7d`);
}

function momentOf(text: string, nowSeconds: number): number {
  if (DIGITS.test(text)) return Number(text);
  const [, count, unit = ''] = AGO.exec(text) ?? [];
  if (count !== undefined) return nowSeconds - Number(count) * AGO_SECONDS[unit]!;
  const [, date, minutes = '00:00', seconds = '00'] = ISO_MOMENT.exec(text) ?? [];
  const iso = `${date}T${minutes}:${seconds}.000Z`;
  const parsed = new Date(iso);
  // Date takes the 30th of February for the 2nd of March.
  return date !== undefined && !Number.isNaN(parsed.getTime()) && parsed.toISOString() === iso
    ? parsed.getTime() / 1000
    : NaN;
}

// Runs one command line: finds the command, loads it, and turns what goes wrong into words and an exit code. What a
// command does is in its own file.

/** Resolves with the exit code. Rejects for what is no fault of the user: a bug, or a host that fails. */
export async function runCommandLine(terminal: Terminal): Promise<number> {
  try {
    const { command, wantsHelp, given } = parseArguments(terminal.arguments);
    if (!wantsHelp) return await (await command.load())(terminal, given);
    const { commandHelp } = await import('./print.ts');
    terminal.stdout.write(commandHelp(command));
    return EXIT.success;
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    terminal.stderr.write(failure.text);
    return failure.exitCode;
  }
}
