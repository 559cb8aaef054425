// What `pasted` can do: command lines are read by this table, and completions and the manual page are made from it.
// What each does is said in help.txt. A command is loaded when it is asked for, so that none pays for the others.

import type { RevocationReason } from '../authority/certificates.ts';
import type { BundleProfile } from '../authority/pkcs12.ts';
import { AUDIT_EVENTS } from '../core/events.ts';
import type { Run } from './terminal.ts';

export type Command = ReturnType<typeof command>;

/** An operand or an option. The last operand may be given more than once if its name ends in `...`. */
export interface Part {
  /** As messages ask for it, such as `--out FILE`. */
  readonly form: string;
  readonly name: string;
  /** What an option calls its value; without one it is a flag. */
  readonly value?: string | undefined;
  readonly choices?: readonly string[] | undefined;
  readonly isRequired: boolean;
}

// These two are written out, since importing their own tables loads much else. A test holds them equal.
const PROFILES = ['modern', 'compat'] as const satisfies readonly BundleProfile[];
const REASONS = [
  'keyCompromise', 'affiliationChanged', 'superseded', 'cessationOfOperation', 'privilegeWithdrawn',
] as const satisfies readonly RevocationReason[];

/** The only words that may be given, by the name of an option's value or of an operand. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  EVENT: AUDIT_EVENTS, OUTCOME: ['success', 'failure'], PROFILE: PROFILES, REASON: REASONS,
  SHELL: ['bash', 'zsh', 'fish'],
};

const PARTS = / (\[?)((--[a-z0-9-]+)?(?: ?([A-Z][A-Z0-9|.]*))?)\]?/g;

/** `form` is as the help shows it: the name, operands, options; what may be left out is in brackets. */
function command<Name extends string>(
  form: string, file: () => Promise<Readonly<Record<NoInfer<Name>, Run>>>, run: Name,
) {
  const [name = ''] = /^[a-z]+(?: [a-z][a-z-]*)*/.exec(form) ?? [];
  const parts = Array.from(form.slice(name.length).matchAll(PARTS), ([, bracket, shown = '', option, value]): Part => ({
    form: shown, name: option ?? shown, value, choices: CHOICES[value ?? ''], isRequired: bracket === '',
  }));
  const isOption = (part: Part): boolean => part.name.startsWith('--');
  const load = async (): Promise<Run> => (await file())[run];
  return { name, operands: parts.filter((part) => !isOption(part)), options: parts.filter(isOption), load };
}

const certificates = () => import('./certificates.ts');
const database = () => import('./database.ts');
const governing = () => import('./governing.ts');
const print = () => import('./print.ts');

const BUNDLE_OPTIONS = '[--p12-profile PROFILE] [--password-file FILE] [--json]';

export const COMMANDS: readonly Command[] = [
  command('serve', () => import('../serve.ts'), 'run'),
  command('config [--json]', print, 'printSettings'),
  command('check [--full] [--files FILE] [--json]', () => import('./installed.ts'), 'check'),
  command('backup FILE [--force] [--json]', database, 'backup'),
  command('restore FILE [--json]', database, 'restore'),
  command('prune [--json]', database, 'prune'),
  command('stats [--json]', database, 'stats'),
  command('audit [--event EVENT] [--outcome OUTCOME] [--client-id FINGERPRINT] [--after MOMENT] [--before MOMENT] ' +
    '[--limit COUNT] [--offset COUNT] [--follow] [--json]', () => import('./audit.ts'), 'audit'),
  command('paste show ID [--json]', governing, 'show'),
  command('paste rm ID... [--json]', governing, 'remove'),
  command('paste ban ID|SHA256 [--note TEXT] [--json]', governing, 'ban'),
  command('paste unban SHA256 [--json]', governing, 'unban'),
  command('paste bans [--json]', governing, 'listBans'),
  command(`admin create --out FILE [--name NAME] ${BUNDLE_OPTIONS}`, certificates, 'create'),
  command('admin grant SERIAL [--json]', certificates, 'grant'),
  command('invite create [--for TIME] [--uses COUNT] [--note TEXT] [--json]', governing, 'invite'),
  command('invite list [--json]', governing, 'listInvitations'),
  command('invite withdraw ID [--json]', governing, 'withdraw'),
  command(`pki issue --common-name NAME --out FILE ${BUNDLE_OPTIONS}`, certificates, 'issue'),
  command('pki list [--json]', certificates, 'list'),
  command('pki revoke SERIAL [--reason REASON] [--json]', certificates, 'revoke'),
  command('pki crl [--out FILE] [--der]', certificates, 'crl'),
  command('pki ca', certificates, 'ca'),
  command('pki ca renew [--json]', certificates, 'renew'),
  command('pki ca passphrase --new-password-file FILE [--json]', certificates, 'passphrase'),
  command('tls self-signed --host NAMES [--out-cert FILE] [--out-key FILE] [--days COUNT] [--json]',
    certificates, 'selfSigned'),
  command('health [--url URL] [--timeout SECONDS] [--json]', () => import('./check.ts'), 'health'),
  command('client [--server URL]', print, 'printClient'),
  command('openapi', print, 'printOpenapi'),
  command('completion SHELL', print, 'printCompletion'),
  command('help [COMMAND]', print, 'help'),
  command('version [--json]', print, 'printVersion'),
];
