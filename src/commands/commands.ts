// The table of what `pasted` can do. The reading of the command line and every help text derive from it. Does not do
// any of it: each command is loaded when it is asked for, so that none pays for the others.

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
  readonly meaning: string;
  readonly isRequired?: boolean;
}

export interface Operand {
  /** What it is called in the help. */
  readonly name: string;
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

const SERIAL: Operand = { name: 'SERIAL', isRequired: true };

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
    name: 'admin create',
    summary: 'issue the first certificate, which is the admin\'s, before anyone else can get it',
    description:
      'Writes a new file with the certificate and its key (PKCS#12), and makes the certificate authority when there\n' +
      'is none. Needs SERVICE_PKI_CA_PASSWORD. Run it as the user that the service runs as, before the service\n' +
      'faces anyone: the first certificate ever issued is the admin\'s, whoever asks for it. The service may be\n' +
      'running.',
    operands: [],
    options: [
      { name: '--out', value: 'FILE', isRequired: true, meaning: 'where to write the bundle; never an existing file' },
      { name: '--name', value: 'NAME', meaning: 'common name of the certificate; admin by default' },
      { name: '--p12-profile', value: 'PROFILE', meaning: 'modern (the default), or compat for older devices' },
      { name: '--password-file', value: 'FILE', meaning: 'file that holds the bundle\'s password; none by default' },
      { name: '--json', meaning: 'print one JSON object' },
    ],
    examples: [
      'pasted admin create --out admin.p12',
      'pasted admin create --out admin.p12 --name alice --password-file password.txt',
    ],
    load: async () => (await import('./admin.ts')).create,
  },
  {
    name: 'admin grant',
    summary: 'make the holder of a certificate an admin',
    description: 'Takes effect at once, also while the service runs. `pasted pki list` shows the serials.',
    operands: [SERIAL],
    options: [],
    examples: ['pasted admin grant 5f1d0c8e2b7a49d3a6c4e8f00b9d7213'],
    load: async () => (await import('./admin.ts')).grant,
  },
  {
    name: 'pki list',
    summary: 'list every certificate',
    description: 'Newest first, with serial, status, whether it is an admin\'s, when it runs out, and common name.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted pki list', 'pasted pki list --json'],
    load: async () => (await import('./pki.ts')).list,
  },
  {
    name: 'pki revoke',
    summary: 'revoke a certificate for ever',
    description:
      'From the next request on the service does not know it any more. A proxy that verifies by the revocation list\n' +
      'needs a new one: see `pasted pki crl`. Needs no password.',
    operands: [SERIAL],
    options: [{ name: '--reason', value: 'REASON', meaning: 'such as keyCompromise or superseded' }],
    examples: [
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213',
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213 --reason keyCompromise',
    ],
    load: async () => (await import('./pki.ts')).revoke,
  },
  {
    name: 'pki crl',
    summary: 'write the certificate revocation list',
    description:
      'The current list in PEM, made anew when a certificate was revoked since or half its life is over; that needs\n' +
      'SERVICE_PKI_CA_PASSWORD. A file is replaced as a whole, and can be read by all.',
    operands: [],
    options: [
      { name: '--out', value: 'FILE', meaning: 'where to write it; - is standard output, the default' },
      { name: '--der', meaning: 'write DER instead of PEM' },
    ],
    examples: ['pasted pki crl', 'pasted pki crl --out /etc/nginx/pasted.crl.pem', 'pasted pki crl --der --out ca.crl'],
    load: async () => (await import('./pki.ts')).crl,
  },
  {
    name: 'pki ca',
    summary: 'print the certificate of the authority',
    description: 'In PEM, as a proxy needs it to verify client certificates.',
    operands: [],
    options: [],
    examples: ['pasted pki ca'],
    load: async () => (await import('./pki.ts')).ca,
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
    description: 'Prints the release number.',
    operands: [],
    options: [],
    examples: ['pasted version'],
    load: async () => (await import('./version.ts')).run,
  },
];
