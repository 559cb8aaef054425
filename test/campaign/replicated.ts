// A service with a replica by Litestream, as scripts/deploy/litestream has them, for one unit of a row. Its host can be
// lost, and the folder of the replica can be out of reach, like a folder on another host.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deployLitestream } from '../support/litestream.ts';
import { inspect, type Inspection } from './inspect.ts';
import type { Unit } from './row.ts';
import { WITHOUT_LIMITS, type Service } from './service.ts';

export interface Replicated {
  /** The host that serves, or served last; its `pid` is that of Litestream. */
  host(): Service;
  /** Starts both, as systemd would, with the files that the host has. */
  start(): Promise<Service>;
  /** From now on, whatever is done in the folder of the replica fails at once. */
  cutOff(): void;
  reach(): void;
  /** The number of the newest copy of a change, beside the database or in the replica. */
  newestCopy(where: 'beside' | 'replica'): number;
  /** Restores elsewhere what the replica has, and inspects it. Throws when `pasted check --full` finds a fault. */
  restore(): Inspection;
  /** Removes all that the host has; a new one starts with what was restored, and with a replica of its own. */
  takeOver(): Promise<Service>;
}

/** Changes of litestream.yml by which an hour of its work takes seconds; what is lost with a host stays the same. */
const HURRIED: readonly (readonly [string, string])[] = [
  ['interval: 30s', 'interval: 1s'], ['interval: 5m', 'interval: 3s'],
  ['l0-retention: 1m', 'l0-retention: 2s\nl0-retention-check-interval: 1s'],
  ['interval: 1h', 'interval: 5s'], ['retention: 1h', 'retention: 5s'],
];

export async function startReplicated(unit: Unit, { isHurried }: { isHurried: boolean }): Promise<Replicated> {
  const { folder, main } = unit;
  const changes = isHurried ? HURRIED : [];
  const change = (settings: string): string => changes.reduce((text, [from, to]) => text.replace(from, to), settings);
  const { databasePath, replica, ...deployment } = deployLitestream(folder, { main, change });
  const environment = { ...deployment.environment, SERVICE_DB: databasePath };
  const restoredPath = join(folder, 'pasted-replica.db');
  const [place, nowhere] = [join(folder, 'place'), join(folder, 'nowhere')];
  let replicaName = 'pasted';
  let takenOver = 0;
  renameSync(replica, place);
  writeFileSync(nowhere, '');
  pointTo(place);

  /** In one step, so that Litestream makes no folder of its own in between. */
  function pointTo(target: string): void {
    symlinkSync(target, `${replica}.new`);
    renameSync(`${replica}.new`, replica);
  }

  function command(words: readonly string[], database: string): void {
    const env = { ...WITHOUT_LIMITS, SERVICE_DB: database };
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...words], { cwd: folder, env });
    if (status !== 0) throw new Error(`pasted ${words.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  }

  const start = async (): Promise<Service> => {
    deployment.prepare();
    host = await unit.start({ folder, environment, parent: deployment.replicate });
    return host;
  };
  // The first start is without Litestream, as replica.conf wants it.
  let host = await unit.start({ folder, environment });
  await host.stop();
  return {
    host: () => host,
    start,
    cutOff: () => pointTo(nowhere),
    reach: () => pointTo(place),
    newestCopy: (where) => newestIn(where === 'beside'
      ? join(dirname(databasePath), '.pasted.db-litestream') : join(place, replicaName)),
    restore: () => {
      rmSync(restoredPath, { force: true });
      const { status, output } = deployment.restore(restoredPath);
      if (status !== 0) throw new Error(`litestream restore ended with ${status}: ${output}`);
      command(['check', '--full'], restoredPath);
      return inspect(restoredPath, { readOnly: false });
    },
    takeOver: async () => {
      rmSync(dirname(databasePath), { recursive: true });
      mkdirSync(dirname(databasePath), { mode: 0o700 });
      command(['restore', restoredPath], databasePath);
      takenOver += 1;
      replicaName = `host${takenOver}`;
      deployment.moveReplica(replicaName);
      return start();
    },
  };
}

/** The name of a file has its first and its last change, in hexadecimal digits. */
function newestIn(folder: string): number {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  const numbers = names.map((name) => /-([0-9a-f]+)\.ltx$/.exec(name)?.[1] ?? '0');
  return Math.max(0, ...numbers.map((number) => Number.parseInt(number, 16)));
}
