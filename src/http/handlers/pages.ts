// The pages of pastes: GET /{id} of a browser, and POST /{id} of the two forms there. Loaded with the first of them, so
// that requests of programs need nothing of this. What the pages say is in page.ts.

import { type CompactBytes, compactBytes, TEXT_TYPE } from '../../core/content.ts';
import { orUndefined } from '../../core/events.ts';
import { Refusal } from '../../core/refusals.ts';
import { andThen, type Awaitable, KIB, MIB, unixSeconds } from '../../core/time.ts';
import type { Parts } from '../../pastes/parts.ts';
import * as pastes from '../../pastes/pastes.ts';
import type { Paste } from '../../store/store.ts';
import { ClientGoneError, Turns } from '../engine/body.ts';
import { type Reply, StreamedBody } from '../engine/reply.ts';
import type { Request } from '../engine/request.ts';
import { requireWholeContent, wholeBody } from '../input.ts';
import {
  binaryPage, burnPage, durationText, NumberedLines, pageText, SHOWN_BYTES, textPage, UNLISTED_HEADERS,
} from '../page.ts';
import { bodyOf, contentHead, countLookup, lookupOf, withCharset } from './pastes.ts';

/** The page of a shorter text is made at once: 4 ms of work where each byte is a line of its own. */
const AT_ONCE_BYTES = 4 * KIB;

const PIECE_BYTES = 2 * KIB;

/** All long pages together make one piece in a turn of the event loop: one of each would hold others up for seconds. */
const turns = new Turns();

/** GET and HEAD /{id}. Never burns, and lets go of content that it does not show. */
export function showPaste(parts: Parts, request: Request): Awaitable<Reply> {
  const opening = andThen(countLookup(parts, request), () => pastes.openPaste(parts, lookupOf(request), 'look'));
  return andThen(opening, (opened) => {
    const { mimeType, burnAfterRead } = opened.paste;
    return (mimeType === TEXT_TYPE && !burnAfterRead ? textReply : factsReply)(parts, request, opened);
  });
}

/** POST /{id}: limited and refused like GET of the content. It burns the paste like GET, but only with `reveal`. */
export async function answerForm(parts: Parts, request: Request): Promise<Reply> {
  requireWholeContent(request.headers);
  await countLookup(parts, request);
  const form = Buffer.from(await wholeBody(request.body, MAX_FORM_BYTES));
  const { password, reveal } = readForm(form.toString('latin1'));
  // Blanks at its ends are not part of a password: HTTP strips them from the header that sets it.
  const lookup = { ...lookupOf(request), password: /[^ \t](?:.*[^ \t])?/s.exec(password ?? '')?.[0] };
  const opened = await pastes.openPaste(parts, lookup, reveal === undefined ? 'look' : 'read');
  const isKept = reveal === undefined && opened.paste.burnAfterRead;
  return isKept ? factsReply(parts, request, opened) : readReply(parts, request, opened);
}

async function factsReply(parts: Parts, request: Request, opened: pastes.OpenedPaste): Promise<Reply> {
  const { paste } = opened;
  using held = new DisposableStack();
  held.defer(() => pastes.release(opened));
  const sealedUrl = await isSealed(opened) ? `${request.publicUrl}/${paste.id}` : undefined;
  const page = paste.burnAfterRead ? burnPage : binaryPage;
  const body = pageText(page(paste, durationText(paste.expiresAt - unixSeconds(parts.clock)), sealedUrl));
  return { status: 200, headers: UNLISTED_HEADERS, body };
}

/** The answer to someone who asked to read: text as a page, if all of it fits there, anything else to be saved. */
async function readReply(parts: Parts, request: Request, opened: pastes.OpenedPaste): Promise<Reply> {
  const { paste } = opened;
  const burned = paste.burnAfterRead ? { 'X-Burn-After-Read': 'true' } : {};
  if (paste.mimeType === TEXT_TYPE && paste.size <= SHOWN_BYTES) {
    const reply = await textReply(parts, request, opened);
    return { ...reply, headers: { ...reply.headers, ...burned } };
  }
  const { 'Repr-Digest': digest } = contentHead(paste).headers;
  const headers = {
    'Content-Type': paste.mimeType, 'Content-Disposition': `attachment; filename="${paste.id}"`,
    ...(digest !== undefined && { 'Repr-Digest': digest }), 'X-Robots-Tag': 'noindex', ...burned,
  };
  return withCharset({ status: 200, headers, body: bodyOf(opened) });
}

