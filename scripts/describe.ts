// node scripts/with-node.mjs scripts/describe.ts: makes the files of src/operator that are made from tables anew, after
// a change of the routes, the refusals or the commands. A test holds that the committed ones are these.

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describedFiles } from './describe/files.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
for (const [path, content] of describedFiles()) writeFileSync(join(root, path), content);
