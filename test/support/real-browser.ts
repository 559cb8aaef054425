// A real browser without a window, on loopback, with a profile of its own in a temporary folder; it ends with the test.
// chromium.ts and firefox.ts drive it, and tests see the same of both. A test whose browser is not installed is
// skipped, visibly.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Driver, inTime, type Make, type Scheme } from './browser-driver.ts';
import { chromium } from './chromium.ts';
import { firefox } from './firefox.ts';
import { isInstalled } from './programs.ts';

/** Names of programs in Debian. */
export const BROWSERS = ['chromium', 'firefox-esr'] as const;

export type BrowserName = (typeof BROWSERS)[number];

export interface Browser extends Driver {
  readonly name: BrowserName;
  /** First lines of the requests for what is not on loopback; none of them got through. */
  readonly strayed: readonly string[];
}

const MAKES: Readonly<Record<BrowserName, Make>> = { chromium, 'firefox-esr': firefox };

/** Undefined, and the test skipped, where the browser is not installed. */
export async function startBrowser(
  t: Pick<TestContext, 'after' | 'skip'>,
  name: BrowserName,
  { scheme = 'light', bundle }: { scheme?: Scheme; bundle?: Uint8Array } = {},
): Promise<Browser | undefined> {
  if (!isInstalled(t, name) || !isInstalled(t, 'setpriv')) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pasted-browser-'));
  const setup = { profile: join(folder, 'profile'), downloads: join(folder, 'downloads'), scheme, bundle };
  mkdirSync(setup.profile);
  mkdirSync(setup.downloads);
  const strayed: string[] = [];
  const deadEnd = createDeadEnd(strayed);
  let driver: Driver | undefined;
  let started: Awaited<ReturnType<typeof startProgram>> | undefined;
  t.after(async () => {
    await driver?.close().catch(() => {});
    await started?.end();
    deadEnd.close();
    rmSync(folder, { recursive: true });
  });
  await once(deadEnd.listen(0, '127.0.0.1'), 'listening');
  const wholeSetup = { ...setup, proxyPort: (deadEnd.address() as AddressInfo).port };
  const make = MAKES[name];
  started = await startProgram(name, make.prepare(wholeSetup), folder, make.ready);
  driver = await make.drive(started.url, wholeSetup);
  return { ...driver, name, strayed };
}

/** A proxy that lets nothing through and notes what was asked of it. */
function createDeadEnd(strayed: string[]): Server {
  return createServer((socket) => {
    socket.on('error', () => {});
    socket.setEncoding('latin1').once('data', (text: string) => {
      strayed.push(text.split('\r\n', 1)[0]!);
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
  });
}

/** How long it may take to end by itself. */
const ENDING_MS = 5_000;

/** Starts it in its own process group, which ends with it; setpriv(1) ends it with this process, however that ends. */
async function startProgram(program: string, args: readonly string[], home: string, ready: RegExp) {
  // The environment has nothing of the desktop of the person who runs the tests.
  const { PATH = '' } = process.env;
  // Firefox heeds the preference services.settings.server only beside MOZ_REMOTE_SETTINGS_DEVTOOLS.
  const env = { PATH, HOME: home, TMPDIR: home, LANG: 'C.UTF-8', TZ: 'UTC', MOZ_REMOTE_SETTINGS_DEVTOOLS: '1' };
  const words = ['--pdeathsig', 'KILL', '--', program, ...args];
  const child = spawn('setpriv', words, { cwd: home, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  const endGroup = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // They have all ended.
    }
  };
  const end = async (): Promise<void> => {
    const timer = setTimeout(endGroup, ENDING_MS);
    await ended;
    clearTimeout(timer);
    endGroup();
  };
  let printed = '';
  const url = new Promise<string>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      const match = ready.exec(printed);
      if (match !== null) resolve(match[1]!);
    });
    void ended.then(() => reject(new Error(`${program} ended:\n${printed}`)));
  });
  try {
    return { url: await inTime(url, `${program} to start`), end };
  } catch (error) {
    endGroup();
    await end();
    throw error;
  }
}
