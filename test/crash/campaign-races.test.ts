// Rows 4 and 5 of the campaign in small: races for what can be had once.

import { burnRow } from '../campaign/row-04-burn.ts';
import { onceRow } from '../campaign/row-05-once.ts';
import { testRow } from '../support/campaign.ts';

testRow(burnRow, 'exactly one of racing readers gets a paste that is read once, and gets all of it');
testRow(onceRow, 'a challenge, the first authority, the first admin and a revocation succeed exactly once');
