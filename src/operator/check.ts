// `pasted check`: whether the service would work, and go on working; it changes nothing. `pasted health`: asks a
// running service how it is, for container checks and scripts; it does not open the database.

import { accessSync, closeSync, constants, existsSync, openSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AuthorityKeyError, unlockPrivateKey } from '../authority/keys.ts';
import { CRL_TTL_SECONDS } from '../authority/revocation-list.ts';
import { ConfigError, isProduction, loadConfig, startWarnings } from '../config/load.ts';
import { type Config, isCluster, SETTINGS } from '../config/settings.ts';
import { expected, orUndefined } from '../core/events.ts';
import { BACKDATE_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { beginSha256 } from '../crypto/digest.ts';
import { firstCertificate } from '../crypto/presented.ts';
import { hostOf, parseServiceUrl } from '../http/engine/head.ts';
import { isExposed, publicPlace } from '../http/engine/listening.ts';
import { probe, type ProbeError, type ProbeTarget } from '../http/probe.ts';
import { readServerCertificate, validityDoubt } from '../http/tls.ts';
import { adminDoubt, authorityDoubt } from '../pastes/upkeep.ts';
import { type CheckDepth, SIDE_FILES } from '../store/backup.ts';
import {
  BALLAST_BYTES, fileBytes, FREE_RESERVE_BYTES, freeBytes, placeOf, WAL_LIMIT_BYTES,
} from '../store/database.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { countedBytes, type StoredAuthority, type StoredCrl, type StoredUsage, StoreError } from '../store/store.ts';
import { type Contents, type Examination, examineDatabase } from '../store/visit.ts';
import { wholeNumber, wrongValue } from './arguments.ts';
import { databaseFile } from './database.ts';
import { CommandError } from './failures.ts';
import { type Finding, reportFindings } from './installed.ts';
import { explained, readText } from './session.ts';
import { heldText, type Run, showBytes, type Terminal } from './terminal.ts';

const ok = (name: string, text: string): Finding => ({ name, level: 'ok', text });
const warn = (name: string, text: string): Finding => ({ name, level: 'warn', text });
const fail = (name: string, text: string): Finding => ({ name, level: 'fail', text });

/** `pasted check` without --files; installed.ts does that. */
export const checkService: Run = async (terminal, given) => {
  // Settings that cannot be used end the command here, with all of them named, as they would end the service.
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const nowSeconds = unixSeconds(terminal.clock);
  const depth = given.options.has('--full') ? 'full' : 'quick';
  return reportFindings(terminal, given, [
    ...checkSettings(config, warnings),
    ...(isCluster(config) ? await checkNodes(config, terminal) : checkFiles(placeOf(config.databasePath), nowSeconds)),
    ...(await checkDatabase(config, depth, terminal)),
    ...checkTls(config, nowSeconds),
  ]);
};

function checkSettings(config: Config, warnings: readonly string[]): Finding[] {
  const mode = isProduction(config) ? 'for production' : 'not for production (NODE_ENV)';
  const doubts = [...warnings, ...startWarnings(config, isExposed(publicPlace(config, 0)))];
  return [ok('settings', `can be used, and are ${mode}`), ...doubts.map((doubt) => warn('settings', doubt))];
}

function checkTls(config: Config, nowSeconds: number): Finding[] {
  if (config.tlsCertPath === '') return [];
  const name = 'TLS certificate';
  try {
    const pair = readServerCertificate(config);
    const doubt = validityDoubt(pair, nowSeconds);
    const validity = `valid from ${isoSeconds(pair.beginsAt)} to ${isoSeconds(pair.expiresAt)}`;
    if (doubt === undefined) return [ok(name, `belongs to its key, and is ${validity}`)];
    return [(doubt === 'expires soon' ? warn : fail)(name, `${doubt}: ${validity}`)];
  } catch (error) {
    return expected(ConfigError, error).problems.map((problem) => fail(name, problem));
  }
}

/** Said of a database, or of its folder, that does not exist. */
const MADE_AT_START = `the service makes a new one when it starts, or ${SETTINGS.databasePath.name} is wrong`;

const OTHERS_MAY_WRITE = 0o022;
const OTHERS_MAY_ANYTHING = 0o077;

function checkFiles(databasePath: string, nowSeconds: number): Finding[] {
  const folder = dirname(databasePath);
  try {
    const folderStats = statSync(folder, { throwIfNoEntry: false });
    if (folderStats === undefined) return [fail('folder', `there is none at ${folder}: ${MADE_AT_START}`)];
    const files = ['', ...SIDE_FILES].map((suffix) => `${databasePath}${suffix}`).flatMap((path) => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? [] : [{ path, mode: stats.mode, uid: stats.uid }];
    });
    const permissions = files[0]?.path === databasePath ? [checkPermissions(files, files[0].uid)] : [];
    const replica = checkReplica(databasePath, nowSeconds);
    return [checkFolder(folder, folderStats.mode), ...permissions, ...checkRoom(databasePath), ...replica];
  } catch (error) {
    return [fail('files', expected(CommandError, explained(error, databasePath, 'read')).message)];
  }
}

