// Strict DER reader (ITU-T X.690): takes bytes that come from outside apart, and refuses every form that is not the
// canonical one. Knows encodings, not meanings: whether text fits its string type, or an OCTET STRING holds more DER,
// is not looked at.

import { CONSTRUCTED_BIT, TAGS } from '../authority/der.ts';

export class DerError extends Error {
  override readonly name = 'DerError';
}

/** One value. The bytes are views of the input. */
export interface DerElement {
  /** The identifier octet, constructed bit included, as in TAGS. */
  readonly tag: number;
  /** The whole encoding. */
  readonly encoding: Uint8Array;
  /** What follows the length. */
  readonly content: Uint8Array;
  /** The values inside a constructed one; empty for a primitive one. */
  readonly children: readonly DerElement[];
}

/** Deeper than any request or certificate goes, so that recursion has an end. */
const MAX_DEPTH = 16;

/** What we read is kilobytes; four octets of length would be gigabytes. */
const MAX_LENGTH_OCTETS = 4;

const CLASS_BITS = 0xc0;
const NUMBER_BITS = 0x1f;

/** The universal types that may occur, all primitive in DER (X.690 section 10.2), and what makes each canonical. */
const PRIMITIVE_RULES: ReadonlyMap<number, (content: Uint8Array) => boolean> = new Map([
  [TAGS.boolean, (content) => content.length === 1 && (content[0] === 0x00 || content[0] === 0xff)],
  [TAGS.integer, isMinimalInteger],
  [TAGS.bitString, isCanonicalBitString],
  [TAGS.octetString, anyContent],
  [TAGS.null, (content) => content.length === 0],
  [TAGS.oid, isCanonicalOid],
  [TAGS.enumerated, isMinimalInteger],
  [TAGS.utf8String, anyContent],
  [0x12, anyContent], // NumericString
  [TAGS.printableString, anyContent],
  [0x14, anyContent], // TeletexString
  [TAGS.ia5String, anyContent],
  [TAGS.utcTime, (content) => /^\d{12}Z$/.test(latin1(content))], // X.690 section 11.8
  [TAGS.generalizedTime, (content) => /^\d{14}(?:\.\d*[1-9])?Z$/.test(latin1(content))], // X.690 section 11.7
  [0x1a, anyContent], // VisibleString
  [0x1c, anyContent], // UniversalString
  [TAGS.bmpString, anyContent],
]);

/** The one value that the bytes encode, checked throughout. Throws a DerError otherwise, also for trailing bytes. */
export function readDer(bytes: Uint8Array): DerElement {
  const [element, ...trailing] = readElements(bytes, 0, bytes.length, 0);
  if (element === undefined || trailing.length > 0) throw new DerError('not exactly one value');
  return element;
}

/** The components of a SEQUENCE that has exactly these tags in this order; a DerError otherwise. */
export function components<const Tags extends readonly number[]>(
  element: DerElement,
  ...tags: Tags
): { readonly [Position in keyof Tags]: DerElement } {
  const { tag, children } = element;
  const fits = tag === TAGS.sequence && children.length === tags.length && children.every((c, i) => c.tag === tags[i]);
  if (!fits) throw new DerError('sequence of other components than expected');
  return children as unknown as { readonly [Position in keyof Tags]: DerElement };
}

/** Whether the element is encoded as these bytes: how object identifiers and algorithms are recognised. */
export function isEncoding(element: DerElement, encoding: Uint8Array): boolean {
  return Buffer.compare(element.encoding, encoding) === 0;
}

/** The number of an INTEGER from 0 up to what is exact; a DerError otherwise. */
export function integerValue(element: DerElement): number {
  const value = Number(`0x${Buffer.from(element.content).toString('hex')}`);
  const isNegative = (element.content[0] ?? 0) >= 0x80;
  const isExact = element.tag === TAGS.integer && !isNegative && Number.isSafeInteger(value);
  if (!isExact) throw new DerError('unsupported INTEGER');
  return value;
}

/** The octets of a BIT STRING without unused bits; a DerError otherwise. */
export function bitStringOctets(element: DerElement): Uint8Array {
  if (element.tag !== TAGS.bitString || element.content[0] !== 0) throw new DerError('unsupported BIT STRING');
  return element.content.subarray(1);
}

