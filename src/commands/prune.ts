// `pasted prune`: the server's own upkeep, all of it and at once, where no server runs. What is removed and after how
// long is service/upkeep.ts.

import type { Config } from '../config/settings.ts';
import type { Log } from '../core/log.ts';
import { storeTasks } from '../service/upkeep.ts';
import { fileBytes, requireDatabase } from '../store/file.ts';
import { openStore } from '../store/open.ts';
import { DatabaseInUseError, type Store } from '../store/store.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT } from './failures.ts';
import { showBytes } from './quantities.ts';
import { operatorSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';

/** How many were removed. */
interface Pruned {
  pastes: number;
  submissions: number;
  challenges: number;
  auditEntries: number;
  certificates: number;
}

/** In bytes, of the database and its log together. */
interface Sizes {
  readonly before: number;
  readonly after: number;
}

export const run: Run = async (terminal, { options }) => {
  const config = operatorSettings(terminal);
  const { databasePath: path } = config;
  requireDatabase(path);
  const sizeOf = (): number => fileBytes(path) + fileBytes(`${path}-wal`);
  const before = sizeOf();
  const pruned = await pruneAll(terminal, config);
  const sizes = { before, after: sizeOf() };
  terminal.stdout.write(options.has('--json') ? jsonOf(pruned, sizes) : textOf(pruned, sizes));
  return EXIT.success;
};

async function pruneAll({ clock }: Terminal, config: Config): Promise<Pruned> {
  const failures: string[] = [];
  const log: Log = ({ outcome, event, details }) => {
    if (outcome === 'failure') failures.push(String(details?.['reason'] ?? event));
  };
  const store = await open(config, clock, log);
  const pruned: Pruned = { pastes: 0, submissions: 0, challenges: 0, auditEntries: 0, certificates: 0 };
  try {
    for (const { step } of storeTasks({ config, store: counting(store, pruned), clock, count: () => {} })) {
      while (await step());
    }
  } finally {
    await store.close();
  }
  if (failures.length > 0) throw new CommandError(`not everything was removed: ${failures.join('; ')}`);
  return pruned;
}

/** A running server knows who reads what at this moment; nobody else may remove content. */
async function open({ databasePath: path }: Config, clock: Terminal['clock'], log: Log): Promise<Store> {
  try {
    return await openStore({ path, clock, log });
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error;
    const message = `${error.message}: a running server prunes by itself, expired pastes every hour`;
    throw new DatabaseInUseError(message, error.lockPath);
  }
}

function counting(store: Store, pruned: Pruned): Store {
  type Remove = (untilSeconds: number, limit: number) => Promise<number>;
  const counted = (kind: keyof Pruned, remove: Remove): Remove => async (untilSeconds, limit) => {
    const count = await remove(untilSeconds, limit);
    pruned[kind] += count;
    return count;
  };
  const { pastes, certificates, submissions, challenges, audit } = store;
  return {
    ...store,
    pastes: { ...pastes, removeExpired: counted('pastes', pastes.removeExpired) },
    certificates: {
      ...certificates,
      removeExpired: async (...step) => {
        const removal = await certificates.removeExpired(...step);
        pruned.certificates += removal.removed;
        return removal;
      },
    },
    submissions: { ...submissions, removeUntil: counted('submissions', submissions.removeUntil) },
    challenges: { ...challenges, removeExpired: counted('challenges', challenges.removeExpired) },
    audit: { ...audit, removeUntil: counted('auditEntries', audit.removeUntil) },
  };
}

function textOf(pruned: Pruned, { before, after }: Sizes): string {
  const { pastes, submissions, challenges, auditEntries, certificates } = pruned;
  return [
    `Removed ${pastes} expired pastes, ${submissions} duplicate records, ${challenges} used challenges, ` +
      `${auditEntries} audit entries and ${certificates} expired certificates.`,
    `The database takes ${showBytes(after)} now, ${showBytes(Math.max(0, before - after))} less than before.`,
    '',
  ].join('\n');
}

function jsonOf(pruned: Pruned, { before, after }: Sizes): string {
  const { pastes, submissions, challenges, auditEntries, certificates } = pruned;
  const shown = {
    expired_pastes: pastes,
    duplicate_records: submissions,
    used_challenges: challenges,
    audit_entries: auditEntries,
    expired_certificates: certificates,
    bytes_before: before,
    bytes_after: after,
  };
  return `${JSON.stringify(shown)}\n`;
}
