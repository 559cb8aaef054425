// `pasted check`; with --files it compares all files beside this one with the list that a release has of its files
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

/** `warn`: works, but someone should look. `fail`: does not work, or will not be safe. No text has a secret in it. */
export interface Finding {
  readonly name: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly text: string;
}

/** Prints one line for each finding; returns the exit code. */
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

/** All files, by the names that releases give them. Follows no link: a link to / would take very long. */
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
    // In pieces, since a file that was put in the place of another may have any size.
    const pieces: AsyncIterable<Uint8Array> = createReadStream(join(entry.parentPath, entry.name));
    for await (const bytes of pieces) digest.update(bytes);
    return digest.digest('hex') === sum ? undefined : 'changed';
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  }
}

/** Whoever put a file there chose its name, so no name may control the operator's terminal. */
function shown(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]/g, '?');
}

/** The members that are read here. Those of type unknown may be anything, and null may stand anywhere. */
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
