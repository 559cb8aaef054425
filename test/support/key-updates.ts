// TLS 1.3 KeyUpdate records (RFC 8446 section 4.6.3), which node's client never sends by itself: any number at once,
// each asking for one in return. They are sealed here, with the secret from the client's `keylog` event.

import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

/** TLS_AES_128_GCM_SHA256: lengths of its hash, key and nonce. */
const CIPHER = 'TLS_AES_128_GCM_SHA256';
const [HASH_BYTES, KEY_BYTES, NONCE_BYTES] = [32, 16, 12];

/** The message update_requested (1), and the type of its record. */
const CONTENT = Buffer.of(24, 0, 0, 1, 1, 22);
const HEADER = Buffer.of(23, 3, 3, 0, CONTENT.length + 16);

/** The TCP socket below a TLS connection that has sent only its handshake, and the `records` to send on it next. */
interface Opened {
  readonly socket: Socket;
  readonly records: Buffer;
}

export async function openForKeyUpdates(t: TestContext, port: number, count: number): Promise<Opened> {
  const socket = connect({ port, host: '127.0.0.1' });
  const above = connectTls({ socket, rejectUnauthorized: false, minVersion: 'TLSv1.3', ciphers: CIPHER });
  // The TLS socket is told of a reset, and has no part in what is sent below it.
  above.on('error', () => {});
  t.after(() => socket.destroy());
  let lines = '';
  above.on('keylog', (line: Buffer) => {
    lines += line.toString();
  });
  await once(above, 'secureConnect');
  // The client sends the rest of its handshake after this event.
  await setImmediate();
  const [, hex = ''] = /^CLIENT_TRAFFIC_SECRET_0 \w+ (\w+)$/m.exec(lines) ?? [];
  let secret: Uint8Array = Buffer.from(hex, 'hex');
  const records = Array.from({ length: count }, () => {
    const key = expandLabel(secret, 'key', KEY_BYTES);
    const nonce = expandLabel(secret, 'iv', NONCE_BYTES);
    // Each record is the first under its key, so its sequence number, which would change the nonce, is zero.
    const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(HEADER);
    const sealed = [HEADER, cipher.update(CONTENT), cipher.final(), cipher.getAuthTag()];
    secret = expandLabel(secret, 'traffic upd', HASH_BYTES);
    return Buffer.concat(sealed);
  });
  return { socket, records: Buffer.concat(records) };
}

/** HKDF-Expand-Label (RFC 8446 section 7.1) with an empty context, of no more than one block (RFC 5869 section 2.3). */
function expandLabel(secret: Uint8Array, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.of(0, bytes, name.length), name, Buffer.of(0, 1)]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, bytes);
}
