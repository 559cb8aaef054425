// The README's tables of endpoints, errors and benchmarks say what the source says. The settings' table is held by
// settings.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REFUSALS } from '../../src/core/refusals.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { ROOT } from '../support/source.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The rows under a heading, without the table's own two first lines. */
function tableUnder(heading: string): string[] {
  const section = README.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return section.split('\n').filter((line) => line.startsWith('|')).slice(2);
}

test('README: every endpoint is listed, in the order of the table of routes', () => {
  const expected = ROUTES.map((route) => `| \`${route.method} ${route.path}\` | ${route.summary} |`);
  assert.deepEqual(tableUnder('Endpoints'), expected);
});

test('README: every refusal is listed with its status, in the order of the table of refusals', () => {
  const expected = Object.values(REFUSALS).map(({ status, error }) => `| ${status} | ${error} |`);
  assert.deepEqual(tableUnder('Errors'), expected);
});

interface Operation {
  readonly name: string;
  readonly title: string;
  readonly floor: string;
  readonly unit: string;
  readonly bar: object;
}

test('README: every operation of the benchmark is listed with its floor and its bar, in their order', async () => {
  const scripts: string = join(ROOT, 'scripts', 'bench');
  const { OPERATIONS }: { OPERATIONS: readonly Operation[] } = await import(join(scripts, 'operations.mjs'));
  const { barText }: { barText: (bar: object, unit: string) => string } = await import(join(scripts, 'bars.mjs'));
  const expected = OPERATIONS.map(({ name, title, floor, unit, bar }) => (
    `| \`${name}\` | ${title} | ${floor} | ${barText(bar, unit)} |`
  ));
  assert.deepEqual(tableUnder('Measuring'), expected);
});
