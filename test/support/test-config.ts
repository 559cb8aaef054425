// A whole configuration for tests: every setting's default, a free port, and what the test overrides. Reads no
// environment.

import { SETTINGS } from '../../src/config/settings.ts';
import type { Config, SettingKey } from '../../src/config/settings.ts';

const DEFAULTS: Config = Object.freeze(
  Object.fromEntries(Object.entries(SETTINGS).map(([key, setting]) => [key, setting.fallback])) as {
    -readonly [Key in SettingKey]: Config[Key];
  },
);

/** The defaults on port 0, with the overrides in their place; frozen, as load.ts gives it. */
export function testConfig(overrides: Partial<Config> = {}): Config {
  return Object.freeze({ ...DEFAULTS, port: 0, ...overrides });
}
