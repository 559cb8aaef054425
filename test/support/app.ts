// The production assembly on a free loopback port and a database in a temporary folder, with a clock that tests can move. What a
// test starts through this is stopped and removed when the test ends.

import { createCipheriv } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { App } from '../../src/assembly.ts';
import type { Config } from '../../src/config/settings.ts';
import type { LogEntry } from '../../src/core/events.ts';
import type { Clock } from '../../src/core/time.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { publicPlace } from '../../src/http/engine/listening.ts';
import { createApp } from '../../src/serve.ts';
import { assertCommonHeaders } from './answer-contract.ts';
import { movableClock, type MovableClock } from './clock.ts';
import { testConfig } from './test-config.ts';

export interface RunningApp {
  readonly url: string;
  readonly port: number;
  readonly clock: MovableClock;
  readonly config: Config;
  readonly app: App;
  /** Everything logged so far. */
  readonly logged: LogEntry[];
  /** fetch of a path of this server; redirects are not followed. Fails the test when a common header is missing. */
  request(path: string, options?: RequestInit): Promise<Response>;
  /** Stores a paste and gives its id; fails the test when it is not 201. */
  store(content: string | Uint8Array, headers?: Record<string, string>): Promise<string>;
}

/** No limits but those that a test asks for. */
const UNLIMITED = { powDifficultyBits: 0, rateMax: 0, lookupRateMax: 0, duplicateMax: 0 } as const satisfies Partial<Config>;

/** The real clock, for tests of how long something takes. */
export const RUNNING_CLOCK: Clock = { unixMs: () => Date.now(), monotonicMs: () => performance.now() };

/** `running` is used in place of the movable clock. */
export async function startApp(t: TestContext, overrides: Partial<Config> = {}, running?: Clock): Promise<RunningApp> {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-api-'));
  const config = testConfig({ databasePath: join(folder, 'pasted.db'), ...UNLIMITED, ...overrides });
  const clock = movableClock();
  const logged: LogEntry[] = [];
  // Measuring a password check takes a tenth of a second of CPU, and means nothing under a clock that stands still.
  const measured = running === RUNNING_CLOCK ? {} : { passwordCheckMs: 20 };
  const app = await createApp(config, { clock: running ?? clock, random: randomBytes, newUuid, log: (entry) => logged.push(entry), cores: 2, ...measured });
  t.after(async () => {
    await app.close();
    rmSync(folder, { recursive: true });
  });
  const { url, port } = await app.listen(publicPlace(config, 0));

  // Checks in every test what must hold of every answer.
  async function request(path: string, options: RequestInit = {}): Promise<Response> {
    const response = await fetch(`${url}${path}`, { redirect: 'manual', ...options });
    assertCommonHeaders(response.headers);
    return response;
  }

  async function store(content: string | Uint8Array, headers: Record<string, string> = {}): Promise<string> {
    const response = await request('/', { method: 'POST', body: content as string, headers });
    const answer = await response.json() as { id: string };
    if (response.status !== 201) throw new Error(`storing was answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer.id;
  }

  return { url, port, clock, config, app, logged, request, store };
}

/** Bytes that are not valid UTF-8, the same for the same seed and size. */
export function binaryContent(size: number, seed = 1): Uint8Array {
  const key = Buffer.alloc(16);
  key.writeInt32BE(seed);
  // A key stream: the fastest source of bytes that are the same each time.
  const bytes = new Uint8Array(createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size)));
  bytes[0] = 0xff;
  return bytes;
}
