// `pasted version`: of the program, and with --json of all that it stands on.

import { MIGRATIONS } from '../store/schema.ts';
import { VERSION } from '../version.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';

export const run: Run = ({ stdout, runtime }, { options }) => {
  const shown = { version: VERSION, schema_version: MIGRATIONS.length, ...runtime };
  stdout.write(options.has('--json') ? `${JSON.stringify(shown)}\n` : `pasted ${VERSION}\n`);
  return EXIT.success;
};
