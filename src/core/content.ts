// What the service finds out about content while it arrives, and the media type that follows from it. Keeps none of
// the content, and does not decide whether it is acceptable.

import { entropyBitsPerByte } from './entropy.ts';
import { createUtf8Scan } from './utf8-scan.ts';

/** How a cryptographic digest is made, handed in since this layer makes none. */
export interface Digests {
  /** Of bytes that are all there: no object in progress is made for them. */
  whole(bytes: Uint8Array): Uint8Array;
  /** A digest that has taken no bytes yet. */
  begin(): Digest;
}

/** A digest in progress. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** The result, once. */
  digest(): Uint8Array;
}

export interface ContentScanOptions {
  readonly sha256: Digests;
  /** Whether to count byte values too, which costs up to 4 ms a mebibyte. */
  readonly entropy: boolean;
}

export interface ContentFacts {
  readonly bytes: number;
  /** Whether the whole is valid UTF-8. */
  readonly isText: boolean;
  readonly sha256: Uint8Array;
  /** Shannon entropy in bits per byte; undefined when it was not asked for. */
  readonly entropyBits: number | undefined;
}

export interface ContentScan {
  /** The next bytes; only read, never kept. */
  update(bytes: Uint8Array): void;
  /** To be called once, after the last bytes or with them, which is quicker where they are all. */
  finish(last?: Uint8Array): ContentFacts;
}

const NO_BYTES = new Uint8Array(0);

export function createContentScan({ sha256, entropy }: ContentScanOptions): ContentScan {
  const utf8 = createUtf8Scan();
  const histogram = entropy ? new Float64Array(256) : undefined;
  let digest: Digest | undefined;
  let total = 0;

  function take(bytes: Uint8Array): void {
    total += bytes.length;
    utf8.update(bytes);
    if (histogram !== undefined) countBytes(histogram, bytes);
  }

  return {
    update(bytes) {
      take(bytes);
      digest ??= sha256.begin();
      digest.update(bytes);
    },
    finish: (last = NO_BYTES) => {
      take(last);
      digest?.update(last);
      return {
        bytes: total,
        isText: utf8.isValid(),
        sha256: digest === undefined ? sha256.whole(last) : digest.digest(),
        entropyBits: histogram === undefined ? undefined : entropyBitsPerByte(histogram),
      };
    },
  };
}

function countBytes(histogram: Float64Array, bytes: Uint8Array): void {
  for (let position = 0; position < bytes.length; position += 1) histogram[bytes[position]!]! += 1;
}

/** RFC 6838 section 4.2 asks for names of at most 64 characters; no type above is half as long as this. */
export const MAX_MEDIA_TYPE_LENGTH = 64;

export const TEXT_TYPE = 'text/plain';
const BINARY_TYPE = 'application/octet-stream';

/** RFC 6838 section 4.2: restricted-name "/" restricted-name, then parameters or nothing. */
const MEDIA_TYPE = /^[ \t]*([a-z0-9][a-z0-9!#$&^_.+-]{0,126})\/([a-z0-9][a-z0-9!#$&^_.+-]{0,126})[ \t]*(?:;|$)/i;

/** Kinds that are shown or played and not run, whatever their subtype (but see MARKUP). */
const INERT_KINDS: ReadonlySet<string> = new Set(['image', 'audio', 'video', 'font']);

const INERT_APPLICATIONS: ReadonlySet<string> = new Set([
  'pdf',
  'zip',
  'gzip',
  'x-tar',
  'zstd',
  'x-7z-compressed',
  'x-xz',
  'x-bzip2',
]);

/** Browsers read any `+xml` type as a document that may hold scripts, and in UTF-16 that is no valid UTF-8. */
const MARKUP = /^svg|[+]xml$/;

/**
 * The media type that content is stored and served with, in lower case and without parameters: `text/plain` for valid
 * UTF-8, else what the Content-Type header names if that is specific and inert, else `application/octet-stream`. (The
 * decisions, Content.)
 */
export function mediaTypeOf(isText: boolean, contentType: string | undefined): string {
  if (isText) return TEXT_TYPE;
  const [, kind = '', subtype = ''] = MEDIA_TYPE.exec(contentType ?? '')?.map((part) => part.toLowerCase()) ?? [];
  const type = `${kind}/${subtype}`;
  return isInert(kind, subtype) && type.length <= MAX_MEDIA_TYPE_LENGTH ? type : BINARY_TYPE;
}

function isInert(kind: string, subtype: string): boolean {
  if (kind === 'application') return INERT_APPLICATIONS.has(subtype);
  return INERT_KINDS.has(kind) && !MARKUP.test(subtype);
}

/** Whether a browser may show content of that stored type in its window, by the contract; all else is an attachment. */
export function isInlineDisposition(mimeType: string): boolean {
  return mimeType.startsWith('image/') || mimeType.startsWith('text/');
}
