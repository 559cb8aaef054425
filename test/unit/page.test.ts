// The one maker of HTML: no text that is put into a page becomes part of its structure. The pages over sockets are
// test/api/pages*.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { refusalReply } from '../../src/http/engine/reply.ts';
import { readForm } from '../../src/http/handlers/pages.ts';
import {
  burnPage, durationText, html, NumberedLines, pageText, refusalPage, sizeText, textPage,
} from '../../src/http/page.ts';
import { assertPage, elements, only, structureOf, textOf } from '../support/html.ts';
import { createSeeded, cutAtRandom, forSeeds, type Seeded } from '../support/seeded.ts';
import { asFound, inlinePaste } from '../support/store.ts';

const PIECES = [
  '<', '>', '&', '"', '\'', '</pre>', '<script>', '</title>', '<!--', ']]>', '<img src=x onerror=alert(1)>', '&lt;', '&#60',
  '&amp', '`', '${', '=', '\0', '\x08', '\x0b', '\x0c', '\x1b[31m', '\x7f', '\x85', '\x9b', '\u2028', '\u2029', '\u202e',
  '\u2066', '\u2069', '\u061c', '\u200e', '\u200f', '\ufeff', '\ufffe', '\ufff9', '\r', '\r\n', '\n', '\n\n', '\t', ' ', 'a',
  'text', 'Grüße', '日本語', '🎉', '\u0301', '\u200d',
] as const;

/** Up to 30 pieces, some of them lone surrogates. */
function randomContent(random: Seeded): string {
  return Array.from({ length: random.between(1, 30) }, () => (
    random.oneIn(20) ? String.fromCharCode(random.between(0xd800, 0xdfff)) : random.pick(PIECES)
  )).join('');
}

/** What a reader sees of a line. */
function visible(text: string): string {
  return text.toWellFormed()
    .replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (hidden) => (
      `<U+${hidden.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`
    ));
}

const paste = asFound(inlinePaste(Buffer.from('content')));

function pageOf(content: string, lines = new NumberedLines()): string {
  const text = Buffer.from(content).toString();
  return pageText(textPage(paste, '1 day'), lines.next(text, true));
}

test('html: every value is text, in elements and in attributes', () => {
  const value = `<a b='c' d="e">&amp;`;
  assert.equal(html`<p title="${value}">${value}</p>`.text,
    '<p title="&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;">&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;</p>');
  assert.equal(html`${html`<b>`}${[html`<i>`, html`<u>`]}${3}`.text, '<b><i><u>3');
  assert.equal(html`${'\0\x1b\x7f\x85\u202e\u2028\ufeff\t\n'}`.text,
    '&lt;U+0000&gt;&lt;U+001B&gt;&lt;U+007F&gt;&lt;U+0085&gt;&lt;U+202E&gt;&lt;U+2028&gt;&lt;U+FEFF&gt;\t\n');
});

test('html: what only looks finished is text', () => {
  const forged = { text: '<script>' } as unknown as string;
  assert.throws(() => html`${forged}`);
  assert.equal(html`${['<p>'] as unknown as string}`.text, '');
});

test('textPage: the lines of 10 000 random contents, and nothing else of the page, depend on them', () => {
  const structure = structureOf(assertPage(pageOf('one line')));
  forSeeds(10_000, (random) => {
    const content = randomContent(random);
    const page = assertPage(pageOf(content));
    const pre = only(page, 'pre');
    const expected = visible(Buffer.from(content).toString().replace(/\r\n/g, '\n').replace(/\n/g, '\t\t'));
    assert.equal(textOf(pre).replace('\n', '').replace(/\n/g, '\t\t'), expected);
    // A line is three elements. With all lines but the first removed, every page is the same.
    const lines = elements(pre, 'a').length;
    assert.deepEqual(pre.children.filter((child) => typeof child !== 'string').length, 3 * lines);
    pre.children.splice(4);
    assert.equal(structureOf(page), structure);
  });
});

test('burnPage and refusalPage: random words leave the structure the same', () => {
  const words = (text: string): string => {
    const reply = refusalReply(new Refusal('queryInvalid', { hint: text, parameter: text }));
    return String(refusalPage({ route: '-', parameter: '' }, reply).body);
  };
  const sealed = (url: string): string => pageText(burnPage(paste, '1 day', url));
  for (const make of [words, sealed]) {
    const structure = structureOf(assertPage(make('a')));
    forSeeds(1000, (random) => assert.equal(structureOf(assertPage(make(randomContent(random).toWellFormed()))), structure));
  }
});

test('NumberedLines: the same however the text is cut', () => {
  forSeeds(500, (random) => {
    const content = Array.from({ length: 5 }, () => randomContent(random)).join('\n');
    const whole = new NumberedLines().next(Buffer.from(content).toString(), true).text;
    const lines = new NumberedLines();
    const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
    const pieces = cutAtRandom(Buffer.from(content), random, 7).map((piece) => lines.next(utf8.decode(piece, { stream: true })).text);
    assert.equal(pieces.join('') + lines.next('', true).text, whole);
  });
});

