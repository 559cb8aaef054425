// Rows 2, 3, 17 and 21 of the campaign in small: storage that fails, is full, has a quota, and must forget.

import { faultRow } from '../campaign/row-02-faults.ts';
import { governedFaultRow } from '../campaign/row-02-governed.ts';
import { quotaFaultRow } from '../campaign/row-02-quota.ts';
import { startRow } from '../campaign/row-02-start.ts';
import { fullDiskRow } from '../campaign/row-03-full-disk.ts';
import { canaryRow } from '../campaign/row-17-canaries.ts';
import { quotaRow } from '../campaign/row-21-quota.ts';
import { testRow } from '../support/campaign.ts';

testRow(faultRow, 'what is acknowledged is durable and what is refused is not, whichever call of the storage fails');
testRow(governedFaultRow, 'what is governed is done whole or not at all, whichever call of the storage fails');
testRow(quotaFaultRow, 'a disk quota that is reached counts as a full disk, whichever call it fails');
testRow(startRow, 'a start whose storage fails says so or serves, and harms nothing');
testRow(fullDiskRow, 'a full disk refuses creations alone, and is recovered from without a restart');
testRow(canaryRow, 'what was burned, deleted, replaced or has expired is in no file and in no backup');
testRow(quotaRow, 'nothing is stored beyond the quota, 507 is right, and no download of replaced content breaks');
