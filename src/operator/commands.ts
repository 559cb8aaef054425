// The table of what `pasted` can do. The reading of the command line, every help text and the completion derive from
// it. Does not do any of it: each command is loaded when it is asked for, so that none pays for the others.

import type { RevocationReason } from '../authority/certificates.ts';
import type { BundleProfile } from '../authority/pkcs12.ts';
import { AUDIT_EVENTS } from '../pastes/identity.ts';
import type { Terminal } from './terminal.ts';

// What is about the database as a whole: whether it is well, and copies of it.

const JSON_OPTION = { name: '--json', meaning: 'print one JSON object' };

export const DATABASE_COMMANDS: readonly Command[] = [
  {
    name: 'check',
    summary: 'find out whether the service works, and will go on working',
    description:
      'Looks at the settings, the files and who may open them, the database, room on the disk, the clock, the\n' +
      'certificate authority and its password, and the certificate for TLS. One line each: `ok`, `warn` or `fail`.\n' +
      'Ends with 1 when anything fails. Changes nothing. The service may be running.',
    operands: [],
    options: [{ name: '--full', meaning: 'check every index against its table as well' }, JSON_OPTION],
    examples: ['pasted check', 'pasted check --full', 'pasted check --json'],
    load: async () => (await import('./check.ts')).check,
  },
  {
    name: 'backup',
    summary: 'write a verified copy of the database',
    description:
      'A copy of one moment, whole and checked before it gets its name; - is standard output. The service may be\n' +
      'running, and goes on. The copy holds every paste of its moment, burn-after-read ones too, so it is as secret\n' +
      'as the database: only its owner may open it. The file behind - is the shell\'s: say umask 077 before.\n' +
      '`pasted restore` puts it back.',
    operands: [{ name: 'FILE', isRequired: true }],
    options: [{ name: '--force', meaning: 'replace FILE when there is one' }, JSON_OPTION],
    examples: [
      'pasted backup /srv/backup/pasted.db --force',
      '(umask 077; pasted backup - | gzip > pasted.db.gz)',
    ],
    load: async () => (await import('./backup.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'put a backup in the place of the database',
    description:
      'The service must not be running. The backup is checked before anything is changed, and stays as it is; - is\n' +
      'standard input. The database that was there is kept beside the new one, under a name with the time: remove\n' +
      'it when it is not needed any more. What was deleted, read, burned or revoked since the backup is as it was\n' +
      'then.',
    operands: [{ name: 'FILE', isRequired: true }],
    options: [JSON_OPTION],
    examples: ['pasted restore /srv/backup/pasted.db', 'gunzip < pasted.db.gz | pasted restore -'],
    load: async () => (await import('./backup.ts')).restore,
  },
  {
    name: 'prune',
    summary: 'remove what has expired, and give its room back',
    description:
      'Expired pastes, used challenges, records of duplicates, and old audit entries (SERVICE_AUDIT_RETENTION). A\n' +
      'running server does that by itself, expired pastes every hour: beside one this ends with 75.',
    operands: [],
    options: [JSON_OPTION],
    examples: ['pasted prune', 'pasted prune --json'],
    load: async () => (await import('./database.ts')).prune,
  },
];

// The part of the table of commands that is about certificates: who the admins are, what the authority issued, and the
// server's own.

/** The closed sets are written out: their own tables come with all of the cryptography. A test holds them equal. */
const BUNDLE_PROFILES = ['modern', 'compat'] as const satisfies readonly BundleProfile[];
const REASONS = [
  'keyCompromise', 'affiliationChanged', 'superseded', 'cessationOfOperation', 'privilegeWithdrawn',
] as const satisfies readonly RevocationReason[];

const SERIAL: Operand = { name: 'SERIAL', isRequired: true };

export const CERTIFICATE_COMMANDS: readonly Command[] = [
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
      {
        name: '--out',
        value: 'FILE',
        isRequired: true,
        meaning: 'where to write the bundle; never an existing file; - is standard output',
      },
      { name: '--name', value: 'NAME', meaning: 'common name of the certificate; admin by default' },
      {
        name: '--p12-profile',
        value: 'PROFILE',
        choices: BUNDLE_PROFILES,
        meaning: 'modern (the default), or compat for older devices',
      },
      { name: '--password-file', value: 'FILE', meaning: 'file that holds the bundle\'s password; none by default' },
      { name: '--json', meaning: 'print one JSON object' },
    ],
    examples: [
      'pasted admin create --out admin.p12',
      'pasted admin create --out admin.p12 --name alice --password-file password.txt',
      '(umask 077; pasted admin create --out - > admin.p12)',
    ],
    load: async () => (await import('./certificates.ts')).create,
  },
  {
    name: 'admin grant',
    summary: 'make the holder of a certificate an admin',
    description: 'Takes effect at once, also while the service runs. `pasted pki list` shows the serials.',
    operands: [SERIAL],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted admin grant 5f1d0c8e2b7a49d3a6c4e8f00b9d7213'],
    load: async () => (await import('./certificates.ts')).grant,
  },
  {
    name: 'pki list',
    summary: 'list every certificate',
    description: 'Newest first, with serial, status, whether it is an admin\'s, when it runs out, and common name.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted pki list', 'pasted pki list --json'],
    load: async () => (await import('./certificates.ts')).list,
  },
  {
    name: 'pki revoke',
    summary: 'revoke a certificate for ever',
    description:
      'From the next request on the service does not know it any more. A proxy that verifies by the revocation list\n' +
      'needs a new one: see `pasted pki crl`. Needs no password.',
    operands: [SERIAL],
    options: [
      { name: '--reason', value: 'REASON', choices: REASONS, meaning: 'why; the list then says so' },
      { name: '--json', meaning: 'print one JSON object' },
    ],
    examples: [
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213',
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213 --reason keyCompromise',
    ],
    load: async () => (await import('./certificates.ts')).revoke,
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
    load: async () => (await import('./certificates.ts')).crl,
  },
  {
    name: 'pki ca',
    summary: 'print the certificate of the authority',
    description: 'In PEM, as a proxy needs it to verify client certificates.',
    operands: [],
    options: [],
    examples: ['pasted pki ca'],
    load: async () => (await import('./certificates.ts')).ca,
  },
  {
    name: 'tls self-signed',
    summary: 'make a certificate and key for HTTPS without a public authority',
    description:
      'For the listener itself (SERVICE_TLS_CERT and SERVICE_TLS_KEY): clients are given the certificate, and trust\n' +
      'it alone. Never over existing files. The key is for its owner alone: run it as the user that the service\n' +
      'runs as. Needs no database.',
    operands: [],
    options: [
      {
        name: '--host',
        value: 'NAMES',
        isRequired: true,
        meaning: 'what clients call the server: host names, *.names and addresses, separated by commas',
      },
      { name: '--out-cert', value: 'FILE', meaning: 'where to write the certificate; server.crt by default' },
      { name: '--out-key', value: 'FILE', meaning: 'where to write the key; server.key by default' },
      { name: '--days', value: 'COUNT', meaning: 'how long it is valid; 365 by default, 824 at most' },
      { name: '--json', meaning: 'print one JSON object' },
    ],
    examples: [
      'pasted tls self-signed --host paste.example',
      'pasted tls self-signed --host localhost,127.0.0.1,::1 --out-cert tls.crt --out-key tls.key',
    ],
    load: async () => (await import('./certificates.ts')).selfSigned,
  },
];

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
      'SIGHUP reads secrets and certificates again; on a terminal, which sends it when it is closed, it ends the ' +
      'service.\n' +
      'Every setting is a variable of the environment: see `pasted help`.',
    operands: [],
    options: [],
    examples: [
      'pasted',
      'SERVICE_PORT=9000 SERVICE_DB=/srv/paste/pasted.db pasted serve',
      'NODE_ENV=production pasted',
    ],
    load: async () => (await import('../serve.ts')).run,
  },
  {
    name: 'config',
    summary: 'show every setting in force and where it comes from',
    description: 'Reads the settings as `serve` would and shows them. Of a secret it says only whether it is set.',
    operands: [],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
    examples: ['pasted config', 'pasted config --json'],
    load: async () => (await import('./print.ts')).printSettings,
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
    load: async () => (await import('./database.ts')).stats,
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
    load: async () => (await import('./database.ts')).audit,
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
    load: async () => (await import('./check.ts')).health,
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
    load: async () => (await import('./print.ts')).printClient,
  },
  {
    name: 'openapi',
    summary: 'print a description of the API, for programs',
    description: 'Prints an OpenAPI 3.1 document: every endpoint with its parameters, bodies and answers.',
    operands: [],
    options: [],
    examples: ['pasted openapi', 'pasted openapi > openapi.json'],
    load: async () => (await import('./print.ts')).printOpenapi,
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
    load: async () => (await import('./print.ts')).printCompletion,
  },
  {
    name: 'help',
    summary: 'explain the commands and settings, or one command',
    description: 'Without a command: all commands and all settings.',
    operands: [{ name: 'COMMAND', isRequired: false }],
    options: [],
    examples: ['pasted help', 'pasted help config', 'pasted help admin create'],
    load: async () => (await import('./print.ts')).help,
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
    load: async () => (await import('./print.ts')).printVersion,
  },
];
