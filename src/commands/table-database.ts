// The part of the table of commands that is about the database as a whole: whether it is well, and copies of it.

import type { Command } from './commands.ts';

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
    load: async () => (await import('./check.ts')).run,
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
    load: async () => (await import('./backup.ts')).run,
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
    load: async () => (await import('./restore.ts')).run,
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
    load: async () => (await import('./prune.ts')).run,
  },
];
