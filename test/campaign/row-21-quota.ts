// Row 21: a quota under everything that takes and frees room at once: uploads of known and unknown length, some of them
// broken off, and content that is replaced, burned and deleted while slow readers still read it. Then stalled readers
// hold as much of it as can be held, and at the end what has room must fit to the byte.

import { connect, type Socket } from 'node:net';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { KIB, MIB } from '../../src/core/time.ts';
import { INLINE_BYTES } from '../../src/store/store.ts';
import { carryOut } from './actions.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { inspect } from './inspect.ts';
import { createPasteModel, versionOf, type Action, type PasteModel } from './model.ts';
import { watchQuota, type QuotaWatch } from './quota-watch.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const QUOTA_BYTES = 48 * MIB;

/** More than the kernel buffers for a client that does not read. */
const LARGEST_BYTES = 8 * MIB;
const MOST_HELD = QUOTA_BYTES / LARGEST_BYTES;
const SECONDS = { quick: 2, full: 40 };
const WRITERS = 6;
const SLOW_READERS = 6;
const SLOW_MS = { quick: 1000, full: 6000 };

/** Ten seconds for a reader that takes nothing, thirty for one that took something once, and a check each second. */
const HELD_WITHIN_MS = 45_000;

/** For the content of the largest possible paste, which is removed in steps, with other writes between them. */
const ROOM_WITHIN_MS = 10_000;

interface Known {
  readonly model: PasteModel;
  /** A connection is changing it. */
  isTaken: boolean;
}

interface Site {
  readonly unit: Unit;
  readonly port: number;
  readonly watch: QuotaWatch;
  readonly pastes: Known[];
}

export const quotaRow: Row = {
  name: '21',
  title: 'a quota under uploads, slow readers and content that is replaced, burned and deleted; then held by readers',
  target: '20 x 60 s',
  units: 20,
  least: ['stored', 'refused with 507', 'slow readers', 'fitted to the byte', 'looks at the quota'],
  bars: { 'room came back ms': 2000 },
  async run(unit) {
    const environment = { SERVICE_MAX_STORAGE: String(QUOTA_BYTES), SERVICE_MAX_ANON: String(LARGEST_BYTES) };
    const service = await unit.start({ folder: unit.folder, environment });
    const watch = watchQuota(unit, service.databasePath, QUOTA_BYTES);
    const site: Site = { unit, port: service.port(), watch, pastes: [] };
    await useAll(site);
    await holdAll(site);
    await fitExactly(site);
    watch.close();
    const code = await service.stop();
    if (code !== 0) unit.lose(`the service ended with ${code}`, service.output().slice(-2000));
    lookAt(site, service);
  },
};

async function useAll(site: Site): Promise<void> {
  const endMs = performance.now() + SECONDS[site.unit.effort] * 1000;
  const work = async (one: (client: Client) => Promise<void>): Promise<void> => {
    const client = createClient(site.port);
    while (performance.now() < endMs && !site.unit.isHopeless()) await one(client);
    client.close();
  };
  await Promise.all([
    ...Array.from({ length: WRITERS }, () => work((client) => changeSomething(site, client))),
    ...Array.from({ length: SLOW_READERS }, () => work(() => readSomethingSlowly(site))),
  ]);
}

async function changeSomething(site: Site, client: Client): Promise<void> {
  const { unit: { random }, pastes } = site;
  const free = pastes.filter(({ model, isTaken }) => !isTaken && isThere(model));
  const known = free.length === 0 ? undefined : random.pick(free);
  if (random.oneIn(12)) return breakOff(site);
  if (known === undefined || random.oneIn(2)) {
    const made = { model: createPasteModel(labelOf(site), { burn: random.oneIn(4), refusable: true }), isTaken: true };
    pastes.push(made);
    await upload(site, client, made, 'create', sizeOf(site));
    made.isTaken = false;
    return;
  }
  await alone(known, async () => {
    const isReplaced = !known.model.burn && random.oneIn(2);
    if (isReplaced) await upload(site, client, known, 'update', sizeOf(site));
    else await act(site, client, known, known.model.burn ? 'read' : 'delete');
  });
}

async function alone(known: Known, change: () => Promise<void>): Promise<void> {
  known.isTaken = true;
  await change();
  known.isTaken = false;
}

function isThere(model: PasteModel): boolean {
  return model.id() !== undefined && model.possible().some((state) => state !== 'gone');
}

function labelOf({ unit, pastes }: Site): string {
  return `s${unit.seed}n${pastes.length}`;
}

function sizeOf({ unit: { random } }: Site): number {
  const [least, most] = random.pick([[40, 4000], [INLINE_BYTES, MIB], [MIB, 3 * MIB], [3 * MIB, LARGEST_BYTES]]);
  return random.between(least!, most!);
}

