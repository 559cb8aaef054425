// The part of the table of commands that is about certificates: who the admins are, what the authority issued, and the
// server's own.

import type { RevocationReason } from '../crypto/extensions.ts';
import type { BundleProfile } from '../crypto/pkcs12.ts';
import type { Command, Operand } from './commands.ts';

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
    load: async () => (await import('./admin.ts')).create,
  },
  {
    name: 'admin grant',
    summary: 'make the holder of a certificate an admin',
    description: 'Takes effect at once, also while the service runs. `pasted pki list` shows the serials.',
    operands: [SERIAL],
    options: [{ name: '--json', meaning: 'print one JSON object' }],
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
    options: [
      { name: '--reason', value: 'REASON', choices: REASONS, meaning: 'why; the list then says so' },
      { name: '--json', meaning: 'print one JSON object' },
    ],
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
    load: async () => (await import('./tls.ts')).selfSigned,
  },
];
