// Runs one command line: finds the command, loads it, and turns what goes wrong into words and an exit code. What a
// command does is in its own file.

import { parseArguments } from './arguments.ts';
import { EXIT, failureOf } from './failures.ts';
import type { Terminal } from './terminal.ts';

/** Resolves with the exit code. Rejects for what is no fault of the user: a bug, or a host that fails. */
export async function runCommandLine(terminal: Terminal): Promise<number> {
  try {
    const { command, wantsHelp, given } = parseArguments(terminal.arguments);
    if (!wantsHelp) return await (await command.load())(terminal, given);
    const { commandHelp } = await import('./help.ts');
    terminal.stdout.write(commandHelp(command));
    return EXIT.success;
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    terminal.stderr.write(failure.text);
    return failure.exitCode;
  }
}