/** The request with a known length, or in chunks, or with its content in JSON, which has another length. */
function inSomeForm({ unit: { random } }: Site, { body, ...ask }: Ask): Ask {
  if (body === undefined || random.oneIn(2)) return body === undefined ? ask : { ...ask, body };
  if (random.oneIn(2)) {
    const headers = { ...ask.headers, 'Content-Type': 'application/json' };
    return { ...ask, headers, body: Buffer.from(JSON.stringify({ content: Buffer.from(body).toString('latin1') })) };
  }
  return { ...ask, headers: { ...ask.headers, 'Transfer-Encoding': 'chunked' }, pieces: [...chunksOf(body), END] };
}

const PIECE_BYTES = 64 * KIB;
const END = Buffer.from('0\r\n\r\n');

function* chunksOf(body: Uint8Array): Iterable<Uint8Array> {
  for (let start = 0; start < body.length; start += PIECE_BYTES) {
    const piece = body.subarray(start, start + PIECE_BYTES);
    yield Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  }
}

/** Whether it was stored. An answer of 507 is right only when there may have been no room. */
async function upload(
  site: Site,
  client: Client,
  { model }: Known,
  action: 'create' | 'update',
  bytes: number,
): Promise<boolean> {
  const { unit, watch } = site;
  const asker = { ask: (request: Ask) => client.ask(inSomeForm(site, request)) };
  const { result, couldBeFull } = await watch.during(bytes, () => carryOut(asker, model, action, { bytes }));
  const { seen, wrong } = result;
  if (wrong !== undefined) unit.lose(wrong);
  if (seen.kind === 'done') {
    unit.count(action === 'create' ? 'stored' : 'replaced');
    return true;
  }
  if (seen.kind !== 'refused' || seen.status !== 507) unit.lose(`${action} of ${bytes} bytes: ${JSON.stringify(seen)}`);
  else if (!couldBeFull()) unit.lose(`507 for ${bytes} bytes, and there was room`, watch.usage());
  unit.count('refused with 507');
  return false;
}

/** For actions that must work however full the quota is. */
async function act({ unit }: Site, client: Pick<Client, 'ask'>, { model }: Known, action: Action): Promise<void> {
  const { seen, wrong } = await carryOut(client, model, action);
  if (wrong !== undefined) unit.lose(wrong);
  else if (seen.kind === 'refused' || seen.kind === 'unknown') unit.lose(`${action}: ${JSON.stringify(seen)}`);
  unit.count(model.burn && action === 'read' ? 'burned' : action);
}

/** The service may still work on half an upload for a moment; for this long the upload counts as under way. */
const AFTERMATH_MS = 1000;

async function breakOff({ port, watch, unit }: Site): Promise<void> {
  const client = createClient(port);
  const bytes = unit.random.between(INLINE_BYTES, MIB);
  const isKnown = unit.random.oneIn(2);
  const headers = isKnown ? { 'Content-Length': String(bytes) } : { 'Transfer-Encoding': 'chunked' };
  const half = Buffer.alloc(bytes / 2, 'broken off; ');
  const pieces = function* (): Iterable<Uint8Array> {
    yield* isKnown ? [half] : chunksOf(half);
    client.close();
  };
  await watch.during(bytes, async () => {
    const answer = await client.ask({ method: 'POST', path: '/', headers, pieces: pieces() });
    if (answer !== undefined && answer.status !== 507) unit.lose(`half an upload was answered ${answer.status}`);
    client.close();
    await pause(AFTERMATH_MS);
  });
  unit.count('broken off');
}

/** Burns burn pastes too. Whatever becomes of the paste meanwhile, the reader gets the whole content that it had. */
async function readSomethingSlowly(site: Site): Promise<void> {
  const { unit, port, pastes } = site;
  const there = pastes.filter(({ model, isTaken }) => isThere(model) && !(model.burn && isTaken));
  const largest = there.toSorted((left, right) => mostBytes(right.model) - mostBytes(left.model)).slice(0, 8);
  if (largest.length === 0) return void (await pause(20));
  const known = unit.random.pick(largest);
  const ms = unit.random.between(SLOW_MS[unit.effort] / 4, SLOW_MS[unit.effort]);
  const read = (): Promise<void> => act(site, { ask: ({ path }) => getSlowly(port, path, ms) }, known, 'read');
  if (known.model.burn) await alone(known, read);
  else await read();
  unit.count('slow readers');
}

function mostBytes(model: PasteModel): number {
  return Math.max(...model.possible().map((state) => (state === 'gone' ? 0 : model.bytesOf(state))));
}

/** Undefined when the other side went away before the end. */
async function getSlowly(port: number, path: string, ms: number): Promise<Answer | undefined> {
  const res = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, host: '127.0.0.1', path, agent: false }, resolve).on('error', reject);
  });
  const pieces = Math.ceil(Number(res.headers['content-length']) / PIECE_BYTES);
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of res) {
      chunks.push(chunk as Uint8Array);
      await pause(ms / pieces);
    }
  } catch {
    return undefined;
  }
  return { status: res.statusCode ?? 0, headers: {}, body: Buffer.concat(chunks) };
}

/**
 * Readers that take nothing hold the contents that an owner replaces again and again, until there is no room for more,
 * because what they hold counts. They are ended for taking nothing, and then the room is there again.
 */
