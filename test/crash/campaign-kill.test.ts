// Rows 1, 18 and 22 of the campaign in small: kills and restarts under load, and kills in the middle of histories.

import { historyRow } from '../campaign/row-01-histories.ts';
import { killRow } from '../campaign/row-01-kill.ts';
import { restartRow } from '../campaign/row-18-restarts.ts';
import { governedKillRow } from '../campaign/row-22-kills.ts';
import { testRow } from '../support/campaign.ts';

testRow(killRow, 'nothing acknowledged is lost and nothing removed returns after a kill under load');
testRow(historyRow, 'a random history with kills is one that the model allows');
testRow(restartRow, 'no request on a connection of its own fails while the service behind the socket is replaced');
testRow(governedKillRow, 'what was acknowledged of invitations, bans, renewals and delete tokens holds after a kill');
