// The mutants of a file: its JavaScript with one operator, constant or condition changed. Types are blanked first, so
// that mutants change neither types nor what only types need, and every position stays what it is in the source. It
// does not know what a change means: an equivalent mutant is one like any other.

import { stripTypeScriptTypes } from 'node:module';
import { codeOf } from '../../test/support/source.ts';

/** The replacements of each operator between two values. */
const BINARY = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '??=': ['='],
  '||=': ['='],
  '&&=': ['='],
  '|=': ['&='],
  '&=': ['|='],
  '<<=': ['>>='],
  '>>=': ['<<='],
};

const TOKEN = new RegExp([
  /[A-Za-z_$][\w$]*/,
  /0[xX][\da-fA-F_]+n?|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?n?/,
  /'[^'\n]*'|"[^"\n]*"|\/ *\/[a-z]*/,
  />>>=|\*\*=|<<=|>>=|&&=|\|\|=|\?\?=|===|!==|>>>|\.\.\./,
  /=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--|\+=|-=|\*=|\/=|%=|\|=|&=|\^=|\*\*|<<|>>/,
  /\S/,
].map(({ source }) => source).join('|'), 'g');

/** Words after which an operator can have nothing on its left. */
const BEFORE_VALUE = new Set([
  'return', 'typeof', 'case', 'of', 'in', 'throw', 'await', 'yield', 'void', 'delete', 'else',
]);

/** Where the condition of `? :` begins: after the nearest of these that is not inside brackets. */
const BEFORE_CONDITION = new Set([
  '=', '+=', '-=', '??=', ',', ';', '=>', ':', '?', '{', '}', '`', '...', 'return', 'throw', 'case', 'yield', 'await',
]);

/**
 * Each mutant as the characters `[start, end)` of the source and the text that replaces them, in the order of the
 * source. `path` is for messages. A mutant with a syntax error is left out.
 */
export function mutantsOf(source, path) {
  const script = withoutTypes(source);
  const tokens = tokensOf(codeOf(script, path));
  const found = tokens.flatMap((token, index) => changesAt(tokens, index, script));
  const seen = new Set();
  return found.toSorted((one, other) => one.start - other.start || one.end - other.end).filter((mutant) => {
    const text = mutated(script, mutant);
    if (seen.has(text) || text === script || !isSyntax(text)) return false;
    return seen.add(text);
  });
}

/** The file with the mutant in it, types blanked. */
export function mutated(script, { start, end, text }) {
  return script.slice(0, start) + text + script.slice(end);
}

/**
 * The top-level statements of a file, without the blanks and comments between them: where each begins, and its
 * text.
 */
export function piecesOf(source, path) {
  const code = codeOf(source, path);
  const starts = [...code.matchAll(/^[^\s)\]}`]/gm)].map(({ index }) => index);
  return starts.map((start, index) => {
    const { length } = code.slice(start, starts[index + 1]).trimEnd();
    return { start, text: source.slice(start, start + length) };
  });
}

export function withoutTypes(source) {
  return stripTypeScriptTypes(source, { mode: 'strip' });
}

function isSyntax(text) {
  try {
    stripTypeScriptTypes(text, { mode: 'strip' });
    return true;
  } catch {
    return false;
  }
}

function tokensOf(code) {
  return [...code.matchAll(TOKEN)].map((match) => {
    const [text] = match;
    return { text, start: match.index, end: match.index + text.length };
  });
}

function changesAt(tokens, index, script) {
  const token = tokens[index];
  const { text, start, end } = token;
  const previous = tokens[index - 1];
  const replaced = (...others) => others.map((other) => ({ start, end, text: other }));
  if (isName(previous, '.') || isName(previous, '?.')) return [];
  if (text === 'true') return replaced('false');
  if (text === 'false') return replaced('true');
  if (text === 'if' || text === 'while') return conditionOf(tokens, index, text);
  if (text === '?') return ternary(tokens, index);
  if (text === '?.') return chain(tokens, index, script);
  if (text === '++') return replaced('--');
  if (text === '--') return replaced('++');
  if (text === '!') return replaced('');
  if (/^\d/.test(text)) return isKey(tokens, index) ? [] : replaced(next(text));
  if (text === '-' && !endsValue(previous)) return replaced('');
  if (text in BINARY && endsValue(previous) && !isText(text, previous, tokens[index + 1], script)) {
    return replaced(...BINARY[text]);
  }
  return [];
}

/** Starts at the token before: a test that finds nothing there never enters the rest, but is the one to notice. */
function chain(tokens, index, script) {
  const { start } = tokens[index - 1];
  const link = isName(tokens[index + 1], '(', '[') ? '' : '.';
  return [{ start, end: tokens[index].end, text: script.slice(start, tokens[index].start) + link }];
}

/** The condition of `if` or `while`. That of a loop only becomes false, since an endless loop shows nothing new. */
function conditionOf(tokens, index, word) {
  const close = closing(tokens, index + 1);
  const range = { start: tokens[index + 2].start, end: tokens[close - 1].end };
  return (word === 'if' ? ['true', 'false'] : ['false']).map((text) => ({ ...range, text }));
}

function ternary(tokens, index) {
  let depth = 0;
  let first = index;
  while (first > 0) {
    const { text } = tokens[first - 1];
    if (/^[)\]]$/.test(text)) depth += 1;
    else if (/^[([]$/.test(text) && depth === 0) break;
    else if (/^[([]$/.test(text)) depth -= 1;
    else if (depth === 0 && BEFORE_CONDITION.has(text)) break;
    first -= 1;
  }
  const range = { start: tokens[first].start, end: tokens[index - 1].end };
  return ['true', 'false'].map((text) => ({ ...range, text }));
}

function closing(tokens, open) {
  let depth = 0;
  for (let index = open; index < tokens.length; index += 1) {
    if (tokens[index].text === '(') depth += 1;
    if (tokens[index].text === ')') depth -= 1;
    if (depth === 0) return index;
  }
  throw new Error('a parenthesis without its partner');
}

function endsValue(token) {
  if (token === undefined) return false;
  return /^(?:[\w$'"`]|\/ )|^[)\]}]$/.test(token.text) && !BEFORE_VALUE.has(token.text);
}

/** A plus beside a string joins text. A minus there gives NaN, which says nothing about the tests. */
function isText(operator, previous, following) {
  return operator === '+' && [previous, following].some((token) => /^['"`]/.test(token?.text ?? ''));
}

/** A number that names a property. */
function isKey(tokens, index) {
  return isName(tokens[index + 1], ':') && isName(tokens[index - 1], '{', ',');
}

function isName(token, ...texts) {
  return token !== undefined && texts.includes(token.text);
}

function next(number) {
  const plain = number.replaceAll('_', '');
  if (plain.endsWith('n')) return `${BigInt(plain.slice(0, -1)) + 1n}n`;
  return String(Number(plain) + 1);
}
