// node scripts/with-node.mjs scripts/describe.ts: makes the generated files of src/operator again, after a change of
// the routes, the refusals or the commands. A test checks that the committed files are what this makes.

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describedFiles } from './describe/files.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
for (const [path, content] of describedFiles()) writeFileSync(join(root, path), content);
