// Row 2 for a disk quota that is reached (EDQUOT), once and lasting. To SQLite that is an I/O error, as of a disk that
// fails; the service must take it for a full disk: it answers 507 and gives up the room in reserve.

import { compilerObstacle } from './faults.ts';
import { failEach, OPERATIONS, type Way } from './row-02-faults.ts';
import type { Row } from './row.ts';

const WAYS: readonly Way[] = [{ error: 'EDQUOT', lasting: true }, { error: 'EDQUOT', lasting: false }];

export const quotaFaultRow: Row = {
  name: '2q',
  title: 'EDQUOT at every write, sync and truncation',
  target: 'every point of every write operation, twice',
  units: 22,
  least: ['at a write', 'room in reserve given up'],
  obstacle: compilerObstacle,
  // Each lasting fault takes a restart, so a quick unit tries few.
  run: (unit) => {
    const few = unit.effort === 'full' ? Infinity : 1;
    return failEach(unit, OPERATIONS.slice(0, few), WAYS.slice(0, few), 0);
  },
};