function textReply(parts: Parts, request: Request, opened: pastes.OpenedPaste): Awaitable<Reply> {
  const { paste } = opened;
  const left = durationText(paste.expiresAt - unixSeconds(parts.clock));
  const isSmall = opened.kind === 'small' && paste.size <= AT_ONCE_BYTES;
  return isSmall ? smallTextReply(paste, left, opened.content) : longTextReply(opened, left, request);
}

async function longTextReply(opened: pastes.OpenedPaste, left: string, request: Request): Promise<Reply> {
  using held = new DisposableStack();
  held.defer(() => pastes.release(opened));
  const pieces = (): AsyncGenerator<Uint8Array> => pagePieces(opened, left);
  // Every answer says how long it is, so the page is made twice: keeping it would take megabytes for each slow reader.
  let bytes = 0;
  for await (const { length } of pieces()) {
    if (request.state === 'over') throw new ClientGoneError('the client broke off');
    bytes += length;
  }
  held.move();
  const body = new StreamedBody(bytes, pieces, () => pastes.release(opened));
  return { status: 200, headers: UNLISTED_HEADERS, body };
}

async function* pagePieces(opened: pastes.OpenedPaste, left: string): AsyncGenerator<Uint8Array> {
  const [top, bottom] = textPage(opened.paste, left);
  const lines = new NumberedLines();
  // Where a text is cut off in the middle of a character, that character is left out.
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  yield Buffer.from(top.text);
  for await (const bytes of contentPieces(opened, Math.min(opened.paste.size, SHOWN_BYTES))) {
    await turns.wait();
    yield Buffer.from(lines.next(utf8.decode(bytes, { stream: true })).text);
  }
  yield Buffer.from(lines.next('', true).text + bottom.text);
}

async function* contentPieces(opened: pastes.OpenedPaste, end: number): AsyncGenerator<Uint8Array> {
  for await (const bytes of opened.kind === 'small' ? [bytesOf(opened.content)] : opened.reader.read(0, end)) {
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES);
  }
}

function bytesOf(content: CompactBytes): Uint8Array {
  return 'latin1' in content ? Buffer.from(content.latin1, 'latin1') : content;
}

// Recent pages of small texts are kept, since making one takes as long as the rest of its answer. A page is good for as
// long as its paste is in memory and what it says of the expiry stays true.

const MAX_KEPT_BYTES = 8 * MIB;

let kept = new WeakMap<Paste, { readonly left: string; readonly reply: Reply }>();
let keptBytes = 0;

function smallTextReply(paste: Paste, left: string, content: CompactBytes): Reply {
  const known = kept.get(paste);
  if (known?.left === left) return known.reply;
  const text = Buffer.from(bytesOf(content)).toString();
  const digits = String(text.split('\n').length).length;
  const page = Buffer.from(pageText(textPage(paste, left), new NumberedLines(digits).next(text, true)));
  const body = compactBytes(page);
  keptBytes += page.length;
  if (keptBytes > MAX_KEPT_BYTES) {
    kept = new WeakMap();
    keptBytes = page.length;
  }
  const reply = { status: 200, headers: UNLISTED_HEADERS, body };
  kept.set(paste, { left, reply });
  return reply;
}

/** What `pastec --encrypt` begins with. */
const SEALED_MAGIC = Buffer.from('\x89pastec-1\n', 'latin1');

async function isSealed(opened: pastes.OpenedPaste): Promise<boolean> {
  await using pieces = contentPieces(opened, SEALED_MAGIC.length);
  // Content has a byte at least, and so a piece.
  const { value } = await pieces.next() as { value: Uint8Array };
  return SEALED_MAGIC.equals(value.subarray(0, SEALED_MAGIC.length));
}

/** Room for the longest password with each of its bytes escaped. */
const MAX_FORM_BYTES = 16 * KIB;

/** A form as browsers write it (https://url.spec.whatwg.org/#concept-urlencoded-serializer), and nothing else. */
const FORM = /^(?:[!-%'-<>-~]+=[!-%'-<>-~]*(?:&(?=.)|$))*$/;

/** Refuses bytes that a browser would have escaped, and escapes that are not those of UTF-8. */
export function readForm(text: string): { password?: string; reveal?: string } {
  const isWellFormed = FORM.test(text) && orUndefined(() => decodeURIComponent(text)) !== undefined;
  const form = new URLSearchParams(text);
  const areKnown = [...form].every(([name, value]) => name === 'password' || (name === 'reveal' && value === '1'));
  if (!isWellFormed || !areKnown || new Set(form.keys()).size < form.size) throw new Refusal('formInvalid');
  return Object.fromEntries(form);
}
