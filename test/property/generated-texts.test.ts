// Every parser of what comes from outside against generated texts, in small: the long run is row 13 of the campaign.

import test from 'node:test';
import { GENERATED_CHECKS } from '../support/generated-checks.ts';
import { forSeeds } from '../support/seeded.ts';

for (const [name, check] of Object.entries(GENERATED_CHECKS)) {
  test(`generated texts: ${name}`, () => forSeeds(1500, check));
}
