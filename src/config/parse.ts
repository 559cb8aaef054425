// The text of one setting to its value: the grammar of every kind. Does not know where a text comes from, and says
// nothing about the text itself, which may be a secret.

import { parseNetwork } from '../core/addresses.ts';
import { DAY_SECONDS, GIB, HOUR_SECONDS, KIB, MIB, MINUTE_SECONDS } from '../core/time.ts';
import type { IntegerSetting, Setting, SettingValue } from './settings.ts';

/** The value, or in words what was expected. */
export type Parsed = { readonly value: SettingValue } | { readonly expected: string };

const WHOLE = /^([0-9]+)([A-Za-z]*)$/;
const DECIMAL = /^[0-9]+(?:\.[0-9]+)?$/;
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/** What decoding leaves in the place of bytes that are not UTF-8: a key read that way has lost most of its bits. */
const REPLACEMENT_CHARACTER = '\ufffd';

const SIZES = { KiB: KIB, MiB: MIB, GiB: GIB };

/** What may follow a number, by what the setting counts, and how many of these it stands for. */
const SUFFIXES: Partial<Record<IntegerSetting['unit'], Readonly<Record<string, number>>>> = {
  bytes: SIZES,
  'bytes per second': SIZES,
  seconds: { s: 1, m: MINUTE_SECONDS, h: HOUR_SECONDS, d: DAY_SECONDS },
};

const FLAG_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 'true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['0', 'false', 'no', 'off'].map((word) => [word, false] as const),
]);

/** `text` is not empty: an empty setting is one that is not set. */
export function parseSetting(setting: Setting, text: string): Parsed {
  switch (setting.kind) {
    case 'integer':
      return parseInteger(setting, text);
    case 'decimal':
      return withinBounds(setting, 'a decimal number', DECIMAL.test(text) ? Number(text) : NaN);
    case 'flag':
      return parseFlag(text);
    case 'text':
      return setting.pattern.test(text) ? { value: text } : { expected: setting.expected };
    case 'secret':
      return parseSecret(text);
    case 'networks':
      return parseNetworks(text);
  }
}

function parseInteger(setting: IntegerSetting, text: string): Parsed {
  const suffixes = SUFFIXES[setting.unit] ?? {};
  const [, digits = 'none', suffix = ''] = WHOLE.exec(text) ?? [];
  const factor = suffix === '' ? 1 : Object.hasOwn(suffixes, suffix) ? suffixes[suffix]! : NaN;
  const parsed = withinBounds(setting, 'a whole number', Number(digits) * factor);
  const names = Object.keys(suffixes).join(', ');
  return 'expected' in parsed && names !== '' ? { expected: `${parsed.expected}, or one with ${names}` } : parsed;
}

function withinBounds(bounds: { minimum: number; maximum: number }, form: string, value: number): Parsed {
  if (value >= bounds.minimum && value <= bounds.maximum) return { value };
  return { expected: `${form} from ${bounds.minimum} to ${bounds.maximum}` };
}

function parseFlag(text: string): Parsed {
  const value = FLAG_WORDS.get(text.toLowerCase());
  return value === undefined ? { expected: `one of ${[...FLAG_WORDS.keys()].join(', ')}` } : { value };
}

function parseSecret(text: string): Parsed {
  if (!CONTROL_CHARACTER.test(text) && !text.includes(REPLACEMENT_CHARACTER)) return { value: text };
  return { expected: 'one line of UTF-8 text without control characters' };
}

/** Spaces around a comma mean nothing. */
function parseNetworks(text: string): Parsed {
  const items = text.split(',').map((item) => item.trim());
  if (items.every((item) => parseNetwork(item) !== undefined)) return { value: Object.freeze(items) };
  return { expected: 'addresses and CIDR blocks such as 10.0.0.0/8 or ::1, separated by commas' };
}
