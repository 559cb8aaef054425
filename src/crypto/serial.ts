// Serial numbers of certificates (RFC 5280 section 4.1.2.2): made here from randomness, kept and shown as 32 hex
// digits. Whether one is taken already, the storage knows.

import type { RandomBytes } from '../core/random.ts';
import { unsignedInteger } from './der.ts';

const SERIAL_BYTES = 16;
const WELL_FORMED = /^[4-7][0-9a-f]{31}$/;

/**
 * 32 lowercase hex digits with 126 random bits. The first is 4 to 7: positive, and of the same length in every tool.
 */
export function makeSerial(random: RandomBytes): string {
  const bytes = Uint8Array.from(random(SERIAL_BYTES));
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

/** CertificateSerialNumber ::= INTEGER. Refuses, with a RangeError, what makeSerial does not make. */
export function certificateSerialNumber(serial: string): Uint8Array {
  if (!WELL_FORMED.test(serial)) throw new RangeError(`no serial: ${serial}`);
  return unsignedInteger(Buffer.from(serial, 'hex'));
}
