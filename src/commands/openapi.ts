// `pasted openapi`: the description of the API, for programs. What it says is http/openapi.ts.

import { describeApi } from '../http/openapi.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';

export const run: Run = ({ stdout }) => {
  stdout.write(`${JSON.stringify(describeApi(), null, 2)}\n`);
  return EXIT.success;
};