test('NumberedLines: a number for each line that has anything, until they are too many', () => {
  const numbers = (text: string): string[] => [...text.matchAll(/id="L(\d+)"/g)].map(([, number = '']) => number);
  const of = (text: string): string[] => numbers(new NumberedLines().next(text, true).text);
  assert.deepEqual(of('a'), ['1']);
  assert.deepEqual(of('a\n'), ['1']);
  assert.deepEqual(of('a\n\nb\r\n\r\n'), ['1', '2', '3', '4']);
  assert.equal(of('\n'.repeat(30_000)).length, 20_000);
  const padded = new NumberedLines(2).next('a\n'.repeat(10), true).text;
  assert.match(padded, /<small inert> <\/small><a [^>]*><small inert>9<\/small><\/a><small inert>  <\/small>a\n/);
  assert.match(padded, /\n<a [^>]*><small inert>10<\/small><\/a><small inert>  <\/small>a\n/);
});

test('NumberedLines: no piece that is made at a time takes long, whatever it holds', () => {
  for (const content of ['\n', '<', '\u202e', 'a', '\r\n', '&\n']) {
    const piece = content.repeat(2048 / Buffer.byteLength(content));
    // The best of many times counts, since other work on the machine slows some down.
    const times = Array.from({ length: 50 }, () => {
      const lines = new NumberedLines();
      const startedMs = performance.now();
      lines.next(piece);
      return performance.now() - startedMs;
    });
    assert.ok(Math.min(...times) < 5, `${JSON.stringify(content)}: ${Math.min(...times)} ms`);
  }
});

test('NumberedLines: lines past the numbered ones are the same text, and cost little, however many they are', () => {
  const past = (): NumberedLines => {
    const lines = new NumberedLines();
    lines.next('\n'.repeat(20_000));
    return lines;
  };
  const lines = past();
  const pieces = ['a\r', '\n\r', '\r\n<\r', 'b\n', '\r'].map((piece) => lines.next(piece).text);
  assert.equal(pieces.join('') + lines.next('', true).text, past().next('a\r\n\r\r\n<\rb\n\r', true).text);
  assert.equal(pieces.join(''), 'a\n&lt;U+000D&gt;\n&lt;&lt;U+000D&gt;b\n');
  const piece = '\n'.repeat(2048);
  const bestMs = (make: () => NumberedLines): number => Math.min(...Array.from({ length: 20 }, () => {
    const made = make();
    const startedMs = performance.now();
    made.next(piece);
    return performance.now() - startedMs;
  }));
  const [numberedMs, restMs] = [bestMs(() => new NumberedLines()), bestMs(past)];
  assert.ok(restMs * 10 < numberedMs, `${restMs} ms beside ${numberedMs} ms`);
});

test('durationText and sizeText: in words', () => {
  const durations = [[0, '0 seconds'], [1, '1 second'], [59, '59 seconds'], [60, '1 minute'], [119, '119 seconds'], [120, '2 minutes'],
    [3600, '1 hour'], [7199, '119 minutes'], [86_400, '1 day'], [90_000, '25 hours'], [172_800, '2 days'], [7_776_000, '90 days']] as const;
  for (const [seconds, text] of durations) assert.equal(durationText(seconds), text);
  const sizes = [[1, '1 byte'], [1023, '1023 bytes'], [1024, '1 KiB (1024 bytes)'], [1639, '1.6 KiB (1639 bytes)'],
    [3_145_728, '3 MiB (3145728 bytes)']] as const;
  for (const [bytes, text] of sizes) assert.equal(sizeText(bytes), text);
});

test('readForm: what browsers send', () => {
  assert.deepEqual(readForm(''), {});
  assert.deepEqual(readForm('reveal=1'), { reveal: '1' });
  assert.deepEqual(readForm('password=a+b%26%3D%C3%A9%F0%9F%8E%89&reveal=1'), { password: 'a b&=é🎉', reveal: '1' });
  assert.deepEqual(readForm('password='), { password: '' });
  assert.deepEqual(readForm('%72eveal=%31&pass%77ord=%61'), { password: 'a', reveal: '1' });
  const random = createSeeded(1);
  for (let turn = 0; turn < 1000; turn += 1) {
    const password = randomContent(random).toWellFormed();
    assert.deepEqual(readForm(String(new URLSearchParams({ password }))), { password });
  }
});

test('readForm: anything else is refused', () => {
  const wrong = [
    'x', 'password', '&', 'password=a&', 'password=a&password=a', 'reveal=1&reveal=1', 'reveal', 'reveal=', 'reveal=0', 'reveal=true',
    'other=1', 'password=a=b', 'password=%', 'password=%zz', 'password=%C3', 'password=%ED%A0%80', 'password=\xe9', 'password=a b',
    'password=a\n', '{"password":"a"}', 'Password=a', '__proto__=1', '&password=a', 'reveal=1&&password=a',
    'password=a&reveal=1&password=b', 'password=a&%70assword=b', 'password=a&reveal', '=a', 'pass%c3word=a',
  ];
  for (const text of wrong) {
    assert.throws(() => readForm(text), (error) => error instanceof Refusal && error.refusal === 'formInvalid', text);
  }
});
