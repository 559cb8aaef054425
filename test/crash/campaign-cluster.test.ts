// Row 24 of the campaign in small: three hosts over three nodes, killed, stopped and raced, and with a full disk.

import { clusterDiskRow } from '../campaign/row-24-disk.ts';
import { clusterKillRow } from '../campaign/row-24-kills.ts';
import { clusterRaceRow } from '../campaign/row-24-races.ts';
import { testRow } from '../support/campaign.ts';

testRow(clusterKillRow, 'nothing acknowledged by three hosts is lost when nodes and hosts are killed and stop');
testRow(clusterRaceRow, 'of racers at three hosts exactly one gets what can be had once');
testRow(clusterDiskRow, 'nothing acknowledged by three hosts is lost when the disk of a node is full, and has room again');
