// Rows 4, 5 and 22 of the campaign in small: races for what can be had once, or not any more.

import { burnRow } from '../campaign/row-04-burn.ts';
import { onceRow } from '../campaign/row-05-once.ts';
import { governedRow } from '../campaign/row-22-races.ts';
import { testRow } from '../support/campaign.ts';

testRow(burnRow, 'exactly one of racing readers gets a paste that is read once, and gets all of it');
testRow(onceRow, 'a challenge, the first authority, the first admin and a revocation succeed exactly once');
testRow(governedRow, 'no invitation is overdrawn, no banned content stored, and one renewal and one delete token win');
