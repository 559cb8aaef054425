// DER writer (ITU-T X.690), for the types that our formats are made of: every function returns the complete encoding of
// one value, and throws a RangeError for a value that it can't encode; it does not check tags and object identifiers,
// since this folder writes them all. crypto/presented.ts reads DER. At the end of this file: checks of names.

import { parseAddress } from '../core/callers.ts';
import { CONSTRUCTED_BIT, TAGS } from '../crypto/presented.ts';

/** RFC 5280 section 4.1.2.5: UTCTime covers 1950 to 2049, GeneralizedTime 2050 to 9999. All in Unix seconds. */
const FIRST_OF_1950 = -631_152_000;
const FIRST_OF_2050 = 2_524_608_000;

/** 9999-12-31T23:59:59Z, the last moment that has an encoding. */
export const LATEST_TIME_SECONDS = 253_402_300_799;

/** The identifier octet of a constructed context-specific tag, [0] to [30]. */
export function contextTag(number: number): number {
  return 0xa0 | number;
}

/** X.690 section 10.1: definite, in the fewest octets. */
function lengthOctets(size: number): number[] {
  if (size < 0x80) return [size];
  const octets: number[] = [];
  for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [0x80 | octets.length, ...octets];
}

function encode(tag: number, contents: readonly Uint8Array[]): Uint8Array {
  const size = contents.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Uint8Array.of(tag, ...lengthOctets(size)), ...contents]);
}

export function seq(...components: readonly Uint8Array[]): Uint8Array {
  return encode(TAGS.sequence, components);
}

/** X.690 section 11.6: ascending by encoding. No complete encoding is a prefix of another, so padding never matters. */
export function setOf(...elements: readonly Uint8Array[]): Uint8Array {
  return encode(TAGS.set, elements.toSorted(Buffer.compare));
}

/** BOOLEAN. Every false of our formats is a DEFAULT, which DER leaves out (X.690 section 11.5). */
export const TRUE = encode(TAGS.boolean, [Uint8Array.of(0xff)]);

export function integer(value: number | bigint): Uint8Array {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new RangeError(`no exact INTEGER: ${value}`);
  if (value < 0) throw new RangeError(`negative INTEGER: ${value}`);
  const digits = value.toString(16);
  const octets = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  // A leading one bit would make the number negative.
  const sign = octets[0]! >= 0x80 ? [Uint8Array.of(0)] : [];
  return encode(TAGS.integer, [...sign, octets]);
}

/** ENUMERATED of a number from 0 to 127: as much as CRLReason needs. */
export function enumerated(value: number): Uint8Array {
  return encode(TAGS.enumerated, [Uint8Array.of(value)]);
}

/** BIT STRING. The last `unusedBits` bits, which must be zero, do not belong to it. */
export function bitString(octets: Uint8Array, unusedBits = 0): Uint8Array {
  return encode(TAGS.bitString, [Uint8Array.of(unusedBits), octets]);
}

export function octetString(octets: Uint8Array): Uint8Array {
  return encode(TAGS.octetString, [octets]);
}

export const NULL = encode(TAGS.null, []);

/** X.690 section 8.19.2: seven bits an octet, the high bit on all but the last. */
function subidentifier(arc: number): number[] {
  const octets = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) octets.unshift(0x80 | (rest % 128));
  return octets;
}

/** X.690 section 8.19.4: the first two arcs share one subidentifier. */
export function oid(dotted: string): Uint8Array {
  const [first, second, ...others] = dotted.split('.').map(Number) as [number, number, ...number[]];
  return encode(TAGS.oid, [Uint8Array.from([first * 40 + second, ...others].flatMap(subidentifier))]);
}

export function utf8String(text: string): Uint8Array {
  if (!text.isWellFormed()) throw new RangeError('text is not well-formed Unicode');
  return encode(TAGS.utf8String, [Buffer.from(text, 'utf8')]);
}

