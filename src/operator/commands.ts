// What `pasted` can do: help, manual page and completions are made from this table too. A command is loaded when it is
// asked for, so that none pays for the others.

import type { RevocationReason } from '../authority/certificates.ts';
import type { BundleProfile } from '../authority/pkcs12.ts';
import { AUDIT_EVENTS } from '../core/events.ts';
import type { Run } from './terminal.ts';

export type Command = Readonly<ReturnType<typeof command>>;

export interface Operand {
  /** As the help shows it; an option is given so. The last operand may be given more than once if it ends in `...`. */
  readonly name: string;
  readonly choices?: readonly string[] | undefined;
  readonly isRequired?: boolean;
}

export interface Option extends Operand {
  /** What the help calls its value; without one it is a flag. */
  readonly value?: string | undefined;
  readonly meaning: string;
}

interface Details {
  readonly options?: readonly Option[];
  /** Its name alone unless given. */
  readonly examples?: readonly string[];
  /** What the operand may be. */
  readonly choices?: readonly string[];
  /** What --json does; null where no data is printed. */
  readonly json?: string | null;
}

/** The form is the name, that of a group before it, and the operand in capitals: `paste rm ID...`, `help [COMMAND]`. */
function command(
  form: string, summary: string, load: () => Promise<Run>, description: string,
  { choices, options: own = [], json = 'print one JSON object', examples }: Details = {},
) {
  const [name = '', ...shown] = form.split(/ (?=[[A-Z])/);
  const operands: readonly Operand[] = shown.map((operand) => (
    { name: operand.replaceAll(/[[\]]/g, ''), choices, isRequired: !operand.startsWith('[') }
  ));
  const options = json === null ? own : [...own, option('--json', json)];
  return { name, summary, description, operands, options, examples: examples ?? [`pasted ${name}`], load };
}

/** The form is `--force` or `--out FILE`. */
function option(form: string, meaning: string, choices?: readonly string[]): Option {
  const [name = '', value] = form.split(' ');
  return { name, value, meaning, choices };
}

function required(form: string, meaning: string): Option {
  return { ...option(form, meaning), isRequired: true };
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

// Written out, since their own tables come with much else. A test holds them equal.
const PROFILES = ['modern', 'compat'] as const satisfies readonly BundleProfile[];
const REASONS = [
  'keyCompromise', 'affiliationChanged', 'superseded', 'cessationOfOperation', 'privilegeWithdrawn',
] as const satisfies readonly RevocationReason[];

const OUT = required('--out FILE', 'a new file for the bundle; - is standard output');
const BUNDLE_OPTIONS: readonly Option[] = [
  option('--p12-profile PROFILE', 'modern (the default), or compat for older devices', PROFILES),
  option('--password-file FILE', 'file that holds the bundle\'s password, - for standard input; none by default'),
];

export const COMMANDS: readonly Command[] = [
  command('serve', 'run the service (the default)', from(serve, 'run'),
    'Runs the service until SIGTERM or SIGINT; requests in flight finish first. A second signal ends it at once.\n' +
    'SIGHUP reads secrets and certificates again. On a terminal SIGHUP ends the service: closing the terminal\n' +
    'sends it. Every setting is a variable of the environment: see `pasted help`.',
    { json: null, examples: ['pasted', 'SERVICE_PORT=9000 SERVICE_DB=/srv/paste/pasted.db pasted serve'] }),
  command('config', 'show every setting in force and where it comes from', from(print, 'printSettings'),
    'Reads the settings as `serve` would and shows them. Of a secret it says only whether it is set.'),
  command('check', 'find out whether the service works, and will go on working', from(installed, 'check'),
    'Looks at the settings, the files and who may open them, the database, what each owner stores, holders of\n' +
    'certificates and invitations, room on the disk, the clock, the certificate authority and its password, and\n' +
    'the certificate for TLS. One line each: `ok`, `warn` or `fail`. Ends with 1 when anything fails. Changes\n' +
    'nothing. The service may be running.\n' +
    'With --files it says instead whether its own program files are those of a release: a line for each that is\n' +
    'changed, missing or added. FILE is the list that the release has of them. Ends with 2 when it is none.', {
    options: [
      option('--full', 'check every index against its table as well'),
      option('--files FILE', 'only compare the program with this list of a release (.cdx.json)'),
    ],
    examples: ['pasted check', 'pasted check --full --json', 'pasted check --files sbom.cdx.json'],
  }),
  command('backup FILE', 'write a verified copy of the database', from(database, 'backup'),
    'Copies the database as it is at one moment, and checks the copy before it gets its name; - is standard\n' +
    'output. The service may be running. The copy holds every paste, burn-after-read ones too, so it is as secret\n' +
    'as the database: only its owner may open it. With - the shell makes the file, so say umask 077 before.', {
    options: [option('--force', 'replace FILE when there is one')],
    examples: ['pasted backup /srv/backup/pasted.db --force', '(umask 077; pasted backup - | gzip > pasted.db.gz)'],
  }),
  command('restore FILE', 'put a backup in the place of the database', from(database, 'restore'),
    'The service must not be running. The backup is checked before anything is changed, and stays as it is; - is\n' +
    'standard input. The database that was there is kept beside the new one, under a name with the time: remove\n' +
    'it when you no longer need it. What was deleted, read, burned or revoked since the backup is as it was then.',
    { examples: ['pasted restore /srv/backup/pasted.db', 'gunzip < pasted.db.gz | pasted restore -'] }),
  command('prune', 'remove what has expired, and give its room back', from(database, 'prune'),
    'Removes expired pastes and certificates, the latter when nothing refers to them, used challenges, records of\n' +
    'duplicates, and audit entries (SERVICE_AUDIT_RETENTION). A running server does this by itself, expired pastes\n' +
    'every hour; beside one this command ends with 75.'),
  command('stats', 'count what the service holds', from(database, 'stats'),
    'Counts pastes, certificates, invitations, refused contents and audit entries, and the room that they take,\n' +
    'against SERVICE_MAX_STORAGE. Names no paste and nobody. The service may be running. In a cluster the files\n' +
    'are on other hosts: their sizes are -, and null with --json.'),
  command('audit', 'show the audit log', from(audit, 'audit'),
    'Newest first, with the filters of GET /audit. A MOMENT is Unix seconds, a date and time in UTC such as\n' +
    '2026-01-31 or 2026-01-31T12:00:00Z, or so long ago: 90s, 30m, 12h, 7d. The service may be running.\n' +
    'With --follow oldest first, as entries are written, from now or from --after on, until it is stopped; with\n' +
    '--json each is an object on a line of its own. It goes on when the service is restarted or restored.', {
    options: [
      option('--event EVENT', 'only this event', AUDIT_EVENTS),
      option('--outcome OUTCOME', 'only what ended so', ['success', 'failure']),
      option('--client-id FINGERPRINT',
        'only what the holder of this certificate caused; operator for commands about pastes'),
      option('--after MOMENT', 'only what is newer'),
      option('--before MOMENT', 'only what is older'),
      option('--limit COUNT', 'at most so many entries, 100 by default'),
      option('--offset COUNT', 'leave out so many of the newest'),
      option('--follow', 'print entries as they are written'),
    ],
    json: 'print the answer of GET /audit as one JSON object',
    examples: ['pasted audit', 'pasted audit --event auth_failure --after 24h', 'pasted audit --follow --json'],
  }),
  command('paste show ID', 'show what a paste is, without its content', from(governing, 'show'),
    'Its owner is the whole fingerprint. It neither counts as read nor burns. The service may be running.',
    { examples: ['pasted paste show dm5nqp7xk2vhs4tjw3rzy6ubae'] }),
  command('paste rm ID...', 'remove pastes, whoever they belong to', from(governing, 'remove'),
    'Nobody gets them once this command has ended; who is reading one may read to its end. Each is in the audit\n' +
    'log. The service may be running; where it is not, content of more than 64 KiB goes at its next start.',
    { examples: ['pasted paste rm dm5nqp7xk2vhs4tjw3rzy6ubae'] }),
  command('paste ban ID|SHA256', 'refuse content from now on, and remove every paste that has it',
    from(governing, 'ban'),
    'Takes the SHA-256 of the content, or the id of a paste that has it. Content that differs by one byte is\n' +
    'other content. All pastes are read to find it. The service may be running.', {
    options: [option('--note TEXT', 'why, for `pasted paste bans`')],
    examples: ['pasted paste ban dm5nqp7xk2vhs4tjw3rzy6ubae --note phishing'],
  }),
  command('paste unban SHA256', 'take content again', from(governing, 'unban'),
    'What was removed when it was banned does not come back.',
    { examples: ['pasted paste unban 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03'] }),
  command('paste bans', 'list the content that is refused', from(governing, 'listBans'),
    'By its SHA-256, the oldest first, with the note that was given.'),
  command('admin create', 'issue the first certificate, which is the admin\'s, before anyone else can get it',
    from(certificates, 'create'),
    'Writes a new file with the certificate and its key (PKCS#12), and makes the certificate authority when there\n' +
    'is none. Needs SERVICE_PKI_CA_PASSWORD. The first certificate ever issued is the admin\'s, whoever asks for\n' +
    'it: so run this before the service faces anyone, as the user that it runs as. The service may be running.', {
    options: [OUT, option('--name NAME', 'common name of the certificate; admin by default'), ...BUNDLE_OPTIONS],
    examples: ['pasted admin create --out admin.p12', '(umask 077; pasted admin create --out - > admin.p12)'],
  }),
  command('admin grant SERIAL', 'make the holder of a certificate an admin', from(certificates, 'grant'),
    'Takes effect at once, also while the service runs. `pasted pki list` shows the serials.',
    { examples: ['pasted admin grant 5f1d0c8e2b7a49d3a6c4e8f00b9d7213'] }),
  command('invite create', 'invite someone to register', from(governing, 'invite'),
    'Prints a code for `X-Invite`, once: the database has its digest. It takes the place of proof-of-work, and\n' +
    'SERVICE_REGISTER=invite lets nobody register without one. Takes effect at once, also while the service runs.', {
    options: [
      option('--for TIME', 'how long it is good: 30m, 12h, 7d (the default), 365d at most'),
      option('--uses COUNT', 'for how many registrations; 1 by default, 1000 at most'),
      option('--note TEXT', 'what `pasted invite list` shows beside it, such as for whom it is'),
    ],
    examples: ['pasted invite create --note alice', 'pasted invite create --for 24h --uses 20 --note workshop'],
  }),
  command('invite list', 'list the invitations', from(governing, 'listInvitations'),
    'In the order they were made, with id, how many uses are left, when it ends, and note. Never a code.'),
  command('invite withdraw ID', 'take an invitation back', from(governing, 'withdraw'),
    'Takes effect at once. Certificates that were obtained with it stay: see `pasted pki revoke`.',
    { examples: ['pasted invite withdraw 3'] }),
  command('pki issue', 'issue a certificate, whoever else may register', from(certificates, 'issue'),
    'Writes a new file with a certificate and its key (PKCS#12), for whoever you give it to. Needs\n' +
    'SERVICE_PKI_CA_PASSWORD, and an authority: see `pasted admin create`. The service may be running.', {
    options: [required('--common-name NAME', 'common name of the certificate'), OUT, ...BUNDLE_OPTIONS],
    examples: ['pasted pki issue --common-name alice --out alice.p12 --password-file alice.txt'],
  }),
  command('pki list', 'list every certificate', from(certificates, 'list'),
    'Newest first, with serial, status, whether it is an admin\'s, when it runs out, and common name.'),
  command('pki revoke SERIAL', 'revoke a certificate for ever', from(certificates, 'revoke'),
    'The service refuses it from the next request on. A proxy that checks the revocation list needs a new one:\n' +
    'see `pasted pki crl`. Needs no password.', {
    options: [option('--reason REASON', 'why; the list says so', REASONS)],
    examples: ['pasted pki revoke 5f1d0c8e2b7a49d3a6c4e8f00b9d7213 --reason keyCompromise'],
  }),
  command('pki crl', 'write the certificate revocation list', from(certificates, 'crl'),
    'Writes the current list in PEM. It is made anew when a certificate was revoked since, or when half its life\n' +
    'is over; that needs SERVICE_PKI_CA_PASSWORD. A file is replaced as a whole, and can be read by all.', {
    options: [
      option('--out FILE', 'where to write it; - is standard output, the default'),
      option('--der', 'write DER instead of PEM'),
    ],
    json: null,
    examples: ['pasted pki crl', 'pasted pki crl --out /etc/nginx/pasted.crl.pem', 'pasted pki crl --der --out ca.crl'],
  }),
  command('pki ca', 'print the certificate of the authority', from(certificates, 'ca'),
    'In PEM, as a proxy needs it to verify client certificates.', { json: null }),
  command('pki ca renew', 'let the authority last longer', from(certificates, 'renew'),
    'Makes a new certificate for the same name and key, valid for SERVICE_PKI_CA_DAYS from now. All certificates\n' +
    'and lists that it has signed stay good. Needs SERVICE_PKI_CA_PASSWORD. A running service uses it at once; a\n' +
    'proxy that verifies client certificates must be given it: see `pasted pki ca`.'),
  command('pki ca passphrase', 'give the key of the authority a new password', from(certificates, 'passphrase'),
    'SERVICE_PKI_CA_PASSWORD must still be the old one, which backups from before keep. A running service goes on\n' +
    'with the key that it has opened: put the new password in the place of the old one, and send it SIGHUP.', {
    options: [required('--new-password-file FILE', 'file that holds the new password; - is standard input')],
    examples: ['pasted pki ca passphrase --new-password-file new.txt'],
  }),
  command('tls self-signed', 'make a certificate and key for HTTPS without a public authority',
    from(certificates, 'selfSigned'),
    'For the service\'s own listener (SERVICE_TLS_CERT and SERVICE_TLS_KEY). Clients are given the certificate,\n' +
    'and trust it alone. Never overwrites a file. Only its owner may read the key: so run this as the user that\n' +
    'the service runs as. Needs no database.', {
    options: [
      required('--host NAMES', 'what clients call the server: host names, *.names and addresses, separated by commas'),
      option('--out-cert FILE', 'where to write the certificate; server.crt by default'),
      option('--out-key FILE', 'where to write the key; server.key by default'),
      option('--days COUNT', 'how long it is valid; 365 by default, 824 at most'),
    ],
    examples: ['pasted tls self-signed --host paste.example', 'pasted tls self-signed --host localhost,127.0.0.1,::1'],
  }),
  command('health', 'ask a running service whether it is healthy', from(check, 'health'),
    'Ends with 0 when it is healthy, and otherwise with 1 and one line that says why. Asks where the settings say\n' +
    'that it listens; with TLS it must show the certificate in SERVICE_TLS_CERT, whatever its name. Give --url for\n' +
    'a service that has its socket from systemd, or is on another host, whose certificate is verified as usual.', {
    options: [
      option('--url URL', 'the address of the service, or unix: and the path of its socket'),
      option('--timeout SECONDS', 'how long to wait for the answer; 5 by default'),
    ],
    json: 'print the answer of GET /health as one JSON object',
    examples: ['pasted health', 'pasted health --url https://paste.example --timeout 10'],
  }),
  command('client', 'print the command-line client', from(print, 'printClient'),
    'The shell script pastec as GET /client hands it out, for the server at that address. Without an address, the\n' +
    'user of the script has to say which server.', {
    options: [option('--server URL', 'the address that the service is reached at')],
    json: null, examples: ['pasted client --server https://paste.example > pastec'],
  }),
  command('openapi', 'print a description of the API, for programs', from(print, 'printOpenapi'),
    'Prints an OpenAPI 3.1 document: every endpoint with its parameters, bodies and answers.', { json: null }),
  command('completion SHELL', 'print a script that completes these commands in a shell', from(print, 'printCompletion'),
    'For bash, zsh or fish; the first lines of the script say where it belongs.', {
    choices: ['bash', 'zsh', 'fish'], json: null,
    examples: ['pasted completion bash > ~/.local/share/bash-completion/completions/pasted'],
  }),
  command('help [COMMAND]', 'explain the commands and settings, or one command', from(print, 'help'),
    'Without a command: all commands and all settings.',
    { json: null, examples: ['pasted help', 'pasted help config', 'pasted help admin create'] }),
  command('version', 'print the version', from(print, 'printVersion'),
    'Prints the release number. As JSON also the schema of the database that this release makes, and the versions\n' +
    'of Node, SQLite and OpenSSL that it runs on.'),
];
