// The table of what `pasted` can do. The reading of the command line and every help text derive from it. Does not do
// any of it: each command is loaded when it is asked for, so that none pays for the others.

import type { Terminal } from './terminal.ts';

/** The arguments of one command, known to be allowed by its entry. */
export interface Given {
  readonly options: ReadonlySet<string>;
  readonly operands: readonly string[];
}

/** Resolves with the exit code. */
export type Run = (terminal: Terminal, given: Given) => number | Promise<number>;

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What it does, in a few sentences for its help. */
  readonly description: string;
  /** What may follow, each at most once, by the name that the help gives it. */
  readonly operands: readonly string[];
  readonly options: readonly { readonly name: string; readonly meaning: string }[];
  readonly examples: readonly string[];
  readonly load: () => Promise<Run>;
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    summary: 'run the service (the default)',
    description:
      'Runs the service until SIGTERM or SIGINT; requests in flight finish first. A second signal ends it at once.\n' +
      'Every setting is a variable of the environment: see `pasted help`.',
    operands: [],
    options: [],
    examples: [
      'pasted',
      'SERVICE_PORT=9000 SERVICE_DB=/srv/paste/pasted.db pasted serve',
      'NODE_ENV=production pasted',
    ],
    load: async () => (await import('./serve.ts')).run,
  },
  {
    name: 'config',
    summary: 'show every setting in force and where it comes from',
    description: 'Reads the settings as `serve` would and shows them. Of a secret it says only whether it is set.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted config', 'pasted config --json'],
    load: async () => (await import('./config.ts')).run,
  },
  {
    name: 'help',
    summary: 'explain the commands and settings, or one command',
    description: 'Without a command: all commands and all settings.',
    operands: ['COMMAND'],
    options: [],
    examples: ['pasted help', 'pasted help config'],
    load: async () => (await import('./help.ts')).run,
  },
  {
    name: 'version',
    summary: 'print the version',
    description: 'Prints the release number.',
    operands: [],
    options: [],
    examples: ['pasted version'],
    load: async () => (await import('./version.ts')).run,
  },
];
