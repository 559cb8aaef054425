// What `pasted` can do: help, manual page and completions are made from this table too. A command is loaded when it is
// asked for, so that none pays for the others.

import type { RevocationReason } from '../authority/certificates.ts';
import type { BundleProfile } from '../authority/pkcs12.ts';
import type { AuditEventName } from '../pastes/identity.ts';
import type { Run } from './terminal.ts';

export interface Command {
  /** One word, or more where those before the last name a group. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly operands: readonly Operand[];
  readonly options: readonly Option[];
  readonly examples: readonly string[];
  readonly load: () => Promise<Run>;
}

export interface Operand {
  /** As the help shows it; an option is given so. The last operand may be given more than once if it ends in `...`. */
  readonly name: string;
  readonly choices?: readonly string[];
  readonly isRequired?: boolean;
}

export interface Option extends Operand {
  /** What the help calls its value; without one it is a flag. */
  readonly value?: string;
  readonly meaning: string;
}

type Details = Pick<Command, 'description' | 'examples'> & Partial<Pick<Command, 'operands' | 'options'>>;

function command(name: string, summary: string, load: Command['load'], details: Details): Command {
  return { name, summary, load, operands: [], options: [], ...details };
}

function from<Name extends string>(file: () => Promise<Readonly<Record<NoInfer<Name>, Run>>>, name: Name) {
  return async (): Promise<Run> => (await file())[name];
}

const audit = () => import('./audit.ts');
const certificates = () => import('./certificates.ts');
const check = () => import('./check.ts');
const database = () => import('./database.ts');
const governing = () => import('./governing.ts');
const installed = () => import('./installed.ts');
const print = () => import('./print.ts');
const serve = () => import('../serve.ts');

// The closed sets are written out, since their own tables come with much else. A test holds them equal.
const PROFILES = ['modern', 'compat'] as const satisfies readonly BundleProfile[];
const REASONS = [
  'keyCompromise', 'affiliationChanged', 'superseded', 'cessationOfOperation', 'privilegeWithdrawn',
] as const satisfies readonly RevocationReason[];
const EVENTS = [
  'cert_issued', 'cert_revoked', 'auth_failure', 'paste_deleted', 'admin_granted', 'ca_password_changed',
  'content_banned',
] as const satisfies readonly AuditEventName[];

const JSON_OPTION: Option = { name: '--json', meaning: 'print one JSON object' };
const FILE: Operand = { name: 'FILE', isRequired: true };
const PASTE: Operand = { name: 'ID', isRequired: true };
const SERIAL: Operand = { name: 'SERIAL', isRequired: true };

const OUT_OPTION: Option = {
  name: '--out', value: 'FILE', isRequired: true, meaning: 'a new file for the bundle; - is standard output',
};
const BUNDLE_OPTIONS: readonly Option[] = [
  { name: '--p12-profile', value: 'PROFILE', choices: PROFILES,
    meaning: 'modern (the default), or compat for older devices' },
  { name: '--password-file', value: 'FILE', meaning: 'file that holds the bundle\'s password; none by default' },
  JSON_OPTION,
];

