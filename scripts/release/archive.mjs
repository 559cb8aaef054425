// Archives whose bytes follow from the files alone: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format") and
// gzip (RFC 1952). Files only, owned by root. No long names, links or folders of their own.

import { constants, gzipSync } from 'node:zlib';
import { ReleaseError, modeOf, sorted } from './files.mjs';

const BLOCK = 512;
// Programs read and write whole records of twenty blocks.
const RECORD = 20 * BLOCK;
const MAX_NAME = 100;

/** All files in order, changed last at `seconds` since the epoch. Refuses names longer than 100 bytes. */
export function tarball(files, seconds) {
  const blocks = [...sorted(files)].flatMap(([path, content]) => {
    const bytes = Buffer.from(content);
    return [header(path, bytes, seconds), bytes, Buffer.alloc(padding(bytes.length, BLOCK))];
  });
  // Two empty blocks are the end.
  const end = Buffer.alloc(2 * BLOCK);
  const length = Buffer.concat([...blocks, end]).length;
  return Buffer.concat([...blocks, end, Buffer.alloc(padding(length, RECORD))]);
}

function header(path, content, seconds) {
  if (Buffer.byteLength(path) > MAX_NAME) throw new ReleaseError(`${path}: too long a name for the tarball`);
  const block = Buffer.alloc(BLOCK);
  block.write(path, 0);
  block.write(octal(modeOf(content), 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(content.length, 12), 124);
  block.write(octal(seconds, 12), 136);
  // The sum is taken with spaces in its own place.
  block.write(' '.repeat(8), 148);
  block.write('0', 156);
  block.write('ustar\0' + '00', 257);
  block.write('root', 265);
  block.write('root', 297);
  block.write(octal(0, 8), 329);
  block.write(octal(0, 8), 337);
  block.write(`${octal(block.reduce((sum, byte) => sum + byte, 0), 7)}\0`, 148);
  return block;
}

/** A field of `width` bytes, the last of them NUL. */
function octal(value, width) {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function padding(length, unit) {
  return (unit - (length % unit)) % unit;
}

/** Without a name or a time, and of no operating system (255: unknown), which zlib would set to the host's. */
export function gzip(content) {
  const compressed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
  compressed[9] = 255;
  return compressed;
}
