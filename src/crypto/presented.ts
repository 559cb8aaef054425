// Certificates and keys that others show us: fingerprints, how proxies write them, which of them our authority signed,
// the listener's own pair, and the strict reader of DER (ITU-T X.690) behind all that reads bytes from outside. A
// certificate by itself is its DER. Loaded with TLS, a proxy secret or the authority: without these nobody shows one.

import { constants, createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto';
import { expected, orUndefined } from '../core/events.ts';

/** SHA-1 in lower case, by which reverse proxies name a certificate. It proves nothing: the proxy has verified it. */
export function fingerprintSha1(certificate: Uint8Array): string {
  return hash('sha1', certificate, 'hex');
}

/** The same for bytes from outside; undefined unless DER of one Certificate (RFC 5280 section 4.1): no chain counts. */
export function presentedCertificateSha1(bytes: Uint8Array): string | undefined {
  try {
    components(readDer(bytes), TAGS.sequence, TAGS.sequence, TAGS.bitString);
    return fingerprintSha1(bytes);
  } catch (error) {
    expected(DerError, error);
    return undefined;
  }
}

/** Reads a whole certificate as proxies write it, by the header that they use; undefined if it differs in anything. */
export const CERTIFICATE_FORMS = {
  // RFC 9440 section 2.2: base64 between colons (RFC 8941 section 3.3.5), without parameters.
  'client-cert': (value: string) => readBase64(/^:(.*):$/.exec(value)?.[1]),
  'x-ssl-client-cert': (value: string) => readBase64(value.startsWith('-') ? base64OfEscapedPem(value) : value),
};

/** node takes any text for base64, so the bytes must give the same text again. */
function readBase64(text: string | undefined) {
  const certificate = Buffer.from(text ?? '', 'base64');
  const fingerprint = certificate.toString('base64') === text ? presentedCertificateSha1(certificate) : undefined;
  return fingerprint === undefined ? undefined : { fingerprint, certificate };
}

/** The base64 in nginx's `$ssl_client_escaped_cert`, which is PEM of OpenSSL, escaped. Again it must give that text. */
function base64OfEscapedPem(value: string): string | undefined {
  const base64 = value.replaceAll(/-----\w+%20CERTIFICATE-----|%0A/g, '')
    .replaceAll('%2B', '+').replaceAll('%2F', '/').replaceAll('%3D', '=');
  const lines = base64.replaceAll(/.{1,64}/g, '$&\n');
  const pem = `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
  return encodeURIComponent(pem) === value ? base64 : undefined;
}

export function certificatePem(certificate: Uint8Array): string {
  return new X509Certificate(certificate).toString();
}

/** In lower case; undefined unless the authority signed it. Says nothing of its validity, or of who holds the key. */
export function issuedSerial(certificate: Uint8Array, authority: Uint8Array): string | undefined {
  const issuer = new X509Certificate(authority);
  const issued = orUndefined(() => new X509Certificate(certificate));
  const isOurs = issued?.checkIssued(issuer) === true && orUndefined(() => issued.verify(issuer.publicKey)) === true;
  return isOurs ? issued.serialNumber.toLowerCase() : undefined;
}

/** DER of the first certificate of a PEM file, which is the server's own; undefined when there is none. */
export function firstCertificate(pem: string): Uint8Array | undefined {
  return orUndefined(() => new X509Certificate(pem).raw);
}

/** SSL_CTX_set_options(3). Without renegotiation (TLS 1.3 has none) an identity stays as long as its connection. */
export const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;

/** Without tickets every connection is a full handshake, so that an identity is what this connection proved. */
export const FULL_HANDSHAKES_ONLY = constants.SSL_OP_NO_TICKET | NO_RENEGOTIATION;

/** Only ciphers with forward secrecy and authenticated encryption: those of TLS 1.3, then those of TLS 1.2. */
export const CIPHERS = [
  'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256',
].join(':');

/**
 * Takes PEM, the server's certificate first, and the settings that name the two files. Returns in Unix seconds when the
 * certificate begins and ends, or what is wrong, without the words of OpenSSL, which may repeat a key.
 */
export function readServerPair(certificatePem: string, keyPem: string, [certName, keyName]: readonly [string, string]) {
  const wrong = (name: string, expected: string) => ({ problem: `${name}: expected ${expected}` });
  const certificate = orUndefined(() => new X509Certificate(certificatePem));
  if (certificate === undefined) return wrong(certName, 'a PEM file that begins with the server\'s certificate');
  // This word is in PKCS#8 (RFC 5958) and in the format that OpenSSL wrote before it.
  if (/ENCRYPTED/.test(keyPem)) {
    return wrong(keyName, 'a key without a password; `openssl pkey -in KEY -out NEW` takes it off');
  }
  const key = orUndefined((): KeyObject => createPrivateKey(keyPem));
  if (key === undefined) return wrong(keyName, 'a PEM file with a private key');
  if (!certificate.checkPrivateKey(key)) return wrong(keyName, `the key of the first certificate in ${certName}`);
  // TLS can't use other kinds of key (DSA), or clients do not offer them (other curves).
  const kind = key.asymmetricKeyDetails?.namedCurve ?? key.asymmetricKeyType ?? '';
  if (!/^(rsa|ed|ml-dsa|prime256v1|secp384r1|secp521r1)/.test(kind)) {
    return wrong(keyName, 'a key that TLS clients take: RSA, Ed25519, or one on P-256, P-384 or P-521');
  }
  // RFC 5280 section 4.2.1.12: anyExtendedKeyUsage, id-kp-serverAuth.
  const isForServers = certificate.keyUsage?.some((use) => ['2.5.29.37.0', '1.3.6.1.5.5.7.3.1'].includes(use)) ?? true;
  if (!isForServers) return wrong(certName, 'a certificate for servers (extendedKeyUsage serverAuth, or none at all)');
  const { validFromDate, validToDate } = certificate;
  return { beginsAt: validFromDate.getTime() / 1000, expiresAt: validToDate.getTime() / 1000 };
}

// The reader takes DER apart, and refuses every other form of the same values. It knows encodings, not meanings: it
// does not check whether text fits its string type, or whether an OCTET STRING holds more DER.

/** Identifier octets (X.680 section 8.6) of the universal types; SEQUENCE and SET with the constructed bit. */
export const TAGS = {
  boolean: 0x01, integer: 0x02, bitString: 0x03, octetString: 0x04, null: 0x05, oid: 0x06, enumerated: 0x0a,
  utf8String: 0x0c, ia5String: 0x16, utcTime: 0x17, generalizedTime: 0x18, bmpString: 0x1e, sequence: 0x30, set: 0x31,
} as const;

/** Set in the tag of a value that is made of values (X.690 section 8.1.2.5). */
export const CONSTRUCTED_BIT = 0x20;

const CLASS_BITS = 0xc0;

/** Five bits that announce a tag of several octets (X.690 section 8.1.2.4), which none of our formats has. */
const LONG_TAG = 0x1f;

/** Deeper than any request or certificate goes, so that recursion has an end. */
const MAX_DEPTH = 16;

/** What we read is kilobytes, and a length in four octets can be gigabytes. */
const MAX_LENGTH_OCTETS = 4;

/** X.690 section 8.3.2: the first nine bits are neither all zeros nor all ones. */
const MINIMAL_INTEGER = /^(?!\x00[\x00-\x7f]|\xff[\x80-\xff])[^]/;

/** The content, octet by octet, of the universal types that may occur, all primitive in DER (X.690 section 10.2). */
const CANONICAL: ReadonlyMap<number, RegExp> = new Map([
  [TAGS.boolean, /^[\x00\xff]$/],
  [TAGS.integer, MINIMAL_INTEGER],
  [TAGS.bitString, /^[\x00-\x07]/], // and hasUnusedZeros
  [TAGS.null, /^$/],
  // Section 8.19.2: each subidentifier has an end, and no leading zeros.
  [TAGS.oid, /^(?:(?!\x80)[\x80-\xff]*[\x00-\x7f])+$/],
  [TAGS.enumerated, MINIMAL_INTEGER],
  [TAGS.utcTime, /^\d{12}Z$/], // section 11.8
  [TAGS.generalizedTime, /^\d{14}(?:\.\d*[1-9])?Z$/], // section 11.7
]);

/** OCTET STRING, UTF8, Numeric, Printable, Teletex, IA5, Visible, Universal and BMP strings. */
const ANY_CONTENT: readonly number[] = [
  TAGS.octetString, TAGS.utf8String, 0x12, 0x13, 0x14, TAGS.ia5String, 0x1a, 0x1c, TAGS.bmpString,
];

export class DerError extends Error {
  override readonly name = 'DerError';
}

/** One value, its tag as in TAGS. `encoding` (the whole) and `content` (after the length) are views of the input. */
export interface DerElement {
  readonly tag: number;
  readonly encoding: Uint8Array;
  readonly content: Uint8Array;
  /** The values inside a constructed one; empty for a primitive one. */
  readonly children: readonly DerElement[];
}

/** The one value that the bytes encode, checked throughout. Throws a DerError otherwise, also for trailing bytes. */
export function readDer(bytes: Uint8Array): DerElement {
  const [element, ...trailing] = readElements(bytes, 0, bytes.length, 0);
  if (element === undefined || trailing.length > 0) throw new DerError('not exactly one value');
  return element;
}

/** The components of a SEQUENCE that has exactly these tags in this order; a DerError otherwise. */
export function components<const Tags extends readonly number[]>(
  { tag, children }: DerElement, ...tags: Tags
): { readonly [Position in keyof Tags]: DerElement } {
  const fits = tag === TAGS.sequence && children.length === tags.length && children.every((c, i) => c.tag === tags[i]);
  if (!fits) throw new DerError('sequence of other components than expected');
  return children as unknown as { readonly [Position in keyof Tags]: DerElement };
}

export function isEncoding(element: DerElement, encoding: Uint8Array): boolean {
  return Buffer.compare(element.encoding, encoding) === 0;
}

/** The number of an INTEGER from 0 to the largest that is exact; throws a DerError otherwise. */
export function integerValue({ tag, content }: DerElement): number {
  const value = Number(`0x${Buffer.from(content).toString('hex')}`);
  const isNegative = content[0]! >= 0x80;
  if (tag !== TAGS.integer || isNegative || !Number.isSafeInteger(value)) throw new DerError('unsupported INTEGER');
  return value;
}

/** The octets of a BIT STRING without unused bits; throws a DerError otherwise. */
export function bitStringOctets({ tag, content }: DerElement): Uint8Array {
  if (tag !== TAGS.bitString || content[0] !== 0) throw new DerError('unsupported BIT STRING');
  return content.subarray(1);
}

function readElements(bytes: Uint8Array, start: number, end: number, depth: number): DerElement[] {
  if (depth > MAX_DEPTH) throw new DerError(`nested too deeply at byte ${start}`);
  const elements: DerElement[] = [];
  for (let at = start; at < end; at += elements.at(-1)!.encoding.length) {
    const tag = bytes[at]!;
    if ((tag & LONG_TAG) === LONG_TAG) throw new DerError(`tag of several octets at byte ${at}`);
    const { from, to } = contentBounds(bytes, at, end);
    const children = (tag & CONSTRUCTED_BIT) === 0 ? [] : readElements(bytes, from, to, depth + 1);
    const element = { tag, encoding: bytes.subarray(at, to), content: bytes.subarray(from, to), children };
    requireCanonical(element, at);
    elements.push(element);
  }
  return elements;
}

/** Where the content of the value at `start` begins and ends: X.690 section 10.1, definite and in the fewest octets. */
function contentBounds(bytes: Uint8Array, start: number, end: number): { from: number; to: number } {
  const first = bytes[start + 1] ?? 0;
  const lengthOctets = Math.max(0, first - 0x80);
  const from = start + 2 + lengthOctets;
  if (first === 0x80 || lengthOctets > MAX_LENGTH_OCTETS) {
    throw new DerError(`indefinite or oversized length at byte ${start}`);
  }
  if (from > end) throw new DerError(`value cut off at byte ${start}`);
  const bigEndian = bytes.subarray(start + 2, from);
  const size = lengthOctets === 0 ? first : bigEndian.reduce((sum, octet) => sum * 256 + octet, 0);
  const smallest = lengthOctets === 0 ? 0 : Math.max(0x80, 256 ** (lengthOctets - 1));
  if (size < smallest) throw new DerError(`length not in its fewest octets at byte ${start}`);
  if (size > end - from) throw new DerError(`value cut off at byte ${start}`);
  return { from, to: from + size };
}

function requireCanonical({ tag, content, children }: DerElement, start: number): void {
  // Only the format that uses a context-specific tag knows the type behind it.
  if ((tag & CLASS_BITS) !== 0 || tag === TAGS.sequence || ANY_CONTENT.includes(tag)) return;
  if (tag === TAGS.set) {
    // X.690 section 11.6; every SET of our formats is a SET OF.
    const encodings = children.map(({ encoding }) => encoding);
    const isSorted = encodings.every((encoding, i) => i === 0 || Buffer.compare(encodings[i - 1]!, encoding) <= 0);
    if (!isSorted) throw new DerError(`set not in its canonical order at byte ${start}`);
    return;
  }
  const form = CANONICAL.get(tag);
  if (form === undefined) throw new DerError(`unsupported type at byte ${start}`);
  const isOfForm = form.test(Buffer.from(content).toString('latin1'));
  if (isOfForm && (tag !== TAGS.bitString || hasUnusedZeros(content))) return;
  throw new DerError(`value not in its canonical form at byte ${start}`);
}

/**
 * X.690 section 11.2.1: the first octet says how many bits at the end of the last octet are unused, and they are zero.
 * If there is only the first octet, it must be 0: no number from 1 to 7 ends in as many zero bits as it says.
 */
function hasUnusedZeros(content: Uint8Array): boolean {
  return (content.at(-1)! & ((1 << content[0]!) - 1)) === 0;
}
