// `pasted version`.

import { VERSION } from '../version.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';

export const run: Run = ({ stdout }) => {
  stdout.write(`pasted ${VERSION}\n`);
  return EXIT.success;
};
