// The files of src/operator that are made from tables: what `pasted openapi` and `pasted completion` print. They are
// committed, so that the service needs only the texts. node scripts/with-node.mjs scripts/describe.ts writes them.

import { completionScripts } from './completion.ts';
import { describeApi } from './openapi.ts';

/** Path from the top of the repository -> content. */
export function describedFiles(): ReadonlyMap<string, string> {
  const scripts = Object.entries(completionScripts());
  return new Map([
    ['src/operator/openapi.json', `${inLines(describeApi(), 3)}\n`],
    ...scripts.map(([shell, script]) => [`src/operator/completion.${shell}`, script] as const),
  ]);
}

/** JSON with a line for each member of the outermost `depth` levels, so that a diff shows only members that changed. */
function inLines(value: unknown, depth: number, indent = ''): string {
  if (depth === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value);
  const inner = `${indent} `;
  const members = Object.entries(value)
    .map(([name, member]) => `${inner}${JSON.stringify(name)}: ${inLines(member, depth - 1, inner)}`);
  return `{\n${members.join(',\n')}\n${indent}}`;
}