/** Anyone who may write to the folder may put a database of their own in the place of this one. */
function checkFolder(path: string, mode: number): Finding {
  if ((mode & OTHERS_MAY_WRITE) !== 0) return fail('folder', `others may write to ${path}: chmod 700`);
  if (!isUsable(path)) return fail('folder', `this user may not write to ${path}`);
  if ((mode & OTHERS_MAY_ANYTHING) !== 0) return warn('folder', `others may look into ${path}: chmod 700`);
  return ok('folder', `${path} is for its owner alone`);
}

type DatabaseFile = Pick<Stats, 'mode' | 'uid'> & { readonly path: string };

function checkPermissions(files: readonly DatabaseFile[], owner: number): Finding {
  const namesOf = (isMeant: (file: DatabaseFile) => boolean): string => (
    files.filter(isMeant).map(({ path }) => basename(path)).join(', ')
  );
  const open = namesOf(({ mode }) => (mode & OTHERS_MAY_ANYTHING) !== 0);
  if (open !== '') return fail('files', `others may open ${open}: chmod 600`);
  // A command that another user ran leaves such files; the service can't use them then.
  const strange = namesOf(({ uid }) => uid !== owner);
  if (strange !== '') return fail('files', `${strange} and the database have different owners: chown`);
  const locked = namesOf(({ path }) => !isUsable(path));
  if (locked !== '') return fail('files', `this user may not read and write ${locked}`);
  return ok('files', `${namesOf(() => true)}: for one owner alone`);
}

function isUsable(path: string): boolean {
  return orUndefined(() => accessSync(path, constants.R_OK | constants.W_OK) ?? true) ?? false;
}

/** Litestream copies a change within a second or so; when it starts, it copies many gigabytes within minutes. */
const COPIED_WITHIN_SECONDS = 5 * MINUTE_SECONDS;

/** Litestream removes a copy here some minutes after the replica has it, so the replica lacks an older one. */
const COPIES_KEPT_SECONDS = 15 * MINUTE_SECONDS;

/** Judges Litestream's replica by the copies of changes that it keeps beside the database; their names are in order. */
function checkReplica(databasePath: string, nowSeconds: number): Finding[] {
  const name = 'replica';
  const copies = join(dirname(databasePath), `.${basename(databasePath)}-litestream`, 'ltx', '0');
  const timeOf = (path: string): number => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000;
  const names = (existsSync(copies) ? readdirSync(copies).sort() : []).filter((copy) => copy.endsWith('.ltx'));
  // Litestream may remove some of them meanwhile.
  const kept = names.map((copy) => timeOf(join(copies, copy))).filter((time) => time > 0);
  const [oldest, newest] = [kept[0], kept.at(-1)];
  if (oldest === undefined || newest === undefined) return [];
  const changedAt = Math.max(timeOf(databasePath), timeOf(`${databasePath}-wal`));
  if (changedAt > newest + COPIED_WITHIN_SECONDS) {
    const since = `has nothing of what changed since ${isoSeconds(newest)}`;
    return [warn(name, `${since}, the last time at ${isoSeconds(changedAt)}: Litestream does not run, or is held up`)];
  }
  const isBehind = kept.length > 1 && oldest < nowSeconds - COPIES_KEPT_SECONDS;
  if (!isBehind) return [ok(name, `the last change was copied at ${isoSeconds(newest)}`)];
  const doubt = 'Litestream does not run, or cannot reach it';
  return [warn(name, `may have nothing of what changed since ${isoSeconds(oldest)}: ${doubt}`)];
}

