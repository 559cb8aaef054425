// Rows 6 to 11, 16 and 20 of the campaign in small: what strangers send, how slowly, and how much of it.

import { oddRow } from '../campaign/row-06-odd.ts';
import { headersRow } from '../campaign/row-07-headers.ts';
import { earlyRow } from '../campaign/row-08-early.ts';
import { slowRow } from '../campaign/row-09-slow.ts';
import { largeRow } from '../campaign/row-10-large.ts';
import { passwordsRow } from '../campaign/row-11-passwords.ts';
import { soakRow } from '../campaign/row-16-soak.ts';
import { tinyRow } from '../campaign/row-20-tiny.ts';
import { testRow } from '../support/campaign.ts';

testRow(oddRow, 'a malformed request has one answer, directly and through proxies');
testRow(headersRow, 'every answer has the common headers, and an error says so in JSON');
testRow(earlyRow, 'every client sees that its upload is too large, and one that asks sends nothing');
testRow(slowRow, 'others are answered beside slow clients, and these go');
testRow(largeRow, 'others are answered beside large transfers, all of which succeed');
testRow(passwordsRow, 'others are answered beside a flood of passwords, most of which are told to come back');
testRow(soakRow, 'nothing grows under everyday use, and what expired is gone from the file');
testRow(tinyRow, 'others are answered beside bodies in the smallest pieces, and all of these are stored or refused');
