// Row 14: Project Wycheproof's vectors through our wrappers. The same as the unit test: all of them take a second.

import { WYCHEPROOF } from '../support/wycheproof.ts';
import type { Row } from './row.ts';

export const vectorsRow: Row = {
  name: '14',
  title: 'Wycheproof vectors for PBKDF2, HMAC and ECDSA P-384 through our wrappers',
  target: 'all',
  units: 1,
  least: ['vectors'],
  async run(unit) {
    for (const [name, tryAll] of Object.entries(WYCHEPROOF)) {
      const { promised, tried, failed } = await tryAll();
      unit.count('vectors', tried);
      if (tried !== promised) unit.lose(`${name}: ${tried} of ${promised} vectors`);
      if (failed.length > 0) unit.lose(`${name}: vectors that came out otherwise`, failed);
    }
  },
};
