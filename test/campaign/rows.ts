// Every row of the campaign, in the order of RELIABILITY.md. A new row is a file beside this one and a line here.

import type { Row } from './row.ts';
import { historyRow } from './row-01-histories.ts';
import { killRow } from './row-01-kill.ts';
import { faultRow } from './row-02-faults.ts';
import { governedFaultRow } from './row-02-governed.ts';
import { quotaFaultRow } from './row-02-quota.ts';
import { startRow } from './row-02-start.ts';
import { fullDiskRow } from './row-03-full-disk.ts';
import { burnRow } from './row-04-burn.ts';
import { onceRow } from './row-05-once.ts';
import { oddRow } from './row-06-odd.ts';
import { headersRow } from './row-07-headers.ts';
import { earlyRow } from './row-08-early.ts';
import { slowRow } from './row-09-slow.ts';
import { largeRow } from './row-10-large.ts';
import { passwordsRow } from './row-11-passwords.ts';
import { timingRow } from './row-12-timing.ts';
import { generatedRow } from './row-13-generated.ts';
import { vectorsRow } from './row-14-vectors.ts';
import { boundsRow } from './row-15-bounds.ts';
import { soakRow } from './row-16-soak.ts';
import { canaryRow } from './row-17-canaries.ts';
import { restartRow } from './row-18-restarts.ts';
import { suiteRow } from './row-19-suite.ts';
import { tinyRow } from './row-20-tiny.ts';
import { quotaRow } from './row-21-quota.ts';
import { governedKillRow } from './row-22-kills.ts';
import { governedRow } from './row-22-races.ts';
import { pageRow } from './row-23-page.ts';
import { clusterDiskRow } from './row-24-disk.ts';
import { clusterKillRow } from './row-24-kills.ts';
import { clusterRaceRow } from './row-24-races.ts';
import { standbyRow } from './row-24-standby.ts';
import { clientRow } from './row-25-client.ts';

export const ROWS: readonly Row[] = [
  killRow,
  historyRow,
  faultRow,
  governedFaultRow,
  quotaFaultRow,
  startRow,
  fullDiskRow,
  burnRow,
  onceRow,
  oddRow,
  headersRow,
  earlyRow,
  slowRow,
  largeRow,
  passwordsRow,
  timingRow,
  generatedRow,
  vectorsRow,
  boundsRow,
  soakRow,
  canaryRow,
  restartRow,
  suiteRow,
  tinyRow,
  quotaRow,
  governedRow,
  governedKillRow,
  pageRow,
  clusterKillRow,
  clusterRaceRow,
  clusterDiskRow,
  standbyRow,
  clientRow,
];
