// Programs of the host that rows use as clients, proxies and attackers. Where one is missing a row says so and does the
// rest, or has an obstacle.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian keeps servers in /usr/sbin, where only root looks. */
export const SEARCH_PATH = `${process.env['PATH'] ?? ''}${delimiter}/usr/sbin`;

/** The names whose programs can be run. */
export function installedPrograms(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.filter((name) => SEARCH_PATH.split(delimiter).some((folder) => isProgram(join(folder, name)))));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