function readElements(bytes: Uint8Array, start: number, end: number, depth: number): DerElement[] {
  if (depth > MAX_DEPTH) throw new DerError(`nested too deeply at byte ${start}`);
  const elements: DerElement[] = [];
  let at = start;
  while (at < end) {
    const tag = bytes[at]!;
    if ((tag & NUMBER_BITS) === NUMBER_BITS) throw new DerError(`tag of several octets at byte ${at}`);
    const { from, to } = contentBounds(bytes, at, end);
    const content = bytes.subarray(from, to);
    const isConstructed = (tag & CONSTRUCTED_BIT) !== 0;
    const children = isConstructed ? readElements(bytes, from, to, depth + 1) : [];
    const element = { tag, encoding: bytes.subarray(at, to), content, children };
    checkType(element, at);
    elements.push(element);
    at = to;
  }
  return elements;
}

/** Where the content of the value at `start` begins and ends: X.690 section 10.1, definite and in the fewest octets. */
function contentBounds(bytes: Uint8Array, start: number, end: number): { from: number; to: number } {
  if (start + 1 >= end) throw new DerError(`value cut off at byte ${start}`);
  const first = bytes[start + 1]!;
  const lengthOctets = first < 0x80 ? 0 : first & 0x7f;
  if (first >= 0x80 && (lengthOctets === 0 || lengthOctets > MAX_LENGTH_OCTETS)) {
    throw new DerError(`indefinite or oversized length at byte ${start}`);
  }
  const from = start + 2 + lengthOctets;
  if (from > end) throw new DerError(`value cut off at byte ${start}`);
  const bigEndian = bytes.subarray(start + 2, from);
  const size = lengthOctets === 0 ? first : bigEndian.reduce((sum, octet) => sum * 256 + octet, 0);
  const smallest = lengthOctets === 0 ? 0 : Math.max(0x80, 256 ** (lengthOctets - 1));
  if (size < smallest) throw new DerError(`length not in its fewest octets at byte ${start}`);
  if (size > end - from) throw new DerError(`value cut off at byte ${start}`);
  return { from, to: from + size };
}

function checkType({ tag, content, children }: DerElement, start: number): void {
  // What stands behind a context-specific tag, only the format that uses it can say.
  if ((tag & CLASS_BITS) !== 0 || tag === TAGS.sequence) return;
  if (tag === TAGS.set) {
    if (!isSorted(children)) throw new DerError(`set not in its canonical order at byte ${start}`);
    return;
  }
  const isCanonical = PRIMITIVE_RULES.get(tag);
  if (isCanonical === undefined) throw new DerError(`unsupported type at byte ${start}`);
  if (!isCanonical(content)) throw new DerError(`value not in its canonical form at byte ${start}`);
}

/** X.690 section 11.6; every SET of our formats is a SET OF. */
function isSorted(elements: readonly DerElement[]): boolean {
  return elements.every((element, i) => {
    const previous = elements[i - 1];
    return previous === undefined || Buffer.compare(previous.encoding, element.encoding) <= 0;
  });
}

/** X.690 section 8.3.2: the first nine bits are neither all zeros nor all ones. */
function isMinimalInteger(content: Uint8Array): boolean {
  const [first, second] = content;
  if (first === undefined) return false;
  if (second === undefined) return true;
  return !(first === 0x00 && second < 0x80) && !(first === 0xff && second >= 0x80);
}

/** X.690 section 11.2.1: the unused bits, at most seven, are zero. */
function isCanonicalBitString(content: Uint8Array): boolean {
  const [unused = 8] = content;
  const last = content.length > 1 ? content.at(-1) : undefined;
  if (last === undefined) return unused === 0;
  return unused <= 7 && (last & ((1 << unused) - 1)) === 0;
}

/** X.690 section 8.19.2: each subidentifier has an end, and no leading zeros. */
function isCanonicalOid(content: Uint8Array): boolean {
  const last = content.at(-1);
  if (last === undefined || last >= 0x80) return false;
  return content.every((octet, i) => octet !== 0x80 || (content[i - 1] ?? 0) >= 0x80);
}

function anyContent(): boolean {
  return true;
}

function latin1(content: Uint8Array): string {
  return Buffer.from(content).toString('latin1');
}
