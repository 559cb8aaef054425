// Row 17: looks for content that was burned, deleted, replaced or has expired, in every file that the service keeps, in
// a backup, and in what was restored from it. The promise is that of the cleanup schedule: the log is emptied every
// minute, and expired pastes are removed every hour and at every start.

import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { OWNER } from './actions.ts';
import { createClient, type Client } from './client.ts';
import { inspect } from './inspect.ts';
import type { Row, Unit } from './row.ts';
import { openStalled } from './row-21-quota.ts';
import type { Service } from './service.ts';

const PASTES = { quick: 60, full: 200 };

/** A minute from one emptying of the log to the next, and the time that a busy machine takes for it. */
const GONE_WITHIN_MS = 90_000;

const FATES = ['kept', 'burned', 'deleted', 'replaced', 'expired'] as const;
type Fate = (typeof FATES)[number];

/** Canaries by what becomes of their content. */
type Canaries = Readonly<Record<Fate, string[]>>;

export const canaryRow: Row = {
  name: '17',
  title: 'burned, deleted, replaced and expired content in the files and in a backup',
  target: '1 000 canaries, and their number in each way of going',
  units: 5,
  least: ['kept', 'burned', 'deleted', 'replaced', 'expired', 'backups', 'deleted after a restore'],
  async run(unit) {
    // Files that the service would put elsewhere come into the folder too.
    const folder = join(unit.folder, 'service');
    const options = { folder, environment: { TMPDIR: folder, SERVICE_MAX_ANON: String(HELD_BYTES) } };
    let service = await unit.start(options);
    const lives = [service];
    const client = createClient(service.port());
    const { canaries, ids } = await release(unit, client);
    client.close();
    // If the search did not find these now, finding none later would mean nothing.
    const all = Object.values(canaries).flat();
    const found = canariesIn(join(unit.folder, 'service'));
    if (found.size < all.length / 2) unit.lose(`only ${found.size} of ${all.length} canaries are found at all`);
    const gone = [...canaries.burned, ...canaries.deleted, ...canaries.replaced];
    if (unit.effort === 'full') await expectGone(unit, gone, 'while it runs');
    await new Promise((resolve) => setTimeout(resolve, EXPIRING_SECONDS * 1000));
    if (unit.effort === 'full') {
      await service.kill();
      service = await unit.start(options);
      lives.push(service);
      await expectGone(unit, [...gone, ...canaries.expired], 'after a kill');
    } else {
      await service.stop();
      service = await unit.start(options);
      lives.push(service);
      await awaitRemoval(service, canaries.kept.length);
    }
    const reader = await deleteBesideReader(unit, service, canaries);
    backUp(unit, service, canaries);
    reader.destroy();
    await awaitRemoval(service, canaries.kept.length);
    const code = await service.stop();
    if (code !== 0) unit.lose(`it stopped with ${code}`);
    const said = new Set<string>();
    for (const { output } of lives) addCanaries(output(), said);
    if (said.size > 0) unit.lose(`${said.size} canaries are in what the service said`);
    compare(unit, canariesIn(join(unit.folder, 'service')), canaries, 'after a stop');
    await deleteRestored(unit, service, canaries, ids);
  },
};

const EXPIRING_SECONDS = 2;

/** Stores every canary and carries out its fate. Also resolves with the ids of the pastes that stay. */
async function release(unit: Unit, client: Client): Promise<{ canaries: Canaries; ids: readonly string[] }> {
  const canaries: Canaries = { kept: [], burned: [], deleted: [], replaced: [], expired: [] };
  const ids: string[] = [];
  for (let index = 0; index < PASTES[unit.effort]; index += 1) {
    const fate = FATES[index % FATES.length]!;
    const canary = Buffer.from(unit.random.bytes(16)).toString('hex');
    canaries[fate].push(canary);
    const id = await store(unit, client, canary, fate);
    if (fate === 'kept' || fate === 'replaced') ids.push(id);
    const end = ending(unit, id, fate, canaries);
    const answer = end === undefined ? undefined : await client.ask(end);
    if (end !== undefined && answer?.status !== 200) throw new Error(`${end.method} was answered ${answer?.status}`);
    unit.count(fate);
  }
  return { canaries, ids };
}

async function store({ random }: Unit, client: Client, canary: string, fate: Fate): Promise<string> {
  const headers = {
    'X-SSL-Client-SHA1': OWNER,
    ...(fate === 'burned' ? { 'X-Burn-After-Read': '1' } : {}),
    ...(fate === 'expired' ? { 'X-Expiry': String(EXPIRING_SECONDS) } : {}),
  };
  const answer = await client.ask({ method: 'POST', path: '/', headers, body: bodyOf(random, canary) });
  if (answer?.status !== 201) throw new Error(`creating was answered ${answer?.status} ${answer?.body}`);
  return String(JSON.parse(String(answer.body))['id']);
}

/** The canary repeated, to a size that is stored in a row, in a row with many pages, or in chunks. */
function bodyOf(random: Unit['random'], canary: string): Buffer {
  const bytes = random.pick([random.between(100, 3000), random.between(9000, 60_000), random.between(70_000, 600_000)]);
  return Buffer.alloc(bytes, `canary:${canary};`);
}

