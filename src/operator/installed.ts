// `pasted check`, and with --files whether all files beside this one are those of the list that a release has of them
// (scripts/release, in CycloneDX 1.6). It loads little else, so that it can say which others are missing or broken.

import { createReadStream, type Dirent, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf, orUndefined } from '../core/events.ts';
import { beginSha256 } from '../crypto/digest.ts';
import { CommandError, EXIT, UsageError } from './failures.ts';
import { type Given, report, type Run, type Terminal } from './terminal.ts';

/** The folder that releases call dist/. */
const INSTALLED = dirname(import.meta.dirname);

const PREFIX = 'dist/';

export const check: Run = async (terminal, given) => {
  const path = given.options.get('--files');
  if (path === undefined) return (await import('./check.ts')).checkService(terminal, given);
  if (given.options.has('--full')) throw new UsageError('--files looks at no database: leave out --full');
  return reportFindings(terminal, given, await compareInstalled(readBillOfMaterials(terminal, path)));
};

/** `warn`: works, and someone should look. `fail`: does not work, or will not be safe. No text says a secret. */
export interface Finding {
  readonly name: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly text: string;
}

/** One line for each; the exit code. */
export function reportFindings({ stdout }: Terminal, given: Given, findings: readonly Finding[]): number {
  const hasFailure = findings.some(({ level }) => level === 'fail');
  const lines = findings.map(({ level, name, text }) => `${level} ${name}: ${text}\n`);
  report(stdout, given, { ok: !hasFailure, checks: findings }, lines.join(''));
  return hasFailure ? EXIT.failure : EXIT.success;
}

async function compareInstalled({ version, sums }: ReturnType<typeof readBillOfMaterials>): Promise<Finding[]> {
  const found = new Map(orUndefined(() => filesUnder(INSTALLED, PREFIX)));
  if (found.size === 0) throw new CommandError(`not every folder of ${INSTALLED} can be read`);
  const findings: Finding[] = [];
  for (const name of [...new Set([...sums.keys(), ...found.keys()])].sort()) {
    const text = await differenceOf(sums.get(name), found.get(name));
    if (text !== undefined) findings.push({ name: shown(name), level: 'fail', text });
  }
  const whose = `those of pasted ${version}`;
  if (findings.length === 0) return [{ name: 'files', level: 'ok', text: `${sums.size} in ${INSTALLED} are ${whose}` }];
  return [...findings, { name: 'files', level: 'fail', text: `${findings.length} in ${INSTALLED} are not ${whose}` }];
}

/** By the names that releases give them. No link is followed: one to / would be a long way. */
function filesUnder(folder: string, name: string): (readonly [string, Dirent])[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const inner = `${name}${entry.name}`;
    return entry.isDirectory() ? filesUnder(join(folder, entry.name), `${inner}/`) : [[inner, entry] as const];
  });
}

async function differenceOf(sum: string | undefined, entry: Dirent | undefined): Promise<string | undefined> {
  if (entry === undefined) return 'missing';
  if (sum === undefined) return 'added';
  // A link may lead to the right bytes today, and elsewhere tomorrow.
  if (!entry.isFile()) return 'changed: no plain file';
  try {
    const digest = beginSha256();
    // In pieces: what was put in the place of a file may be of any size.
    const pieces: AsyncIterable<Uint8Array> = createReadStream(join(entry.parentPath, entry.name));
    for await (const bytes of pieces) digest.update(bytes);
    return digest.digest('hex') === sum ? undefined : 'changed';
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  }
}

/** Whoever put a file there named it: no name may write on the operator's terminal. */
function shown(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]/g, '?');
}

/** As far as it is read here. Anything may stand in the place of what is unknown, and null anywhere. */
interface BillOfMaterials {
  readonly bomFormat?: unknown;
  readonly metadata?: { readonly component?: { readonly version?: unknown; readonly components?: unknown } };
}

type Component = { readonly name?: unknown; readonly hashes?: unknown } | null | undefined;
type Hash = { readonly alg?: unknown; readonly content?: unknown } | null | undefined;

function readBillOfMaterials({ readFile }: Terminal, path: string) {
  const unfit = (reason: string) => new UsageError(`--files takes the list of a release: ${path} ${reason}`);
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    throw unfit(`cannot be read (${codeOf(error)})`);
  }
  const bill = orUndefined(() => JSON.parse(text) as BillOfMaterials | null);
  if (bill?.bomFormat !== 'CycloneDX') throw unfit('is no CycloneDX in JSON');
  const { version, components } = bill.metadata?.component ?? {};
  const sums = new Map<string, string>();
  for (const component of [components].flat() as Component[]) {
    const name = component?.name;
    if (typeof name !== 'string' || !name.startsWith(PREFIX)) continue;
    const sum = ([component?.hashes].flat() as Hash[]).find((hash) => hash?.alg === 'SHA-256')?.content;
    if (typeof sum !== 'string' || !/^[0-9a-f]{64}$/.test(sum)) throw unfit(`has no SHA-256 of ${shown(name)}`);
    sums.set(name, sum);
  }
  if (sums.size === 0) throw unfit(`has no file of ${PREFIX}`);
  return { version: typeof version === 'string' ? shown(version) : 'of no version', sums };
}
