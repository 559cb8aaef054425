// Row 24s of the campaign in small: a service with a replica by Litestream is killed, its replica is out of reach, and
// its host is lost.

import { standbyRow } from '../campaign/row-24-standby.ts';
import { testRow } from '../support/campaign.ts';

testRow(standbyRow, 'with its host a service loses the last moment alone, and nothing when it is killed');
