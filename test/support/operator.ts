// The commands of the operator in this process, on a database in a temporary folder that is removed with the test.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Environment } from '../../src/config/load.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import type { Input } from '../../src/operator/terminal.ts';
import { type FakeParts, fakeTerminal } from './fake-terminal.ts';

export const CA_PASSWORD = 'canary-of-the-authority';

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Desk {
  readonly folder: string;
  readonly databasePath: string;
  /** Runs `pasted` with these words; `changes` come on top of the database's path and the password. */
  pasted(words: readonly string[], changes?: Environment, stdin?: Input): Promise<Finished>;
  /** `pasted admin create` into a new file of the folder; fails the test when that fails. */
  createAdmin(): Promise<{ readonly serial: string; readonly fingerprint_sha1: string; readonly file: string }>;
}

/** Runs `pasted` with these words, as a process would that has this environment. */
export async function runHere(
  words: readonly string[],
  environment: Environment,
  parts: Pick<FakeParts, 'clock' | 'stdin'> = {},
): Promise<Finished> {
  const fake = fakeTerminal(words, { environment, readFile: (path) => readFileSync(path, 'utf8'), ...parts });
  const code = await runCommandLine(fake.terminal);
  return { code, stdout: fake.stdout(), stderr: fake.stderr() };
}

export function openDesk(t: TestContext): Desk {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-desk-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const databasePath = join(folder, 'pasted.db');

  function pasted(words: readonly string[], changes: Environment = {}, stdin?: Input): Promise<Finished> {
    const environment = { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD, ...changes };
    return runHere(words, environment, stdin === undefined ? {} : { stdin });
  }

  return {
    folder,
    databasePath,
    pasted,
    async createAdmin() {
      const { code, stdout, stderr } = await pasted(['admin', 'create', '--out', join(folder, 'admin.p12'), '--json']);
      if (code !== 0) throw new Error(`admin create ended with ${code}: ${stderr}`);
      return JSON.parse(stdout) as Awaited<ReturnType<Desk['createAdmin']>>;
    },
  };
}