/** The warning comes while an operator can still do something. */
const ROOM_NOTICE_FACTOR = 10;

function checkRoom(databasePath: string): Finding[] {
  const leftBytes = freeBytes(databasePath);
  const free = `${showBytes(leftBytes)} are free on the disk of the database`;
  const finding = leftBytes <= ROOM_NOTICE_FACTOR * FREE_RESERVE_BYTES ? warn : ok;
  const walBytes = fileBytes(`${databasePath}-wal`);
  const log = `takes ${showBytes(walBytes)}`;
  const ballast = `${databasePath}-ballast`;
  return [
    leftBytes <= FREE_RESERVE_BYTES ? fail('room', `${free}: new pastes are refused`) : finding('room', free),
    // When the log is above twice its limit, something keeps it from being emptied.
    walBytes <= 2 * WAL_LIMIT_BYTES
      ? ok('write-ahead log', log)
      : warn('write-ahead log', `${log}: a backup, Litestream or another long reader keeps it from being emptied`),
    fileBytes(ballast) < BALLAST_BYTES
      ? warn('room in reserve', 'is not there: a server makes it within seconds, when the disk has room')
      // A disk that turned read-only after an error may show it only when a file is opened for writing.
      : orUndefined(() => closeSync(openSync(ballast, 'r+')) ?? ok('room in reserve', 'is kept for a full disk')) ??
        fail('room in reserve', 'cannot be written: its disk may have turned read-only'),
  ];
}

/** SQLite of rqlite 8.29.5. Since 8.30.5 a snapshot has what an earlier one had that was not kept (its PR 1905). */
const OLDEST_SQLITE = '3.46';
const OLD = 'rqlite before 8.30.5 damages databases: nodes that join, or start again, may get a damaged one; upgrade';

async function checkNodes(config: Config, { clock }: Terminal): Promise<Finding[]> {
  const { examineNodes } = await import('../cluster/visit.ts');
  try {
    const { sqlite, behind } = await examineNodes({ config, clock });
    const isOld = sqlite.localeCompare(OLDEST_SQLITE, 'en', { numeric: true }) < 0;
    return [
      behind.length > 0
        ? warn('nodes', `${behind.join(', ')}: silent, or without the newest changes`)
        : ok('nodes', 'one of them leads, at the time of this host, and all have the newest changes'),
      ...(isOld ? [warn('nodes', OLD)] : []),
    ];
  } catch (error) {
    return [fail('nodes', expected(StoreError, error).message)];
  }
}

async function checkDatabase(config: Config, depth: CheckDepth, terminal: Terminal): Promise<Finding[]> {
  const nowSeconds = unixSeconds(terminal.clock);
  let reason = 'the nodes give no copy of it to look at';
  using file = await databaseFile(config, terminal).catch((error: unknown) => {
    if (error instanceof CommandError) reason = error.message;
    else expected(StoreError, error);
    return undefined;
  });
  if (file === undefined) return [fail('database', reason)];
  const { findings, contents } = examine(file.path, depth);
  const clock = checkClock(contents?.newestCreatedAt ?? null, nowSeconds);
  if (contents === undefined) return [...findings, clock];
  const records = contents.faults.map((fault) => fail('records', fault));
  if (records.length === 0) records.push(ok('records', 'owners, certificates and invitations agree'));
  const isOpen = isProduction(config) || isExposed(publicPlace(config, 0));
  const doubt = isOpen ? adminDoubt(config, contents.certificates > 0) : undefined;
  const admin = doubt === undefined ? [] : [warn('admin', doubt)];
  const quota = checkQuota(config, contents.usage);
  return [...findings, ...quota, ...records, clock, ...admin, ...(await checkAuthority(config, contents, nowSeconds))];
}

/** A quota that is used up refuses new pastes as a full disk does, and no log says so. A cluster counts no pages. */
function checkQuota(config: Config, usage: StoredUsage): Finding[] {
  const { maxStorageBytes, maxAnonBytes } = config;
  if (maxStorageBytes === 0 || isCluster(config)) return [];
  const used = countedBytes(usage);
  const text = `${showBytes(used)} of the ${showBytes(maxStorageBytes)} of ${SETTINGS.maxStorageBytes.name} are used`;
  if (used + maxAnonBytes <= maxStorageBytes) return [ok('quota', text)];
  return [warn('quota', `${text}: new pastes, or the larger of them, are refused`)];
}

