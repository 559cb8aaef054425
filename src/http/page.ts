// All HTML of the service, made by one tagged template that escapes every value. No script, style, image or cookie: a
// script of this origin could act with the client certificate of its visitor.

import { DAY_SECONDS, HOUR_SECONDS, isoSeconds, KIB, MIB, MINUTE_SECONDS, showCount } from '../core/time.ts';
import type { Paste } from '../store/store.ts';
import type { Reply } from './engine/reply.ts';
import type { Request } from './engine/request.ts';
import type { ServiceIndex } from './handlers/service.ts';
import { shortOwner } from './present.ts';

/** Finished HTML. Only `html` makes it. */
class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Markup | readonly Markup[];

/** Finished HTML; whatever else is put into it appears as text, in elements and in quoted attributes alike. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return new Markup(strings.reduce((text, part, index) => text + textOf(values[index - 1]!) + part));
}

function textOf(value: Value): string {
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(value);
  return value instanceof Markup ? value.text : value.map(({ text }) => text).join('');
}

/** Markup, and characters that are invisible or reorder others: controls, separators, annotations, direction marks. */
const SPECIAL = /[&<>"'\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;',
};

/** Shows invisible characters by their numbers: few fonts have the pictures that Unicode has for some controls. */
function escaped(text: string): string {
  return text.replace(SPECIAL, (character) => (
    ENTITIES[character] ?? `&lt;U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}&gt;`
  ));
}

export const PAGE_HEADERS = { 'Content-Type': 'text/html; charset=utf-8', Vary: 'Accept' };

/** For every page but the front page. */
export const UNLISTED_HEADERS = { ...PAGE_HEADERS, 'X-Robots-Tag': 'noindex' };

/** Two parts of a document: what is streamed comes between them. */
export type Page = readonly [top: Markup, bottom: Markup];

export function pageText([top, bottom]: Page, between = html``): string {
  return html`${top}${between}${bottom}`.text;
}

/** A column in the middle: no wider than lines are good to read, and as narrow as a small screen. */
function column(content: Markup): Markup {
  return html`<table role="presentation" align="center" cellpadding="0" cellspacing="0"><tr><td width="720">
${content}
</td></tr></table>`;
}

/**
 * `title` says what it is, and never content; a small screen has room for a word of it as a heading. `home` is the
 * relative URL of the front page. The policy narrows further what `default-src` does not cover.
 */
