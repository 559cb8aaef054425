// Runs `pasted check` on a database, and gives what it found by its name.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Environment } from '../../src/config/load.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import type { Finding } from '../../src/operator/installed.ts';
import { fakeTerminal } from './fake-terminal.ts';
import { CA_PASSWORD } from './operator.ts';

export interface Checked {
  readonly code: number;
  /** `level text`, by name; several of a name are joined. */
  readonly found: ReadonlyMap<string, string>;
}

export async function check(
  t: TestContext,
  { databasePath, laterSeconds = 0, environment = {}, words = [] }: {
    databasePath: string; laterSeconds?: number; environment?: Environment; words?: readonly string[];
  },
): Promise<Checked> {
  const settings = { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD, ...environment };
  const fake = fakeTerminal(['check', '--json', ...words], { environment: settings });
  const now = fake.terminal.clock.unixMs() + laterSeconds * 1000;
  const clock = { ...fake.terminal.clock, unixMs: () => now };
  const code = await runCommandLine({ ...fake.terminal, clock });
  assert.ok(!fake.stdout().includes(CA_PASSWORD));
  const { ok, checks } = JSON.parse(fake.stdout()) as { ok: boolean; checks: Finding[] };
  assert.equal(ok, code === 0, t.name);
  const found = new Map<string, string>();
  for (const { name, level, text } of checks) found.set(name, `${found.get(name) ?? ''}${level} ${text}`);
  return { code, found };
}

export const levelOf = ({ found }: Checked, name: string): string | undefined => found.get(name)?.split(' ')[0];
