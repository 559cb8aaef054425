// Failing storage for a real process: builds the preload library fault.c with the system's compiler, and tells it which
// call of the database's files fails next, and how.

import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type FaultError = 'EDQUOT' | 'EIO' | 'ENOSPC' | 'short';
export type FaultKind = 'none' | 'write' | 'sync' | 'truncate';

export interface Fault {
  /** Which write, sync or truncation fails, counted from 1. */
  readonly call: number;
  /** `short`: a write writes only half and reports that; other calls do what they should. */
  readonly error: FaultError;
  /** Whether every later call fails too, until it is disarmed. */
  readonly lasting: boolean;
}

export interface Delivered {
  /** How many calls there were that could fail. */
  readonly calls: number;
  /** How many calls failed. */
  readonly faults: number;
  /** Of the first call that failed. */
  readonly kind: FaultKind;
}

export interface FaultSwitch {
  /** For the process whose calls are to fail. */
  readonly environment: Readonly<Record<string, string>>;
  arm(fault: Fault): void;
  /** What has failed since `arm`; nothing fails from now on. */
  disarm(): Delivered;
  close(): void;
}

/** Why the library cannot be built here; undefined where it can. */
export function compilerObstacle(): string | undefined {
  if (process.platform !== 'linux') return 'faults are injected on Linux only';
  return spawnSync('cc', ['--version']).status === 0 ? undefined : 'there is no C compiler (cc)';
}

const LAYOUT_BYTES = 40;
const KINDS: readonly FaultKind[] = ['none', 'write', 'sync', 'truncate'];

/** Makes library and control file in `folder`, for the database at that path. */
export function createFaultSwitch(folder: string, databasePath: string): FaultSwitch {
  const source = fileURLToPath(new URL('./fault.c', import.meta.url));
  const library = join(folder, 'fault.so');
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source, '-ldl'];
  const { status, stderr } = spawnSync('cc', flags, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cc ended with ${status}: ${stderr}`);
  const controlPath = join(folder, 'fault.control');
  const descriptor = openSync(controlPath, 'w+');
  writeSync(descriptor, Buffer.alloc(LAYOUT_BYTES), 0, LAYOUT_BYTES, 0);

  return {
    environment: { LD_PRELOAD: library, FAULT_PATH: databasePath, FAULT_CONTROL: controlPath },
    arm({ call, error, lasting }) {
      const layout = Buffer.alloc(LAYOUT_BYTES);
      layout.writeInt32LE(error === 'short' ? 0 : constants.errno[error], 24);
      layout.writeInt32LE(lasting ? 1 : 0, 28);
      writeSync(descriptor, layout, 0, LAYOUT_BYTES, 0);
      layout.writeBigInt64LE(BigInt(call), 0);
      writeSync(descriptor, layout, 0, 8, 0);
    },
    disarm() {
      const layout = Buffer.alloc(LAYOUT_BYTES);
      writeSync(descriptor, layout, 0, 8, 0);
      readSync(descriptor, layout, 0, LAYOUT_BYTES, 0);
      const [calls, faults] = [8, 16].map((offset) => Number(layout.readBigInt64LE(offset))) as [number, number];
      return { calls, faults, kind: KINDS[layout.readInt32LE(32)] ?? 'none' };
    },
    close: () => closeSync(descriptor),
  };
}