/** `contents` is there only for a sound database of this version. */
function examine(path: string, depth: CheckDepth): { findings: Finding[]; contents?: Contents | undefined } {
  const only = (text: string) => ({ findings: [fail('database', text)] });
  // Undefined when this user may not see the database, which need not be missing then.
  const stats = orUndefined(() => statSync(path, { throwIfNoEntry: false }) ?? null);
  if (stats === null) return only(`there is none at ${path}: ${MADE_AT_START}`);
  if (stats?.isFile() === false) return only(`${path} is not a file: ${SETTINGS.databasePath.name} is wrong`);
  try {
    const examination = examineDatabase(path, depth === 'full' ? beginSha256 : undefined);
    return { findings: [checkSchema(examination), ...checkDamage(examination, depth)], contents: examination.contents };
  } catch (error) {
    return only(expected(StoreError, error).message);
  }
}

function checkSchema({ whyRefused, damage, schemaVersion }: Examination): Finding {
  if (whyRefused !== undefined) return fail('schema', `the database ${whyRefused}`);
  if (damage.length > 0) return fail('schema', 'cannot be trusted in a damaged database');
  if (schemaVersion === MIGRATIONS.length) return ok('schema', `${schemaVersion}, of this version`);
  return warn('schema', `${schemaVersion}; a start or command brings it to ${MIGRATIONS.length}: make a backup before`);
}

const MAX_DAMAGE_SHOWN = 5;

function checkDamage({ whyRefused, damage, contents }: Examination, depth: CheckDepth): Finding[] {
  if (whyRefused !== undefined) return [];
  const lines = [...damage, ...(contents?.changed ?? [])];
  if (lines.length > 0) return lines.slice(0, MAX_DAMAGE_SHOWN).map((line) => fail('integrity', line));
  const held = contents?.usage;
  const what = held === undefined ? '' : `, ${heldText(held.pastes, held.bytes)}`;
  return [ok('integrity', `no damage by a ${depth} check${what}`)];
}

/** No release is older than this, so a clock that shows an earlier time was never set. */
const EARLIEST_MOMENT_SECONDS = Date.UTC(2026, 0, 1) / 1000;

/** A host whose clock is corrected in small steps stays within it. */
const CLOCK_MARGIN_SECONDS = 5 * MINUTE_SECONDS;

/** With a clock that is behind, expired pastes live longer, and certificates that were issued are not valid yet. */
function checkClock(newestCreatedAt: number | null, nowSeconds: number): Finding {
  const shown = isoSeconds(nowSeconds);
  if (nowSeconds < EARLIEST_MOMENT_SECONDS) return fail('clock', `says ${shown}, before this program was written`);
  if (newestCreatedAt !== null && newestCreatedAt > nowSeconds + CLOCK_MARGIN_SECONDS) {
    return fail('clock', `says ${shown}, and the newest paste was made at ${isoSeconds(newestCreatedAt)}`);
  }
  return ok('clock', `says ${shown}`);
}

async function checkAuthority(config: Config, contents: Contents, nowSeconds: number): Promise<Finding[]> {
  const { authority, crl, newestIssuedAt } = contents;
  const name = 'certificate authority';
  if (authority === undefined) return [ok(name, 'there is none')];
  const { commonName, expiresAt } = authority;
  const doubt = authorityDoubt(authority, nowSeconds);
  const beginsAt = (newestIssuedAt ?? 0) - BACKDATE_SECONDS;
  const early = `not all are valid before ${isoSeconds(beginsAt)}: issue anew (pasted pki issue), and admin grant`;
  return [
    doubt === undefined
      ? ok(name, `${JSON.stringify(commonName)}, valid until ${isoSeconds(expiresAt)}`)
      : (doubt.level === 'error' ? fail : warn)(name, doubt.message),
    await checkAuthorityKey(config, authority),
    ...(crl === undefined ? [] : [checkCrl(crl, nowSeconds)]),
    ...(beginsAt > nowSeconds ? [warn('certificates', early)] : []),
  ];
}

async function checkAuthorityKey(config: Config, authority: StoredAuthority): Promise<Finding> {
  const name = 'authority key';
  const setting = SETTINGS.pkiCaPassword.name;
  if (config.pkiCaPassword === '') return warn(name, `${setting} is not set: nothing can be signed`);
  try {
    await unlockPrivateKey(authority.lockedKey, config.pkiCaPassword, authority.certificate);
    return ok(name, `opens with ${setting}, and belongs to the certificate`);
  } catch (error) {
    return fail(name, `${setting}: ${expected(AuthorityKeyError, error).message}`);
  }
}

