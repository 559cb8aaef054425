// Row 23 of the campaign in small: generated contents in real browsers.

import { pageRow } from '../campaign/row-23-page.ts';
import { testRow } from '../support/campaign.ts';

testRow(pageRow, 'a page shows any content as the text that it is, and nothing of it runs');
