// A handler with a size limit, and bodies for it, for tests of how the server moves request bodies.

import { Refusal } from '../../src/core/refusals.ts';
import { KIB } from '../../src/core/time.ts';
import { type Handler, jsonReply } from '../../src/http/engine/reply.ts';

export const LIMIT_BYTES = 64 * KIB;

/** As the service does: checks the declared length before it reads the body, and the counted one while it reads. */
export const limited: Handler = async (request) => {
  const tooLarge = (size: number): Refusal => new Refusal('pasteTooLarge', { size, maxSize: LIMIT_BYTES });
  const { declaredBytes } = request.body;
  if (declaredBytes !== undefined && declaredBytes > LIMIT_BYTES) throw tooLarge(declaredBytes);
  let bytes = 0;
  await request.body.pipe((chunk) => {
    bytes += chunk.length;
    if (bytes > LIMIT_BYTES) throw tooLarge(bytes);
  });
  return jsonReply(201, { bytes });
};

/** Content in the chunked framing. */
export function chunked(content: Uint8Array, chunkBytes = 10_000): Buffer {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < content.length; start += chunkBytes) {
    const chunk = content.subarray(start, start + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
