// README.md by its sections, and the command lines of its shell blocks for tests that run them as printed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandLines } from './command-lines.ts';
import { ROOT } from './source.ts';

export const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** Looks at what a line has written to standard output. */
export type Check = (output: string) => void | Promise<void>;

/** Heading -> text below it. */
export function sections(text = README): ReadonlyMap<string, string> {
  return new Map(text.split(/^## /m).slice(1).map((part) => {
    const end = part.indexOf('\n');
    return [part.slice(0, end), part.slice(end + 1)] as const;
  }));
}

/** The lines of each shell block of a section, with something else in place of some of their text. */
export function blocksUnder(
  heading: string, replacements: Readonly<Record<string, string>> = {}, page = README,
): string[][] {
  const section = sections(page).get(heading) ?? assert.fail(`no section ${heading}`);
  let text = [...section.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block).join('\0');
  for (const [part, replacement] of Object.entries(replacements)) {
    assert.ok(text.includes(part), part);
    text = text.replaceAll(part, replacement);
  }
  return text.split('\0').map((block) => block.trimEnd().split('\n'));
}

/** The rows of a section's table, each by its cells, without the head. */
export function tableUnder(text: string, heading: string): string[][] {
  const lines = (sections(text).get(heading) ?? '').split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) => line.slice(2, -2).split(' | '));
}

/** Runs the lines in one shell, after others, and checks what each of them has written. */
export async function runAll(
  shell: CommandLines,
  lines: readonly string[],
  checks: readonly Check[],
  ...before: string[]
): Promise<void> {
  assert.equal(lines.length, checks.length, lines.join('\n'));
  const separated = lines.flatMap((line) => [line, "printf '\\036'"]);
  const output = await shell.run([...before, 'set -e', ...separated].join('\n'));
  for (const [index, written] of output.split('\x1e').slice(0, -1).entries()) await checks[index]!(written);
}