function ending({ random }: Unit, id: string, fate: Fate, canaries: Canaries) {
  const headers = { 'X-SSL-Client-SHA1': OWNER };
  if (fate === 'burned') return { method: 'GET', path: `/${id}/raw` };
  if (fate === 'deleted') return { method: 'DELETE', path: `/${id}`, headers };
  if (fate !== 'replaced') return undefined;
  const successor = Buffer.from(random.bytes(16)).toString('hex');
  canaries.kept.push(successor);
  return { method: 'PUT', path: `/${id}`, headers, body: bodyOf(random, successor) };
}

/** Every canary in any file of the folder, also where it is written in hexadecimal digits. */
function canariesIn(folder: string): Set<string> {
  const found = new Set<string>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    addCanaries(readFileSync(join(entry.parentPath, entry.name), 'latin1'), found);
  }
  return found;
}

function addCanaries(text: string, found: Set<string>): void {
  for (const [, canary = ''] of text.matchAll(/([0-9a-f]{32});/g)) found.add(canary);
  // The same in UTF-16, whichever byte comes first.
  for (const [canary] of text.matchAll(/(?:[0-9a-f]\0){32}/g)) found.add(canary.replaceAll('\0', ''));
  for (const [, hex = ''] of text.matchAll(/((?:3[0-9]|6[1-6]){32})3b/gi)) found.add(Buffer.from(hex, 'hex').toString());
}

async function expectGone(unit: Unit, gone: readonly string[], when: string): Promise<void> {
  const startMs = performance.now();
  for (;;) {
    const found = canariesIn(join(unit.folder, 'service'));
    const left = gone.filter((canary) => found.has(canary));
    if (left.length === 0) break;
    if (performance.now() - startMs > GONE_WITHIN_MS) {
      return unit.lose(`${left.length} of ${gone.length} canaries are left ${when}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  unit.most(`goneMs ${when}`, performance.now() - startMs);
}

/** Waits until only kept pastes are left. The cleanup of a start begins with those that have expired. */
async function awaitRemoval(service: Service, keptPastes: number): Promise<void> {
  const startMs = performance.now();
  for (;;) {
    const { pastes, orphans } = inspect(service.databasePath);
    if (pastes.size === keptPastes && orphans === 0) return;
    const isLate = performance.now() - startMs > GONE_WITHIN_MS;
    if (isLate) throw new Error(`${pastes.size} pastes, and ${keptPastes} were kept`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** More than the kernel buffers for a client that does not read. */
const HELD_BYTES = 8 * 2 ** 20;

/** Deletes content while somebody reads it; resolves with that reader, who is not through. */
async function deleteBesideReader({ random }: Unit, service: Service, canaries: Canaries): Promise<Socket> {
  const canary = Buffer.from(random.bytes(16)).toString('hex');
  const client = createClient(service.port());
  const headers = { 'X-SSL-Client-SHA1': OWNER };
  const body = Buffer.alloc(HELD_BYTES, `canary:${canary};`);
  const created = await client.ask({ method: 'POST', path: '/', headers, body });
  const id = String(JSON.parse(String(created?.body))['id']);
  const reader = await openStalled(service.port(), id);
  const deleted = await client.ask({ method: 'DELETE', path: `/${id}`, headers });
  if (deleted?.status !== 200) throw new Error(`deleting was answered ${deleted?.status}`);
  client.close();
  canaries.deleted.push(canary);
  return reader;
}

const backupOf = ({ folder }: Unit): string => join(folder, 'backup', 'pasted.backup');

function backUp(unit: Unit, service: Service, canaries: Canaries): void {
  const target = backupOf(unit);
  mkdirSync(join(unit.folder, 'backup'));
  const made = service.command(['backup', target]);
  if (made.status !== 0) return unit.lose(`a backup was not made: ${made.output}`);
  unit.count('backups');
  compare(unit, canariesIn(join(unit.folder, 'backup')), canaries, 'in a backup');
}

function compare(unit: Unit, found: ReadonlySet<string>, canaries: Canaries, where: string): void {
  for (const fate of FATES) {
    const seen = canaries[fate].filter((canary) => found.has(canary)).length;
    const missing = canaries.kept.length - seen;
    if (fate === 'kept' && missing > 0) unit.lose(`${missing} that were kept are not found ${where}`);
    if (fate !== 'kept' && seen > 0) unit.lose(`${seen} that were ${fate} are found ${where}`);
  }
}

/** Nothing of what a restored backup has may stay either, once it is deleted. */
async function deleteRestored(unit: Unit, { command }: Service, canaries: Canaries, ids: readonly string[]): Promise<void> {
  const folder = join(unit.folder, 'service');
  const { status, output } = command(['restore', backupOf(unit)]);
  if (status !== 0) return unit.lose(`the backup was not restored: ${output}`);
  // The database from before the restore.
  for (const name of readdirSync(folder)) if (name.includes('.before-restore-')) rmSync(join(folder, name));
  const service = await unit.start({ folder });
  const client = createClient(service.port());
  for (const id of ids) {
    const answer = await client.ask({ method: 'DELETE', path: `/${id}`, headers: { 'X-SSL-Client-SHA1': OWNER } });
    if (answer?.status === 200) unit.count('deleted after a restore');
    else unit.lose(`deleting was answered ${answer?.status} after a restore`);
  }
  client.close();
  await service.stop();
  const found = canariesIn(folder);
  const left = canaries.kept.filter((canary) => found.has(canary)).length;
  if (left > 0) unit.lose(`${left} that were deleted after a restore are found`);
}