export function ia5String(text: string): Uint8Array {
  if (!/^[\u0000-\u007f]*$/.test(text)) throw new RangeError('text does not fit an IA5String');
  return encode(TAGS.ia5String, [Buffer.from(text, 'latin1')]);
}

export function utf16be(text: string): Uint8Array {
  if (!text.isWellFormed()) throw new RangeError('text is not well-formed Unicode');
  return Buffer.from(text, 'utf16le').swap16();
}

/** BMPString. Surrogate pairs beyond the basic plane are not in X.680, but every PKCS#12 implementation writes them. */
export function bmpString(text: string): Uint8Array {
  return encode(TAGS.bmpString, [utf16be(text)]);
}

/** Time (RFC 5280 section 4.1.2.5) of whole Unix seconds. */
export function time(unixSeconds: number): Uint8Array {
  const supported = Number.isInteger(unixSeconds) && unixSeconds >= FIRST_OF_1950 && unixSeconds <= LATEST_TIME_SECONDS;
  if (!supported) throw new RangeError(`no Time for ${unixSeconds}`);
  const digits = new Date(unixSeconds * 1000).toISOString().slice(0, 19).replace(/\D/g, '');
  if (unixSeconds < FIRST_OF_2050) return encode(TAGS.utcTime, [Buffer.from(`${digits.slice(2)}Z`)]);
  return encode(TAGS.generalizedTime, [Buffer.from(`${digits}Z`)]);
}

export function explicit(number: number, ...values: readonly Uint8Array[]): Uint8Array {
  return encode(contextTag(number), values);
}

/** [number] IMPLICIT: in place of the value's own tag, whose constructed bit stays (X.690 section 8.14.4). */
export function implicit(number: number, value: Uint8Array): Uint8Array {
  const encoding = Uint8Array.from(value);
  encoding[0] = (contextTag(number) & ~CONSTRUCTED_BIT) | (value[0]! & CONSTRUCTED_BIT);
  return encoding;
}

export const OIDS = {
  // RFC 5280 appendix A.1
  commonName: oid('2.5.4.3'),
  // RFC 5280 sections 4.2, 5.2 and 5.3: extensions
  subjectKeyIdentifier: oid('2.5.29.14'), authorityKeyIdentifier: oid('2.5.29.35'), keyUsage: oid('2.5.29.15'),
  extKeyUsage: oid('2.5.29.37'), serverAuth: oid('1.3.6.1.5.5.7.3.1'), clientAuth: oid('1.3.6.1.5.5.7.3.2'),
  subjectAltName: oid('2.5.29.17'), basicConstraints: oid('2.5.29.19'),
  cRLNumber: oid('2.5.29.20'), reasonCode: oid('2.5.29.21'),
  // RFC 5480 section 2.1 and RFC 5758 section 3.2: keys and signatures
  ecPublicKey: oid('1.2.840.10045.2.1'), secp384r1: oid('1.3.132.0.34'),
  ecdsaWithSha256: oid('1.2.840.10045.4.3.2'), ecdsaWithSha384: oid('1.2.840.10045.4.3.3'),
  ecdsaWithSha512: oid('1.2.840.10045.4.3.4'),
  // RFC 8018 appendix A and B, RFC 3565 section 4.1: encryption under a password
  pbes2: oid('1.2.840.113549.1.5.13'), pbkdf2: oid('1.2.840.113549.1.5.12'),
  hmacWithSha256: oid('1.2.840.113549.2.9'), aes256Cbc: oid('2.16.840.1.101.3.4.1.42'),
  // RFC 5652 sections 4 and 8: content types
  data: oid('1.2.840.113549.1.7.1'), encryptedData: oid('1.2.840.113549.1.7.6'),
  // RFC 7292 section 4.2, appendix C; RFC 2985 section 5.5: bundles
  pkcs8ShroudedKeyBag: oid('1.2.840.113549.1.12.10.1.2'), certBag: oid('1.2.840.113549.1.12.10.1.3'),
  x509Certificate: oid('1.2.840.113549.1.9.22.1'), friendlyName: oid('1.2.840.113549.1.9.20'),
  localKeyId: oid('1.2.840.113549.1.9.21'), pbeWithSha1And3Des: oid('1.2.840.113549.1.12.1.3'),
  sha1: oid('1.3.14.3.2.26'), sha256: oid('2.16.840.1.101.3.4.2.1'),
} as const;