function article(title: string, content: Markup, home?: string, pre = html``, rest = html``): Page {
  return [
    html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="base-uri 'none'; form-action 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} - pasted</title>
</head>
<body>
<main>${column(html`<h1><small>${title}</small></h1>\n${content}`)}${pre}`,
    html`${rest}</main>${home === undefined ? html`` : html`
<footer>${column(html`<p><a href="${home}" rel="${REL}">About this service</a></p>`)}</footer>`}
</body>
</html>
`,
  ];
}

const REL = 'nofollow noopener noreferrer';

type Fact = readonly [name: string, value: Value];

function facts(rows: readonly Fact[]): Markup {
  return html`<table cellpadding="2">${rows.map(([name, value]) => html`
<tr><th scope="row" align="left" valign="top">${name}</th><td>${value}</td></tr>`)}
</table>`;
}

/** `left` is how long it is kept, as a durationText. */
function pasteFacts(paste: Paste, left: string, ...others: readonly Fact[]): Markup {
  return facts([
    ['Type', html`<code>${breakable(paste.mimeType)}</code>`],
    ['Size', sizeText(paste.size)],
    ['Created', moment(paste.createdAt)],
    ['Expires', html`${moment(paste.expiresAt)} (in ${left})`],
    ...(paste.owner === null ? [] : [['Owner', html`<code>${breakable(shortOwner(paste.owner))}</code>`] as const]),
    ...others,
  ]);
}

function moment(seconds: number): Markup {
  const iso = isoSeconds(seconds);
  return html`<time datetime="${iso}">${breakable(iso.slice(0, -1).replace('T', ' '))} UTC</time>`;
}

/** Where a line may break: after each part of a path, date or name, and within words as long as digests and ids. */
const BREAKS = /(?<=\d-|[/_:](?![/_])|(?<=^|[\W_])(?:[^\W_]{6})+(?=[^\W_]{5}))/;

/** Lets a long word break where there is no room for all of it; it is copied without a gap. */
function breakable(text: string): Markup {
  return html`${text.split(BREAKS).map((part) => html`${part}<wbr>`)}`;
}

const UNITS = [[DAY_SECONDS, 'day'], [HOUR_SECONDS, 'hour'], [MINUTE_SECONDS, 'minute'], [1, 'second']] as const;

/** In the largest unit of which there are two at least, rounded down: `36 hours`. */
export function durationText(seconds: number): string {
  const [unit, name] = UNITS.find(([size]) => seconds >= 2 * size || seconds === size) ?? [1, 'second'];
  return showCount(Math.floor(seconds / unit), name);
}

export function sizeText(bytes: number, exactly = ` (${bytes} bytes)`): string {
  const [unit, name] = bytes < MIB ? [KIB, 'KiB'] : [MIB, 'MiB'];
  return bytes < KIB ? showCount(bytes, 'byte') : `${Math.floor((10 * bytes) / unit) / 10} ${name}${exactly}`;
}

/** The page of a longer text has only its beginning. */
export const SHOWN_BYTES = 512 * KIB;

/** The text's lines go between the two parts. A paste with a password, or a burned one, has no link: it would fail. */
export function textPage(paste: Paste, left: string): Page {
  const rest = paste.size <= SHOWN_BYTES ? html`` : html`
<p>These are the first ${sizeText(SHOWN_BYTES)}. <a href="${paste.id}/raw" rel="${REL}">The whole text</a> is in the raw
answer.</p>`;
  const content = html`${pasteFacts(paste, left)}\n${reading(paste)}`;
  return article('Text paste', content, './', html`\n<pre wrap>\n`, html`</pre>${rest}`);
}

function reading({ id, burnAfterRead, passwordHash }: Paste): Markup {
  if (burnAfterRead) {
    return html`<p><strong>It has been deleted: this page is the only copy</strong>, and cannot be loaded again.</p>`;
  }
  if (passwordHash !== null) return html`<p>Reading it takes the password each time.</p>`;
  return html`<nav aria-label="This paste">
<p><a href="${id}/raw" rel="${REL}">Raw text</a>, to copy or to link to</p>
<p><a href="${id}/raw" rel="${REL}" download="${id}.txt">Download</a></p>
</nav>`;
}

/** Lines past this one are shown without a number: a number takes a hundred bytes. */
const MAX_NUMBERED = 20_000;

/**
 * The lines of a text that comes in pieces. The number of each is a link to it; `inert` keeps numbers out of what is
 * selected and copied (HTML section 6.3: as if user-select and pointer-events were none, so a click is for the link).
 * `aria-hidden` keeps thousands of links out of what is read aloud. Chromium still exposes the link with the focus, so
 * each link has a name, and notes that in the console: no other role or attribute hides a link there.
 */
export class NumberedLines {
  readonly #digits: number;
  #number = 1;
  #isAtStart = true;
  /** A carriage return at the end of a piece, which may belong to the line's end. */
  #held = '';

  constructor(digits = String(MAX_NUMBERED).length) {
    this.#digits = digits;
  }

  next(piece: string, isLast = false): Markup {
    const whole = this.#held + piece;
    this.#held = !isLast && whole.endsWith('\r') ? '\r' : '';
    const text = whole.slice(0, whole.length - this.#held.length).replaceAll('\r\n', '\n');
    const lines: Markup[] = [];
    for (let start = 0; start < text.length;) {
      const isNumbered = this.#number <= MAX_NUMBERED;
      // The rest goes all at once: half a million empty lines, one by one, took a third of a second of processor time.
      const newline = isNumbered ? text.indexOf('\n', start) : -1;
      const end = newline === -1 ? text.length : newline + 1;
      lines.push(html`${isNumbered && this.#isAtStart ? this.#anchor() : ''}${text.slice(start, end)}`);
      this.#isAtStart = newline !== -1;
      start = end;
    }
    return html`${lines}`;
  }

  #anchor(): Markup {
    const number = this.#number;
    this.#number += 1;
    const padding = ' '.repeat(this.#digits - String(number).length);
    return html`${padding === '' ? html`` : html`<small inert>${padding}</small>`}\
<a id="L${number}" href="#L${number}" tabindex="-1" aria-hidden="true" aria-label="Line ${number}">\
<small inert>${number}</small></a>\
<small inert>  </small>`;
  }
}

