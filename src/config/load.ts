// From the environment to a frozen Config, with every problem reported together. Where texts come from is sources.ts,
// what they mean is parse.ts, how they go together is checks.ts.

import { nearest } from '../core/nearest.ts';
import { crossCheck } from './checks.ts';
import { parseSetting } from './parse.ts';
import { SETTING_KEYS, SETTINGS, type Config, type Setting, type SettingKey, type SettingValue } from './settings.ts';
import { fileVariable, findSetting, SettingProblem } from './sources.ts';
import type { Environment, Found, ReadFile, Source } from './sources.ts';

export interface LoadedConfig {
  readonly config: Config;
  readonly sources: Readonly<Record<SettingKey, Source>>;
  /** Variables that look like settings and are none. */
  readonly warnings: readonly string[];
}

/** One problem for each setting, by its name, with what was expected and - never for a secret - what was given. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Others' variables are none of our business; these prefixes are ours. */
const OUR_NAMES = /^(?:SERVICE|ANTIFLOOD|RATE_LIMIT|LOOKUP_RATE_LIMIT)_/;

/** As much of a wrong value as a problem repeats. */
const SHOWN_CHARACTERS = 80;

/** Every value in force, each parsed once. Throws ConfigError with all problems there are. */
export function loadConfig(environment: Environment, readFile: ReadFile): LoadedConfig {
  const values: Partial<Record<SettingKey, SettingValue>> = {};
  const sources: Partial<Record<SettingKey, Source>> = {};
  const problems = new Map<SettingKey, string>();

  for (const key of SETTING_KEYS) {
    const setting: Setting = SETTINGS[key];
    values[key] = setting.fallback;
    sources[key] = { kind: 'default', name: '' };
    try {
      const found = findSetting(setting, environment, readFile);
      if (found === undefined) continue;
      values[key] = parse(setting, found);
      sources[key] = found.source;
    } catch (error) {
      if (!(error instanceof SettingProblem)) throw error;
      problems.set(key, error.message);
    }
  }

  // Every key of the table has been given a value of its kind, which the loop cannot say to the compiler.
  const config = Object.freeze(values as Config);
  const all = [...problems.values(), ...crossCheck(config, new Set(problems.keys()))];
  if (all.length > 0) throw new ConfigError(all);
  return { config, sources: sources as Record<SettingKey, Source>, warnings: unknownNames(environment) };
}

function parse(setting: Setting, { text, source }: Found): SettingValue {
  const parsed = parseSetting(setting, text);
  if ('value' in parsed) return parsed.value;
  const given = setting.kind === 'secret' ? '' : `, given ${quote(text)}`;
  throw new SettingProblem(`${source.name}: expected ${parsed.expected}${given}`);
}

/** On one line whatever is in it. */
function quote(text: string): string {
  const isLong = text.length > SHOWN_CHARACTERS;
  return JSON.stringify(isLong ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text);
}

function unknownNames(environment: Environment): string[] {
  const known = new Set<string>();
  for (const setting of Object.values<Setting>(SETTINGS)) {
    known.add(setting.name);
    if (setting.kind === 'secret') known.add(fileVariable(setting));
  }
  return Object.keys(environment)
    .filter((name) => OUR_NAMES.test(name) && !known.has(name) && Boolean(environment[name]))
    .map((name) => {
      const suggestion = nearest(name, known);
      const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
      return `${quote(name)} is not a setting${hint}`;
    });
}
