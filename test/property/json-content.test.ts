// The incremental JSON reader against JSON.parse: it accepts and refuses the same documents, except for the differences
// that it states, and gives the same bytes, however the document is cut.

import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import test from 'node:test';
import { JsonContentReader, MAX_JSON_DEPTH } from '../../src/core/json-content.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { createSeeded, cutAtRandom, forSeeds, type Seeded } from '../support/seeded.ts';

const CHARACTERS = [
  'a', 'content', ' ', '\u00e9', '\u20ac', '\u{1f600}', '\u0000', '\n', '"', '\\', '/', '\u007f', '\ud83d', '\ude00',
  '\ufffd', '\ufeff',
];
const ESCAPES = [
  '\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0063', '\\u00E9', '\\u20ac', '\\ud83d', '\\ude00',
  '\\uD83D\\uDE00', '\\uFFFF', '\\u0000',
];
const NAMES = ['"content"', '"\\u0063ontent"', '"conten"', '"contents"', '""', '"Content"', '"content\\u0000"', '"x"'];
const NUMBERS = ['0', '-0', '1', '-12', '0.5', '10.25e+3', '1E5', '2e-2', '0e0'];
const SPACES = ['', '', '', ' ', '\n', '\t \r'];
const MUTATIONS = [
  '"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', '.', 'e', 'u', 't', ' ', '\n', '\u0001', '\ud83d', '\u00e9',
];

/** What the reader must give, found by the parser of whole documents; undefined for a refusal. */
function expected(document: Uint8Array): Buffer | undefined {
  if (!isUtf8(document)) return undefined;
  const text = Buffer.from(document).toString();
  // toString keeps a byte order mark, which JSON.parse then refuses.
  let contentGiven = 0;
  let value: unknown;
  try {
    value = JSON.parse(text);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined;
    contentGiven = membersNamedContent(text);
  } catch {
    return undefined;
  }
  const content = (value as Record<string, unknown>)['content'];
  if (contentGiven !== 1 || depth(value) > MAX_JSON_DEPTH) return undefined;
  return typeof content === 'string' && content !== '' ? Buffer.from(content) : undefined;
}

/**
 * JSON.parse keeps the last of equal names only, so the members are counted in the text, which is known to be valid.
 */
function membersNamedContent(text: string): number {
  let level = 0;
  let count = 0;
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")[ \t\r\n]*:|"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (name !== undefined) count += level === 1 && JSON.parse(name) === 'content' ? 1 : 0;
    else if (token === '{' || token === '[') level += 1;
    else if (token === '}' || token === ']') level -= 1;
  }
  return count;
}

function depth(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depth));
}

function actual(pieces: readonly Uint8Array[]): Buffer | undefined {
  const taken: Uint8Array[] = [];
  const reader = new JsonContentReader((bytes) => {
    taken.push(bytes);
  });
  try {
    for (const piece of pieces) reader.write(piece);
    reader.end();
  } catch (error) {
    assert.ok(error instanceof Refusal && error.refusal === 'jsonInvalid', String(error));
    return undefined;
  }
  return Buffer.concat(taken);
}

function generateString(random: Seeded): string {
  let text = '"';
  for (let left = random.below(6); left > 0; left -= 1) {
    text += random.oneIn(2) ? random.pick(ESCAPES) : JSON.stringify(random.pick(CHARACTERS)).slice(1, -1);
  }
  return `${text}"`;
}

function generateValue(random: Seeded, levels: number): string {
  const kind = random.below(levels > 0 ? 6 : 4);
  if (kind < 2) return generateString(random);
  if (kind === 2) return random.pick(NUMBERS);
  if (kind === 3) return random.pick(['true', 'false', 'null']);
  const count = random.below(4);
  const inner = Array.from({ length: count }, () => generateValue(random, levels - 1));
  return kind === 4 ? list(random, '[', ']', inner) : generateObject(random, inner);
}

function generateObject(random: Seeded, values: readonly string[]): string {
  const members = values.map((value) => `${random.pick(NAMES)}${random.pick(SPACES)}:${random.pick(SPACES)}${value}`);
  return list(random, '{', '}', members);
}

function list(random: Seeded, opening: string, closing: string, parts: readonly string[]): string {
  const spaced = parts.map((part) => random.pick(SPACES) + part + random.pick(SPACES));
  return opening + (spaced.length === 0 ? random.pick(SPACES) : spaced.join(',')) + closing;
}

function generateDocument(random: Seeded): string {
  const values = Array.from({ length: random.between(0, 3) }, () => generateValue(random, 3));
  const members = values.map((value) => `${random.pick(NAMES)}:${value}`);
  if (!random.oneIn(8)) {
    const content = `${random.pick(NAMES.slice(0, 2))}:${generateString(random)}`;
    members.splice(random.below(members.length + 1), 0, content);
  }
  return random.pick(SPACES) + list(random, '{', '}', members) + random.pick(SPACES);
}

function mutate(document: string, random: Seeded): Buffer {
  const at = random.below(document.length + 1);
  const removed = random.below(3);
  const bytes = Buffer.from(document.slice(0, at) + random.pick(MUTATIONS) + document.slice(at + removed));
  if (random.oneIn(4) && bytes.length > 0) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

function agree(document: Uint8Array, pieces: readonly Uint8Array[]): boolean {
  const wanted = expected(document);
  assert.deepEqual(actual(pieces), wanted, `document ${JSON.stringify(Buffer.from(document).toString())}`);
  return wanted !== undefined;
}

test('JsonContentReader: agrees with JSON.parse on generated documents, cut at random', () => {
  let accepted = 0;
  forSeeds(4000, (random) => {
    const document = Buffer.from(generateDocument(random));
    if (agree(document, cutAtRandom(document, random, 7))) accepted += 1;
  });
  assert.ok(accepted > 1500, `only ${accepted} documents were acceptable`);
});

test('JsonContentReader: agrees with JSON.parse on mutated documents, cut at random', () => {
  let accepted = 0;
  forSeeds(12_000, (random) => {
    const document = mutate(generateDocument(random), random);
    if (agree(document, cutAtRandom(document, random, 7))) accepted += 1;
  });
  assert.ok(accepted > 800 && accepted < 10_000, `${accepted} documents were acceptable`);
});

test('JsonContentReader: the same at every single cut, and byte by byte', () => {
  forSeeds(150, (random) => {
    const document = Buffer.from(generateDocument(random));
    for (let cut = 0; cut <= document.length; cut += 1) {
      agree(document, [document.subarray(0, cut), document.subarray(cut)]);
    }
    agree(document, Array.from(document, (_, index) => document.subarray(index, index + 1)));
  });
});

test('JsonContentReader: surrogate escapes of any order and cut decode like JSON.parse', () => {
  const parts = ['\\ud83d', '\\ude00', '\\u20ac', '\\n', 'x', '\u20ac', '\\u000'];
  const random = createSeeded(1);
  for (let combination = 0; combination < parts.length ** 4; combination += 1) {
    let content = '';
    for (let rest = combination, place = 0; place < 4; place += 1, rest = Math.floor(rest / parts.length)) {
      content += parts[rest % parts.length]!;
    }
    const document = Buffer.from(`{"content":"${content}"}`);
    agree(document, cutAtRandom(document, random, 5));
  }
});