// Names: the common name of a person, and the host names and addresses of a server.

/** For 64 code points (ub-common-name, RFC 5280 appendix A.1): each is at most four in form D, of two units each. */
const MAX_UTF16_UNITS = 64 * 4 * 2;

// C0, DEL and C1 controls; line and paragraph separators; embeddings, overrides and isolates (Unicode Standard Annex 9,
// section 2), with which one name could be made to look like another.
const WITHOUT_FORBIDDEN = /^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]{1,64}$/u;

/**
 * Characters that are invisible (RFC 8264 section 9.13: joiners, marks of direction, selectors of emoji; annotation, a
 * blank of Braille) or have no common meaning. Visible formats are fine. Older names with these can be renewed.
 */
export const MISLEADING =
  /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800\u{13441}\u{16fe4}\u{1d159}\p{Co}\p{Noncharacter_Code_Point}]/u;

/** Trimmed and in normalization form C, so that names which look the same are the same bytes. Undefined when unfit. */
export function normaliseCommonName(name: string): string | undefined {
  const normalised = encodableName(name);
  return normalised === undefined || MISLEADING.test(normalised) ? undefined : normalised;
}

function encodableName(name: string): string | undefined {
  const trimmed = name.trim();
  // The length is checked first: the time to put accents in order is quadratic in their number, 0.2 s for 30 KiB.
  if (!name.isWellFormed() || trimmed.length > MAX_UTF16_UNITS) return undefined;
  const normalised = trimmed.normalize('NFC');
  return WITHOUT_FORBIDDEN.test(normalised) ? normalised : undefined;
}

/** A Name (RFC 5280 section 4.1.2.4) of one common name. Throws a RangeError if the name is not normalised. */
export function distinguishedName(commonName: string): Uint8Array {
  if (encodableName(commonName) !== commonName) throw new RangeError('common name is not normalised');
  return seq(setOf(seq(OIDS.commonName, utf8String(commonName))));
}

/** In lower case; an address has 4 or 16 bytes, a host name none. */
export type ServerName = Readonly<{ name: string; address: Uint8Array | undefined }>;

/** RFC 1035 section 2.3.4, as text. */
const MAX_NAME_CHARACTERS = 253;

/** RFC 1123 section 2.1: letters, digits, and hyphens that are not at an end; at most 63 of them. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A host name, a wildcard such as `*.example.org`, an IPv4 or an IPv6 address. Undefined for anything else: a port,
 * brackets, a dot at the end, letters beyond ASCII (their `xn--` form is fine), the all-zero address, which means any.
 */
export function parseServerName(text: string): ServerName | undefined {
  const name = text.toLowerCase();
  const address = parseAddress(name);
  if (address !== undefined) return address.some((byte) => byte !== 0) ? { name, address } : undefined;
  return isHostName(name) ? { name, address: undefined } : undefined;
}

function isHostName(name: string): boolean {
  if (name.length > MAX_NAME_CHARACTERS) return false;
  const isWildcard = name.startsWith('*.');
  const labels = (isWildcard ? name.slice(2) : name).split('.');
  if (!labels.every((label) => LABEL.test(label))) return false;
  // A name that ends in a number is an address or invalid (https://url.spec.whatwg.org/#ends-in-a-number-checker).
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1)!)) return false;
  // No client lets a wildcard stand for all of a top-level domain.
  return !isWildcard || labels.length > 1;
}
