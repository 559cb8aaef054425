// A store on a database in a temporary folder, and pastes to put into it. What a test opens through this is closed and
// removed when the test ends.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { compactBytes } from '../../src/core/content.ts';
import type { LogEntry } from '../../src/core/events.ts';
import type { Upload } from '../../src/store/content.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import {
  type ChangedContent, CHUNK_BYTES, type CreationTerms, INLINE_BYTES, type NewPaste, type PasteWithContent,
} from '../../src/store/store.ts';
import { movableClock, type MovableClock } from './clock.ts';

/** When pastes made here are created, in Unix seconds, and when they expire unless a test says otherwise. */
export const CREATED_AT = 1_769_860_800;
export const EXPIRES_AT = CREATED_AT + 3600;

/** Stores without any condition. */
export const NO_TERMS: CreationTerms = { spend: null, duplicates: null, maxStoredBytes: null, maxOwnerBytes: null };

/** A store that answers as a test says: its lookups, and its commands by their names. */
export function fakeStore(read: object, commands: object): Pick<Store, 'read' | 'run'> {
  const run = async (name: string, params: unknown) => (commands as Record<string, (params: unknown) => unknown>)[name]!(params);
  return { read, run } as unknown as Pick<Store, 'read' | 'run'>;
}

export interface TestStore {
  readonly folder: string;
  readonly path: string;
  readonly clock: MovableClock;
  readonly logged: LogEntry[];
  /** The store that is open now. */
  readonly store: Store;
  /** Closes the store and opens it anew on the same file. */
  reopen(): Promise<Store>;
}

export async function openTestStore(t: TestContext): Promise<TestStore> {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-store-'));
  const path = join(folder, 'pasted.db');
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const open = () => openStore({ path, clock, log: (entry) => logged.push(entry) });
  const opened: Store[] = [];
  t.after(async () => {
    await opened.at(-1)?.close();
    rmSync(folder, { recursive: true });
  });
  let store = await open();
  opened.push(store);
  return {
    folder,
    path,
    clock,
    logged,
    get store() {
      return store;
    },
    async reopen() {
      await store.close();
      store = await open();
      opened.push(store);
      return store;
    },
  };
}

/** A folder that is removed when the test ends; before that the test must close what it has opened in it. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-store-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** As the service makes them: 26 characters, never twice. */
export function newId(): string {
  return randomBytes(13).toString('hex');
}

/** A paste with that content in its row. */
export function inlinePaste(content: Uint8Array, changes: Partial<NewPaste> = {}): NewPaste {
  return {
    id: newId(),
    owner: null,
    mimeType: 'text/plain',
    size: content.length,
    sha256: createHash('sha256').update(content).digest(),
    createdAt: CREATED_AT,
    expiresAt: EXPIRES_AT,
    burnAfterRead: false,
    passwordHash: null,
    contentId: null,
    content,
    ...changes,
  };
}

/** That content in a row, for an update. */
export function inlineContent(bytes: Uint8Array): ChangedContent {
  const { mimeType, size, sha256, contentId, content } = inlinePaste(bytes);
  return { mimeType, size, sha256, contentId, content };
}

/** That paste as the store gives it back. */
export function asFound(paste: NewPaste): PasteWithContent {
  const sha256 = Buffer.from(paste.sha256).toString('hex');
  return { ...paste, sha256, content: paste.content && compactBytes(paste.content) };
}

/** Stores a paste as the service does: small content in its row, larger content in chunks. Gives what was stored. */
export async function storePaste(
  store: Store,
  content: Uint8Array,
  changes: Partial<NewPaste> = {},
): Promise<NewPaste> {
  const upload = content.length <= INLINE_BYTES ? undefined : await uploaded(store, content);
  const where = upload === undefined ? {} : { content: null, contentId: upload.contentId };
  const paste = inlinePaste(content, { ...where, ...changes });
  assert.deepEqual(await store.pastes.create(paste, NO_TERMS), { refused: null });
  upload?.keep();
  return paste;
}

/** Writes the content in chunks that no paste refers to yet; gives its id. */
export async function uploadContent(store: Store, content: Uint8Array): Promise<string> {
  return (await uploaded(store, content)).contentId;
}

/** The same, but gives the upload, to be kept or discarded. */
export async function uploaded(store: Store, content: Uint8Array): Promise<Upload> {
  const upload = store.contents.upload(newId());
  for (let start = 0; start < content.length; start += CHUNK_BYTES) {
    await upload.write(content.slice(start, start + CHUNK_BYTES));
  }
  return upload;
}

/** The whole content of a paste that was looked up with its content. */
export async function wholeContent(store: Store, { content, contentId, size }: PasteWithContent): Promise<Buffer> {
  if (content === null) return readContent(store, contentId ?? '', 0, size);
  return 'latin1' in content ? Buffer.from(content.latin1, 'latin1') : Buffer.from(content);
}

/** The content of a paste as a reader gets it; fails the test when it can't be opened. */
export async function readContent(store: Store, contentId: string, start: number, end: number): Promise<Buffer> {
  const reader = await store.contents.open(contentId);
  assert.ok(reader, 'the content can be opened');
  try {
    return await gather(reader.read(start, end));
  } finally {
    reader.close();
  }
}

export async function gather(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const gathered: Uint8Array[] = [];
  for await (const chunk of chunks) gathered.push(Uint8Array.from(chunk));
  return Buffer.concat(gathered);
}

/** `size` bytes in which no two stretches are alike; the same seed gives the same bytes. */
export function patternedBytes(size: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(size / 4));
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  for (let index = 0; index < words.length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words[index] = state ^ (state >>> 16);
  }
  return new Uint8Array(words.buffer).slice(0, size);
}

/** One value of a statement run on a connection of its own that only reads. */
export function selectValue(path: string, sql: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  try {
    return Object.values(db.prepare(sql).get() ?? {})[0];
  } finally {
    db.close();
  }
}

/** The rows of a statement, one text each, on a connection of its own that only reads. */
export function rowsOf(path: string, sql: string): string[] {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  const rows = db.prepare(sql).all().map((row) => Object.values(row).join(' '));
  db.close();
  return rows;
}

export const STRAY_CHUNKS =
  'SELECT count(*) FROM chunks WHERE content_id NOT IN (SELECT content_id FROM pastes WHERE content_id IS NOT NULL)';

/** How many chunks no paste refers to, by the tables: an upload under way or a failed removal leaves them. */
export function strayChunks(path: string): unknown {
  return selectValue(path, STRAY_CHUNKS);
}