/** A service that can sign renews this list while it runs, so an old one shows that none does. Proxies have copies. */
function checkCrl({ thisUpdate }: StoredCrl, nowSeconds: number): Finding {
  const name = 'revocation list';
  const nextUpdate = thisUpdate + CRL_TTL_SECONDS;
  if (thisUpdate > nowSeconds) return warn(name, `begins at ${isoSeconds(thisUpdate)}: get a new one, pasted pki crl`);
  if (nextUpdate > nowSeconds) return ok(name, `good until ${isoSeconds(nextUpdate)}; a proxy has a copy of its own`);
  return warn(name, `ran out at ${isoSeconds(nextUpdate)}: a proxy that has it refuses every certificate`);
}

type Asked = ProbeTarget & { readonly name: string };

export const health: Run = async (terminal, given) => {
  const timeoutMs = wholeNumber(given, '--timeout', { minimum: 1, maximum: 60, fallback: 5 }) * 1000;
  const url = given.options.get('--url');
  const asked = url === undefined ? bySettings(terminal) : byUrl(url);
  const { status, body } = await probe(asked, timeoutMs).catch(({ message }: ProbeError) => {
    throw new CommandError(`${asked.name}: ${message}`);
  });
  const parsed = orUndefined((): unknown => JSON.parse(body));
  const said = typeof parsed === 'object' ? parsed as { readonly status?: unknown } | null : null;
  const isJson = given.options.has('--json');
  if (isJson && said !== null) terminal.stdout.write(`${JSON.stringify(said)}\n`);
  if (status !== 200 || said?.status !== 'healthy') {
    const isUnhealthy = said?.status === 'unhealthy';
    const found = isUnhealthy ? 'the service is unhealthy, or is stopping' : 'the answer is not that of this service';
    throw new CommandError(`${asked.name}: ${found} (${status})`);
  }
  if (!isJson) terminal.stdout.write('healthy\n');
};

function byUrl(text: string): Asked {
  if (text.startsWith('unix:/')) return overSocket(text.slice('unix:'.length), undefined);
  const expected = 'an address such as https://paste.example or unix:/run/pasted/http';
  const service = parseServiceUrl(text);
  if (service === undefined) throw wrongValue('--url', expected, text);
  const { url, isTls, host, port, prefix } = service;
  const target = { place: { host, port }, host: hostOf(host, port), path: `${prefix}/health` };
  return { ...target, name: `${url}/health`, tls: isTls ? {} : undefined };
}

/** Where a service with these settings listens, seen from the same host. */
function bySettings(terminal: Terminal): Asked {
  const { config } = loadConfig(terminal.environment, terminal.readFile);
  // Expects this very certificate, by its bytes: its name is the public host's, and a stranger shows another one.
  const tls = config.tlsCertPath === '' ? undefined : { pinned: ownCertificate(config, terminal) };
  const place = publicPlace(config, 0);
  if ('path' in place) return overSocket(place.path, tls);
  if ('fd' in place || place.port === 0) {
    throw new CommandError(`the settings do not say which port it listens on (${SETTINGS.port.name}): give --url`);
  }
  const host = LOCAL.get(place.host) ?? place.host;
  const address = hostOf(host, place.port);
  const name = `${tls === undefined ? 'http' : 'https'}://${address}/health`;
  return { name, place: { host, port: place.port }, tls, host: address, path: '/health' };
}

const LOCAL: ReadonlyMap<string, string> = new Map([['0.0.0.0', '127.0.0.1'], ['::', '::1']]);

function overSocket(path: string, tls: ProbeTarget['tls']): Asked {
  return { name: `unix:${path}`, place: { path }, tls, host: 'localhost', path: '/health' };
}

function ownCertificate({ tlsCertPath }: Config, terminal: Terminal): Uint8Array {
  const { name } = SETTINGS.tlsCertPath;
  const certificate = firstCertificate(readText(terminal, tlsCertPath, `${name}: the file`));
  if (certificate === undefined) throw new CommandError(`${name}: the file does not begin with a certificate in PEM`);
  return certificate;
}
