// Manual pages in the macros of man(7). All markup is made here; callers give plain text.

import { wrapped } from './files.mjs';

/** The lines that each page begins with. */
export function pageHead(name, { version, seconds }) {
  const date = new Date(seconds * 1000).toISOString().slice(0, 10);
  return [
    '.\\" Made by scripts/release.mjs from the tables of the service.',
    `.TH ${name.toUpperCase()} 1 ${date} "${name} ${version}" "User Commands"`,
    // No hyphenation, since a hyphen would look like a part of a name, and no spaces that fill up a line.
    '.nh',
    '.ad l',
  ];
}

/** Paragraphs of running text. */
export function paragraphs(texts) {
  return texts.flatMap((words) => ['.PP', text(words)]);
}

/** Lines as they are, such as commands for a shell. */
export function example(words) {
  return ['.PP', '.nf', '.RS', ...words.map(literal), '.RE', '.fi'];
}

export function tagged(tag, body) {
  return ['.TP', tag, ...body];
}

export function bold(words) {
  return `\\fB${escaped(words)}\\fR`;
}

export function italic(words) {
  return `\\fI${escaped(words)}\\fR`;
}

/** Running text, in which what is between backticks becomes bold. */
export function text(words) {
  const parts = words.split('`');
  const marked = parts.map((part, index) => (index % 2 === 1 ? bold(part) : escaped(part))).join('');
  return wrapped(marked, 80).map(noRequest).join('\n');
}

/** One line, as it is. */
export function literal(words) {
  return noRequest(escaped(words));
}

/** roff(7): a line that begins so would be a request to the formatter. An apostrophe is escaped already. */
function noRequest(line) {
  return line.startsWith('.') ? `\\&${line}` : line;
}

/** groff_char(7): roff would read these as markup, or show other characters than those that can be typed. */
const ESCAPES = { '\\': '\\e', '-': '\\-', '\'': '\\(aq', '`': '\\(ga', '^': '\\(ha', '~': '\\(ti', '"': '\\(dq' };

export function escaped(words) {
  return words.replace(/[\\\-'`^~"]/g, (character) => ESCAPES[character]);
}

export function lines(texts) {
  return `${texts.join('\n')}\n`;
}
