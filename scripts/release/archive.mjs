// Archives whose bytes follow from the files alone: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format") and
// gzip (RFC 1952). Holds files that belong to root, and folders; no long names and no links.

import { constants, gzipSync } from 'node:zlib';
import { ReleaseError, modeOf, sorted } from './files.mjs';

const BLOCK = 512;
// Programs read and write whole records of twenty blocks.
const RECORD = 20 * BLOCK;
const MAX_NAME = 100;

/**
 * First the given `folders`, each with `path`, `mode` and the number of its `owner`; then all files, sorted. All were
 * changed last at `seconds` since the epoch. Refuses names longer than 100 bytes.
 */
export function tarball(files, seconds, folders = []) {
  const ofFolders = folders.map(({ path, mode, owner }) => {
    return header({ path: `${path}/`, type: '5', mode, owner, size: 0 }, seconds);
  });
  const ofFiles = [...sorted(files)].flatMap(([path, content]) => {
    const bytes = Buffer.from(content);
    const entry = { path, type: '0', mode: modeOf(content), owner: 0, size: bytes.length };
    return [header(entry, seconds), bytes, Buffer.alloc(padding(bytes.length, BLOCK))];
  });
  // Two empty blocks are the end.
  const blocks = Buffer.concat([...ofFolders, ...ofFiles, Buffer.alloc(2 * BLOCK)]);
  return Buffer.concat([blocks, Buffer.alloc(padding(blocks.length, RECORD))]);
}

function header({ path, type, mode, owner, size }, seconds) {
  if (Buffer.byteLength(path) > MAX_NAME) throw new ReleaseError(`${path}: too long a name for the tarball`);
  const block = Buffer.alloc(BLOCK);
  block.write(path, 0);
  block.write(octal(mode, 8), 100);
  block.write(octal(owner, 8), 108);
  block.write(octal(owner, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(seconds, 12), 136);
  // The checksum is computed with spaces in its own field.
  block.write(' '.repeat(8), 148);
  block.write(type, 156);
  block.write('ustar\0' + '00', 257);
  // Programs prefer the name of an owner to the number.
  if (owner === 0) {
    block.write('root', 265);
    block.write('root', 297);
  }
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

/** Without a name or a time. The operating system is set to 255 (unknown), since zlib writes the host's. */
export function gzip(content, level = constants.Z_BEST_COMPRESSION) {
  const compressed = gzipSync(content, { level });
  compressed[9] = 255;
  return compressed;
}
