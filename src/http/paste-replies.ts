// The answers that say the same to everyone who may read a paste: its metadata, its content and the headers of that.
// They are made once for as long as the store keeps the paste in memory, where a paste found again is the same object
// (store/hot-pastes.ts). Conditions, ranges and passwords are the handlers'.

import type { CompactBytes } from '../core/bytes.ts';
import { isInlineDisposition } from '../core/content.ts';
import type { Paste } from '../store/store.ts';
import { presentMetadata } from './present.ts';
import { jsonReply, type Reply } from './reply.ts';

/** Of all of the content. */
export interface ContentReply extends Reply {
  /** The entity tag, whether or not the headers have it. */
  readonly etag: string;
}

export interface PasteReplies {
  metadata(paste: Paste): Reply;
  /** What GET says of the whole content, without its body: so does HEAD. */
  head(paste: Paste): Omit<ContentReply, 'body'>;
  content(paste: Paste, content: CompactBytes): ContentReply;
}

export function createPasteReplies(): PasteReplies {
  return {
    metadata: onceForEach<void, Reply>((paste) => jsonReply(200, presentMetadata(paste))),
    head: contentHead,
    content: onceForEach((paste, content: CompactBytes) => ({ ...contentHead(paste), body: content })),
  };
}

/** What is made goes when its paste goes, so that it needs no bound of its own. */
function onceForEach<Given, Made>(make: (paste: Paste, given: Given) => Made): (paste: Paste, given: Given) => Made {
  const made = new WeakMap<Paste, Made>();
  return (paste, given) => {
    const before = made.get(paste);
    if (before !== undefined) return before;
    const now = make(paste, given);
    made.set(paste, now);
    return now;
  };
}

function contentHead(paste: Paste): Omit<ContentReply, 'body'> {
  const etag = `"sha256-${paste.sha256}"`;
  const headers = {
    'Content-Type': paste.mimeType,
    'Content-Disposition': isInlineDisposition(paste.mimeType) ? 'inline' : `attachment; filename="${paste.id}"`,
    'Repr-Digest': `sha-256=:${Buffer.from(paste.sha256, 'hex').toString('base64')}:`,
  };
  // A burn-after-read paste has no validator: nobody gets to ask for it twice.
  const others = paste.burnAfterRead
    ? { 'Accept-Ranges': 'none', 'X-Burn-After-Read': 'true' }
    : { 'Accept-Ranges': 'bytes', ETag: etag };
  return { status: 200, headers: { ...headers, ...others }, etag };
}
