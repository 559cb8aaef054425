// HTML as the service may send it, read far more strictly than a browser reads it: only known elements, each closed,
// attributes in double quotes, and every character of markup escaped. Anything else fails the test.

import assert from 'node:assert/strict';

export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: (Element | string)[];
}

/** Elements without an end tag. */
const VOID = ['meta', 'input', 'wbr'];

const KNOWN = new Set([
  ...VOID, 'html', 'head', 'title', 'body', 'header', 'main', 'nav', 'footer', 'h1', 'h2', 'h3', 'p', 'a', 'strong', 'code',
  'pre', 'small', 'time', 'table', 'tr', 'th', 'td', 'dl', 'dt', 'dd', 'form', 'label', 'button',
]);

/** None begins with `on`, and none is `style`, `src` or anything else that could load or run something. */
const ATTRIBUTES = new Set([
  'lang', 'charset', 'http-equiv', 'content', 'name', 'role', 'align', 'valign', 'cellpadding', 'cellspacing', 'width', 'href', 'rel',
  'download', 'datetime', 'scope', 'id', 'tabindex', 'aria-hidden', 'aria-label', 'inert', 'method', 'action', 'target', 'for',
  'type', 'required', 'autocomplete', 'autofocus', 'size', 'value', 'wrap',
]);

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': '\'',
};

const TOKEN = /<(\/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)>|([^<>]+)/y;

/** The element `html`. */
function parseHtml(text: string): Element {
  const start = '<!DOCTYPE html>\n';
  assert.ok(text.startsWith(start), text.slice(0, 100));
  const root: Element = { name: '', attributes: {}, children: [] };
  const open = [root];
  TOKEN.lastIndex = start.length;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const [, slash, name = '', attributes = '', content] = TOKEN.exec(text) ?? assert.fail(`at ${text.slice(at, at + 200)}`);
    if (content !== undefined) open.at(-1)!.children.push(plainText(content));
    else if (slash === '/') assert.equal(open.pop()!.name, name, `closed at ${at}`);
    else {
      assert.ok(KNOWN.has(name) && !(name === 'wbr' && attributes !== ''), `element ${name}`);
      const element = { name, attributes: attributesOf(attributes), children: [] };
      open.at(-1)!.children.push(element);
      if (!VOID.includes(name)) open.push(element);
    }
  }
  assert.deepEqual(open, [root], 'all is closed');
  const [html, ...others] = root.children.filter((child) => child !== '\n');
  assert.deepEqual(others, []);
  return html as Element;
}

function attributesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/ ([a-z-]+)(?:="([^"]*)")?/g)) {
    assert.ok(ATTRIBUTES.has(name) && !(name in attributes), `attribute ${name}`);
    attributes[name] = plainText(value);
    if (name === 'target') assert.equal(value, '_blank', 'no other frame of a page');
  }
  return attributes;
}

/** Refuses characters that are invisible, except tab and newline, or that change the order of what is seen. */
function plainText(text: string): string {
  assert.doesNotMatch(text, /(?![\t\n])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\ufeff]/u);
  assert.ok(text.isWellFormed());
  return text.replace(/&[^;]*(?:;|$)/g, (entity) => ENTITIES[entity] ?? assert.fail(`entity ${entity}`));
}

/** Every element of that name, in order. */
export function elements(element: Element, name: string): Element[] {
  return element.children.flatMap((child) => {
    if (typeof child === 'string') return [];
    return [...(child.name === name ? [child] : []), ...elements(child, name)];
  });
}

/** The one element of that name. */
export function only(element: Element, name: string): Element {
  const found = elements(element, name);
  assert.equal(found.length, 1, `one ${name}`);
  return found[0]!;
}

/** The text that is selected when the whole element is, without what is inert. */
export function textOf(element: Element): string {
  if ('inert' in element.attributes) return '';
  return element.children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('');
}

/** The elements with the names of their attributes, nested as they are, without text and `wbr`. */
export function structureOf({ name, attributes, children }: Element): string {
  if (name === 'wbr') return '';
  const inner = children.map((child) => (typeof child === 'string' ? '' : structureOf(child))).join('');
  return `${name}[${Object.keys(attributes).join(' ')}](${inner})`;
}

/** Checks what holds of every page, beside the headers. `contact` is the only link that may lead elsewhere. */
export function assertPage(text: string, contact = ''): Element {
  const page = parseHtml(text);
  assert.equal(page.attributes['lang'], 'en');
  const metas = elements(only(page, 'head'), 'meta').map(({ attributes }) => attributes);
  assert.deepEqual(metas, [
    { charset: 'utf-8' },
    { 'http-equiv': 'Content-Security-Policy', content: "base-uri 'none'; form-action 'self'" },
    { name: 'viewport', content: 'width=device-width, initial-scale=1' },
    { name: 'color-scheme', content: 'light dark' },
  ]);
  only(page, 'title');
  only(only(page, 'main'), 'h1');
  only(page, 'h1');
  const labelled = elements(page, 'label').map(({ attributes }) => attributes['for']);
  assert.deepEqual(labelled, elements(page, 'input').map(({ attributes }) => attributes['id']), 'every field has a label');
  for (const { attributes } of elements(page, 'table')) {
    assert.ok(attributes['role'] === 'presentation' || attributes['cellpadding'] === '2');
  }
  for (const { attributes: { href = '' } } of elements(page, 'a')) {
    if (contact !== '' && href === contact) continue;
    assert.match(href, /^(?:#L\d+|\.{1,2}\/|(?:\.\.?\/)?[A-Za-z0-9]+(?:\/raw)?)$/, 'a relative URL');
  }
  return page;
}