/** How to read a paste that pastec encrypted. The key is never sent, so the page shows where it goes. */
function sealedNote(url: string | undefined): Markup {
  if (url === undefined) return html``;
  return html`<p>It was encrypted by pastec. The key is the part of its URL after <code>#</code>, which browsers do not
send. With the whole URL between the quotes, this decrypts it:</p>
<pre wrap>${breakable(`sh pastec get '${url}`)}#KEY'</pre>
<p><a href="./" rel="${REL}">How to get pastec</a></p>`;
}

/** `sealedUrl` is the URL of what pastec encrypted, and undefined for anything else. */
export function binaryPage(paste: Paste, left: string, sealedUrl: string | undefined): Page {
  const kind = sealedUrl === undefined ? 'Binary paste' : 'Encrypted paste';
  return article(kind, html`${pasteFacts(paste, left, ['SHA-256', html`<code>${breakable(paste.sha256)}</code>`])}
${sealedNote(sealedUrl)}
<p><a href="${paste.id}/raw" rel="${REL}" download="${paste.id}">Download</a></p>`, './');
}

/**
 * For a paste that has not been read. A password has been given already, but is in no page, so it is asked for again.
 * The content opens in its own tab: in this one a second click would cancel the first, which alone gets the content.
 */
export function burnPage(paste: Paste, left: string, sealedUrl: string | undefined): Page {
  return article('This paste can be read once', html`<p>Whoever reads it first has the only copy: it is deleted at
that moment, for everyone. It has not been read yet.</p>
${pasteFacts(paste, left)}
${sealedNote(sealedUrl)}
<form method="post" action="${paste.id}" target="_blank">
${paste.passwordHash === null ? html`` : html`<p><label for="password">The password once more</label>
<input id="password" name="password" type="password" size="12" required autocomplete="off"></p>`}
<p><button name="reveal" value="1">Read it and delete it</button></p>
</form>`, './');
}

/** Refusals after which the password may be given, once more or for the first time. */
const ASKS_PASSWORD: ReadonlySet<string> = new Set(['passwordRequired', 'passwordInvalid', 'passwordQueueFull']);

/** Nobody is told which of these it is: the service no longer knows, and telling would help to guess ids. */
const WHY_NOT_FOUND = 'It has expired, was deleted, or could be read once and has been. Or the link is not whole.';

/** The page in place of a refusal in JSON: the same status, headers and words. */
export function refusalPage({ route, parameter }: Pick<Request, 'route' | 'parameter'>, reply: Reply): Reply {
  const answer = JSON.parse(String(reply.body)) as Record<string, string>;
  const { error = '', hint, password_protected: _, ...fields } = answer;
  const isOfPaste = route.startsWith('/{id}');
  // URLs are relative: the service may be published under a path that it does not know.
  const up = route.endsWith('/raw') ? '../' : './';
  const rows = Object.entries(fields).map(([name, value]) => [name, String(value)] as const);
  const retry = reply.headers['Retry-After'];
  const content = html`${[
    ...(hint === undefined ? [] : [html`<p>${hint}</p>\n`]),
    ...(reply.refusal === 'pasteNotFound' ? [html`<p>${WHY_NOT_FOUND}</p>\n`] : []),
    ...(rows.length === 0 ? [] : [facts(rows)]),
    ...(retry === undefined ? [] : [html`<p>Try again in ${durationText(Number(retry))}.</p>\n`]),
    ...(isOfPaste && ASKS_PASSWORD.has(reply.refusal ?? '') ? [passwordForm(`${up}${parameter}`)] : []),
  ]}`;
  const body = pageText(article(error, content, isOfPaste ? up : undefined));
  return { ...reply, headers: { ...reply.headers, ...UNLISTED_HEADERS }, isNegotiated: false, body };
}

function passwordForm(action: string): Markup {
  return html`<p>Whoever gave you the link knows the password.</p>
<form method="post" action="${action}">
<p><label for="password">Password of this paste</label>
<input id="password" name="password" type="password" size="12" required autocomplete="off" autofocus></p>
<p><button>Open</button></p>
</form>`;
}

export function frontPage(index: ServiceIndex): Page {
  const { version, usage, client, tiers, proof_of_work: work, creation, registration, contact, note } = index;
  const { register, ...withPastec } = client;
  const trusted = work.trusted === undefined ? '' : html`${workText(work.trusted)} with a certificate, `;
  // Where proof-of-work is asked for, pastes are created by pastec alone.
  const { true: byPastec = [], false: byCurl = [] } = Object.groupBy(Object.entries(usage), ([, command]) => (
    command.includes('sh pastec') ? 'true' : 'false'
  ));
  return article('A paste service for terminals', html`<p>Store text or files over HTTP, get a URL, pass it
on. Pastes expire, can burn when they are read, can have a password, and can be encrypted before they leave your
machine. ${note}</p>${creation === undefined ? '' : html`
<p>Mind that ${breakable(creation.hint)}.</p>`}
<h2>With pastec</h2>
<p>The client is one shell script, which this service hands out. Replace FILE and ID by your own.</p>
${lines([...Object.entries(withPastec), ...byPastec])}
<h2>With curl</h2>
${byPastec.length > 0 ? html`<p>Storing asks for some computing, which pastec does and curl cannot.</p>` : html``}
${lines(byCurl)}
<h2>With a certificate</h2>
${register === undefined
    ? html`<p>Here ${breakable(registration?.hint ?? '')}.</p>`
    : html`<p>Registering gives larger limits, and your pastes are yours to list, change and delete.${
    registration === undefined ? '' : html`\nIt takes an invitation: the operator has given you its CODE.`}</p>
${lines([['register', register]])}`}
<h2>Limits</h2>
${limits(tiers)}
<p>Proof-of-work: ${workText(work.paste)} for a paste, ${trusted}${workText(work.register)} for a registration.</p>
${contact === undefined ? html`` : html`<p>To report abuse or a vulnerability:
<a href="${contact}" rel="${REL}">${breakable(contact)}</a></p>\n`}\
<p>This is version ${version}. <code>curl</code> gets this description as JSON, with all endpoints.</p>`);
}

function lines(commands: readonly (readonly [name: string, command: string])[]): Markup {
  return html`<dl>${commands.map(([name, command]) => html`
<dt>${name.replaceAll('_', ' ')}</dt><dd><pre wrap>${breakable(command)}</pre></dd>`)}
</dl>`;
}

const WHO: Readonly<Record<string, string>> = {
  anonymous: 'Without a client certificate.',
  untrusted: 'With a client certificate that is not of this service.',
  trusted: 'With a client certificate of this service.',
};

/** A table for each tier: one table of all tiers would be wider than a small screen. */
function limits(tiers: ServiceIndex['tiers']): Markup {
  return html`${Object.entries(tiers).map(([name, tier]) => html`<h3>${name}</h3>
<p>${WHO[name]!}</p>
${facts([
    ['Largest paste', sizeText(tier.max_size, '')],
    ['Kept for', `${durationText(tier.default_expiry)}, when asked for ${durationText(tier.max_expiry)} at most`],
    ['New pastes', rateText(tier.creations, tier.creations_window)],
    ['Lookups', rateText(tier.lookups, tier.lookups_window)],
  ])}
`)}`;
}

function rateText(count: number | null, windowSeconds: number): string {
  return count === null ? 'no limit' : `${count} in ${durationText(windowSeconds)}`;
}

function workText({ enabled, difficulty }: { readonly enabled: boolean; readonly difficulty: number }): string {
  return enabled ? `${difficulty} bits` : 'none';
}
