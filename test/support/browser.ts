// Requests as browsers and other clients send them, and what they are shown.

import assert from 'node:assert/strict';
import type { RunningApp } from './app.ts';
import { assertPage, type Element, only, textOf } from './html.ts';

/** The Accept header of a navigation. */
export const BROWSERS = {
  chrome: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,' +
    'application/signed-exchange;v=b3;q=0.7',
  firefox: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/png,image/svg+xml,*/*;q=0.8',
  safari: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  lynx: 'text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01',
} as const;

export interface Shown {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly page: Element;
  /** Its only heading of the first level. */
  readonly heading: string;
}

/** What Firefox is shown; fails unless it is a page with all that a page must have. */
export async function show(app: RunningApp, path: string, options: RequestInit = {}): Promise<Shown> {
  const headers = { Accept: BROWSERS.firefox, ...options.headers as Record<string, string> };
  const response = await app.request(path, { ...options, headers });
  const text = await response.text();
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8', text);
  assert.equal(response.headers.get('vary'), 'Accept');
  assert.equal(response.headers.get('etag'), null, 'no validator of the content');
  assert.equal(response.headers.get('set-cookie'), null);
  const page = assertPage(text);
  return { status: response.status, headers: response.headers, text, page, heading: textOf(only(page, 'h1')) };
}

/** Sends a form as a browser does. */
export function send(path: string, fields: Readonly<Record<string, string>>): readonly [path: string, options: RequestInit] {
  return [path, { method: 'POST', body: new URLSearchParams(fields), headers: { 'Sec-Fetch-Site': 'same-origin' } }];
}

/** The lines of a text paste as they would be copied. */
export function linesOf({ page }: Shown): string {
  return textOf(only(page, 'pre')).slice('\n'.length);
}
