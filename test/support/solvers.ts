// pastec's ways to do a proof-of-work, by the names that PASTEC_SOLVER takes.

import type { TestContext } from 'node:test';
import { isInstalled } from './programs.ts';

export const SOLVERS = ['python3', 'perl', 'perl-base', 'node', 'php', 'ruby', 'cc', 'batches'];

/** Whether the program that it takes is on PATH. If not, the test is skipped and must return. */
export function solverIsInstalled(t: TestContext, solver: string): boolean {
  return isInstalled(t, solver === 'batches' ? 'sha256sum' : solver.replace('-base', ''));
}
