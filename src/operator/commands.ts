// What `pasted` can do: command lines are read by this table, and completions and the manual page are made from it.
// What each does is said in help.txt. A command is loaded when it is asked for, so that none pays for the others.

import type { RevocationReason } from '../authority/certificates.ts';
import type { BundleProfile } from '../authority/pkcs12.ts';
import { AUDIT_EVENTS } from '../core/events.ts';
import type { Run } from './terminal.ts';

export type Command = ReturnType<typeof command>;

/** An operand, the last of which may be given more than once if it ends in `...`; or an option. */
export interface Part {
  /** As it is asked for, such as `--out FILE`. */
  readonly form: string;
  readonly name: string;
  /** What an option calls its value; without one it is a flag. */
  readonly value?: string | undefined;
  readonly choices?: readonly string[] | undefined;
  readonly isRequired: boolean;
}

// Two are written out, since their own tables come with much else. A test holds them equal.
const PROFILES = ['modern', 'compat'] as const satisfies readonly BundleProfile[];
const REASONS = [
  'keyCompromise', 'affiliationChanged', 'superseded', 'cessationOfOperation', 'privilegeWithdrawn',
] as const satisfies readonly RevocationReason[];

/** By the name of the value or operand that may be one of these alone. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  EVENT: AUDIT_EVENTS, OUTCOME: ['success', 'failure'], PROFILE: PROFILES, REASON: REASONS,
  SHELL: ['bash', 'zsh', 'fish'],
};

const PARTS = / (\[?)((--[a-z0-9-]+)?(?: ?([A-Z][A-Z0-9|.]*))?)\]?/g;

/** As the help shows it: the name, operands, options; in brackets what may be left out. */
function command(form: string, load: () => Promise<Run>) {
  const [name = ''] = /^[a-z]+(?: [a-z][a-z-]*)*/.exec(form) ?? [];
  const parts = Array.from(form.slice(name.length).matchAll(PARTS), ([, bracket, shown = '', option, value]): Part => ({
    form: shown, name: option ?? shown, value, choices: CHOICES[value ?? ''], isRequired: bracket === '',
  }));
  const isOption = (part: Part): boolean => part.name.startsWith('--');
  return { name, operands: parts.filter((part) => !isOption(part)), options: parts.filter(isOption), load };
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

const BUNDLE_OPTIONS = '[--p12-profile PROFILE] [--password-file FILE] [--json]';

export const COMMANDS: readonly Command[] = [
  command('serve', from(serve, 'run')),
  command('config [--json]', from(print, 'printSettings')),
  command('check [--full] [--files FILE] [--json]', from(installed, 'check')),
  command('backup FILE [--force] [--json]', from(database, 'backup')),
  command('restore FILE [--json]', from(database, 'restore')),
  command('prune [--json]', from(database, 'prune')),
  command('stats [--json]', from(database, 'stats')),
  command('audit [--event EVENT] [--outcome OUTCOME] [--client-id FINGERPRINT] [--after MOMENT] [--before MOMENT] ' +
    '[--limit COUNT] [--offset COUNT] [--follow] [--json]', from(audit, 'audit')),
  command('paste show ID [--json]', from(governing, 'show')),
  command('paste rm ID... [--json]', from(governing, 'remove')),
  command('paste ban ID|SHA256 [--note TEXT] [--json]', from(governing, 'ban')),
  command('paste unban SHA256 [--json]', from(governing, 'unban')),
  command('paste bans [--json]', from(governing, 'listBans')),
  command(`admin create --out FILE [--name NAME] ${BUNDLE_OPTIONS}`, from(certificates, 'create')),
  command('admin grant SERIAL [--json]', from(certificates, 'grant')),
  command('invite create [--for TIME] [--uses COUNT] [--note TEXT] [--json]', from(governing, 'invite')),
  command('invite list [--json]', from(governing, 'listInvitations')),
  command('invite withdraw ID [--json]', from(governing, 'withdraw')),
  command(`pki issue --common-name NAME --out FILE ${BUNDLE_OPTIONS}`, from(certificates, 'issue')),
  command('pki list [--json]', from(certificates, 'list')),
  command('pki revoke SERIAL [--reason REASON] [--json]', from(certificates, 'revoke')),
  command('pki crl [--out FILE] [--der]', from(certificates, 'crl')),
  command('pki ca', from(certificates, 'ca')),
  command('pki ca renew [--json]', from(certificates, 'renew')),
  command('pki ca passphrase --new-password-file FILE [--json]', from(certificates, 'passphrase')),
  command('tls self-signed --host NAMES [--out-cert FILE] [--out-key FILE] [--days COUNT] [--json]',
    from(certificates, 'selfSigned')),
  command('health [--url URL] [--timeout SECONDS] [--json]', from(check, 'health')),
  command('client [--server URL]', from(print, 'printClient')),
  command('openapi', from(print, 'printOpenapi')),
  command('completion SHELL', from(print, 'printCompletion')),
  command('help [COMMAND]', from(print, 'help')),
  command('version [--json]', from(print, 'printVersion')),
];