async function holdAll(site: Site): Promise<void> {
  const { unit, port, watch, pastes } = site;
  const client = createClient(port);
  for (const known of pastes.filter(({ model }) => isThere(model))) {
    await act(site, client, known, known.model.burn ? 'read' : 'delete');
  }
  await noOrphans(site);
  const held: Known = { model: createPasteModel(labelOf(site), { refusable: true }), isTaken: false };
  pastes.push(held);
  const readers: Socket[] = [];
  let isStored = await upload(site, client, held, 'create', LARGEST_BYTES);
  for (; isStored && readers.length < MOST_HELD; isStored = await upload(site, client, held, 'update', LARGEST_BYTES)) {
    readers.push(await openStalled(port, held.model.id() ?? ''));
  }
  const isHeld = readers.every((reader) => !reader.destroyed);
  if (isStored && isHeld) unit.lose('what readers hold does not count');
  unit.most('held contents', readers.length);
  unit.most('held KiB', watch.usage().databaseBytes / KIB);
  if (readers.length < 2) unit.lose(`only ${readers.length} contents could be held`);
  await act(site, client, held, 'read');
  const startMs = performance.now();
  if (unit.effort === 'quick') for (const reader of readers) reader.destroy();
  while (readers.some((reader) => !reader.destroyed) && performance.now() - startMs < HELD_WITHIN_MS) await pause(50);
  const left = readers.filter((reader) => !reader.destroyed);
  if (left.length > 0) unit.lose(`${left.length} of ${readers.length} readers hold on`);
  unit.most('readers held on ms', performance.now() - startMs);
  for (const reader of left) reader.destroy();
  const goneMs = performance.now();
  await noOrphans(site);
  unit.most('room came back ms', performance.now() - goneMs);
  if (!(await upload(site, client, held, 'update', LARGEST_BYTES))) unit.lose('no room when all readers are gone');
  client.close();
}

/** Resolves when the answer has begun; no more of it is read. */
export function openStalled(port: number, id: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(`GET /${id}/raw HTTP/1.1\r\nHost: paste.test\r\n\r\n`);
  socket.on('error', () => {});
  // Only a write shows that a connection was ended; empty lines between requests mean nothing.
  const looking = setInterval(() => socket.write('\r\n'), 250);
  socket.once('close', () => clearInterval(looking));
  return new Promise((resolve, reject) => {
    socket.once('data', () => resolve(socket.pause()));
    socket.once('close', () => reject(new Error('a reader was not answered')));
  });
}

async function noOrphans({ unit, watch }: Site): Promise<void> {
  const startMs = performance.now();
  while (watch.orphans() > 0) {
    if (performance.now() - startMs > ROOM_WITHIN_MS) return unit.lose(`${watch.orphans()} contents are not removed`);
    await pause(10);
  }
}

/** With no other client: content for which there is just room is stored, and a byte more is not. */
async function fitExactly(site: Site): Promise<void> {
  const { unit, port, watch, pastes } = site;
  const client = createClient(port);
  const ask = async (bytes: number): Promise<number | undefined> => {
    const known = { model: createPasteModel(labelOf(site), { refusable: true }), isTaken: false };
    const { seen } = await carryOut(client, known.model, 'create', { bytes });
    if (seen.kind === 'done') pastes.push(known);
    return seen.kind === 'refused' ? seen.status : seen.kind === 'done' ? 201 : undefined;
  };
  const expect = async (bytes: number, status: number): Promise<void> => {
    const room = watch.room();
    const answered = await ask(bytes);
    if (answered !== status) unit.lose(`${bytes} bytes were answered ${answered} with room for ${room}`);
    unit.count('fitted to the byte');
  };
  for (let room = watch.room(); room > INLINE_BYTES && !unit.isHopeless(); room = watch.room()) {
    if (room < LARGEST_BYTES) await expect(room + 1, 507);
    // The pages of chunks take one per cent more.
    await expect(Math.min(LARGEST_BYTES, Math.max(INLINE_BYTES / 2, Math.floor(room * 0.95))), 201);
    await noOrphans(site);
  }
  const room = watch.room();
  await expect(room + 1, 507);
  if (room > 0) await expect(room, 201);
  client.close();
}

/** After a stop the database has what was acknowledged, and nothing else. */
function lookAt({ unit, pastes }: Site, service: Service): void {
  const { faults, orphans, pastes: stored } = inspect(service.databasePath);
  for (const fault of faults) unit.lose(fault);
  if (orphans > 0) unit.lose(`${orphans} contents are left that no paste has`);
  const there = pastes.filter(({ model }) => isThere(model));
  if (there.length !== stored.size) unit.lose(`${stored.size} pastes are stored, and ${there.length} were`);
  for (const { model } of there) {
    const content = stored.get(model.id() ?? '')?.content;
    const version = content && versionOf(model, content);
    if (version === undefined || !model.possible().includes(version)) unit.lose(`${model.label} is not what it was`);
  }
}
