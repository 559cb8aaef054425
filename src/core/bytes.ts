// How bytes move between the layers without either side knowing the other's streams: a source pushes into a sink.

/** Takes the next bytes, which are its own from then on. A promise asks the source to wait; a throw ends the transfer. */
export type ByteSink = (bytes: Uint8Array) => void | Promise<void>;

/** Pushes every byte into the sink, in order; resolves after the last was taken. Rejects when either side breaks off. */
export type ByteSource = (sink: ByteSink) => Promise<void>;

/**
 * Gives up at once the memory of bytes that are no longer needed, where nothing else is in it: what large transfers
 * leave to the collector is more than they ever hold, and V8 goes through its whole heap for it.
 */
export function freeBytes({ buffer, length }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}
