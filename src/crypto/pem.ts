// PEM (RFC 7468): DER as text between labelled lines. Writes and accepts the strict grammar alone: no explanatory text
// around the block, no headers, no second block. Does not look into the bytes.

import { setImmediate } from 'node:timers/promises';

export type PemLabel =
  | 'CERTIFICATE'
  | 'CERTIFICATE REQUEST'
  | 'NEW CERTIFICATE REQUEST'
  | 'ENCRYPTED PRIVATE KEY'
  | 'PRIVATE KEY'
  | 'X509 CRL';

/** RFC 7468 section 2: every line of base64 but the last has exactly 64 characters. */
const LINES = /.{1,64}/g;
const BYTES_A_LINE = 48;

/** Finds the parts. That they are all there is, and in their strict form, is seen when they are written again. */
const BLOCK = /^-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END /;

/** Lines end in a newline, the last one too. */
export function encodePem(label: PemLabel, der: Uint8Array): string {
  const lines = Buffer.from(der).toString('base64').match(LINES) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Of so many lines at a time: a millisecond. */
const LINES_A_TURN = 2000;

/** The same in ASCII, of bytes of any number: others have their turns meanwhile. */
export async function encodeLongPem(label: PemLabel, der: Uint8Array): Promise<Uint8Array> {
  const pieces = [Buffer.from(`-----BEGIN ${label}-----\n`)];
  for (let at = 0; at < der.length; at += LINES_A_TURN * BYTES_A_LINE) {
    const base64 = Buffer.from(der.subarray(at, at + LINES_A_TURN * BYTES_A_LINE)).toString('base64');
    pieces.push(Buffer.from(base64.replace(LINES, '$&\n'), 'latin1'));
    await setImmediate();
  }
  return Buffer.concat([...pieces, Buffer.from(`-----END ${label}-----\n`)]);
}

/** The bytes of a text that is one block with one of these labels and nothing more; undefined otherwise. */
export function decodePem(text: string, ...labels: readonly PemLabel[]): Uint8Array | undefined {
  const [, found, body = ''] = BLOCK.exec(text) ?? [];
  const label = labels.find((accepted) => accepted === found);
  if (label === undefined) return undefined;
  const der = Buffer.from(body, 'base64');
  // Buffer reads base64 leniently; what encodes back to the same lines was strict. Lines may end in CR LF.
  const sameLines = encodePem(label, der).trimEnd() === text.trimEnd().replaceAll('\r\n', '\n');
  return der.length > 0 && sameLines ? der : undefined;
}
