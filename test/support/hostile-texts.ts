// Texts that try to be more than text when a browser shows them, and what a page must show for them.

import type { Seeded } from './seeded.ts';

/** Where it is not taken as text, each sets `window.ran`, asks something of outside.example or changes the document. */
export const HOSTILE = [
  '<script>window.ran = 1</script>', '</pre><script>window.ran = 2</script>', '</title><script>window.ran = 3</script>',
  '<img src="http://outside.example/x" onerror="window.ran = 4">', '"><img src=x onerror=window.ran=5>',
  '<svg onload="window.ran = 6">', '<a href="javascript:window.ran = 7" id="L2">click</a>',
  '<iframe srcdoc="<script>parent.ran = 8</script>"></iframe>', '<iframe src="http://outside.example/"></iframe>',
  '<meta http-equiv="refresh" content="0;url=http://outside.example/">', '<base href="http://outside.example/">',
  '<link rel="stylesheet" href="http://outside.example/x">', '<style>* { display: none }</style>',
  '<form action="http://outside.example/"><button autofocus>', '<textarea>', '<plaintext>', '<!--', '<![CDATA[', ']]>',
  '<object data="http://outside.example/x">', '&lt;script&gt;', '&#60;img src=x onerror=window.ran=9&#62;',
  '</main></body></html>', '<template><p>', '<xmp>', '<math><mtext></pre><img src=x onerror=window.ran=10>',
  '<noscript><p title="</noscript><img src=x onerror=window.ran=11>">', '\u2028<script>window.ran = 12</script>',
  '<scr\0ipt>window.ran = 13</scr\0ipt>', '<video><source onerror="window.ran = 14">',
  '<details open ontoggle="window.ran = 15">', '<input autofocus onfocus="window.ran = 16">',
  '`${window.ran = 17}`', '\'";window.ran = 18//',
];

/** Pieces of HTML and characters of several scripts, which are shown as they are. */
export const SHOWN = [
  '<', '>', '&', '"', '\'', '=', '/', '</', '<!--', '-->', '&amp;', '&#60;', '&lt', '&notin;', '<pre>', '</pre>', '<b',
  '<script>', '</script>', ' onload=', 'javascript:', '<svg/onload=window.ran=1>', '<img src=x onerror=window.ran=1>',
  'a', ' ', '\t', '\n', '\n\n', 'é', '日本', '🎉', '\u0301', '\u200d', 'x'.repeat(40),
];

/** What a page shows as a mark, and half a surrogate pair. */
export const MARKED = ['\0', '\x08', '\x1b[31m', '\x7f', '\x9b', '\u202e', '\u2066', '\u2028', '\ufeff', '\ud800', '\ufffe'];

/** What one browser or another takes for the end of a line. */
const LINE_ENDS = ['\n', '\r\n', '\r', '\n\r', '\r\r\n', '\v', '\f', '\x85', '\u2028', '\u2029'];

/** Characters for direction, width, joining and language: all are invisible, or move what is seen. */
const INVISIBLE = [
  '\xad', '\u061c', '\u115f', '\u180e', '\u200b', '\u200c', '\u200d', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c',
  '\u202d', '\u202e', '\u2060', '\u2061', '\u2066', '\u2067', '\u2068', '\u2069', '\u206a', '\u206f', '\u3164', '\ufe0f',
  '\ufeff', '\ufff9', '\ufffa', '\ufffb', '\ufffc', '\ufffd', '\uffff', '\u{e0001}', '\u{e0041}', '\u{1d173}',
];

const URLS = [
  'http://outside.example/x', 'https://outside.example/?a=b&c=d#e', '//outside.example/x', '/x', '../x', '?x', '#L1', '#',
  'javascript:window.ran=20', 'JaVaScRiPt:window.ran=21', 'java\tscript:window.ran=22', 'vbscript:window.ran=23',
  'data:text/html,<script>window.ran=24</script>', 'blob:http://outside.example/x', 'file:///etc/passwd',
  'view-source:http://outside.example/', 'ws://outside.example/', 'ftp://outside.example/x', 'mailto:a@outside.example',
  'tel:+123', 'about:blank', 'chrome://version', 'http://[::1]/', 'http://a@outside.example:80\\@x/', 'http://xn--e1afmkfd/',
];

/** What template engines and interpreters would replace. */
const TEMPLATES = [
  '{{7*7}}', '{{constructor.constructor("window.ran=30")()}}', '${7*7}', '#{7*7}', '<%= 7*7 %>', '{%x%}', '[[7*7]]',
  '{{{x}}}', '$&', '$1', '$`', '$\'', '$$', '\\0', '\\u003cscript>', '%s', '%3Cscript%3E', '{0}', '@(7*7)', '<?php x ?>',
  '$(id)', '`id`', '=1+1', '[x](javascript:window.ran=31)', '![x](http://outside.example/x)', '\\input{x}', '<!--#include x-->',
];

/** Bytes that are no UTF-8, and the marks of other encodings. */
const NO_TEXT = [
  [0xff], [0x80], [0xc0, 0xaf], [0xc3], [0xe2, 0x28, 0xa1], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x92], [0xf4, 0x90, 0x80, 0x80],
  [0xff, 0xfe], [0xfe, 0xff], [0xff, 0xfe, 0, 0], [0x2b, 0x2f, 0x76, 0xff], [0x1b, 0x24, 0x42, 0xff], [0x89, 0x50, 0x4e, 0x47],
].map((bytes) => Buffer.from(bytes));

const BOM = Buffer.from('\ufeff');

/** Less than the 512 KiB of a text that a page shows. */
const LONGEST_BYTES = 400_000;

/** A content of any kind, most often text; one in fifty is long. */
export function hostileContent(random: Seeded): Buffer {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (let left = random.between(1, random.oneIn(50) ? 3000 : 60); left > 0 && bytes < LONGEST_BYTES; left -= 1) {
    const piece = hostilePiece(random);
    parts.push(piece);
    bytes += piece.length;
  }
  if (random.oneIn(8)) parts.unshift(BOM);
  if (random.oneIn(8)) parts.splice(random.below(parts.length + 1), 0, random.pick(NO_TEXT));
  const content = Buffer.concat(parts);
  return content.length === 0 ? Buffer.from('.') : content;
}

function hostilePiece(random: Seeded): Buffer {
  const kinds = [HOSTILE, SHOWN, MARKED, LINE_ENDS, LINE_ENDS, INVISIBLE, URLS, TEMPLATES];
  const kind = random.below(kinds.length + 4);
  switch (kind - kinds.length) {
    case 0: return Buffer.from(String.fromCodePoint(random.below(0x11_0000)));
    case 1: return Buffer.from(random.pick(SHOWN).repeat(random.pick([2, 30, 1000])));
    case 2: return Buffer.from('x'.repeat(random.oneIn(10) ? random.between(1, 20_000) : random.between(1, 200)));
    case 3: return Buffer.from(random.pick(LINE_ENDS).repeat(random.between(2, random.oneIn(20) ? 2000 : 10)));
    default: return Buffer.from(random.pick(kinds[kind]!));
  }
}

/** Characters that are invisible or change the direction of others, so a page shows their numbers. */
const BY_NUMBER = /[\p{Cc}\p{Bidi_Control}\u2028\u2029\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** The text that a page must show for a content; undefined if the content is not text. */
export function shownText(content: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
    return text.replaceAll('\r\n', '\n').replaceAll(BY_NUMBER, (character) => {
      const code = character.charCodeAt(0);
      return '\t\n'.includes(character) ? character : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
    });
  } catch {
    return undefined;
  }
}
