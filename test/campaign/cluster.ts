// Three hosts over three rqlite nodes, all for one unit of a row.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type NodesOptions, type RqliteNodes, startNodes } from '../support/rqlite.ts';
import { inspect, type Inspection } from './inspect.ts';
import type { Unit } from './row.ts';
import type { Service } from './service.ts';

export const HOSTS = 3;

export interface Cluster extends RqliteNodes {
  /** Including the new hosts in the places of killed ones. */
  readonly hosts: Service[];
  /** Starts a new host, which is not in `hosts` yet. */
  startHost(): Promise<Service>;
  /** Inspects a copy of the database that the operator's command makes. */
  inspect(): Promise<Inspection>;
}

/** The nodes end with `use`, the hosts with the unit. */
export async function withCluster(
  unit: Unit, environment: Readonly<Record<string, string>>, use: (cluster: Cluster) => Promise<void>,
  options: NodesOptions = {},
): Promise<void> {
  const ends: (() => Promise<void>)[] = [];
  try {
    const nodes = await startNodes({ after: (end) => void ends.push(end) }, { ...options, ownGroup: unit.ownGroup });
    const SERVICE_DB = `rqlite://${nodes.nodes.map(({ address }) => address).join()}`;
    let started = 0;
    const startHost = (): Promise<Service> => {
      started += 1;
      return unit.start({ folder: join(unit.folder, `host${started}`), environment: { ...environment, SERVICE_DB } });
    };
    const hosts = await Promise.all(Array.from({ length: HOSTS }, startHost));
    await use({
      ...nodes,
      hosts,
      startHost,
      inspect: () => inspectCopy(hosts[0]!, join(unit.folder, 'copy.db')),
    });
  } finally {
    for (const end of ends) await end();
  }
}

async function inspectCopy(host: Service, path: string): Promise<Inspection> {
  const { status, output } = await host.beginCommand(['backup', path]).ended;
  if (status !== 0) throw new Error(`pasted backup ended with ${status}: ${output}`);
  try {
    return inspect(path);
  } finally {
    rmSync(path);
  }
}
