// Packed databases, as each schema version left them. Users have databases like these, so none is ever made anew, and
// each new version adds its own. schema-rows.ts says what is in them.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** SHA-256 of the packed file of schema version 1, 2 ... */
export const VECTOR_DIGESTS: readonly string[] = [
  '97c218c98caadbc3ada44d640edd32af84ae0b8e3696312c76903d1e4e4b3c95',
  '5162b4ec93bfa5a0ce4dc80fdccf80069c40b5fe879c67367cd3dba56eec70f8',
  'bbc91c5591b42aef8bbc5ca83c725a682b7fc0e07db625294df66a7200215bca',
  'a8f4ad936e5e4ca760edb125bec2e31a944c1893d3d2175d56144e756b829e35',
  'a02b65929f078d05e03f877007fab4d31067016cb031da76dc2570f45a4fe6c3',
  'c0f2f818a1d64f8ae1d7c79952902f3887a92070e8ebca2fd99c400e2d19ee17',
  'd4113c8bf7578c1736dbee46ac3d7e273ee7b850c86a738bb660cf03dc78d582',
];

export function vectorUrl(version: number): URL {
  return new URL(`./schema-${version}.db.gz`, import.meta.url);
}

/** Throws if the packed file does not have the digest above. */
export function readVector(version: number): Buffer {
  const packed = readFileSync(vectorUrl(version));
  const digest = createHash('sha256').update(packed).digest('hex');
  if (digest !== VECTOR_DIGESTS[version - 1]) throw new Error(`schema-${version}.db.gz is another file: ${digest}`);
  return gunzipSync(packed);
}

/** Writes the database of that version to a path where there is none. */
export function placeVector(version: number, path: string, mode = 0o600): void {
  writeFileSync(path, readVector(version), { mode, flag: 'wx' });
}
