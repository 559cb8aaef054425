// Row 25 of the campaign in small: what pastec makes of programs that fail.

import { clientRow } from '../campaign/row-25-client.ts';
import { testRow } from '../support/campaign.ts';

testRow(clientRow, 'a program that pastec calls is broken: nothing readable is sent, nothing lost, no failure hidden');