export const COMMANDS: readonly Command[] = [
  command('serve', 'run the service (the default)', from(serve, 'run'), {
    description:
      'Runs the service until SIGTERM or SIGINT; requests in flight finish first. A second signal ends it at once.\n' +
      'SIGHUP reads secrets and certificates again. On a terminal SIGHUP ends the service: closing the terminal\n' +
      'sends it. Every setting is a variable of the environment: see `pasted help`.',
    examples: [
      'pasted', 'SERVICE_PORT=9000 SERVICE_DB=/srv/paste/pasted.db pasted serve', 'NODE_ENV=production pasted',
    ],
  }),
  command('config', 'show every setting in force and where it comes from', from(print, 'printSettings'), {
    description: 'Reads the settings as `serve` would and shows them. Of a secret it says only whether it is set.',
    options: [JSON_OPTION], examples: ['pasted config', 'pasted config --json'],
  }),
  command('check', 'find out whether the service works, and will go on working', from(installed, 'check'), {
    description:
      'Looks at the settings, the files and who may open them, the database, what each owner stores, holders of\n' +
      'certificates and invitations, room on the disk, the clock, the certificate authority and its password, and\n' +
      'the certificate for TLS. One line each: `ok`, `warn` or `fail`.\n' +
      'Ends with 1 when anything fails. Changes nothing. The service may be running.\n' +
      'With --files it says instead whether its own program files are those of a release: a line for each that is\n' +
      'changed, missing or added. FILE is the list that the release has of them. Ends with 2 when it is none.',
    options: [
      { name: '--full', meaning: 'check every index against its table as well' },
      { name: '--files', value: 'FILE', meaning: 'only compare the program with this list of a release (.cdx.json)' },
      JSON_OPTION,
    ],
    examples: ['pasted check', 'pasted check --full --json', 'pasted check --files sbom.cdx.json'],
  }),
  command('backup', 'write a verified copy of the database', from(database, 'backup'), {
    description:
      'Copies the database as it is at one moment, and checks the copy before it gets its name; - is standard\n' +
      'output. The service may be running. The copy holds every paste, burn-after-read ones too, so it is as secret\n' +
      'as the database: only its owner may open it. With - the shell makes the file, so say umask 077 before.\n' +
      '`pasted restore` puts the copy back.',
    operands: [FILE], options: [{ name: '--force', meaning: 'replace FILE when there is one' }, JSON_OPTION],
    examples: ['pasted backup /srv/backup/pasted.db --force', '(umask 077; pasted backup - | gzip > pasted.db.gz)'],
  }),
  command('restore', 'put a backup in the place of the database', from(database, 'restore'), {
    description:
      'The service must not be running. The backup is checked before anything is changed, and stays as it is; - is\n' +
      'standard input. The database that was there is kept beside the new one, under a name with the time: remove\n' +
      'it when you no longer need it. What was deleted, read, burned or revoked since the backup is as it was then.',
    operands: [FILE], options: [JSON_OPTION],
    examples: ['pasted restore /srv/backup/pasted.db', 'gunzip < pasted.db.gz | pasted restore -'],
  }),
  command('prune', 'remove what has expired, and give its room back', from(database, 'prune'), {
    description:
      'Removes expired pastes, used challenges, records of duplicates, and old audit entries\n' +
      '(SERVICE_AUDIT_RETENTION). A running server does this by itself, expired pastes every hour; beside one this\n' +
      'command ends with 75.',
    options: [JSON_OPTION], examples: ['pasted prune', 'pasted prune --json'],
  }),
  command('stats', 'count what the service holds', from(database, 'stats'), {
    description:
      'Counts pastes, certificates, invitations, refused contents and audit entries, and the room that they take,\n' +
      'against SERVICE_MAX_STORAGE.\n' +
      'Names no paste and nobody. The service may be running.',
    options: [JSON_OPTION], examples: ['pasted stats', 'pasted stats --json'],
  }),
  command('audit', 'show the audit log', from(audit, 'audit'), {
    description:
      'Newest first, with the filters of GET /audit. A MOMENT is Unix seconds, a date and time in UTC such as\n' +
      '2026-01-31 or 2026-01-31T12:00:00Z, or so long ago: 90s, 30m, 12h, 7d. The service may be running.\n' +
      'With --follow oldest first, as entries are written, from now or from --after on, until it is stopped; with\n' +
      '--json each is an object on a line of its own. It goes on when the service is restarted or restored.',
    options: [
      { name: '--event', value: 'EVENT', choices: EVENTS, meaning: 'only this event' },
      { name: '--outcome', value: 'OUTCOME', choices: ['success', 'failure'], meaning: 'only what ended so' },
      { name: '--client-id', value: 'FINGERPRINT',
        meaning: 'only what the holder of this certificate caused; operator for commands about pastes' },
      { name: '--after', value: 'MOMENT', meaning: 'only what is newer' },
      { name: '--before', value: 'MOMENT', meaning: 'only what is older' },
      { name: '--limit', value: 'COUNT', meaning: 'at most so many entries, 100 by default' },
      { name: '--offset', value: 'COUNT', meaning: 'leave out so many of the newest' },
      { name: '--follow', meaning: 'print entries as they are written' },
      { name: '--json', meaning: 'print the answer of GET /audit as one JSON object' },
    ],
    examples: [
      'pasted audit', 'pasted audit --event auth_failure --after 24h', 'pasted audit --limit 1000 --json',
      'pasted audit --follow --json',
    ],
  }),
  command('paste show', 'show what a paste is, without its content', from(governing, 'show'), {
    description: 'Its owner is the whole fingerprint. It neither counts as read nor burns. The service may be running.',
    operands: [PASTE], options: [JSON_OPTION], examples: ['pasted paste show dm5nqp7xk2vhs4tjw3rzy6ubae'],
  }),
  command('paste rm', 'remove pastes, whoever they belong to', from(governing, 'remove'), {
    description:
      'Nobody gets them from the moment that this command ends; who is reading one may read to its end. Each is in\n' +
      'the audit log. The service may be running; where it is not, content of more than 64 KiB goes at its next\n' +
      'start.',
    operands: [{ name: 'ID...', isRequired: true }], options: [JSON_OPTION],
    examples: ['pasted paste rm dm5nqp7xk2vhs4tjw3rzy6ubae'],
  }),
  command('paste ban', 'refuse content from now on, and remove every paste that has it', from(governing, 'ban'), {
    description:
      'Takes the SHA-256 of the content, or the id of a paste that has it. Content that differs by one byte is\n' +
      'other content. All pastes are read to find it. The service may be running.',
    operands: [{ name: 'ID|SHA256', isRequired: true }],
    options: [{ name: '--note', value: 'TEXT', meaning: 'why, for `pasted paste bans`' }, JSON_OPTION],
    examples: [
      'pasted paste ban dm5nqp7xk2vhs4tjw3rzy6ubae --note phishing',
      'pasted paste ban 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
    ],
  }),
  command('paste unban', 'take content again', from(governing, 'unban'), {
    description: 'What was removed when it was banned does not come back.',
    operands: [{ name: 'SHA256', isRequired: true }], options: [JSON_OPTION],
    examples: ['pasted paste unban 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03'],
  }),
  command('paste bans', 'list the content that is refused', from(governing, 'listBans'), {
    description: 'By its SHA-256, the oldest first, with the note that was given.',
    options: [JSON_OPTION], examples: ['pasted paste bans', 'pasted paste bans --json'],
  }),
  command('admin create', 'issue the first certificate, which is the admin\'s, before anyone else can get it',
    from(certificates, 'create'), {
    description:
      'Writes a new file with the certificate and its key (PKCS#12), and makes the certificate authority when there\n' +
      'is none. Needs SERVICE_PKI_CA_PASSWORD. The first certificate ever issued is the admin\'s, whoever asks for\n' +
      'it: so run this before the service faces anyone, as the user that the service runs as. The service may be\n' +
      'running.',
    options: [
      OUT_OPTION,
      { name: '--name', value: 'NAME', meaning: 'common name of the certificate; admin by default' },
      ...BUNDLE_OPTIONS,
    ],
    examples: [
      'pasted admin create --out admin.p12',
      'pasted admin create --out admin.p12 --name alice --password-file password.txt',
      '(umask 077; pasted admin create --out - > admin.p12)',
    ],
  }),
  command('admin grant', 'make the holder of a certificate an admin', from(certificates, 'grant'), {
    description: 'Takes effect at once, also while the service runs. `pasted pki list` shows the serials.',
    operands: [SERIAL], options: [JSON_OPTION], examples: ['pasted admin grant 5f1d0c8e2b7a49d3a6c4e8f00b9d7213'],
  }),
  command('invite create', 'invite someone to register', from(governing, 'invite'), {
    description:
      'Prints a code for `X-Invite`, once: the database has its digest. It takes the place of proof-of-work, and\n' +
      'SERVICE_REGISTER=invite lets nobody register without one. Takes effect at once, also while the service runs.',
    options: [
      { name: '--for', value: 'TIME', meaning: 'how long it is good: 30m, 12h, 7d (the default), 365d at most' },
      { name: '--uses', value: 'COUNT', meaning: 'for how many registrations; 1 by default, 1000 at most' },
      { name: '--note', value: 'TEXT', meaning: 'what `pasted invite list` shows beside it, such as for whom it is' },
      JSON_OPTION,
    ],
    examples: ['pasted invite create --note alice', 'pasted invite create --for 24h --uses 20 --note workshop'],
  }),
  command('invite list', 'list the invitations', from(governing, 'listInvitations'), {
    description: 'In the order they were made, with id, how many uses are left, when it ends, and note. Never a code.',
    options: [JSON_OPTION], examples: ['pasted invite list', 'pasted invite list --json'],
  }),
  command('invite withdraw', 'take an invitation back', from(governing, 'withdraw'), {
    description: 'Takes effect at once. Certificates that were obtained with it stay: see `pasted pki revoke`.',
    operands: [{ name: 'ID', isRequired: true }], options: [JSON_OPTION], examples: ['pasted invite withdraw 3'],
  }),
  command('pki issue', 'issue a certificate, whoever else may register', from(certificates, 'issue'), {
    description:
      'Writes a new file with a certificate and its key (PKCS#12), for whoever you give it to: what is asked of\n' +
      'those who register is not asked here. Needs SERVICE_PKI_CA_PASSWORD, and an authority: see\n' +
      '`pasted admin create`. The service may be running.',
    options: [
      { name: '--common-name', value: 'NAME', isRequired: true, meaning: 'common name of the certificate' },
      OUT_OPTION, ...BUNDLE_OPTIONS,
    ],
    examples: [
      'pasted pki issue --common-name alice --out alice.p12',
      '(umask 077; pasted pki issue --common-name bob --password-file bob.txt --out - > bob.p12)',
    ],
  }),
  command('pki list', 'list every certificate', from(certificates, 'list'), {
    description: 'Newest first, with serial, status, whether it is an admin\'s, when it runs out, and common name.',
    options: [JSON_OPTION], examples: ['pasted pki list', 'pasted pki list --json'],
  }),
  command('pki revoke', 'revoke a certificate for ever', from(certificates, 'revoke'), {
    description:
      'The service refuses it from the next request on. A proxy that checks the revocation list needs a new one:\n' +
      'see `pasted pki crl`. Needs no password.',
    operands: [SERIAL],
    options: [{ name: '--reason', value: 'REASON', choices: REASONS, meaning: 'why; the list says so' }, JSON_OPTION],
    examples: [
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213',
      'pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213 --reason keyCompromise',
    ],
  }),
  command('pki crl', 'write the certificate revocation list', from(certificates, 'crl'), {
    description:
      'Writes the current list in PEM. It is made anew when a certificate was revoked since, or when half its life\n' +
      'is over; that needs SERVICE_PKI_CA_PASSWORD. A file is replaced as a whole, and can be read by all.',
    options: [
      { name: '--out', value: 'FILE', meaning: 'where to write it; - is standard output, the default' },
      { name: '--der', meaning: 'write DER instead of PEM' },
    ],
    examples: ['pasted pki crl', 'pasted pki crl --out /etc/nginx/pasted.crl.pem', 'pasted pki crl --der --out ca.crl'],
  }),
  command('pki ca', 'print the certificate of the authority', from(certificates, 'ca'), {
    description: 'In PEM, as a proxy needs it to verify client certificates.',
    examples: ['pasted pki ca'],
  }),
  command('pki ca renew', 'let the authority last longer', from(certificates, 'renew'), {
    description:
      'Makes a new certificate for the same name and key, valid for SERVICE_PKI_CA_DAYS from now. All certificates\n' +
      'and lists that it has signed stay good. Needs SERVICE_PKI_CA_PASSWORD. A running service uses it at once; a\n' +
      'proxy that verifies client certificates must be given it: see `pasted pki ca`.',
    options: [JSON_OPTION], examples: ['pasted pki ca renew'],
  }),
  command('pki ca passphrase', 'give the key of the authority a new password', from(certificates, 'passphrase'), {
    description:
      'SERVICE_PKI_CA_PASSWORD must still be the old one. A running service goes on with the key that it has\n' +
      'opened: put the new password in the place of the old one, and send the service SIGHUP. Backups that were\n' +
      'made before have the old one.',
    options: [
      { name: '--new-password-file', value: 'FILE', isRequired: true, meaning: 'file that holds the new password' },
      JSON_OPTION,
    ],
    examples: ['pasted pki ca passphrase --new-password-file new.txt'],
  }),
  command('tls self-signed', 'make a certificate and key for HTTPS without a public authority',
    from(certificates, 'selfSigned'), {
    description:
      'For the service\'s own listener (SERVICE_TLS_CERT and SERVICE_TLS_KEY). Clients are given the certificate,\n' +
      'and trust it alone. Never overwrites a file. Only its owner may read the key: so run this as the user that\n' +
      'the service runs as. Needs no database.',
    options: [
      { name: '--host', value: 'NAMES', isRequired: true,
        meaning: 'what clients call the server: host names, *.names and addresses, separated by commas' },
      { name: '--out-cert', value: 'FILE', meaning: 'where to write the certificate; server.crt by default' },
      { name: '--out-key', value: 'FILE', meaning: 'where to write the key; server.key by default' },
      { name: '--days', value: 'COUNT', meaning: 'how long it is valid; 365 by default, 824 at most' },
      JSON_OPTION,
    ],
    examples: [
      'pasted tls self-signed --host paste.example',
      'pasted tls self-signed --host localhost,127.0.0.1,::1 --out-cert tls.crt --out-key tls.key',
    ],
  }),
  command('health', 'ask a running service whether it is healthy', from(check, 'health'), {
    description:
      'Ends with 0 when it is healthy, and otherwise with 1 and one line that says why. Asks where the settings say\n' +
      'that it listens; with TLS it must show the certificate in SERVICE_TLS_CERT, whatever its name. Give --url\n' +
      'for a service that has its socket from systemd, or is on another host; its certificate is then verified as\n' +
      'usual.',
    options: [
      { name: '--url', value: 'URL', meaning: 'the address of the service, or unix: and the path of its socket' },
      { name: '--timeout', value: 'SECONDS', meaning: 'how long to wait for the answer; 5 by default' },
      { name: '--json', meaning: 'print the answer of GET /health as one JSON object' },
    ],
    examples: ['pasted health', 'pasted health --url https://paste.example --timeout 10'],
  }),
  command('client', 'print the command-line client', from(print, 'printClient'), {
    description:
      'The shell script pastec as GET /client hands it out, for the server at that address. Without an address, the\n' +
      'user of the script has to say which server.',
    options: [{ name: '--server', value: 'URL', meaning: 'the address that the service is reached at' }],
    examples: ['pasted client --server https://paste.example > pastec'],
  }),
  command('openapi', 'print a description of the API, for programs', from(print, 'printOpenapi'), {
    description: 'Prints an OpenAPI 3.1 document: every endpoint with its parameters, bodies and answers.',
    examples: ['pasted openapi', 'pasted openapi > openapi.json'],
  }),
  command('completion', 'print a script that completes these commands in a shell', from(print, 'printCompletion'), {
    description: 'For bash, zsh or fish; the first lines of the script say where it belongs.',
    operands: [{ name: 'SHELL', choices: ['bash', 'zsh', 'fish'], isRequired: true }],
    examples: [
      'pasted completion bash > ~/.local/share/bash-completion/completions/pasted',
      'pasted completion fish > ~/.config/fish/completions/pasted.fish',
    ],
  }),
  command('help', 'explain the commands and settings, or one command', from(print, 'help'), {
    description: 'Without a command: all commands and all settings.',
    operands: [{ name: 'COMMAND', isRequired: false }],
    examples: ['pasted help', 'pasted help config', 'pasted help admin create'],
  }),
  command('version', 'print the version', from(print, 'printVersion'), {
    description:
      'Prints the release number. As JSON also the schema of the database that this release makes, and the versions\n' +
      'of Node, SQLite and OpenSSL that it runs on.',
    options: [JSON_OPTION], examples: ['pasted version', 'pasted version --json'],
  }),
];
