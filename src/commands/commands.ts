// The table of what `pasted` can do. The reading of the command line, every help text and the completion derive from
// it. Does not do any of it: each command is loaded when it is asked for, so that none pays for the others.

import { AUDIT_EVENTS } from '../service/audit.ts';
import { CERTIFICATE_COMMANDS } from './table-certificates.ts';
import { DATABASE_COMMANDS } from './table-database.ts';
import type { Terminal } from './terminal.ts';

/** The arguments of one command, known to be allowed by its entry. */
export interface Given {
  /** Those without a value, by name. */
  readonly options: ReadonlySet<string>;
  /** Of the options that have one, by name; never empty. */
  readonly values: ReadonlyMap<string, string>;
  readonly operands: readonly string[];
}

/** Resolves with the exit code. */
export type Run = (terminal: Terminal, given: Given) => number | Promise<number>;

export interface Option {
  readonly name: string;
  /** What its value is called in the help; an option without one is given or not. */
  readonly value?: string;
  /** All values that it takes, where they are a closed set; any other is refused. */
  readonly choices?: readonly string[];
  readonly meaning: string;
  readonly isRequired?: boolean;
}

export interface Operand {
  /** What it is called in the help. */
  readonly name: string;
  /** As of an option. */
  readonly choices?: readonly string[];
  readonly isRequired: boolean;
}

export interface Command {
  /** One word, or two where the first names a group. */
  readonly name: string;
  readonly summary: string;
  /** What it does, in a few sentences for its help. */
  readonly description: string;
  /** In their order, each at most once. */
  readonly operands: readonly Operand[];
  readonly options: readonly Option[];
  readonly examples: readonly string[];
  readonly load: () => Promise<Run>;
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    summary: 'run the service (the default)',
    description:
      'Runs the service until SIGTERM or SIGINT; requests in flight finish first. A second signal ends it at once.\n' +
      'SIGHUP reads secrets and certificates again; on a terminal, which sends it when it is closed, it ends the service.\n' +
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
  ...DATABASE_COMMANDS,
  {
    name: 'stats',
    summary: 'count what the service holds',
    description:
      'Pastes, certificates, audit entries, and the room that they take, against SERVICE_MAX_STORAGE. Names no\n' +
      'paste and nobody. The service may be running.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted stats', 'pasted stats --json'],
    load: async () => (await import('./stats.ts')).run,
  },
  {
    name: 'audit',
    summary: 'show the audit log',
    description:
      'Newest first, with the filters of GET /audit. A MOMENT is Unix seconds, a date and time in UTC such as\n' +
      '2026-01-31 or 2026-01-31T12:00:00Z, or so long ago: 90s, 30m, 12h, 7d. The service may be running.',
    operands: [],
    options: [
      { name: '--event', value: 'EVENT', choices: AUDIT_EVENTS, meaning: 'only this event' },
      { name: '--outcome', value: 'OUTCOME', choices: ['success', 'failure'], meaning: 'only what ended so' },
      { name: '--client-id', value: 'FINGERPRINT', meaning: 'only what the holder of this certificate caused' },
      { name: '--after', value: 'MOMENT', meaning: 'only what is newer' },
      { name: '--before', value: 'MOMENT', meaning: 'only what is older' },
      { name: '--limit', value: 'COUNT', meaning: 'at most so many entries, 100 by default' },
      { name: '--offset', value: 'COUNT', meaning: 'leave out so many of the newest' },
      { name: '--json', meaning: 'print the answer of GET /audit as one JSON object' },
    ],
    examples: ['pasted audit', 'pasted audit --event auth_failure --after 24h', 'pasted audit --limit 1000 --json'],
    load: async () => (await import('./audit.ts')).run,
  },
  ...CERTIFICATE_COMMANDS,
  {
    name: 'health',
    summary: 'ask a running service whether it is healthy',
    description:
      'Ends with 0 when it is, and with 1 and one line that says why when it is not or does not answer. Asks where\n' +
      'the settings say that it listens; with TLS it must show the certificate in SERVICE_TLS_CERT, whatever its\n' +
      'name. For a service that has its socket from systemd, or on another host, give --url; a certificate is then\n' +
      'verified as usual.',
    operands: [],
    options: [
      { name: '--url', value: 'URL', meaning: 'the address of the service, or unix: and the path of its socket' },
      { name: '--timeout', value: 'SECONDS', meaning: 'how long to wait for the answer; 5 by default' },
      { name: '--json', meaning: 'print the answer of GET /health as one JSON object' },
    ],
    examples: ['pasted health', 'pasted health --url https://paste.example --timeout 10'],
    load: async () => (await import('./health.ts')).run,
  },
  {
    name: 'client',
    summary: 'print the command-line client',
    description:
      'The shell script pastec as GET /client hands it out, for the server of that address; without one it is the\n' +
      'script\'s user who has to say which server.',
    operands: [],
    options: [{ name: '--server', value: 'URL', meaning: 'the address that the service is reached at' }],
    examples: ['pasted client --server https://paste.example > pastec'],
    load: async () => (await import('./client.ts')).run,
  },
  {
    name: 'openapi',
    summary: 'print a description of the API, for programs',
    description: 'Prints an OpenAPI 3.1 document: every endpoint with its parameters, bodies and answers.',
    operands: [],
    options: [],
    examples: ['pasted openapi', 'pasted openapi > openapi.json'],
    load: async () => (await import('./openapi.ts')).run,
  },
  {
    name: 'completion',
    summary: 'print a script that completes these commands in a shell',
    description: 'For bash, zsh or fish; the first lines of the script say where it belongs.',
    operands: [{ name: 'SHELL', choices: ['bash', 'zsh', 'fish'], isRequired: true }],
    options: [],
    examples: [
      'pasted completion bash > ~/.local/share/bash-completion/completions/pasted',
      'pasted completion fish > ~/.config/fish/completions/pasted.fish',
    ],
    load: async () => (await import('./completion.ts')).run,
  },
  {
    name: 'help',
    summary: 'explain the commands and settings, or one command',
    description: 'Without a command: all commands and all settings.',
    operands: [{ name: 'COMMAND', isRequired: false }],
    options: [],
    examples: ['pasted help', 'pasted help config', 'pasted help admin create'],
    load: async () => (await import('./help.ts')).run,
  },
  {
    name: 'version',
    summary: 'print the version',
    description:
      'Prints the release number. As JSON also the schema of the database that this release makes, and the versions\n' +
      'of Node, SQLite and OpenSSL that it runs on.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted version', 'pasted version --json'],
    load: async () => (await import('./version.ts')).run,
  },
];
