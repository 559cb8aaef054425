// That one module makes all HTML, by one template that escapes every value, held over all of src/. What the template
// does to values is test/unit/page.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as page from '../../src/http/page.ts';
import { type SourceFile, sourceFiles } from '../support/source.ts';

const MAKER = 'src/http/page.ts';

const files = sourceFiles();
const maker = files.find(({ path }) => path === MAKER)!;

/** Where markup could begin inside of quotes: `<` and a letter, a slash or an exclamation mark, in no comment. */
function markupIn({ text, code }: SourceFile): number[] {
  const spoken = text.replace(/^[ \t]*(?:\/\*\*[^]*?\*\/|\/\/.*$)/gm, (comment) => comment.replace(/[^\n]/g, ' '));
  return [...spoken.matchAll(/<[A-Za-z/!]/g)].map(({ index }) => index).filter((index) => code[index] === ' ');
}

interface Template {
  readonly tag: string;
  /** The parts between the values. */
  readonly chunks: { readonly start: number; readonly end: number }[];
}

/** Every template literal, from its code, in which what is between quotes is blank. */
function templatesOf(code: string): Template[] {
  const found: Template[] = [];
  const open: { template: Template; start: number; braces: number }[] = [];
  for (const { index, 0: mark } of code.matchAll(/[`{}]/g)) {
    const inner = open.at(-1);
    const isInside = inner !== undefined && inner.braces === 0;
    if (mark === '`' && !isInside) {
      const [tag = ''] = /\w*$/.exec(code.slice(0, index)) ?? [];
      open.push({ template: { tag, chunks: [] }, start: index + 1, braces: 0 });
    } else if (isInside) {
      inner.template.chunks.push({ start: inner.start, end: index });
      if (mark === '`') found.push(open.pop()!.template);
      else inner.braces = 1;
    } else if (inner !== undefined) {
      inner.braces += mark === '{' ? 1 : -1;
      if (inner.braces === 0) inner.start = index + 1;
    }
  }
  assert.deepEqual(open, []);
  return found;
}

test('src: no other file has markup between quotes', () => {
  const found = files.filter((file) => file !== maker && markupIn(file).length > 0).map(({ path }) => path);
  assert.deepEqual(found, []);
  const spoken = files.filter(({ path, text }) => text.includes('text/html') && !path.startsWith('src/client/'));
  const mentioning = spoken.filter((file) => /'[^'\n]*text\/html|\/text\\\/html/.test(file.text)).map(({ path }) => path);
  assert.deepEqual(mentioning.filter((path) => !path.startsWith('src/config/')), ['src/http/engine/head.ts', MAKER]);
});

test('src: all markup of that file is in its template', () => {
  const chunks = templatesOf(maker.code).filter(({ tag }) => tag === 'html').flatMap((template) => template.chunks);
  const outside = markupIn(maker).filter((index) => !chunks.some(({ start, end }) => index >= start && index < end));
  assert.deepEqual(outside.map((index) => maker.text.slice(index, index + 40)), []);
  assert.ok(markupIn(maker).length > 50);
});

test('src: values stand in text or between the quotes of an attribute, never else in a tag', () => {
  for (const { tag, chunks } of templatesOf(maker.code)) {
    if (tag !== 'html') continue;
    let markup = '';
    for (const { start, end } of chunks) {
      const chunk = maker.text.slice(start, end).replace(/\$$/, '');
      markup += chunk;
      const [inTag] = /<[^>]*$/.exec(markup) ?? [];
      if (inTag !== undefined) assert.equal(inTag.split('"').length % 2, 0, `in quotes: ${inTag}`);
      // A value stands for nothing that opens or closes a tag.
      markup += 'value';
    }
    assert.doesNotMatch(markup, / on\w+=|<(?:script|style|link|img|iframe|object|base)\b|javascript:/i);
  }
});

test('src: nothing else makes finished HTML', () => {
  assert.equal(maker.code.match(/\bnew Markup\(/g)?.length, 1);
  assert.ok(!('Markup' in page), 'its class is not to be had');
  assert.deepEqual(files.filter(({ path, code }) => path !== MAKER && /\bas (?:unknown as )?Markup\b/.test(code)), []);
});

test('the rules about markup see what they must', () => {
  const found = (text: string, code: string): number => markupIn({ path: 'x.ts', text, code }).length;
  assert.equal(found("a = '<b>';", "a = '   ';"), 1);
  assert.equal(found('// <b>', '      '), 0);
  assert.equal(found('/** `<b>` */', '            '), 0);
  assert.equal(found('a <b', 'a <b'), 0);
  assert.deepEqual(templatesOf('html` {a} {f(` `)} `').map(({ tag, chunks }) => [tag, chunks.length]), [['', 1], ['html', 3]]);
});
