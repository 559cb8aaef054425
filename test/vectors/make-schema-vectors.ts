// Makes a database for every schema version that has none beside this file, and prints the digest to write into
// schema-vectors.ts. It never replaces a database. After you add a migration, add rows for what it brought to
// schema-rows.ts, then run `node --import tsx test/vectors/make-schema-vectors.ts`.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import { MIGRATIONS, PAGE_BYTES, migrate } from '../../src/store/schema.ts';
import { ROWS } from './schema-rows.ts';
import { vectorUrl } from './schema-vectors.ts';

/** The bytes of a database that was made at that version and closed in order. */
function makeDatabase(version: number): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-vector-'));
  try {
    const path = join(folder, 'pasted.db');
    const db = new DatabaseSync(path);
    // The layout that the service gives a new database.
    for (const pragma of [`page_size = ${PAGE_BYTES}`, 'auto_vacuum = INCREMENTAL']) db.exec(`PRAGMA ${pragma}`);
    migrate(db, MIGRATIONS.slice(0, version));
    db.exec('PRAGMA journal_mode = WAL');
    for (const insert of ROWS.slice(0, version)) insert(db);
    db.close();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (let version = 1; version <= MIGRATIONS.length; version += 1) {
  const url = vectorUrl(version);
  if (existsSync(url)) continue;
  const packed = gzipSync(makeDatabase(version), { level: 9 });
  writeFileSync(url, packed, { flag: 'wx' });
  console.log(`schema-${version}.db.gz, ${packed.length} bytes: ${createHash('sha256').update(packed).digest('hex')}`);
}
